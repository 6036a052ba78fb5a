"""Operations: what a record says about memories (vault-format §9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from memseal.errors import FormatError
from memseal.format.fields import U53, Fields
from memseal.memory.memory import ID_SIZE, Draft

Stamp: TypeAlias = bytes
"""Counter (u64) ‖ position (u32) ‖ operation id (16): compares as bytes in the order of operations."""


def make_stamp(counter: int, position: int, operation_id: bytes) -> Stamp:
    """Return the stamp of an operation at its first place."""
    return counter.to_bytes(8, "big") + position.to_bytes(4, "big") + operation_id


def first_place(stamp: Stamp) -> list[int]:
    """Return counter and position, as a re-emitted operation carries them."""
    return [int.from_bytes(stamp[:8], "big"), int.from_bytes(stamp[8:12], "big")]


@dataclass(frozen=True, slots=True)
class Remember:
    """A new memory, and for a supersede the one it replaces; `row` is its place in the embedding column."""

    id: bytes
    draft: Draft
    written_at: int
    row: int | None = None
    of: bytes | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Retraction:
    """Takes a memory out of recall (`retracted`) or back into it; `at` in µs since 1970 UTC."""

    id: bytes
    target: bytes
    retracted: bool
    at: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Tagging:
    """Adds tags, and removes those that the named operations added."""

    id: bytes
    target: bytes
    at: int
    add: tuple[str, ...] = ()
    remove: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """A vector, by its row in the embedding column, for a memory that is already there."""

    id: bytes
    target: bytes
    row: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A named value of the whole vault."""

    id: bytes
    name: str
    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """An operation of newer software: kept in its log, without effect here."""

    id: bytes
    op: str


Operation: TypeAlias = Remember | Retraction | Tagging | Embed | Setting | Unknown


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

_KNOWN = frozenset(
    "op id stamp content kind source written_at captured_at tags author thread position origin embedding of reason".split()
)
_I64 = 1 << 63


def decode_operation(value: Any, counter: int, position: int) -> tuple[Operation, Stamp]:
    """Return an operation and its stamp; raises `FormatError` `operation_invalid` or `stamp_invalid`."""
    fields = Fields(value, "operation_invalid", "operation")
    operation_id = fields.size("id", ID_SIZE)
    place = (counter, position)
    if (first := fields.get("stamp")) is not None:
        place = _decode_place(first, counter)
    return _decode(fields, operation_id), make_stamp(*place, operation_id)


def _decode_place(first: Any, counter: int) -> tuple[int, int]:
    if type(first) is not list or len(first) != 2 or not all(type(number) is int and number >= 0 for number in first):
        raise FormatError("stamp_invalid", "a re-emitted operation has no valid stamp")
    if first[0] >= counter or first[1] >= 1 << 32:
        raise FormatError("stamp_invalid", "a re-emitted operation claims to be newer than its record")
    return first[0], first[1]


def _decode(fields: Fields, operation_id: bytes) -> Operation:
    match fields.text("op"):
        case "remember":
            return _decode_memory(fields, operation_id, of=None)
        case "supersede":
            return _decode_memory(fields, operation_id, of=fields.size("of", ID_SIZE))
        case "retract" | "restore" as name:
            reason = _optional_text(fields, "reason")
            return Retraction(
                operation_id, fields.size("target", ID_SIZE), name == "retract", _integer(fields, "at"), reason
            )
        case "tag":
            add = tuple(_stored_text(fields, tag) for tag in fields.array("add"))
            remove = tuple((_stored_text(fields, tag), _id(added_by)) for tag, added_by in fields.tuples("remove", 2))
            return Tagging(operation_id, fields.size("target", ID_SIZE), _integer(fields, "at"), add, remove)
        case "embed":
            return Embed(operation_id, fields.size("target", ID_SIZE), fields.count("embedding"))
        case "setting":
            return Setting(operation_id, fields.text("name"), fields.get("value"), _integer(fields, "at"))
        case other:
            return Unknown(operation_id, other)


def _decode_memory(fields: Fields, operation_id: bytes, of: bytes | None) -> Remember:
    draft = Draft(
        content=_required_text(fields, "content"),
        source=_required_text(fields, "source"),
        kind=_required_text(fields, "kind"),
        tags=() if fields.get("tags") is None else tuple(_stored_text(fields, tag) for tag in fields.array("tags")),
        author=_optional_text(fields, "author"),
        thread=_optional_text(fields, "thread"),
        position=_optional_integer(fields, "position"),
        captured_at=_optional_integer(fields, "captured_at"),
        origin=_optional_text(fields, "origin"),
        others=fields.others(_KNOWN),
    )
    row = None if fields.get("embedding") is None else fields.count("embedding")
    return Remember(operation_id, draft, _integer(fields, "written_at"), row, of, _optional_text(fields, "reason"))


def _required_text(fields: Fields, name: str) -> str:
    value = fields.text(name)
    fields.check(bool(value), name)
    return value


def _optional_text(fields: Fields, name: str) -> str | None:
    return None if fields.get(name) is None else fields.text(name)


def _stored_text(fields: Fields, value: Any) -> str:
    fields.check(type(value) is str and bool(value), "tags")
    return str(value)


def _id(value: Any) -> bytes:
    return Fields({"id": value}, "operation_invalid", "operation").size("id", ID_SIZE)


def _integer(fields: Fields, name: str) -> int:
    value = _optional_integer(fields, name)
    fields.check(value is not None, name)
    return value or 0


def _optional_integer(fields: Fields, name: str) -> int | None:
    value = fields.get(name)
    fields.check(value is None or (type(value) is int and -_I64 <= value < _I64), name)
    return None if value is None else int(value)


# ── the rest of a record's meta ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Head:
    """Where another log ended when a record was written: its last record's index, the chain after it, its counter."""

    stream_id: bytes
    index: int
    chain: bytes
    counter: int


@dataclass(frozen=True, slots=True)
class Meta:
    """A record's meta: the counter of the record before, heads of other logs, operations not yet decoded."""

    previous: int
    heads: tuple[Head, ...]
    operations: tuple[Any, ...]

    @property
    def counter(self) -> int:
        """The record's Lamport counter."""
        return 1 + max(self.previous, max((head.counter for head in self.heads), default=0))


def decode_meta(value: Mapping[str, Any]) -> Meta:
    """Return a record's meta; raises `FormatError`."""
    fields = Fields(value, "operation_invalid", "meta")
    previous = 0 if fields.get("previous") is None else fields.count("previous", below=1 << 64)
    heads = () if fields.get("heads") is None else tuple(_decode_head(row) for row in fields.tuples("heads", 4))
    operations = () if fields.get("operations") is None else tuple(fields.array("operations"))
    meta = Meta(previous, heads, operations)
    if meta.counter > U53:
        raise FormatError("counter_limit", "a record's counter is beyond 2^53")
    return meta


def _decode_head(row: list[Any]) -> Head:
    names = ("stream", "index", "chain", "counter")
    fields = Fields(dict(zip(names, row, strict=True)), "operation_invalid", "head")
    return Head(
        fields.size("stream", ID_SIZE),
        fields.count("index"),
        fields.size("chain", 32),
        fields.count("counter", below=1 << 64),
    )


def encode_meta(previous: int, heads: tuple[Head, ...], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a record's meta as it is stored."""
    rows = [[head.stream_id, head.index, head.chain, head.counter] for head in heads]
    return {"previous": previous, "heads": rows, "operations": operations}
