"""A time that a query names, as stretches in UTC."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_I64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Span:
    """From `start` up to but not including `end`, aware UTC; None is open."""

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class Period:
    """The words that name a time, where they begin, and the spans it may be: in order, apart from one another.

    There are several where the words leave it open ("next Friday"), or name a month of any year (`yearly`).
    """

    phrase: str
    spans: tuple[Span, ...]
    yearly: bool = False
    start: int = 0

    def without(self, text: str) -> str:
        """Return the text in which the period was found, without its words."""
        return f"{text[: self.start]} {text[self.start + len(self.phrase) :]}"

    def contains(self, moment: datetime) -> bool:
        """Whether an aware moment lies in the period."""
        return bool(self.within(np.array([_micros(moment)], np.int64))[0])

    def within(self, moments: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which moments, in microseconds since 1970 UTC, lie in the period."""
        bounds = self.bounds()
        starts = np.array([start for start, _ in bounds], np.int64)
        ends = np.array([end for _, end in bounds], np.int64)
        place = np.searchsorted(starts, moments, side="right") - 1
        inside: NDArray[np.bool_] = (place >= 0) & (moments < ends[place])
        return inside

    def bounds(self) -> list[tuple[int, int]]:
        """Return the spans in microseconds since 1970 UTC; an open end is the end of what 64 bits hold."""
        return [
            (
                int(_I64.min) if span.start is None else _micros(span.start),
                int(_I64.max) if span.end is None else _micros(span.end),
            )
            for span in self.spans
        ]


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans in order, those that touch or overlap as one; what is empty goes."""
    ordered = sorted((span for span in spans if not _is_empty(span)), key=_starts)
    result = list[Span]()
    for span in ordered:
        if result and _reaches(result[-1], span):
            result[-1] = Span(result[-1].start, _later(result[-1].end, span.end))
        else:
            result.append(span)
    return tuple(result)


def _is_empty(span: Span) -> bool:
    return span.start is not None and span.end is not None and span.end <= span.start


def _starts(span: Span) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if span.start is None else span.start


def _reaches(before: Span, after: Span) -> bool:
    return before.end is None or after.start is None or after.start <= before.end


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)


def _micros(moment: datetime) -> int:
    difference = moment - _EPOCH
    return (difference.days * 86_400 + difference.seconds) * 1_000_000 + difference.microseconds
