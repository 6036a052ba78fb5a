"""Find the time that a query speaks of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, 4, len(name))}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = "(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + r"|sept)\b\.?"
_FULL_MONTH = f"(?P<month>{'|'.join(_MONTHS)})\\b"
_BEFORE_MONTH = "(?:in|during|since|of|last|this|by|until|before|after)"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?\b"


@dataclass(frozen=True)
class Period:
    """A stretch of time in UTC, from `start` up to but not including `end`, and the words that name it.

    "in May", without a year, is the May of any year: it has a `month` (1 to 12) instead of bounds.
    """

    phrase: str
    start: datetime | None = None
    end: datetime | None = None
    month: int | None = None

    def contains(self, moment: datetime) -> bool:
        """Whether an aware moment lies in the period."""
        if self.start is not None and self.end is not None:
            return self.start <= moment < self.end
        return moment.astimezone(UTC).month == self.month


def find_period(text: str, now: datetime | None = None) -> Period | None:
    """Return the first time phrase of the most exact kind, or None; relative phrases need `now` (aware)."""
    lowered = text.lower()
    for pattern, read in _ABSOLUTE:
        for match in pattern.finditer(lowered):
            if period := _checked(match, read):
                return period
    if now is not None:
        for pattern, resolve in _RELATIVE:
            if named := pattern.search(lowered):
                start, end = resolve(named, now.astimezone(UTC))
                return Period(named.group(), start, end)
    return None


def _checked(match: re.Match[str], read: Callable[[re.Match[str]], Period]) -> Period | None:
    try:
        return read(match)
    except ValueError:  # a date that no calendar has, such as 30 February: not a time phrase
        return None


def _exact_day(match: re.Match[str]) -> Period:
    start = datetime(int(match["year"]), _month(match["month"]), int(match["day"]), tzinfo=UTC)
    return Period(match.group(), start, start + timedelta(days=1))


def _month_of_year(match: re.Match[str]) -> Period:
    start = datetime(int(match["year"]), _month(match["month"]), 1, tzinfo=UTC)
    return Period(match.group(), start, _months_later(start, 1))


def _season(match: re.Match[str]) -> Period:
    start = datetime(int(match["year"]), _SEASONS[match["season"]], 1, tzinfo=UTC)
    return Period(match.group(), start, _months_later(start, 3))


def _year(match: re.Match[str]) -> Period:
    start = datetime(int(match["year"]), 1, 1, tzinfo=UTC)
    return Period(match.group(), start, _months_later(start, 12))


def _month_of_any_year(match: re.Match[str]) -> Period:
    return Period(match.group(), month=_month(match["month"]))


def _named_day(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    start = _midnight(now) - timedelta(days=1 if match["day"] == "yesterday" else 0)
    return start, start + timedelta(days=1)


def _named_unit(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    back = 1 if match["which"] == "last" else 0
    if match["unit"] == "week":
        start = _midnight(now) - timedelta(days=now.weekday() + 7 * back)
        return start, start + timedelta(days=7)
    months = 12 if match["unit"] == "year" else 1
    first = _midnight(now).replace(day=1, month=1 if months == 12 else now.month)
    start = _months_later(first, -months * back)
    return start, _months_later(start, months)


def _last_n(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"]]
    return now - timedelta(days=days * int(match["count"])), now + timedelta(microseconds=1)


def _month(name: str) -> int:
    return int(name) if name.isdigit() else _MONTH_NUMBERS[name]


def _months_later(first: datetime, months: int) -> datetime:
    years, month = divmod(first.month - 1 + months, 12)
    return first.replace(year=first.year + years, month=month + 1)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


# From the most exact to the least. A month alone needs its full name and a word before it: "may" is also a
# verb, "march" a walk.
_ABSOLUTE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Period]], ...] = (
    (re.compile(rf"\b{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)\b"), _exact_day),
    (re.compile(rf"\b{_DAY}(?: of)? {_MONTH},? {_YEAR}"), _exact_day),
    (re.compile(rf"\b{_MONTH} {_DAY},? {_YEAR}"), _exact_day),
    (re.compile(rf"\b{_YEAR}-(?P<month>\d\d)\b"), _month_of_year),
    (re.compile(rf"\b{_MONTH},?(?: of)? {_YEAR}"), _month_of_year),
    (re.compile(rf"\b(?P<season>{'|'.join(_SEASONS)})(?: of)? {_YEAR}"), _season),
    (re.compile(rf"\b{_DAY}(?: of)? {_FULL_MONTH}"), _month_of_any_year),
    (re.compile(rf"\b{_FULL_MONTH} {_DAY}"), _month_of_any_year),
    (re.compile(rf"\b{_BEFORE_MONTH} (?:early |late |mid-?)?{_FULL_MONTH}"), _month_of_any_year),
    (re.compile(rf"\b{_YEAR}"), _year),
)
_RELATIVE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], tuple[datetime, datetime]]], ...] = (
    (re.compile(r"\b(?:last|past) (?P<count>\d{1,3}) (?P<unit>day|week|month|year)s?\b"), _last_n),
    (re.compile(r"\b(?P<day>today|yesterday)\b"), _named_day),
    (re.compile(r"\b(?P<which>this|last) (?P<unit>week|month|year)\b"), _named_unit),
)
