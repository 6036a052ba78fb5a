"""What author and time give."""

from datetime import UTC, datetime

import numpy as np

from memseal.recall.boosts import from_author, from_date
from memseal.recall.query import parse_query
from tests.recall.build import candidates


def micros(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1_000_000


TWO = candidates(3, authors=[0, 1, -1], author_names=("Ann Lee", "Bob"))
DAYS = candidates(3, captured_at=[micros(2023, 5, 8), micros(2023, 6, 8), micros(1969, 5, 8)])


def test_named_author_gains() -> None:
    assert np.array_equal(from_author(TWO, parse_query("What did ann buy?"), 0.5), [0.5, 0, 0])


def test_two_named_authors_gain_nothing() -> None:
    assert not from_author(TWO, parse_query("What did Ann tell Bob?"), 0.5).any()


def test_unnamed_authors_gain_nothing() -> None:
    assert not from_author(TWO, parse_query("What did Anna buy?"), 0.5).any()


def test_stop_word_in_a_name_names_nobody() -> None:
    will = candidates(1, authors=[0], author_names=("Will",))
    assert not from_author(will, parse_query("What will happen?"), 0.5).any()


def test_memory_of_the_named_month_gains() -> None:
    assert np.array_equal(from_date(DAYS, parse_query("tea in May 2023"), 2.0), [2, 0, 0])


def test_month_of_any_year_also_counts_before_1970() -> None:
    assert np.array_equal(from_date(DAYS, parse_query("tea in May"), 2.0), [2, 0, 2])


def test_query_about_nothing_but_a_time_gives_twice_as_much() -> None:
    assert np.array_equal(from_date(DAYS, parse_query("what happened in May 2023?"), 2.0), [4, 0, 0])


def test_query_without_a_time_gives_nothing() -> None:
    assert not from_date(DAYS, parse_query("the bicycle"), 2.0).any()


def test_weight_of_zero_switches_both_off() -> None:
    assert not from_author(TWO, parse_query("Ann"), 0.0).any()
    assert not from_date(DAYS, parse_query("in May 2023"), 0.0).any()
