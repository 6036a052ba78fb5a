"""All that is open in RAM: the state and the vectors, fed record by record."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memseal.errors import Finding, FormatError
from memseal.format.content import Column
from memseal.index.lexical import LexicalIndex
from memseal.index.masks import Masks
from memseal.index.state import Stamped, VaultState
from memseal.index.token_codes import TokenCodes
from memseal.index.vectors import VectorIndex
from memseal.memory.operations import (
    Dismiss,
    Embed,
    Erase,
    Meta,
    Operation,
    Remember,
    Retraction,
    Setting,
    Stamp,
    Tagging,
    Unknown,
    decode_operation,
)

EMBEDDING = "embedding"
"""The setting that pins model and dimension, and the column's name."""
DIMENSION_LIMIT = 1 << 16
_OFF_UNIT = 0.04
"""A pin beyond it pins nothing: models have thousands, and no device may make the others run out of memory."""

_Other: TypeAlias = Retraction | Tagging | Embed | Erase | Dismiss | Unknown


class Said(NamedTuple):
    """What one record says: operations with their stamps, and the columns whose rows they name."""

    operations: Sequence[tuple[Operation, Stamp]]
    columns: Sequence[Column]
    where: str


def decoded(meta: Meta, columns: Sequence[Column], where: str) -> tuple[Said, list[Finding]]:
    """Return what a log's record says, and what of it no operation is."""
    operations: list[tuple[Operation, Stamp]] = []
    findings: list[Finding] = []
    for position, value in enumerate(meta.operations):
        try:
            operations.append(decode_operation(value, meta.counter, position))
        except FormatError as error:
            findings.append(Finding(error.code, f"{where}.{position}", str(error)))
    return Said(operations, columns, where), findings


class View:
    """State, words and vectors of a vault; `vectors` is None until a model is pinned."""

    def __init__(
        self,
        state: VaultState | None = None,
        vectors: VectorIndex | None = None,
        pin: tuple[str, int] | None = None,
    ) -> None:
        """Begin empty, or from what a cache held; with `pin`, take that model's vectors whatever the settings say."""
        self.state = state or VaultState()
        self.lexical = LexicalIndex(self.state.connection)
        self.masks = Masks(self.state.connection)
        self.vectors = vectors
        self.pinned: tuple[str, int] | None = None
        self.foreign_vectors = 0
        """Vectors that were passed over because they are of another model than the pinned one."""
        self.pin_moved = False
        """Whether the pin changed after vectors had come: the view must be built anew from the logs."""
        self.loading = False
        """While logs are read: what erases leave behind is scrubbed once, at the end."""
        self._scrub_due = False
        self.token_codes = TokenCodes()
        self.taken_ids = set[bytes]()
        """Ids that came again with other content, and were not named yet."""
        self.content_went = False
        """Whether something was erased since this was set to False: a cache on disk still has it."""
        self._seen = 0 if vectors is None else len(vectors)
        self._fixed = pin is not None
        self._move_pin(self.state_pin() if pin is None else pin)

    def close(self) -> None:
        """Forget everything, and end what goes on in the background."""
        if self.vectors is not None:
            self.vectors.close()
        self.lexical.close()
        self.state.close()
        self.vectors = None
        self.token_codes.clear()

    # ── applying ────────────────────────────────────────────────────────────────────────────────────

    def apply_decoded(
        self,
        operations: Sequence[tuple[Operation, Stamp]],
        columns: Sequence[Column],
        where: str,
        covered: bool = False,
    ) -> list[Finding]:
        """Apply operations with their stamps, given the columns of their record; `covered`: it is a checkpoint's."""
        return self.apply_all([Said(operations, columns, where)], covered)

    def apply_all(self, records: Sequence[Said], covered: bool = False) -> list[Finding]:
        """Apply what several records say, at once: in small records most of the time is what each statement costs."""
        with self.state.transaction():
            findings = self._apply(records, covered)
        if self._scrub_due and not self.loading:
            self.scrub()
        return findings

    def scrub(self) -> None:
        """Leave nothing of erased memories in the state's bytes, where something may be left."""
        if self._scrub_due:
            self.state.scrub()
            self._scrub_due = False

    def _apply(self, records: Sequence[Said], covered: bool) -> list[Finding]:
        new, others = list[tuple[int, Remember, Stamp]](), list[tuple[int, _Other, Stamp]]()
        for number, record in enumerate(records):
            for operation, stamp in record.operations:
                if isinstance(operation, Remember):
                    new.append((number, operation, stamp))
                elif isinstance(operation, Setting):
                    self._set(operation, stamp)
                else:
                    others.append((number, operation, stamp))
        codes = self._codes(records)
        findings = codes.findings(records)
        if new:
            rows = [codes.row_of(number, operation.row) for number, operation, _ in new]
            stamped = [
                Stamped(operation, stamp, row is not None) for (_, operation, stamp), row in zip(new, rows, strict=True)
            ]
            self._remember(stamped, rows, codes.values, covered)
        for number, operation, stamp in others:
            match operation:
                case Retraction():
                    self.state.retract(operation, stamp)
                case Tagging():
                    self.state.tag(operation)
                case Embed():
                    row = codes.row_of(number, operation.row)
                    if row is not None:
                        self._embed(operation.target, stamp, codes.values[row])
                case Erase():
                    self._erase(operation, stamp, covered)
                case Dismiss():
                    self.state.erasures.dismiss(operation)
                case unknown:
                    findings.append(_not_known(unknown, records[number].where))
        self._drop_vectors()
        return findings

    def _set(self, operation: Setting, stamp: Stamp) -> None:
        self.state.apply_setting(operation, stamp)
        if operation.name == EMBEDDING:
            self._follow_pin()

    def _remember(
        self, new: Sequence[Stamped], rows: Sequence[int | None], codes: NDArray[np.float16], covered: bool
    ) -> None:
        erased = self.state.erasures.ids
        if erased and not covered:
            self.state.erasures.note_reappeared(each.operation.id for each in new if each.operation.id in erased)
        numbers = self.state.remember(new)
        self.taken_ids.update(self.state.take_taken())
        self._drop_vectors()
        pairs = [(number, row) for number, row in zip(numbers, rows, strict=True) if number and row is not None]
        if pairs and self.vectors is not None:
            chosen = np.array([row for _, row in pairs])
            every = chosen.size == len(codes) and bool((chosen == np.arange(chosen.size)).all())
            self.vectors.add(np.array([number for number, _ in pairs], np.int64), codes if every else codes[chosen])
            self._seen += len(pairs)
        for memory_id, stamp, code in self.state.take_early_vectors(each.operation.id for each in new):
            self._embed(memory_id, stamp, np.frombuffer(code, "<f2"))

    def _erase(self, operation: Erase, stamp: Stamp, covered: bool) -> None:
        if self.state.erase(operation, stamp, covered):
            self._scrub_due = self.content_went = True
            self.token_codes.clear()

    def _drop_vectors(self) -> None:
        for number in self.state.take_dropped_vectors():
            if self.vectors is not None:
                self.vectors.drop(number)

    def _embed(self, target: bytes, stamp: Stamp, code: NDArray[np.float16]) -> None:
        number = self.state.place_vector(target, stamp, code.astype("<f2").tobytes())
        if number is None:
            number = self._tied(target, stamp, code)
        if number is not None and self.vectors is not None:
            self.vectors.add(np.array([number], np.int64), code.reshape(1, -1))
            self.state.note_vector(number, stamp)
            self._seen += 1

    def _tied(self, target: bytes, stamp: Stamp, code: NDArray[np.float16]) -> int | None:
        """Return the `n` whose vector has the same stamp and higher bytes, or None: of two the lower counts."""
        number = None if self.state.vector_stamp(target) != stamp else self.state.number_with(target)
        if number is None or self.vectors is None or number not in self.vectors:
            return None
        held = self.vectors.vectors(np.array([number], np.int64))[0].astype("<f2").tobytes()
        return number if code.astype("<f2").tobytes() < held else None

    def _codes(self, records: Sequence[Said]) -> "_Codes":
        """Return the vectors of the pinned model in records."""
        pieces, starts, count = list[bytes | memoryview](), list[int](), 0
        for record in records:
            starts.append(count)
            column = self._column(record)
            if column is not None:
                pieces.append(column.content)
                count += column.rows
            elif record.columns:
                self.foreign_vectors += record.columns[0].rows
        starts.append(count)
        if not count or self.pinned is None:
            return _Codes(np.empty((0, 1), np.float16), starts, None)
        codes = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), "<f2").reshape(count, self.pinned[1])
        squares: NDArray[np.float32] = np.einsum("ij,ij->i", codes, codes, dtype=np.float32)
        # One that is longer would come before all others in every search; float16 itself is off by less than 0.001.
        usable: NDArray[np.bool_] = np.abs(squares - 1) < _OFF_UNIT
        return _Codes(codes, starts, None if usable.all() else usable)

    def _column(self, record: Said) -> Column | None:
        """Return a record's vectors, if they are of the pinned model."""
        if not record.columns or self.vectors is None:
            return None
        column = record.columns[0]
        return column if self.pinned == (column.model, column.width) else None

    # ── the pinned model ────────────────────────────────────────────────────────────────────────────

    def state_pin(self) -> tuple[str, int] | None:
        """Return model and dimension as the settings name them."""
        match self.state.setting(EMBEDDING):
            case {"model": str(model), "dimension": dimension} if type(dimension) is int:
                return (model, dimension) if 0 < dimension <= DIMENSION_LIMIT else None
            case _:
                return None

    def release_pin(self) -> None:
        """Follow the settings again."""
        self._fixed = False
        self._follow_pin()

    def _follow_pin(self) -> None:
        pin = self.state_pin()
        if not self._fixed and pin != self.pinned:
            self.pin_moved = self.pin_moved or self._seen > 0 or self.foreign_vectors > 0
            self._move_pin(pin)

    def _move_pin(self, pin: tuple[str, int] | None) -> None:
        self.pinned = pin
        if pin is not None and (self.vectors is None or self.vectors.dimension != pin[1]):
            if self.vectors is not None:
                self.vectors.close()
            self.vectors = VectorIndex(pin[1])


class PassingView(View):
    """Says of each record what a view would say of it, and keeps nothing."""

    def apply_all(self, records: Sequence[Said], covered: bool = False) -> list[Finding]:
        """Return what could not be applied."""
        findings = self._codes(records).findings(records)
        for record in records:
            for operation, _ in record.operations:
                if isinstance(operation, Unknown):
                    findings.append(_not_known(operation, record.where))
        return findings


class _Codes(NamedTuple):
    """The vectors of the pinned model in some records."""

    values: NDArray[np.float16]
    starts: Sequence[int]
    """Of each record the first of its rows, and after the last one the number of all."""
    usable: NDArray[np.bool_] | None
    """Which rows are of unit length; None: all."""

    def row_of(self, number: int, row: int | None) -> int | None:
        """Return where a row of the record with this number is, if the record has it and it can be used."""
        if row is None:
            return None
        place = self.starts[number] + row
        return place if place < self.starts[number + 1] and (self.usable is None or self.usable[place]) else None

    def findings(self, records: Sequence[Said]) -> list[Finding]:
        """Return a finding for each record with a row that cannot be used."""
        if self.usable is None:
            return []
        detail = "vectors that are not finite or not of unit length were passed over"
        return [
            Finding("column_value", record.where, detail)
            for record, start, stop in zip(records, self.starts, self.starts[1:], strict=False)
            if not self.usable[start:stop].all()
        ]


def _not_known(operation: Unknown, where: str) -> Finding:
    detail = f"an operation this version does not know ({operation.op!r}): update memseal"
    return Finding("operation_unknown", where, detail)
