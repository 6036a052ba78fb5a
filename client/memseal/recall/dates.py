"""Find the time that a query speaks of (recall.md §2)."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from math import inf
from typing import Final, NamedTuple

from memseal.recall.calendar import Stretch, months
from memseal.recall.fixed import FIXED
from memseal.recall.period import Period, Span, joined
from memseal.recall.relative import RELATIVE
from memseal.recall.wording import Point, Present

# A month "of any year" is that of these years: what can be remembered, and what is planned.
_YEARS: Final = range(1900, 2101)
_EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)
# Only ASCII letters: the places of the words in the text must stay as they are.
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

_BETWEEN: Final = re.compile(r"\b(?:between|from) +(?:the +)?$")
_LEAD: Final = re.compile(r"\b(?:(?P<word>since|after|before|until|till|by|in|on|at|during|from|of|for) +)?(?:the +)?$")
_LINK: Final = re.compile(r" ?[-–] ?| +(?:and|or|to|until|till|through) +(?:the +)?")
_ONWARDS: Final = re.compile(r" +(?:on|onwards?|and later)(?!\w)")
# The longest of a phrase's prefixes; looking at the whole text before each phrase would take time in its square.
_LEAD_CHARS: Final = 24


class _Named(NamedTuple):
    """A phrase of a text, from `start` to `stop`, and what it names: spans, or months of any year."""

    start: int
    stop: int
    spans: tuple[Span, ...]
    yearly: tuple[int, int] | None = None
    bare: bool = False


def find_period(text: str, now: datetime | None = None, first_weekday: int = 0) -> Period | None:
    """Return the narrowest time that a text names, the first of equal ones; None where it names none.

    `now` (aware) is when it is asked; its zone is that of every phrase (UTC without it), and relative phrases need it.
    Weeks begin on `first_weekday`, 0 for Monday to 6 for Sunday.
    """
    return _Reader(text, now, first_weekday).period()


class _Reader:
    """Reads one text at one moment."""

    def __init__(self, text: str, now: datetime | None, first_weekday: int) -> None:
        self._original = text
        self._text = text.translate(_LOWER)
        self._zone: tzinfo = UTC if now is None or now.tzinfo is None else now.tzinfo
        self._now = None if now is None else now.astimezone(UTC)
        self._present = (
            None if now is None else Present(now.replace(tzinfo=None, fold=0), now.astimezone(UTC), first_weekday)
        )

    def period(self) -> Period | None:
        """Return the narrowest time."""
        named = [each for each in self._together(list(self._apart())) if each.spans or each.yearly]
        best = min(named, key=lambda each: (_breadth(each), each.start), default=None)
        if best is None:
            return None
        phrase, yearly = self._original[best.start : best.stop], best.yearly
        if yearly:
            return Period(phrase, tuple(self._in_year(yearly, year) for year in _YEARS), yearly=True, start=best.start)
        return Period(phrase, joined(best.spans), start=best.start)

    # ── phrases ─────────────────────────────────────────────────────────────────────────────────────

    def _apart(self) -> Iterator[_Named]:
        """Yield the phrases in order; of those that overlap the first, of those that begin together the longest."""
        stop = 0
        for each in sorted(self._every(), key=lambda found: (found.start, -found.stop)):
            if each.start >= stop:
                yield each
                stop = each.stop

    def _every(self) -> Iterator[_Named]:
        for pattern, build in FIXED:
            for found in pattern.finditer(self._text):
                with suppress(ValueError, OverflowError):  # a date that no calendar has: not a time phrase
                    yield self._placed(found, build(found))
        if self._present is not None:
            for pattern, resolve in RELATIVE:
                for found in pattern.finditer(self._text):
                    with suppress(ValueError, OverflowError):  # further away than the calendar reaches
                        yield self._placed(found, resolve(found, self._present))

    def _placed(self, found: re.Match[str], point: Point) -> _Named:
        return _Named(*found.span(), tuple(map(self._span, point.stretches)), point.yearly, point.bare)

    # ── words between and before them ───────────────────────────────────────────────────────────────

    def _together(self, named: Sequence[_Named]) -> Iterator[_Named]:
        """Yield ranges of two phrases, phrases with a word such as "since" before them, and the rest."""
        place = 0
        while place < len(named):
            whole = self._range(named[place], named[place + 1]) if place + 1 < len(named) else None
            if whole is not None:
                yield whole
                place += 2
                continue
            if one := self._single(named[place]):
                yield one
            place += 1

    def _range(self, first: _Named, second: _Named) -> _Named | None:
        link, before = self._text[first.stop : second.start], self._before(first)
        between = _BETWEEN.search(before)
        if not _LINK.fullmatch(link) or (first.bare and second.bare and not between):
            return None
        start = first.start - (len(before) - between.start() if between else 0)
        if first.yearly and second.yearly:
            return _Named(start, second.stop, (), (first.yearly[0], second.yearly[1]))
        both = self._from_to(first, second)
        if both is None:
            return None
        apart = not between and link.split()[0] in ("and", "or")
        return _Named(start, second.stop, both if apart else (Span(both[0].start, both[1].end),))

    def _from_to(self, first: _Named, second: _Named) -> tuple[Span, Span] | None:
        """Return the two, one after the other; a year that one of them leaves open is the other's."""
        starts = [first.spans[0]] if first.spans else self._years_around(first, second.spans[0])
        ends = second.spans or self._years_around(second, starts[0])
        pairs = [(start, end) for start in reversed(starts) for end in ends if _key(start.start) <= _key(end.start)]
        return next((pair for pair in pairs if pair[0].end != pair[1].end), None)

    def _years_around(self, named: _Named, span: Span) -> Sequence[Span]:
        year = (span.start or _EARLIEST).astimezone(self._zone).year
        near = (each for each in (year - 1, year, year + 1) if 1 < each < 9998)  # the calendar's own ends
        return [self._in_year(named.yearly or (1, 12), each) for each in near]

    def _single(self, named: _Named) -> _Named | None:
        """Return a phrase with the words that belong to it; None for one that is a time only beside others."""
        before = self._before(named)
        lead = _LEAD.search(before)
        word = lead["word"] if lead else None
        onwards = _ONWARDS.match(self._text, named.stop) if word == "from" else None
        start = named.start - (len(before) - lead.start() if lead and word else 0)
        if word in _BOUNDS or onwards:
            spans = named.spans or self._last_begun(named)
            if spans:
                stop = onwards.end() if onwards else named.stop
                return _Named(start, stop, (_BOUNDS["since" if onwards else str(word)](spans),))
        return None if named.bare and word not in _BOUNDS else named._replace(start=start, bare=False)

    def _before(self, named: _Named) -> str:
        return self._text[max(0, named.start - _LEAD_CHARS) : named.start]

    def _last_begun(self, named: _Named) -> tuple[Span, ...]:
        """Return the newest of these months that has begun, where it is known when that is."""
        if self._now is None or named.yearly is None:
            return ()
        begun = [span for span in self._years_around(named, Span(self._now, None)) if _key(span.start) <= self._now]
        return tuple(begun[-1:])

    # ── from the zone's clock to UTC ────────────────────────────────────────────────────────────────

    def _span(self, stretch: Stretch) -> Span:
        return Span(self._instant(stretch.start), self._instant(stretch.end))

    def _instant(self, moment: datetime | None) -> datetime | None:
        """Return the instant; a time that the clock shows twice is the first, one that it skips is where it jumps."""
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=self._zone)).astimezone(UTC)

    def _in_year(self, yearly: tuple[int, int], year: int) -> Span:
        first, last = yearly
        return self._span(months(year, first, (last - first) % 12 + 1))


def _since(spans: Sequence[Span]) -> Span:
    return Span(min((span.start for span in spans), key=_key), None)


def _after(spans: Sequence[Span]) -> Span:
    return Span(min((span.end for span in spans), key=_key), None)


def _before(spans: Sequence[Span]) -> Span:
    return Span(None, max((span.start for span in spans), key=_key))


def _until(spans: Sequence[Span]) -> Span:
    return Span(None, max((span.end for span in spans), key=_key))


_BOUNDS: Final = {"since": _since, "after": _after, "before": _before, "until": _until, "till": _until, "by": _until}


def _key(moment: datetime | None) -> datetime:
    return _EARLIEST if moment is None else moment


def _breadth(named: _Named) -> float:
    """Return how much time it is, to tell the narrowest; a month of any year counts as one month."""
    if named.yearly:
        return ((named.yearly[1] - named.yearly[0]) % 12 + 1) * 30 * 86_400.0
    if any(span.start is None or span.end is None for span in named.spans):
        return inf
    return sum((_key(span.end) - _key(span.start)).total_seconds() for span in named.spans)
