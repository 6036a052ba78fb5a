"""Time phrases."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memseal.recall.dates import Period, find_period

NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)  # a Wednesday


def bounds(text: str, now: datetime | None = NOW) -> tuple[str, str]:
    period = find_period(text, now)
    assert period is not None
    assert period.start is not None
    assert period.end is not None
    return period.start.isoformat()[:10], period.end.isoformat()[:10]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what happened on 2023-05-08?", "2023-05-08", "2023-05-09"),
        ("the trip of 8 May 2023", "2023-05-08", "2023-05-09"),
        ("on the 8th of May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 8, 2023", "2023-05-08", "2023-05-09"),
        ("on Dec. 31st 2022", "2022-12-31", "2023-01-01"),
        ("in 2023-12", "2023-12-01", "2024-01-01"),
        ("in Sept 2021", "2021-09-01", "2021-10-01"),
        ("summer 2019", "2019-06-01", "2019-09-01"),
        ("the winter of 2019", "2019-12-01", "2020-03-01"),
        ("back in 1999", "1999-01-01", "2000-01-01"),
        ("who called today?", "2024-03-13", "2024-03-14"),
        ("who called yesterday?", "2024-03-12", "2024-03-13"),
        ("this week", "2024-03-11", "2024-03-18"),
        ("last week", "2024-03-04", "2024-03-11"),
        ("this month", "2024-03-01", "2024-04-01"),
        ("last month", "2024-02-01", "2024-03-01"),
        ("last year", "2023-01-01", "2024-01-01"),
    ],
)
def test_phrase_names_a_period(text: str, start: str, end: str) -> None:
    assert bounds(text) == (start, end)


def test_the_last_days_end_now() -> None:
    period = find_period("the last 3 days", NOW)
    assert period is not None
    assert period.contains(NOW)
    assert period.contains(NOW - timedelta(days=3))
    assert not period.contains(NOW - timedelta(days=3, seconds=1))


def test_end_of_a_period_is_outside() -> None:
    period = find_period("in May 2023")
    assert period is not None
    assert period.contains(datetime(2023, 5, 31, 23, 59, tzinfo=UTC))
    assert not period.contains(datetime(2023, 6, 1, tzinfo=UTC))


def test_month_without_a_year_is_that_of_any_year() -> None:
    period = find_period("what did we do in May?")
    assert period is not None
    assert period == Period("in may", month=5)
    assert period.contains(datetime(2019, 5, 2, tzinfo=UTC))
    assert not period.contains(datetime(2019, 6, 2, tzinfo=UTC))


def test_day_of_no_year_is_read_as_its_month() -> None:
    assert find_period("on July 4th") == Period("july 4th", month=7)


@pytest.mark.parametrize("text", ["may I come in?", "they march on", "call Jan", "my 2 decks", "room 2150"])
def test_words_that_look_like_dates_are_no_period(text: str) -> None:
    assert find_period(text, NOW) is None


def test_impossible_day_leaves_the_month() -> None:
    assert bounds("on 30 February 2023") == ("2023-02-01", "2023-03-01")


def test_relative_phrase_needs_the_time() -> None:
    assert find_period("what did I do yesterday?") is None


def test_relative_phrase_is_resolved_in_utc() -> None:
    late = datetime(2024, 3, 13, 23, 30, tzinfo=timezone(-timedelta(hours=5)))
    assert bounds("today", late) == ("2024-03-14", "2024-03-15")


@pytest.mark.parametrize("text", ["0999-01-01", "0000-00-00", "in 3023"])
def test_years_that_nobody_remembers_are_no_period(text: str) -> None:
    assert find_period(text, NOW) is None


def test_longest_stretch_can_be_counted_back() -> None:
    assert bounds("the last 999 years")[0] == "1025-11-11"
