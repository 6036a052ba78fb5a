"""Days, weeks, months and longer stretches of a calendar, on the clock of one zone (recall.md §2)."""

from calendar import monthrange
from datetime import datetime, timedelta
from typing import Final, NamedTuple

_DAY: Final = timedelta(days=1)
# Meteorological seasons of the northern half: whole months, so that a query means the same every year.
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
MONTHS_OF: Final = {"month": 1, "quarter": 3, "season": 3, "year": 12, "decade": 120}
"""The units that are counted in months; a decade begins with a year that ends in 0."""


class Stretch(NamedTuple):
    """From `start` up to but not including `end`; naive times are on the zone's clock, aware ones are instants."""

    start: datetime | None
    end: datetime | None


def midnight(moment: datetime) -> datetime:
    """Return when the moment's day begins."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def days(first: datetime, count: int = 1) -> Stretch:
    """Return that many days from the day of `first` on."""
    start = midnight(first)
    return Stretch(start, start + count * _DAY)


def hours(day: datetime, first: int, last: int) -> Stretch:
    """Return the hours of a day from `first` up to `last`, which may be beyond its midnight."""
    start = midnight(day)
    return Stretch(start + timedelta(hours=first), start + timedelta(hours=last))


def week_of(moment: datetime, first_weekday: int) -> Stretch:
    """Return the week around a moment; `first_weekday` is 0 for Monday to 6 for Sunday."""
    return days(midnight(moment) - ((moment.weekday() - first_weekday) % 7) * _DAY, 7)


def months(year: int, month: int, count: int = 1) -> Stretch:
    """Return that many months from one on; `month` may be 0 or beyond 12: of the year before or after."""
    start = months_later(datetime(year, 1, 1), month - 1)  # noqa: DTZ001 - on the zone's clock
    return Stretch(start, months_later(start, count))


def unit_of(moment: datetime, unit: str, first_weekday: int) -> Stretch:
    """Return the calendar's day, week, month, quarter, year or decade around a moment."""
    if unit == "day":
        return days(moment)
    if unit == "week":
        return week_of(moment, first_weekday)
    if unit == "weekend":
        return days(midnight(moment) + (5 - moment.weekday()) * _DAY, 2)
    size = MONTHS_OF[unit]
    if unit == "decade":
        return months(moment.year - moment.year % 10, 1, size)
    if unit == "season":  # January and February are of the winter that began the year before
        return months(moment.year, moment.month - moment.month % size, size)
    return months(moment.year, moment.month - (moment.month - 1) % size, size)


def earlier(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment that many units before (after, if negative); a day that a month lacks becomes its last."""
    if unit in MONTHS_OF:
        return months_later(moment, -count * MONTHS_OF[unit])
    return moment - count * (_DAY if unit == "day" else 7 * _DAY)


def months_later(moment: datetime, count: int) -> datetime:
    """Return the same day and time that many months later, or the month's last day where it is shorter."""
    years, place = divmod(moment.month - 1 + count, 12)
    year, month = moment.year + years, place + 1
    if not 1 <= year <= 9999:
        raise ValueError("beyond the calendar")
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))


def weekday_before(moment: datetime, weekday: int) -> datetime:
    """Return the day of the last such weekday before the moment's day."""
    return midnight(moment) - ((moment.weekday() - weekday - 1) % 7 + 1) * _DAY


def third(whole: Stretch, which: int) -> Stretch:
    """Return the early (0), middle (1) or late (2) part: ten days of a month, or a third of a longer one's months."""
    if whole.start is None or whole.end is None:
        return whole
    size = (whole.end.year - whole.start.year) * 12 + whole.end.month - whole.start.month
    cuts = (
        [whole.start, whole.start + 10 * _DAY, whole.start + 20 * _DAY, whole.end]
        if size == 1
        else [months_later(whole.start, size * part // 3) for part in range(4)]
    )
    return Stretch(cuts[which], cuts[which + 1])
