"""Time phrases."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.recall.dates import find_period

NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")

Days = list[tuple[str, str]]


def spans(text: str, now: datetime | None = NOW, first_weekday: int = 0) -> Days:
    """The spans that a text names, to the day; an open end is empty."""
    return [(start[:10], end[:10]) for start, end in instants(text, now, first_weekday)]


def instants(text: str, now: datetime | None = NOW, first_weekday: int = 0) -> Days:
    """The spans that a text names, in UTC to the minute."""
    period = find_period(text, now, first_weekday)
    assert period is not None
    return [
        (f"{span.start:%Y-%m-%d %H:%M}" if span.start else "", f"{span.end:%Y-%m-%d %H:%M}" if span.end else "")
        for span in period.spans
    ]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        # dates
        ("what happened on 2023-05-08?", "2023-05-08", "2023-05-09"),
        ("photos of 2023/5/8", "2023-05-08", "2023-05-09"),
        ("the trip of 8 May 2023", "2023-05-08", "2023-05-09"),
        ("on the 8th of May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 8, 2023", "2023-05-08", "2023-05-09"),
        ("on Dec. 31st 2022", "2022-12-31", "2023-01-01"),
        ("on 29 February 2024", "2024-02-29", "2024-03-01"),
        ("13/5/2023", "2023-05-13", "2023-05-14"),
        # months, seasons, years
        ("in 2023-12", "2023-12-01", "2024-01-01"),
        ("in Sept 2021", "2021-09-01", "2021-10-01"),
        ("May 2023", "2023-05-01", "2023-06-01"),
        ("in early March 2023", "2023-03-01", "2023-03-11"),
        ("late February 2023", "2023-02-21", "2023-03-01"),
        ("summer 2019", "2019-06-01", "2019-09-01"),
        ("the winter of 2019", "2019-12-01", "2020-03-01"),
        ("Q1 2024", "2024-01-01", "2024-04-01"),
        ("the fourth quarter of 2023", "2023-10-01", "2024-01-01"),
        ("back in 1999", "1999-01-01", "2000-01-01"),
        ("early 2023", "2023-01-01", "2023-05-01"),
        ("the 1990s", "1990-01-01", "2000-01-01"),
        ("music of the '80s", "1980-01-01", "1990-01-01"),
        ("the first week of May 2023", "2023-05-01", "2023-05-08"),
        ("the last week of 2023", "2023-12-25", "2024-01-01"),
        # ranges
        ("between March and May 2024", "2024-03-01", "2024-06-01"),
        ("between November and February 2024", "2023-11-01", "2024-03-01"),
        ("from March 2023 to May", "2023-03-01", "2023-06-01"),
        ("from November 2022 until January", "2022-11-01", "2023-02-01"),
        ("March to May 2024", "2024-03-01", "2024-06-01"),
        ("3-5 March 2024", "2024-03-03", "2024-03-06"),
        ("March 3–5, 2024", "2024-03-03", "2024-03-06"),
        ("from the 3rd to the 5th of March 2024", "2024-03-03", "2024-03-06"),
        ("1 January 2024 – 5 February 2024", "2024-01-01", "2024-02-06"),
        ("from 2023-01-05 to 2023-02-07", "2023-01-05", "2023-02-08"),
        ("2019-2021", "2019-01-01", "2022-01-01"),
        ("from 2019 to 2021", "2019-01-01", "2022-01-01"),
        ("between Monday and Wednesday", "2024-03-11", "2024-03-14"),
        ("from yesterday to today", "2024-03-12", "2024-03-14"),
        ("in May and June 2023", "2023-05-01", "2023-07-01"),
        # counted from now
        ("who called today?", "2024-03-13", "2024-03-14"),
        ("who called yesterday?", "2024-03-12", "2024-03-13"),
        ("the day before yesterday", "2024-03-11", "2024-03-12"),
        ("what is on tomorrow?", "2024-03-14", "2024-03-15"),
        ("the day after tomorrow", "2024-03-15", "2024-03-16"),
        ("this week", "2024-03-11", "2024-03-18"),
        ("last week", "2024-03-04", "2024-03-11"),
        ("next week", "2024-03-18", "2024-03-25"),
        ("last weekend", "2024-03-09", "2024-03-11"),
        ("this month", "2024-03-01", "2024-04-01"),
        ("last month", "2024-02-01", "2024-03-01"),
        ("at the end of last month", "2024-02-21", "2024-03-01"),
        ("last quarter", "2023-10-01", "2024-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("last decade", "2010-01-01", "2020-01-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("last winter", "2023-12-01", "2024-03-01"),
        ("this summer", "2024-06-01", "2024-09-01"),
        ("last March", "2023-03-01", "2023-04-01"),
        ("this March", "2024-03-01", "2024-04-01"),
        ("next March", "2025-03-01", "2025-04-01"),
        ("this Friday", "2024-03-15", "2024-03-16"),
        ("Tuesday of last week", "2024-03-05", "2024-03-06"),
        ("three days ago", "2024-03-10", "2024-03-11"),
        ("a couple of days ago", "2024-03-11", "2024-03-12"),
        ("two weeks ago we talked about tea", "2024-02-26", "2024-03-04"),
        ("a month ago", "2024-02-01", "2024-03-01"),
        ("10 years ago", "2014-01-01", "2015-01-01"),
        ("in two weeks", "2024-03-25", "2024-04-01"),
    ],
)
def test_phrase_names_a_period(text: str, start: str, end: str) -> None:
    assert spans(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("since 2020", "2020-01-01", ""),
        ("from 2020 onwards", "2020-01-01", ""),
        ("since May", "2023-05-01", ""),
        ("since Tuesday", "2024-03-12", ""),
        ("after March 2023", "2023-04-01", ""),
        ("before June 2023", "", "2023-06-01"),
        ("until 2020", "", "2021-01-01"),
        ("until last Friday", "", "2024-03-09"),
        ("by yesterday", "", "2024-03-13"),
        ("by May", "", "2023-06-01"),
    ],
)
def test_word_before_a_phrase_opens_one_end(text: str, start: str, end: str) -> None:
    assert spans(text) == [(start, end)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("next Friday", [("2024-03-15", "2024-03-16"), ("2024-03-22", "2024-03-23")]),
        ("last Tuesday", [("2024-03-05", "2024-03-06"), ("2024-03-12", "2024-03-13")]),
        ("last Wednesday", [("2024-03-06", "2024-03-07")]),
        ("next weekend", [("2024-03-16", "2024-03-18"), ("2024-03-23", "2024-03-25")]),
        ("the talk on Tuesday", [("2024-03-12", "2024-03-13"), ("2024-03-19", "2024-03-20")]),
        ("8/5/2023", [("2023-05-08", "2023-05-09"), ("2023-08-05", "2023-08-06")]),
        ("in 2019 and 2021", [("2019-01-01", "2020-01-01"), ("2021-01-01", "2022-01-01")]),
    ],
)
def test_phrase_that_people_mean_in_two_ways_names_both_days(text: str, expected: Days) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday evening", "2024-03-12 17:00", "2024-03-12 23:00"),
        ("this morning", "2024-03-13 05:00", "2024-03-13 12:00"),
        ("last night", "2024-03-12 18:00", "2024-03-13 06:00"),
        ("three hours ago", "2024-03-13 12:00", "2024-03-13 13:00"),
        ("the last 24 hours", "2024-03-12 15:30", "2024-03-13 15:30"),
        ("the last 10 days", "2024-03-03 15:30", "2024-03-13 15:30"),
        ("over the last week", "2024-03-06 15:30", "2024-03-13 15:30"),
        ("the past year", "2023-03-13 15:30", "2024-03-13 15:30"),
        ("the last few weeks", "2024-02-14 15:30", "2024-03-13 15:30"),
    ],
)
def test_phrase_names_hours_of_a_day_or_a_stretch_up_to_now(text: str, start: str, end: str) -> None:
    assert instants(text) == [(start, end)]


def test_the_last_days_end_now() -> None:
    period = find_period("the last 3 days", NOW)
    assert period is not None
    assert period.contains(NOW)
    assert period.contains(NOW - timedelta(days=3))
    assert not period.contains(NOW - timedelta(days=3, seconds=1))


def test_end_of_a_period_is_outside() -> None:
    period = find_period("in May 2023")
    assert period is not None
    assert period.contains(datetime(2023, 5, 1, tzinfo=UTC))
    assert period.contains(datetime(2023, 5, 31, 23, 59, tzinfo=UTC))
    assert not period.contains(datetime(2023, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", ["what did we do in May?", "on May 4th", "the 4th of May"])
def test_month_without_a_year_is_that_of_any_year(text: str) -> None:
    period = find_period(text, NOW)
    assert period is not None
    assert period.yearly
    assert period.contains(datetime(2019, 5, 2, tzinfo=UTC))
    assert period.contains(datetime(1969, 5, 31, 23, tzinfo=UTC))
    assert not period.contains(datetime(2019, 6, 1, tzinfo=UTC))


def test_months_of_any_year_may_go_over_its_end() -> None:
    period = find_period("between November and February")
    assert period is not None
    for year, month in ((2019, 11), (2020, 2), (2023, 12)):
        assert period.contains(datetime(year, month, 10, tzinfo=UTC))
    assert not period.contains(datetime(2020, 3, 1, tzinfo=UTC))


# ── what is no time ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    ["", "may I come in?", "they march on", "call Jan", "my 2 decks", "room 2150", "between 1 and 3", "may and june",
     "the monday morning blues", "yesterdays", "12019", "0999-01-01", "0000-00-00", "in 3023", "99/99/2023x"],
)  # fmt: skip
def test_words_that_look_like_dates_are_no_period(text: str) -> None:
    assert find_period(text, NOW) is None


def test_impossible_day_leaves_the_month() -> None:
    assert spans("on 30 February 2023") == [("2023-02-01", "2023-03-01")]


def test_narrowest_of_several_times_counts() -> None:
    assert spans("what did Ann say yesterday about the trip in 2019?") == [("2024-03-12", "2024-03-13")]


def test_relative_phrase_needs_the_time() -> None:
    assert find_period("what did I do yesterday?") is None


def test_phrase_is_kept_as_it_was_written() -> None:
    period = find_period("İs the band Last Tuesday good?", NOW)
    assert period is not None
    assert period.phrase == "Last Tuesday"


@pytest.mark.parametrize("text", ["last 999 decades", "999 years ago and 999 decades ago"])
def test_time_beyond_the_calendar_is_passed_over(text: str) -> None:
    period = find_period(text, NOW)
    assert period is None or period.phrase == "999 years ago"


_WORDS = st.sampled_from(
    "last next this past on in since before after until between from and to the a few 3 31 0 99 2023 1999 05 - / , . "
    "may march february monday friday week weekend month year decade day days hours ago today yesterday tomorrow "
    "summer winter early late end of first night morning q1 90s ſeptember K".split()
)


@given(st.lists(_WORDS, max_size=12).map(" ".join), st.integers(3, 3_650_000))
def test_any_words_at_any_time_give_ordered_spans_or_none(text: str, day: int) -> None:
    moment = datetime(1, 1, 1, 13, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))) + timedelta(days=day)
    period = find_period(text, moment)
    if period is not None:
        assert period.phrase in text
        bounds = [bound for pair in period.bounds() for bound in pair]
        assert bounds == sorted(bounds)
        assert all(start < end for start, end in period.bounds())


# ── zones and calendars ─────────────────────────────────────────────────────────────────────────────


def test_relative_phrase_is_resolved_in_the_zone_of_the_asker_not_in_utc() -> None:
    late = datetime(2024, 3, 13, 23, 30, tzinfo=timezone(-timedelta(hours=5)))
    assert instants("today", late) == [("2024-03-13 05:00", "2024-03-14 05:00")]
    assert instants("today", late.astimezone(UTC)) == [("2024-03-14 00:00", "2024-03-15 00:00")]


def test_date_is_a_day_of_the_askers_zone() -> None:
    assert instants("on 1 March 2024", NOW.astimezone(BERLIN)) == [("2024-02-29 23:00", "2024-03-01 23:00")]
    assert instants("on 1 March 2024", None) == [("2024-03-01 00:00", "2024-03-02 00:00")]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("31 March 2024", "2024-03-30 23:00", "2024-03-31 22:00"),  # 23 hours
        ("27 October 2024", "2024-10-26 22:00", "2024-10-27 23:00"),  # 25 hours
        ("in March 2024", "2024-02-29 23:00", "2024-03-31 22:00"),
    ],
)
def test_day_on_which_the_clock_is_changed_is_whole(text: str, start: str, end: str) -> None:
    assert instants(text, NOW.astimezone(BERLIN)) == [(start, end)]


def test_hours_are_elapsed_ones_where_the_clock_was_put_forward() -> None:
    after = datetime(2024, 3, 10, 4, tzinfo=NEW_YORK)  # at two it was made three
    assert instants("the last 3 hours", after) == [("2024-03-10 05:00", "2024-03-10 08:00")]
    assert instants("yesterday", after) == [("2024-03-09 05:00", "2024-03-10 05:00")]


def test_hour_that_comes_twice_is_the_one_of_asking() -> None:
    second = datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=1)
    assert instants("the last 1 hour", second) == [("2024-11-03 05:30", "2024-11-03 06:30")]


@pytest.mark.parametrize(
    ("day", "text", "start", "end"),
    [
        (31, "a month ago", "2024-02-01", "2024-03-01"),
        (31, "the last 1 month", "2024-02-29", "2024-03-31"),
        (1, "yesterday", "2024-02-29", "2024-03-01"),
        (31, "next month", "2024-04-01", "2024-05-01"),
    ],
)
def test_end_of_a_month_is_counted_to_the_last_day_of_a_shorter_one(day: int, text: str, start: str, end: str) -> None:
    assert spans(text, NOW.replace(day=day)) == [(start, end)]


@pytest.mark.parametrize(
    ("now", "first_weekday", "text", "start", "end"),
    [
        (17, 0, "this week", "2024-03-11", "2024-03-18"),  # the 17th is a Sunday
        (17, 6, "this week", "2024-03-17", "2024-03-24"),
        (17, 6, "last week", "2024-03-10", "2024-03-17"),
        (17, 0, "this weekend", "2024-03-16", "2024-03-18"),
        (13, 6, "this Sunday", "2024-03-10", "2024-03-11"),
        (13, 0, "this Sunday", "2024-03-17", "2024-03-18"),
    ],
)
def test_week_begins_where_the_asker_says(now: int, first_weekday: int, text: str, start: str, end: str) -> None:
    assert spans(text, NOW.replace(day=now), first_weekday) == [(start, end)]


def test_long_query_is_read_in_time_in_proportion_to_its_length() -> None:
    # Quadratic reading of 20,000 characters would take minutes.
    assert find_period("what about the march of may 2 since and between " * 400, NOW) is not None


@pytest.mark.parametrize("year", [1, 2, 9997, 9998, 9999])
@pytest.mark.parametrize("text", ["since May", "from May 2023 to June", "last summer", "next decade", "a year ago"])
def test_ends_of_the_calendar_are_no_error(year: int, text: str) -> None:
    find_period(text, datetime(year, 6, 15, tzinfo=UTC))
