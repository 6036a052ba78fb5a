"""The words of which time phrases are made, and what a phrase gives (recall.md §2)."""

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memseal.recall.calendar import MONTHS_OF, SEASONS, Stretch


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
WEEKDAYS: Final = {
    name: number for number, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())
}
_COUNTS: Final = {
    name: number
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
} | {"a": 1, "an": 1, "couple": 2, "few": 4, "several": 7}
PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3}
PARTS: Final = {"early": 0, "start": 0, "beginning": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
LEAP_YEAR: Final = 2000
CLOCK: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
PARTS_OF_DAY: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (20, 29)}

# An abbreviated month needs a day or a year beside it, and a full one alone a word before it: "may" is also a verb,
# "march" a walk, "jan" a name.
FULL_MONTH: Final = f"(?P<month>{'|'.join(_MONTHS)})"
MONTH: Final = "(?:(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + r"|sept)\b\.?)"
YEAR: Final = r"(?P<year>(?:19|20)[0-9]{2})"
DAY: Final = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
LAST_DAY: Final = DAY.replace("day", "last_day")
WEEKDAY: Final = f"(?P<weekday>{'|'.join(WEEKDAYS)})"
COUNT: Final = rf"(?:a )?(?P<count>[0-9]{{1,3}}|{'|'.join(_COUNTS)})(?: of)?"
PART: Final = r"(?:the )?(?P<part>early|mid|late|beginning|start|middle|end)(?:[ -]| of )(?:the )?"
WHICH: Final = "(?P<which>last|past|previous|this|current|next|coming)"
TO: Final = r"(?: ?[-–] ?| to | and | until | till | through )"
ANY_SEASON: Final = f"(?P<season>{'|'.join(SEASONS)})"
UNITS: Final = f"(?P<unit>minute|hour|day|week|{'|'.join(MONTHS_OF)})s?"
UNIT: Final = f"(?P<unit>week|weekend|{'|'.join(MONTHS_OF)})"
BEYOND: Final = "(?P<beyond>the day before (?=yester)|the day after (?=tom))?"
IN: Final = "(?:in|during|of|around) "
PLACE: Final = "(?P<place>first|second|third|fourth|last)"


def point(*stretches: Stretch) -> Point:
    """Return what names these stretches, the likeliest first."""
    return Point(stretches)


def date_of(year: int, month: int, day: int) -> datetime:
    """Return a day on the zone's clock; `ValueError` for one that no calendar has."""
    return datetime(year, month, day)  # noqa: DTZ001 - the zone is put on at the end


def month_of(found: re.Match[str]) -> int:
    """Return the number of the month that a phrase names or numbers."""
    name = found["month"]
    return int(name) if name.isdigit() else _MONTH_OF[name]


def count_of(found: re.Match[str]) -> int:
    """Return the number that a phrase counts with."""
    word = found["count"]
    return _COUNTS[word] if word in _COUNTS else int(word)


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that begins and ends with words; a space in it stands for one or more."""
    spaced = pattern.replace(" ?", " *").replace(" ", " +").replace(" +*", " *")
    return re.compile(rf"\b{spaced}(?!\w)")
