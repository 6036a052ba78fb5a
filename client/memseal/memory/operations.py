"""Operations: what a record says about memories (vault-format §9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from memseal.errors import FormatError
from memseal.format.counters import most_counter
from memseal.format.fields import U32, Fields
from memseal.memory.memory import Draft
from memseal.memory.texts import ID_SIZE
from memseal.memory.traits import check_traits

Stamp: TypeAlias = bytes
"""Counter (u64) ‖ position (u32) ‖ operation id (16): compares as bytes in the order of operations."""

_PLACE: Final = Struct(">QI")


def make_stamp(counter: int, position: int, operation_id: bytes) -> Stamp:
    """Return the stamp of an operation at its first place."""
    return _PLACE.pack(counter, position) + operation_id


def first_place(stamp: Stamp) -> list[int]:
    """Return counter and position, as a re-emitted operation carries them."""
    return list(_PLACE.unpack_from(stamp))


# Operations and drafts are named tuples, because opening a vault makes one of each for every memory: a frozen dataclass
# of ten fields took five times as long to make as a tuple (3.6 against 0.6 µs).


class Remember(NamedTuple):
    """A new memory, and for a supersede the one it replaces; `row` is its place in the embedding column."""

    id: bytes
    draft: Draft
    written_at: int
    row: int | None = None
    of: bytes | None = None
    reason: str | None = None


class Retraction(NamedTuple):
    """Takes a memory out of recall (`retracted`) or back into it; `at` in µs since 1970 UTC."""

    id: bytes
    target: bytes
    retracted: bool
    at: int
    reason: str | None = None


class Tagging(NamedTuple):
    """Adds tags, and removes those that the named operations added."""

    id: bytes
    target: bytes
    at: int
    add: tuple[str, ...] = ()
    remove: tuple[tuple[str, bytes], ...] = ()


class Embed(NamedTuple):
    """A vector, by its row in the embedding column, for a memory that is already there."""

    id: bytes
    target: bytes
    row: int


class Setting(NamedTuple):
    """A named value of the whole vault."""

    id: bytes
    name: str
    value: Any
    at: int


class Erase(NamedTuple):
    """Removes the content of memories for good; `at` in µs since 1970 UTC."""

    id: bytes
    targets: tuple[bytes, ...]
    at: int
    reason: str | None = None


class Dismiss(NamedTuple):
    """Gives up records of a log, by their indexes: a checkpoint may pass them."""

    id: bytes
    stream: bytes
    records: tuple[int, ...]
    at: int


class Unknown(NamedTuple):
    """An operation of newer software: kept in its log, without effect here."""

    id: bytes
    op: str


Operation: TypeAlias = Remember | Retraction | Tagging | Embed | Setting | Erase | Dismiss | Unknown


# ── encoding ────────────────────────────────────────────────────────────────────────────────────────


def encode_operation(operation: Operation, stamp: Stamp | None = None) -> dict[str, Any]:
    """Return the map of an operation; `stamp` where it is re-emitted."""
    value = _encode(operation)
    if stamp is not None:
        value["stamp"] = first_place(stamp)
    return value


def _encode(operation: Operation) -> dict[str, Any]:
    match operation:
        case Remember():
            return _encode_memory(operation)
        case Retraction(id, target, retracted, at, reason):
            return _present(op="retract" if retracted else "restore", id=id, target=target, at=at, reason=reason)
        case Tagging(id, target, at, add, remove):
            removed = [[tag, added_by] for tag, added_by in remove]
            return {"op": "tag", "id": id, "target": target, "at": at, "add": list(add), "remove": removed}
        case Embed(id, target, row):
            return {"op": "embed", "id": id, "target": target, "embedding": row}
        case Setting(id, name, value, at):
            return {"op": "setting", "id": id, "name": name, "value": value, "at": at}
        case Erase(id, targets, at, reason):
            return _present(op="erase", id=id, targets=list(targets), at=at, reason=reason)
        case Dismiss(id, stream, records, at):
            return {"op": "dismiss", "id": id, "stream": stream, "records": list(records), "at": at}
        case Unknown():
            raise ValueError("an unknown operation is not written anew")


def _encode_memory(operation: Remember) -> dict[str, Any]:
    draft = operation.draft
    value: dict[str, Any] = {
        "op": "remember" if operation.of is None else "supersede",
        "id": operation.id,
        "content": draft.content,
        "kind": draft.kind,
        "source": draft.source,
        "written_at": operation.written_at,
    }
    optional = (
        ("captured_at", draft.captured_at),
        ("author", draft.author),
        ("thread", draft.thread),
        ("position", draft.position),
        ("origin", draft.origin),
        ("embedding", operation.row),
        ("of", operation.of),
        ("reason", operation.reason),
    )
    for name, field in optional:
        if field is not None:
            value[name] = field
    if draft.tags:
        value["tags"] = list(draft.tags)
    return {**value, **draft.others} if draft.others else value


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# ── decoding ────────────────────────────────────────────────────────────────────────────────────────

_I64: Final = 1 << 63
_KNOWN: Final = frozenset(
    """
    op id stamp of
    content kind source written_at captured_at tags author thread position origin embedding reason
    """.split()
)


def decode_operation(value: Any, counter: int, position: int) -> tuple[Operation, Stamp]:
    """Return an operation and its stamp; raises `FormatError` `operation_invalid` or `stamp_invalid`."""
    fields: dict[str, Any] = value
    if type(fields) is not dict:
        _refuse("")
    operation_id = fields.get("id")
    if type(operation_id) is not bytes or len(operation_id) != ID_SIZE:
        _refuse("id")
    if (first := fields.get("stamp")) is not None:
        counter, position = _decode_place(first, counter)
    decode = _decode_memory if fields.get("op") == "remember" else _decode_other
    return decode(fields, operation_id), make_stamp(counter, position, operation_id)


def _refuse(name: str) -> NoReturn:
    place = f"operation.{name}" if name else "operation"
    raise FormatError("operation_invalid", f"{place} is missing or not what it must be")


def _decode_place(first: Any, counter: int) -> tuple[int, int]:
    place: list[Any] = first
    if type(place) is not list or len(place) != 2 or not all(type(number) is int and number >= 0 for number in place):
        raise FormatError("stamp_invalid", "a re-emitted operation has no valid stamp")
    if place[0] >= counter or place[1] >= U32:
        raise FormatError("stamp_invalid", "a re-emitted operation claims to be newer than its record")
    return place[0], place[1]


def _decode_memory(value: dict[str, Any], operation_id: bytes, of: bytes | None = None) -> Remember:
    # Written out, because opening a vault does this for every memory: a table of names and types took twice as long.
    get = value.get
    content, kind, source, written_at = get("content"), get("kind"), get("source"), get("written_at")
    captured_at, position, row, tags = get("captured_at"), get("position"), get("embedding"), get("tags")
    author, thread, origin, reason = get("author"), get("thread"), get("origin"), get("reason")
    if not (type(content) is type(kind) is type(source) is str and content and kind and source):
        _refuse("content, kind or source")
    if not (
        (type(written_at) is int and -_I64 <= written_at < _I64)
        and (captured_at is None or (type(captured_at) is int and -_I64 <= captured_at < _I64))
        and (position is None or (type(position) is int and -_I64 <= position < _I64))
        and (row is None or (type(row) is int and 0 <= row < U32))
    ):
        _refuse("written_at, captured_at, position or embedding")
    if not (
        (author is None or type(author) is str)
        and (thread is None or type(thread) is str)
        and (origin is None or type(origin) is str)
        and (reason is None or type(reason) is str)
    ):
        _refuse("author, thread, origin or reason")
    texts = () if tags is None else _texts(tags, "tags")
    others: dict[str, Any] = {}
    if not _KNOWN.issuperset(value):
        others = {name: more for name, more in value.items() if name not in _KNOWN}
        check_traits(others)
    draft = Draft(content, source, kind, texts, author, thread, position, captured_at, origin, others)
    return Remember(operation_id, draft, written_at, row, of, None if of is None else reason)


def _decode_other(value: dict[str, Any], operation_id: bytes) -> Operation:
    fields = Fields(value, "operation_invalid", "operation")
    match fields.text("op"):
        case "supersede":
            return _decode_memory(value, operation_id, fields.size("of", ID_SIZE))
        case "retract" | "restore" as name:
            target, at = fields.size("target", ID_SIZE), _time(fields, "at")
            return Retraction(operation_id, target, name == "retract", at, _reason(fields))
        case "tag":
            add, removed = _texts(fields.get("add"), "add"), fields.tuples("remove", 2)
            tags = _texts([tag for tag, _ in removed], "remove")
            remove = tuple(zip(tags, (_id(added_by, "remove") for _, added_by in removed), strict=True))
            return Tagging(operation_id, fields.size("target", ID_SIZE), _time(fields, "at"), add, remove)
        case "embed":
            return Embed(operation_id, fields.size("target", ID_SIZE), fields.count("embedding"))
        case "setting":
            return Setting(operation_id, fields.text("name"), fields.get("value"), _time(fields, "at"))
        case "erase":
            targets = tuple(_id(target, "targets") for target in _some(fields, "targets"))
            return Erase(operation_id, targets, _time(fields, "at"), _reason(fields))
        case "dismiss":
            records = tuple(_index(record) for record in _some(fields, "records"))
            return Dismiss(operation_id, fields.size("stream", ID_SIZE), records, _time(fields, "at"))
        case other:
            return Unknown(operation_id, other)


def _texts(values: Any, name: str) -> tuple[str, ...]:
    texts: list[Any] = values
    if type(texts) is not list:
        _refuse(name)
    for text in texts:
        if type(text) is not str or not text:
            _refuse(name)
    return tuple(texts)


def _some(fields: Fields, name: str) -> list[Any]:
    values = fields.array(name)
    fields.check(bool(values), name)
    return values


def _id(value: Any, name: str) -> bytes:
    if type(value) is not bytes or len(value) != ID_SIZE:
        _refuse(name)
    return value


def _index(value: Any) -> int:
    if type(value) is not int or not 0 <= value < U32:
        _refuse("records")
    return value


def _reason(fields: Fields) -> str | None:
    return None if fields.get("reason") is None else fields.text("reason")


def _time(fields: Fields, name: str) -> int:
    return fields.count(name, -_I64, _I64)


# ── the rest of a record's meta ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Head:
    """Where another log ended when a record was written: its last record's index, the chain after it, its counter."""

    stream_id: bytes
    index: int
    chain: bytes
    counter: int


class Meta(NamedTuple):
    """A record's meta: counters of the record before and of itself, heads of other logs, operations not yet decoded."""

    previous: int
    counter: int
    heads: tuple[Head, ...]
    operations: Sequence[Any]


def counter_after(previous: int, heads: Sequence[Head]) -> int:
    """Return the Lamport counter of a record, by that of the record before in its log and the heads that it names."""
    return 1 + (max(previous, *(head.counter for head in heads)) if heads else previous)


def decode_meta(value: Mapping[str, Any], epoch: int) -> Meta:
    """Return the meta of a record of this epoch; raises `FormatError`."""
    previous, heads = value.get("previous"), value.get("heads")
    operations: list[Any] | None = value.get("operations")
    if previous is None:
        previous = 0
    elif type(previous) is not int or not 0 <= previous < 1 << 64:
        _refuse_meta("previous")
    if operations is not None and type(operations) is not list:
        _refuse_meta("operations")
    read: tuple[Head, ...] = ()
    if heads is not None and (type(heads) is not list or heads):
        read = tuple(_decode_head(row) for row in Fields(value, "operation_invalid", "meta").tuples("heads", 4))
    counter = counter_after(previous, read)
    if counter > most_counter(epoch):
        raise FormatError("counter_limit", "a record's counter is beyond the highest of its epoch")
    return Meta(previous, counter, read, operations or ())


def _refuse_meta(name: str) -> NoReturn:
    raise FormatError("operation_invalid", f"meta.{name} is missing or not what it must be")


def _decode_head(row: list[Any]) -> Head:
    names = ("stream", "index", "chain", "counter")
    fields = Fields(dict(zip(names, row, strict=True)), "operation_invalid", "head")
    return Head(
        fields.size("stream", ID_SIZE),
        fields.count("index"),
        fields.size("chain", 32),
        fields.count("counter", below=1 << 64),
    )


def encode_meta(previous: int, heads: tuple[Head, ...], operations: list[dict[str, Any]], epoch: int) -> dict[str, Any]:
    """Return a record's meta as it is stored; `FormatError` `counter_limit` where no reader would count it."""
    if counter_after(previous, heads) > most_counter(epoch):
        raise FormatError("counter_limit", "the counters of this epoch are used up: sync with the server to begin one")
    rows = [[head.stream_id, head.index, head.chain, head.counter] for head in heads]
    return {"previous": previous, "heads": rows, "operations": operations}
