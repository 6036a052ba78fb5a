"""The English phrases that name a time, each with what it means (recall.md §2)."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memseal.recall.calendar import (
    MONTHS_OF,
    SEASONS,
    Stretch,
    days,
    earlier,
    hours,
    months,
    third,
    unit_of,
    week_of,
    weekday_before,
)


class Present(NamedTuple):
    """The moment of asking, on the zone's clock and as an instant; weeks begin on `first_weekday` (0 is Monday)."""

    at: datetime
    instant: datetime
    first_weekday: int


class Point(NamedTuple):
    """What one phrase names: stretches, or months (`yearly`, first and last) of any year.

    There are two stretches where the words leave it open, the more likely one first. A `bare` one is a time only where
    other words make it one ("between March and May").
    """

    stretches: tuple[Stretch, ...] = ()
    yearly: tuple[int, int] | None = None
    bare: bool = False


_MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH_OF: Final = {name[:size]: number for number, name in enumerate(_MONTHS, 1) for size in (3, 4, len(name))}
_WEEKDAYS: Final = {
    name: number for number, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())
}
_COUNTS: Final = {
    name: number
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
} | {"a": 1, "an": 1, "couple": 2, "few": 4, "several": 7}
_PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3}
_PARTS: Final = {"early": 0, "start": 0, "beginning": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_LEAP_YEAR: Final = 2000
_CLOCK: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_PARTS_OF_DAY: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (20, 29)}

# An abbreviated month needs a day or a year beside it, and a full one alone a word before it: "may" is also a verb,
# "march" a walk, "jan" a name.
_FULL: Final = f"(?P<month>{'|'.join(_MONTHS)})"
_MONTH: Final = "(?:(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + r"|sept)\b\.?)"
_YEAR: Final = r"(?P<year>(?:19|20)[0-9]{2})"
_DAY: Final = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_LAST_DAY: Final = _DAY.replace("day", "last_day")
_WEEKDAY: Final = f"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_COUNT: Final = rf"(?:a )?(?P<count>[0-9]{{1,3}}|{'|'.join(_COUNTS)})(?: of)?"
_PART: Final = r"(?:the )?(?P<part>early|mid|late|beginning|start|middle|end)(?:[ -]| of )(?:the )?"
_WHICH: Final = "(?P<which>last|past|previous|this|current|next|coming)"
_TO: Final = r"(?: ?[-–] ?| to | and | until | till | through )"

Build = Callable[[re.Match[str]], Point]
Resolve = Callable[[re.Match[str], Present], Point]


def _point(*stretches: Stretch) -> Point:
    return Point(stretches)


# ── times that need no moment of asking ─────────────────────────────────────────────────────────────


def _exact_day(found: re.Match[str]) -> Point:
    return _point(days(_date(int(found["year"]), _month(found), int(found["day"]))))


def _exact_days(found: re.Match[str]) -> Point:
    first = _date(int(found["year"]), _month(found), int(found["day"]))
    last = _date(int(found["year"]), _month(found), int(found["last_day"]))
    if last < first:
        raise ValueError("a range that ends before it begins")
    return _point(Stretch(first, days(last).end))


def _numbers(found: re.Match[str]) -> Point:
    """Read 8/5/2023 as both, the 8th of May and the 5th of August, unless only one of them is a day."""
    year, one, other = int(found["year"]), int(found["one"]), int(found["other"])
    pairs = [(one, other)] if one == other else [(other, one), (one, other)]
    possible = [days(_date(year, month, day)) for month, day in pairs if 1 <= month <= 12]
    if not possible:
        raise ValueError("no month has this number")
    return _point(*possible)


def _month_of_year(found: re.Match[str]) -> Point:
    return _point(months(int(found["year"]), _month(found)))


def _season(found: re.Match[str]) -> Point:
    return _point(months(int(found["year"]), SEASONS[found["season"]], 3))


def _quarter(found: re.Match[str]) -> Point:
    number = int(found["number"]) - 1 if found["number"] else _PLACES[found["place"]]
    return _point(months(int(found["year"]), 3 * number + 1, 3))


def _year(found: re.Match[str]) -> Point:
    return _point(months(int(found["year"]), 1, 12))


def _decade(found: re.Match[str]) -> Point:
    first = int(found["decade"]) if len(found["decade"]) == 4 else 1900 + int(found["decade"])
    return _point(months(first if first >= 1930 or len(found["decade"]) == 4 else first + 100, 1, 120))


def _part(found: re.Match[str]) -> Point:
    year = int(found["year"])
    if found["month"]:
        whole = months(year, _month(found))
    else:
        whole = months(year, SEASONS[found["season"]], 3) if found["season"] else months(year, 1, 12)
    return _point(third(whole, _PARTS[found["part"]]))


def _week_of(found: re.Match[str]) -> Point:
    """Return seven days of a month or a year, counted from its first or its last day."""
    year = int(found["year"])
    start, end = months(year, _month(found)) if found["month"] else months(year, 1, 12)
    if start is None or end is None or found["place"] == "last":
        return _point(Stretch(None if end is None else end - timedelta(days=7), end))
    return _point(days(start + timedelta(days=7 * _PLACES[found["place"]]), 7))


def _day_of_any_year(found: re.Match[str]) -> Point:
    """Return the day's month: what happened on a day is often told later."""
    month = _month(found)
    _date(_LEAP_YEAR, month, int(found["day"]))
    return Point(yearly=(month, month))


def _month_of_any_year(found: re.Match[str]) -> Point:
    return Point(yearly=(_month(found), _month(found)))


def _bare_month(found: re.Match[str]) -> Point:
    return _month_of_any_year(found)._replace(bare=True)


# ── times that are counted from the moment of asking ────────────────────────────────────────────────


def _named_day(found: re.Match[str], present: Present) -> Point:
    away = {"yesterday": -1, "tomorrow": 1}.get(found["day"], 0)
    day = present.at + timedelta(days=2 * away if found["beyond"] else away)
    part = "night" if found["day"] == "tonight" else found["part"]
    return _point(hours(day, *_PARTS_OF_DAY[part]) if part else days(day))


def _part_of_today(found: re.Match[str], present: Present) -> Point:
    return _point(hours(present.at, *_PARTS_OF_DAY[found["part"]]))


def _last_night(_: re.Match[str], present: Present) -> Point:
    """Return the night that began yesterday, with its evening."""
    return _point(hours(present.at - timedelta(days=1), 18, 30))


def _named_unit(found: re.Match[str], present: Present) -> Point:
    which, unit = found["which"], found["unit"]
    if which == "past":
        return _rolling(present, unit, 1)
    away = {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)
    here, there = (unit_of(earlier(present.at, unit, count), unit, present.first_weekday) for count in (0, -away))
    # Who says "next weekend" in the middle of a week may mean the one that is near.
    return _point(here, there) if unit == "weekend" and away > 0 else _point(there)


def _named_part(found: re.Match[str], present: Present) -> Point:
    (whole,) = _named_unit(found, present).stretches
    return _point(third(whole, _PARTS[found["part"]]))


def _within_unit(found: re.Match[str], present: Present) -> Point:
    return _rolling(present, found["unit"], 1)


def _last_n(found: re.Match[str], present: Present) -> Point:
    return _rolling(present, found["unit"], _count(found))


def _next_n(found: re.Match[str], present: Present) -> Point:
    return _point(Stretch(present.instant, _away(present, found["unit"], -_count(found))))


def _ago(found: re.Match[str], present: Present) -> Point:
    return _around(present, found["unit"], _count(found))


def _from_now(found: re.Match[str], present: Present) -> Point:
    return _around(present, found["unit"], -_count(found))


def _around(present: Present, unit: str, count: int) -> Point:
    """Return the calendar's unit in which that moment lies: who says "two weeks ago" seldom means a day."""
    moment = _away(present, unit, count)
    if unit in _CLOCK:
        return _point(Stretch(moment - _CLOCK[unit] / 2, moment + _CLOCK[unit] / 2))
    return _point(unit_of(moment, unit, present.first_weekday))


def _rolling(present: Present, unit: str, count: int) -> Point:
    # Up to and including the moment itself.
    return _point(Stretch(_away(present, unit, count), present.instant + timedelta(microseconds=1)))


def _away(present: Present, unit: str, count: int) -> datetime:
    """Return the moment that many units before; hours are of elapsed time, also where the clock was put forward."""
    return present.instant - count * _CLOCK[unit] if unit in _CLOCK else earlier(present.at, unit, count)


def _named_weekday(found: re.Match[str], present: Present) -> Point:
    """Return the day nearest to the moment, and the one of the calendar's last or next week where that is another."""
    weekday, which = _WEEKDAYS[found["weekday"]], found["which"]
    here = _weekday_of(present.at, weekday, present)
    if which in ("this", "current"):
        return _point(days(here))
    last = weekday_before(present.at, weekday)
    if which in ("last", "past", "previous"):
        return _either(last, here - timedelta(days=7))
    return _either(_weekday_after(present.at, weekday), here + timedelta(days=7))


def _weekday_of_week(found: re.Match[str], present: Present) -> Point:
    away = {"last": -7, "previous": -7, "next": 7}.get(found["which"], 0)
    return _point(days(_weekday_of(present.at, _WEEKDAYS[found["weekday"]], present) + timedelta(days=away)))


def _on_weekday(found: re.Match[str], present: Present) -> Point:
    """Return the last such day, today counted, and the next one: a memory can be of what is to come."""
    weekday = _WEEKDAYS[found["weekday"]]
    return _either(weekday_before(present.at + timedelta(days=1), weekday), _weekday_after(present.at, weekday))


def _bare_weekday(found: re.Match[str], present: Present) -> Point:
    return _on_weekday(found, present)._replace(bare=True)


def _either(likely: datetime, other: datetime) -> Point:
    return _point(*dict.fromkeys((days(likely), days(other))))


def _weekday_of(moment: datetime, weekday: int, present: Present) -> datetime:
    start = week_of(moment, present.first_weekday).start or moment
    return start + timedelta(days=(weekday - present.first_weekday) % 7)


def _weekday_after(moment: datetime, weekday: int) -> datetime:
    return weekday_before(moment + timedelta(days=8), weekday)


def _named_months(found: re.Match[str], present: Present) -> Point:
    """Return a month or season of which the year is said by "last", "this" or "next"."""
    first, size = (SEASONS[found["season"]], 3) if found["season"] else (_month(found), 1)
    each = [months(present.at.year + away, first, size) for away in (-2, -1, 0, 1, 2)]
    over = [stretch for stretch in each if stretch.end is not None and stretch.end <= present.at]
    to_come = [stretch for stretch in each if stretch.start is not None and stretch.start > present.at]
    if found["which"] in ("last", "past", "previous"):
        return _point(over[-1])
    if found["which"] in ("next", "coming"):
        return _point(to_come[0])
    return _point(next(stretch for stretch in each if stretch not in over))


# ── words ───────────────────────────────────────────────────────────────────────────────────────────


def _date(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day)  # noqa: DTZ001 - on the zone's clock


def _month(found: re.Match[str]) -> int:
    name = found["month"]
    return int(name) if name.isdigit() else _MONTH_OF[name]


def _count(found: re.Match[str]) -> int:
    word = found["count"]
    return _COUNTS[word] if word in _COUNTS else int(word)


def _compiled(pattern: str) -> re.Pattern[str]:
    spaced = pattern.replace(" ?", " *").replace(" ", " +").replace(" +*", " *")
    return re.compile(rf"\b{spaced}(?!\w)")


_ANY_SEASON: Final = f"(?P<season>{'|'.join(SEASONS)})"
_UNITS: Final = f"(?P<unit>minute|hour|day|week|{'|'.join(MONTHS_OF)})s?"
_UNIT: Final = f"(?P<unit>week|weekend|{'|'.join(MONTHS_OF)})"
_BEYOND: Final = "(?P<beyond>the day before (?=yester)|the day after (?=tom))?"
_PLACE: Final = "(?P<place>first|second|third|fourth|last)"

ABSOLUTE: Final = [
    (_compiled(pattern), build)
    for pattern, build in (
        (rf"{_YEAR}-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-9]{{2}})", _exact_day),
        (rf"{_YEAR}[/.](?P<month>0?[1-9]|1[0-2])[/.]{_DAY}", _exact_day),
        (rf"(?P<one>[0-9]{{1,2}})[/.](?P<other>[0-9]{{1,2}})[/.]{_YEAR}", _numbers),
        (rf"(?:the )?{_DAY}(?: of)? {_MONTH},? {_YEAR}", _exact_day),
        (rf"{_MONTH} {_DAY},? {_YEAR}", _exact_day),
        (rf"(?:the )?{_DAY}{_TO}(?:the )?{_LAST_DAY}(?: of)? {_MONTH},? {_YEAR}", _exact_days),
        (rf"{_MONTH} {_DAY}{_TO}{_LAST_DAY},? {_YEAR}", _exact_days),
        (rf"{_YEAR}-(?P<month>0[1-9]|1[0-2])", _month_of_year),
        (rf"{_MONTH},?(?: of)? {_YEAR}", _month_of_year),
        (rf"{_ANY_SEASON},?(?: of)? {_YEAR}", _season),
        (rf"q(?P<number>[1-4])(?P<place>)(?: of)? {_YEAR}", _quarter),
        (rf"(?:the )?(?P<number>)(?P<place>first|second|third|fourth) quarter of {_YEAR}", _quarter),
        (r"(?:the )?(?P<decade>(?:19|20)[0-9]0)'?s", _decade),
        (r"the '?(?P<decade>[0-9]0)'?s", _decade),
        (rf"{_PART}(?:{_MONTH},?(?: of)? |{_ANY_SEASON},?(?: of)? )?{_YEAR}", _part),
        (rf"(?:the )?{_PLACE} week of (?:{_MONTH},?(?: of)? )?{_YEAR}", _week_of),
        (rf"(?:the year )?{_YEAR}", _year),
        (rf"(?:the )?{_DAY}(?: of)? {_FULL}", _day_of_any_year),
        (rf"{_FULL} {_DAY}", _day_of_any_year),
        (rf"(?:in|during|of|by|around) (?:early |late |mid[ -]?)?{_FULL}(?!,? *(?:of +)?[0-9])", _month_of_any_year),
        (_FULL, _bare_month),
    )
]
RELATIVE: Final = [
    (_compiled(pattern), resolve)
    for pattern, resolve in (
        (
            rf"{_BEYOND}(?P<day>today|tonight|yesterday|tomorrow)(?: (?P<part>{'|'.join(_PARTS_OF_DAY)}))?",
            _named_day,
        ),
        (rf"this (?P<part>{'|'.join(_PARTS_OF_DAY)})", _part_of_today),
        (r"last night", _last_night),
        (rf"(?:the )?{_WHICH} {_UNIT}", _named_unit),
        (rf"{_PART}{_WHICH} (?P<unit>month|year)", _named_part),
        (rf"(?:in|within|over|during) the (?:last|past|previous) {_UNITS}", _within_unit),
        (rf"(?:the )?(?:last|past|previous) {_COUNT} {_UNITS}", _last_n),
        (rf"(?:the )?(?:next|coming) {_COUNT} {_UNITS}", _next_n),
        (rf"{_COUNT} {_UNITS} (?:ago|back|earlier)", _ago),
        (rf"in {_COUNT} {_UNITS}(?: time)?", _from_now),
        (rf"{_COUNT} {_UNITS} from now", _from_now),
        (rf"(?:on )?{_WHICH} {_WEEKDAY}", _named_weekday),
        (rf"{_WEEKDAY},?(?: of)? (?P<which>last|previous|this|next) week", _weekday_of_week),
        (rf"on {_WEEKDAY}", _on_weekday),
        (_WEEKDAY, _bare_weekday),
        (rf"{_WHICH} (?:{_FULL}|{_ANY_SEASON})", _named_months),
    )
]
