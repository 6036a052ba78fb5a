"""Reading queries, also hostile ones."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.recall.query import MAX_CHARS, MAX_TERMS, parse_query
from memseal.recall.stopwords import STOP_WORDS


def test_terms_are_the_distinct_words_in_order_without_stop_words() -> None:
    assert parse_query("Where did the Dog of the dog's owner run?").terms == ("dog", "owner", "run")


def test_query_of_stop_words_has_no_terms() -> None:
    assert parse_query("What is it that you do, and why don't they?").terms == ()


def test_operators_and_quotes_become_plain_words() -> None:
    assert parse_query('"cat" NEAR(dog, 2) AND content:fish* ^bird').terms == (
        "cat",
        "near",
        "dog",
        "2",
        "content",
        "fish",
        "bird",
    )


def test_nul_and_lone_surrogates_separate_words() -> None:
    query = parse_query("tea\x00pot \ud800kettle")
    assert query.terms == ("tea", "pot", "kettle")
    assert "\ud800" not in query.text


def test_decomposed_letters_are_the_same_word_as_composed_ones() -> None:
    assert parse_query("e\u0301cole").terms == parse_query("\u00e9cole").terms == ("\u00e9cole",)


def test_emoji_and_unspaced_scripts_are_terms_and_no_query_without_them_is_searchable() -> None:
    assert parse_query("😀").terms == ("😀",)
    assert parse_query("茶").terms == ("茶",)
    assert parse_query("北京天气").terms == ("北京", "京天", "天气")
    assert not parse_query("?!").searchable


def test_query_of_stop_words_alone_is_not_searchable() -> None:
    assert not parse_query("what is it that you do?").searchable
    assert parse_query("what is tea?").searchable


# ── the time of a query ─────────────────────────────────────────────────────────────────────────────

NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)


def test_words_of_a_time_phrase_stay_terms() -> None:
    query = parse_query("the band Last Tuesday", NOW)
    assert query.terms == ("band", "last", "tuesday")
    assert query.time_terms == 0b110
    assert query.period is not None
    assert not query.about_time


@pytest.mark.parametrize(
    "text",
    ["last Tuesday", "what happened last week?", "What have I said in May 2023", "tell me everything from today"],
)
def test_query_that_only_asks_for_a_time_is_about_the_time(text: str) -> None:
    query = parse_query(text, NOW)
    assert query.about_time
    assert query.searchable
    assert query.time_terms == (1 << len(query.terms)) - 1


def test_asking_words_without_a_time_are_terms_like_others() -> None:
    query = parse_query("what happened to the note?", NOW)
    assert (query.terms, query.about_time) == (("happened", "note"), False)


def test_time_that_counts_for_all_leaves_the_rest_of_the_query() -> None:
    query = parse_query("What did Ann buy in summer 2019?", NOW, time="only")
    assert query.terms == ("ann", "buy")
    assert query.text.split() == ["What", "did", "Ann", "buy", "?"]
    assert query.period is not None


def test_words_of_the_time_are_taken_out_where_they_name_it_and_not_where_they_stand_in_another_word() -> None:
    query = parse_query("x2019y and tea 2019", NOW, time="only")
    assert query.text.split() == ["x2019y", "and", "tea"]


def test_time_that_is_ignored_is_words() -> None:
    query = parse_query("last Tuesday", NOW, time="ignore")
    assert (query.period, query.terms, query.about_time) == (None, ("last", "tuesday"), False)


def test_words_of_scripts_with_marks_stay_whole() -> None:
    assert parse_query("\u0939\u093f\u0928\u094d\u0926\u0940").terms == ("\u0939\u093f\u0928\u094d\u0926\u0940",)


def test_a_pasted_page_is_cut() -> None:
    query = parse_query(" ".join(f"word{number}" for number in range(10_000)))
    assert len(query.terms) == MAX_TERMS
    assert len(query.text) == MAX_CHARS


@given(st.text())
def test_any_text_gives_terms_of_letters_marks_and_digits(text: str) -> None:
    query = parse_query(text)
    query.text.encode("utf-8")
    assert not STOP_WORDS & set(query.terms)
    assert not set("\"'*^:(){}+-\x00 ") & set("".join(query.terms))


@given(st.text(alphabet=st.characters(categories=["Cs", "Cc", "Po"])))
def test_text_without_words_has_no_terms(text: str) -> None:
    assert parse_query(text).terms == ()
