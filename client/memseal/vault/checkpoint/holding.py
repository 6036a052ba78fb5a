"""What a checkpoint says of the operations that a log is about to lose to it (vault-format §8b)."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memseal.format.content import Column
from memseal.format.floor import Floor
from memseal.format.preamble import ID_SIZE
from memseal.format.primitives import sha256
from memseal.format.values import encode_value
from memseal.index.view import EMBEDDING, View
from memseal.memory.doubles import double_id, ordered
from memseal.memory.operations import Embed, Operation, Remember, Stamp
from memseal.vault.checkpoint.gleaning import Gleaned, Value, decoded_values, glean, log_values, vector_codes
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.logbook import Logbook

_MEMORIES = frozenset(("remember", "supersede"))
_EMBED = b"embed"
_PLACE_SIZE = 12  # counter and position of a stamp
# An import makes the same memory on two devices, and a vector has another row in each record.
_DIFFER = frozenset(("stamp", "written_at", EMBEDDING))


class Said(NamedTuple):
    """One operation with its stamp, as a map, and what tells its vector from others (empty: it has none)."""

    operation: Operation
    stamp: Stamp
    value: Value
    vector: bytes


class Changed(NamedTuple):
    """A memory that a checkpoint has with other content, and as a map."""

    operation: Remember
    value: Value


@dataclass
class Saved:
    """What is to be written again, and what a checkpoint has left out or changed of logs that it covers, counted."""

    batches: list[Batch] = field(default_factory=list[Batch])
    left_out: int = 0
    changed: int = 0
    vectors: int = 0


def saved_from(
    logbook: Logbook,
    floor: Floor,
    said: Iterable[Said],
    logs: Mapping[bytes, bool],
    before: Iterable[tuple[Sequence[Value], Sequence[Column]]],
) -> Saved:
    """Return what logs, and the checkpoint `before`, are about to lose to a floor whose checkpoint says this.

    `logs`: whether it truly covers each.
    """
    held, saved, view = _Held(said), Saved(), logbook.view
    dismissed = view.state.erasures.dismissed()
    for stream_id, covered in logs.items():
        epoch = logbook.logs[stream_id].stream.epoch
        for record in logbook.records_to_drop(stream_id, floor.rows[stream_id]):
            columns = record.content.columns
            # A record that its maker could not read, and gave up, is no fault of its.
            named = covered and (stream_id, record.place.index) not in dismissed
            _save(view, held, log_values(record.content, epoch), columns, floor, saved, named=named)
    for values, former in before:
        _save(view, held, values, former, floor, saved, named=True)
    return saved


def _save(
    view: View,
    held: "_Held",
    values: Iterable[Value],
    columns: Sequence[Column],
    floor: Floor,
    saved: Saved,
    *,
    named: bool,
) -> None:
    """Add what one record says, still counts, and is not held."""
    left_out, changed, bare = held.compare(said_in(view, values, columns, 1 << 53))
    true = [each.value for each in changed if view.state.doubles.holds(each.operation)]
    gleaned = glean(view, [*left_out, *true], columns, 1 << 53)
    if named:
        saved.left_out += sum(value["op"] in _MEMORIES for value in gleaned.values)
    # Those that do not count any more under their ids are kept under others (`keep_doubles`).
    saved.changed += len(changed)
    vectors = _embedded(view, bare, columns, floor.digest)
    saved.vectors += len(vectors.values)
    gleaned.take(vectors)
    if gleaned.values:
        model = "" if view.pinned is None else view.pinned[0]
        saved.batches.append(Batch(columns=gleaned.columns(model), values=gleaned.values))


def said_in(view: View, values: Iterable[Value], columns: Sequence[Column], highest: int) -> Iterator[Said]:
    """Yield what a record says, so that it can be compared; stamps are at most `highest`."""
    codes = vector_codes(view, columns)
    for operation, stamp, value in decoded_values(values, highest):
        row = operation.row if isinstance(operation, Remember | Embed) else None
        vector = b"" if row is None or row >= len(codes) else _hashed(codes[row].tobytes())
        yield Said(operation, stamp, value, vector)


class _Held:
    """The operations of a checkpoint: a few bytes of each, for there may be millions."""

    def __init__(self, said: Iterable[Said]) -> None:
        """Take all that a checkpoint says."""
        self._memories = dict[bytes, dict[bytes, bytes]]()
        self._others = set[bytes]()
        self._vectors = set[bytes]()
        for each in said:
            mark = _mark(each)
            if isinstance(each.operation, Remember):
                place, content = mark[:_PLACE_SIZE], mark[_PLACE_SIZE:]
                places = self._memories.setdefault(each.operation.id, {})
                places[content] = min(place, places.get(content, place))
            else:
                self._others.add(mark)
            if each.vector:
                self._vectors.add(each.stamp[:_PLACE_SIZE] + each.vector)

    def compare(self, said: Iterable[Said]) -> tuple[list[Value], list[Changed], list[Said]]:
        """Return what is left out of a log, the memories that are there with other content, and those without a vector.

        A memory that is there with a lower stamp is not left out: of two with one id it counts (§10). Nor is one that
        is there under the id that it has beside another.
        """
        left_out, changed, bare = list[Value](), list[Changed](), list[Said]()
        for each in said:
            mark = _mark(each)
            if isinstance(each.operation, Remember):
                place, content = mark[:_PLACE_SIZE], mark[_PLACE_SIZE:]
                held = self._memories.get(each.operation.id)
                if held is None or held.get(content, b"") > place:
                    left_out.append(each.value)
                elif content not in held and double_id(each.operation) not in self._memories:
                    changed.append(Changed(each.operation, each.value))
                elif held.get(content) == place and self._lacks(each):
                    bare.append(each)
            elif mark not in self._others:
                left_out.append(each.value)
            elif self._lacks(each):
                bare.append(each)
        return left_out, changed, bare

    def _lacks(self, said: Said) -> bool:
        return bool(said.vector) and said.stamp[:_PLACE_SIZE] + said.vector not in self._vectors


def _embedded(view: View, said: Iterable[Said], columns: Sequence[Column], digest: bytes) -> Gleaned:
    """Return the vectors that count, and that a checkpoint does not have, as operations of their own."""
    gleaned, codes = Gleaned(), vector_codes(view, columns)
    for operation, stamp, _, _ in said:
        match operation:
            case Remember(id=target, row=int(row)) | Embed(target=target, row=row):
                counts = target not in view.state.erasures.ids and view.state.vector_stamp(target) in (None, stamp)
            case _:
                continue
        if counts:
            embed_id = sha256(digest + operation.id + _EMBED)[:ID_SIZE]
            gleaned.values.append({"op": "embed", "id": embed_id, "target": target, EMBEDDING: len(gleaned.codes)})
            gleaned.codes.append(codes[row])
    return gleaned


def _mark(said: Said) -> bytes:
    """Return the place of an operation's stamp, and what tells it from another with the same."""
    if not isinstance(said.operation, Remember):
        return said.stamp[:_PLACE_SIZE] + _print(said.value)
    draft = said.operation.draft
    others = encode_value(ordered(dict(draft.others))) if draft.others else b""
    return said.stamp[:_PLACE_SIZE] + _hashed((draft[:-1], said.operation.of, said.operation.reason, others))


def _hashed(value: Hashable) -> bytes:
    # Python's own hash is keyed anew in each process, so that nobody can aim at it, and takes a tenth of the time.
    return hash(value).to_bytes(8, "big", signed=True)


def _print(value: Value) -> bytes:
    said = {name: each for name, each in value.items() if name not in _DIFFER and each is not None}
    return sha256(encode_value(ordered(said)))
