"""Which operations of a record still have an effect, so that a checkpoint has to hold them (vault-format §8b)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memseal.errors import FormatError
from memseal.format.content import Column, Content
from memseal.index.view import EMBEDDING, View
from memseal.memory.operations import (
    Embed,
    Operation,
    Remember,
    Retraction,
    Setting,
    Stamp,
    Tagging,
    decode_meta,
    decode_operation,
)
from memseal.vault.folder.batch import restamped

Value = dict[str, Any]


@dataclass
class Gleaned:
    """Operations as maps that carry their stamps, and the float16 vectors they name by row."""

    values: list[Value] = field(default_factory=list[Value])
    codes: list[NDArray[np.float16]] = field(default_factory=list[NDArray[np.float16]])
    dropped: int = 0

    def take(self, other: "Gleaned") -> None:
        """Add what another record has; its rows come after those that are here."""
        first = len(self.codes)
        self.values += [_moved(value, first) for value in other.values] if first else other.values
        self.codes += other.codes
        self.dropped += other.dropped

    def columns(self, model: str) -> tuple[Column, ...]:
        """Return the vectors as a record's column."""
        if not self.codes:
            return ()
        matrix = np.stack(self.codes).astype("<f2", copy=False)
        return (Column(EMBEDDING, model, "f2", matrix.shape[1], matrix.shape[0], matrix.tobytes()),)


def _moved(value: Value, rows: int) -> Value:
    row = value.get(EMBEDDING)
    return value if row is None else {**value, EMBEDDING: row + rows}


def log_values(content: Content, epoch: int) -> list[Value]:
    """Return the operations of a record of this epoch's log, each with the stamp of its first place."""
    try:
        meta = decode_meta(content.meta, epoch)
    except FormatError:
        return []  # it has no effect anywhere
    operations: list[Value] = [value if type(value) is dict else {} for value in meta.operations]
    return [restamped(value, meta.counter, position) for position, value in enumerate(operations)]


def glean(view: View, values: Sequence[Value], columns: Sequence[Column], highest: int) -> Gleaned:
    """Return what of a record still has an effect in the open state; `highest` is the highest counter there may be."""
    decoded = list(decoded_values(values, highest))
    stamps = view.state.stamps_of([operation.id for operation, _, _ in decoded if isinstance(operation, Remember)])
    codes, gleaned = vector_codes(view, columns), Gleaned()
    for operation, stamp, value in decoded:
        if not _counts(view, operation, stamp, stamps):
            gleaned.dropped += 1
            continue
        kept = dict(value)
        row = operation.row if isinstance(operation, Remember | Embed) else None
        if row is not None:
            del kept[EMBEDDING]
            if _is_vector(view, operation, stamp, stamps) and row < len(codes):
                kept[EMBEDDING] = len(gleaned.codes)
                gleaned.codes.append(codes[row])
            elif isinstance(operation, Embed):
                gleaned.dropped += 1
                continue
        gleaned.values.append(kept)
    return gleaned


def decoded_values(values: Iterable[Value], highest: int) -> Iterator[tuple[Operation, Stamp, Value]]:
    """Yield operations with their stamps, which are at most `highest`, and as maps; what is none is left out."""
    for position, value in enumerate(values):
        try:
            operation, stamp = decode_operation(value, highest + 1, position)
        except FormatError:
            continue  # it was noted when the record was read, and has no effect anywhere
        yield operation, stamp, value


def _counts(view: View, operation: Operation, stamp: Stamp, stamps: dict[bytes, tuple[Stamp, Stamp | None]]) -> bool:
    erased = view.state.erasures.ids
    match operation:
        case Remember():
            known = stamps.get(operation.id)
            return known is not None and known[0] == stamp
        case Retraction() | Tagging() | Embed():
            return operation.target not in erased
        case Setting():
            # What a newer value replaced may be the text of a proposal that was decided: it has to go.
            return view.state.setting_stamp(operation.name) == stamp
        case _:
            return True


def _is_vector(view: View, operation: Operation, stamp: Stamp, stamps: dict[bytes, tuple[Stamp, Stamp | None]]) -> bool:
    if isinstance(operation, Remember):
        return stamps[operation.id][1] == stamp
    return isinstance(operation, Embed) and view.state.vector_stamp(operation.target) in (None, stamp)


def vector_codes(view: View, columns: Sequence[Column]) -> NDArray[np.float16]:
    """Return the vectors of a record, if they are of the pinned model."""
    if not columns or view.pinned != (columns[0].model, columns[0].width):
        return np.empty((0, 1), np.float16)
    return np.frombuffer(columns[0].content, "<f2").reshape(columns[0].rows, columns[0].width)
