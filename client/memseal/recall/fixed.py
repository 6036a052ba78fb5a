"""Phrases that name a time by themselves: dates, months, seasons, years (recall.md §2)."""

import re
from datetime import timedelta
from typing import Final

from memseal.recall.calendar import SEASONS, Stretch, days, months, third
from memseal.recall.wording import (
    ANY_SEASON,
    DAY,
    FULL_MONTH,
    IN,
    LAST_DAY,
    LEAP_YEAR,
    MONTH,
    PART,
    PARTS,
    PLACE,
    PLACES,
    TO,
    YEAR,
    Point,
    compiled,
    date_of,
    month_of,
    point,
)


def _exact_day(found: re.Match[str]) -> Point:
    return point(days(date_of(int(found["year"]), month_of(found), int(found["day"]))))


def _exact_days(found: re.Match[str]) -> Point:
    first = date_of(int(found["year"]), month_of(found), int(found["day"]))
    last = date_of(int(found["year"]), month_of(found), int(found["last_day"]))
    if last < first:
        raise ValueError("a range that ends before it begins")
    return point(Stretch(first, days(last).end))


def _numbers(found: re.Match[str]) -> Point:
    """Read 8/5/2023 as both, the 8th of May and the 5th of August, unless only one of them is a day."""
    year, one, other = int(found["year"]), int(found["one"]), int(found["other"])
    pairs = [(one, other)] if one == other else [(other, one), (one, other)]
    possible = [days(date_of(year, month, day)) for month, day in pairs if 1 <= month <= 12]
    if not possible:
        raise ValueError("no month has this number")
    return point(*possible)


def _month_of_year(found: re.Match[str]) -> Point:
    return point(months(int(found["year"]), month_of(found)))


def _season(found: re.Match[str]) -> Point:
    return point(months(int(found["year"]), SEASONS[found["season"]], 3))


def _quarter(found: re.Match[str]) -> Point:
    number = int(found["number"]) - 1 if found["number"] else PLACES[found["place"]]
    return point(months(int(found["year"]), 3 * number + 1, 3))


def _year(found: re.Match[str]) -> Point:
    return point(months(int(found["year"]), 1, 12))


def _decade(found: re.Match[str]) -> Point:
    first = int(found["decade"]) if len(found["decade"]) == 4 else 1900 + int(found["decade"])
    return point(months(first if first >= 1930 or len(found["decade"]) == 4 else first + 100, 1, 120))


def _part(found: re.Match[str]) -> Point:
    year = int(found["year"])
    if found["month"]:
        whole = months(year, month_of(found))
    else:
        whole = months(year, SEASONS[found["season"]], 3) if found["season"] else months(year, 1, 12)
    return point(third(whole, PARTS[found["part"]]))


def _week_of(found: re.Match[str]) -> Point:
    """Return seven days of a month or a year, counted from its first or its last day."""
    year = int(found["year"])
    start, end = months(year, month_of(found)) if found["month"] else months(year, 1, 12)
    if start is None or end is None or found["place"] == "last":
        return point(Stretch(None if end is None else end - timedelta(days=7), end))
    return point(days(start + timedelta(days=7 * PLACES[found["place"]]), 7))


def _day_of_any_year(found: re.Match[str]) -> Point:
    """Return the day's month: what happened on a day is often told later."""
    month = month_of(found)
    date_of(LEAP_YEAR, month, int(found["day"]))
    return Point(yearly=(month, month))


def _month_of_any_year(found: re.Match[str]) -> Point:
    return Point(yearly=(month_of(found), month_of(found)))


def _bare_month(found: re.Match[str]) -> Point:
    return _month_of_any_year(found)._replace(bare=True)


FIXED: Final = [
    (compiled(pattern), build)
    for pattern, build in (
        (rf"{YEAR}-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-9]{{2}})", _exact_day),
        (rf"{YEAR}[/.](?P<month>0?[1-9]|1[0-2])[/.]{DAY}", _exact_day),
        (rf"(?P<one>[0-9]{{1,2}})[/.](?P<other>[0-9]{{1,2}})[/.]{YEAR}", _numbers),
        (rf"(?:the )?{DAY}(?: of)? {MONTH},? {YEAR}", _exact_day),
        (rf"{MONTH} {DAY},? {YEAR}", _exact_day),
        (rf"(?:the )?{DAY}{TO}(?:the )?{LAST_DAY}(?: of)? {MONTH},? {YEAR}", _exact_days),
        (rf"{MONTH} {DAY}{TO}{LAST_DAY},? {YEAR}", _exact_days),
        (rf"{YEAR}-(?P<month>0[1-9]|1[0-2])", _month_of_year),
        (rf"{MONTH},?(?: of)? {YEAR}", _month_of_year),
        (rf"{ANY_SEASON},?(?: of)? {YEAR}", _season),
        (rf"q(?P<number>[1-4])(?P<place>)(?: of)? {YEAR}", _quarter),
        (rf"(?:the )?(?P<number>)(?P<place>first|second|third|fourth) quarter of {YEAR}", _quarter),
        (r"(?:the )?(?P<decade>(?:19|20)[0-9]0)'?s", _decade),
        (r"the '?(?P<decade>[0-9]0)'?s", _decade),
        (rf"{PART}(?:{MONTH},?(?: of)? |{ANY_SEASON},?(?: of)? )?{YEAR}", _part),
        (rf"(?:the )?{PLACE} week of (?:{MONTH},?(?: of)? )?{YEAR}", _week_of),
        (rf"(?:the year )?{YEAR}", _year),
        (rf"(?:the )?{DAY}(?: of)? {FULL_MONTH}", _day_of_any_year),
        (rf"{FULL_MONTH} {DAY}", _day_of_any_year),
        (
            rf"{IN}(?:early |late |mid[ -]?)?{FULL_MONTH}(?!,? *(?:of +)?[0-9])",
            _month_of_any_year,
        ),
        (FULL_MONTH, _bare_month),
    )
]
