"""Phrases that count from the moment of asking (recall.md §2)."""

import re
from datetime import datetime, timedelta
from typing import Final

from memseal.recall.calendar import (
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
from memseal.recall.wording import (
    ANY_SEASON,
    BEYOND,
    CLOCK,
    COUNT,
    FULL_MONTH,
    PART,
    PARTS,
    PARTS_OF_DAY,
    UNIT,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    WHICH,
    Point,
    Present,
    compiled,
    count_of,
    month_of,
    point,
)


def _named_day(found: re.Match[str], present: Present) -> Point:
    away = {"yesterday": -1, "tomorrow": 1}.get(found["day"], 0)
    day = present.at + timedelta(days=2 * away if found["beyond"] else away)
    part = "night" if found["day"] == "tonight" else found["part"]
    return point(hours(day, *PARTS_OF_DAY[part]) if part else days(day))


def _part_of_today(found: re.Match[str], present: Present) -> Point:
    return point(hours(present.at, *PARTS_OF_DAY[found["part"]]))


def _last_night(_: re.Match[str], present: Present) -> Point:
    """Return the night that began yesterday, with its evening."""
    return point(hours(present.at - timedelta(days=1), 18, 30))


def _named_unit(found: re.Match[str], present: Present) -> Point:
    which, unit = found["which"], found["unit"]
    if which == "past":
        return _rolling(present, unit, 1)
    away = {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)
    here, there = (unit_of(earlier(present.at, unit, count), unit, present.first_weekday) for count in (0, -away))
    # Who says "next weekend" in the middle of a week may mean the one that is near.
    return point(here, there) if unit == "weekend" and away > 0 else point(there)


def _named_part(found: re.Match[str], present: Present) -> Point:
    (whole,) = _named_unit(found, present).stretches
    return point(third(whole, PARTS[found["part"]]))


def _within_unit(found: re.Match[str], present: Present) -> Point:
    return _rolling(present, found["unit"], 1)


def _last_n(found: re.Match[str], present: Present) -> Point:
    return _rolling(present, found["unit"], count_of(found))


def _next_n(found: re.Match[str], present: Present) -> Point:
    return point(Stretch(present.instant, _away(present, found["unit"], -count_of(found))))


def _ago(found: re.Match[str], present: Present) -> Point:
    return _around(present, found["unit"], count_of(found))


def _from_now(found: re.Match[str], present: Present) -> Point:
    return _around(present, found["unit"], -count_of(found))


def _around(present: Present, unit: str, count: int) -> Point:
    """Return the calendar's unit in which that moment lies: who says "two weeks ago" seldom means a day."""
    moment = _away(present, unit, count)
    if unit in CLOCK:
        return point(Stretch(moment - CLOCK[unit] / 2, moment + CLOCK[unit] / 2))
    return point(unit_of(moment, unit, present.first_weekday))


def _rolling(present: Present, unit: str, count: int) -> Point:
    # Up to and including the moment itself.
    return point(Stretch(_away(present, unit, count), present.instant + timedelta(microseconds=1)))


def _away(present: Present, unit: str, count: int) -> datetime:
    """Return the moment that many units before; hours are of elapsed time, also where the clock was put forward."""
    return present.instant - count * CLOCK[unit] if unit in CLOCK else earlier(present.at, unit, count)


def _named_weekday(found: re.Match[str], present: Present) -> Point:
    """Return the day nearest to the moment, and the one of the calendar's last or next week where that is another."""
    weekday, which = WEEKDAYS[found["weekday"]], found["which"]
    here = _weekday_of(present.at, weekday, present)
    if which in ("this", "current"):
        return point(days(here))
    last = weekday_before(present.at, weekday)
    if which in ("last", "past", "previous"):
        return _either(last, here - timedelta(days=7))
    return _either(_weekday_after(present.at, weekday), here + timedelta(days=7))


def _weekday_of_week(found: re.Match[str], present: Present) -> Point:
    away = {"last": -7, "previous": -7, "next": 7}.get(found["which"], 0)
    return point(days(_weekday_of(present.at, WEEKDAYS[found["weekday"]], present) + timedelta(days=away)))


def _on_weekday(found: re.Match[str], present: Present) -> Point:
    """Return the last such day, today counted, and the next one: a memory can be of what is to come."""
    weekday = WEEKDAYS[found["weekday"]]
    return _either(weekday_before(present.at + timedelta(days=1), weekday), _weekday_after(present.at, weekday))


def _bare_weekday(found: re.Match[str], present: Present) -> Point:
    return _on_weekday(found, present)._replace(bare=True)


def _either(likely: datetime, other: datetime) -> Point:
    return point(*dict.fromkeys((days(likely), days(other))))


def _weekday_of(moment: datetime, weekday: int, present: Present) -> datetime:
    start = week_of(moment, present.first_weekday).start or moment
    return start + timedelta(days=(weekday - present.first_weekday) % 7)


def _weekday_after(moment: datetime, weekday: int) -> datetime:
    return weekday_before(moment + timedelta(days=8), weekday)


def _named_months(found: re.Match[str], present: Present) -> Point:
    """Return a month or season of which the year is said by "last", "this" or "next"."""
    first, size = (SEASONS[found["season"]], 3) if found["season"] else (month_of(found), 1)
    each = [months(present.at.year + away, first, size) for away in (-2, -1, 0, 1, 2)]
    over = [stretch for stretch in each if stretch.end is not None and stretch.end <= present.at]
    to_come = [stretch for stretch in each if stretch.start is not None and stretch.start > present.at]
    if found["which"] in ("last", "past", "previous"):
        return point(over[-1])
    if found["which"] in ("next", "coming"):
        return point(to_come[0])
    return point(next(stretch for stretch in each if stretch not in over))


RELATIVE: Final = [
    (compiled(pattern), resolve)
    for pattern, resolve in (
        (
            rf"{BEYOND}(?P<day>today|tonight|yesterday|tomorrow)(?: (?P<part>{'|'.join(PARTS_OF_DAY)}))?",
            _named_day,
        ),
        (rf"this (?P<part>{'|'.join(PARTS_OF_DAY)})", _part_of_today),
        (r"last night", _last_night),
        (rf"(?:the )?{WHICH} {UNIT}", _named_unit),
        (rf"{PART}{WHICH} (?P<unit>month|year)", _named_part),
        (rf"(?:in|within|over|during) the (?:last|past|previous) {UNITS}", _within_unit),
        (rf"(?:the )?(?:last|past|previous) {COUNT} {UNITS}", _last_n),
        (rf"(?:the )?(?:next|coming) {COUNT} {UNITS}", _next_n),
        (rf"{COUNT} {UNITS} (?:ago|back|earlier)", _ago),
        (rf"in {COUNT} {UNITS}(?: time)?", _from_now),
        (rf"{COUNT} {UNITS} from now", _from_now),
        (rf"(?:on )?{WHICH} {WEEKDAY}", _named_weekday),
        (rf"{WEEKDAY},?(?: of)? (?P<which>last|previous|this|next) week", _weekday_of_week),
        (rf"on {WEEKDAY}", _on_weekday),
        (WEEKDAY, _bare_weekday),
        (rf"{WHICH} (?:{FULL_MONTH}|{ANY_SEASON})", _named_months),
    )
]
