"""SQL over the open vault, read-only (format-spec/sql.md)."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from memseal.errors import SqlRefused
from memseal.format.trace import Trace
from memseal.index.published import Published
from memseal.memory.memory import from_microseconds
from memseal.vault.answers.explaining import Lookup
from memseal.vault.folder.opening import Opened

# Comments may stand before the first word.
_READS: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE | re.DOTALL)
_SECONDS_MOST: Final = 3600.0


@dataclass(frozen=True)
class Rows:
    """The answer of a statement: the names of its columns, its rows, and whether there are more than the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = field(repr=False)
    truncated: bool

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row by the names of its columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def check(limit: int, seconds: float) -> None:
    """Refuse bounds that bound nothing; raises `ValueError`."""
    if type(limit) is not int or not 1 <= limit <= 1_000_000:
        raise ValueError("limit is a whole number from 1 to 1000000")
    if type(seconds) not in (int, float) or not math.isfinite(seconds) or not 0 < seconds <= _SECONDS_MOST:
        raise ValueError("seconds are a number above 0, and at most 3600")


class Statement:
    """A statement that was checked, and the tables that it names."""

    def __init__(self, published: Published, seconds: float) -> None:
        """Take what `read` made."""
        self._published = published
        self._seconds = seconds

    @classmethod
    def read(cls, statement: str, seconds: float) -> Self:
        """Return a statement, checked; raises `TypeError` or `SqlRefused`."""
        if not isinstance(statement, str):
            raise TypeError(f"a statement is a text, not {type(statement).__name__}")
        if not _READS.match(statement):
            raise SqlRefused("a statement begins with SELECT, WITH or VALUES: nothing can be changed by SQL")
        if "\0" in statement or statement != statement.encode("utf-8", "replace").decode("utf-8"):
            raise SqlRefused("a statement is valid Unicode without NUL")
        return cls(Published(statement), seconds)

    def fill(self, opened: Opened) -> None:
        """Copy the rows of the state that the statement may ask for."""
        self._published.fill_from(opened.logbook.view.state.connection)

    def fill_traces(self, wanted: Lookup) -> None:
        """Copy the traces, where the statement may ask for them."""
        named = self._published.named & {"traces", "trace_memories"}
        if named:
            kept = wanted.found()
            if "traces" in named:
                self._published.fill("traces", map(_trace, kept))
            if "trace_memories" in named:
                self._published.fill("trace_memories", _memories(kept))

    def rows(self, limit: int) -> Rows:
        """Return at most `limit` rows; raises `SqlRefused` or `SqlLimit`."""
        columns, rows = self._published.answer(limit, self._seconds)
        return Rows(columns, tuple(rows[:limit]), len(rows) > limit)


def _trace(trace: Trace) -> Sequence[Any]:
    at = from_microseconds(trace.at)
    return (
        trace.id,
        f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
        trace.surface,
        trace.turn,
        trace.about,
        trace.query,
        None if trace.receipt is None else trace.receipt.get("status"),
        trace.engine,
        trace.embedder,
        trace.floor,
        trace.considered,
        len(trace.served),
        trace.text,
    )


def _memories(traces: Iterable[Trace]) -> Iterator[Sequence[Any]]:
    """Yield of each trace the memories that it names: those that were given out first, in their order."""
    for trace in traces:
        scores = {each.memory: each for each in trace.candidates}
        served = {each.memory: each for each in trace.served}
        for place, memory in enumerate((*served, *(each for each in scores if each not in served)), start=1):
            scored, given = scores.get(memory), served.get(memory)
            yield (
                trace.id,
                memory,
                place,
                given is not None,
                given is not None or (scored is not None and scored.related),
                None if scored is None else scored.score,
                None if scored is None else scored.lexical,
                None if scored is None else scored.cosine,
                None if given is None else given.state,
                None if given is None else given.truncated,
                None if given is None else given.masked,
            )
