"""Finding memories by words."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.index.lexical import LexicalIndex, Matches
from memseal.recall.query import parse_query
from tests.index.build import memories, texts


def match(connection: sqlite3.Connection, query: str) -> Matches:
    return LexicalIndex(connection).match(parse_query(query).terms)


def scores(connection: sqlite3.Connection, query: str) -> dict[int, float]:
    rows = connection.execute("SELECT n, length(content) FROM memories ORDER BY n").fetchall()
    numbers, lengths = np.array(rows, np.int64).T
    return dict(enumerate(match(connection, query).scores(numbers, lengths)[0].tolist(), start=1))


def test_words_are_found_in_any_form_case_and_accent() -> None:
    store = texts("She was RUNNING late", "Un caf\u00e9 noir", "nothing")
    assert match(store, "runs cafe").best(10).tolist() == [1, 2]


def test_author_is_found_too() -> None:
    store = memories([("I like tea", "Ann", None, None), ("I like tea", "Bob", None, None)])
    assert match(store, "Ann").best(10).tolist() == [1]


def test_query_without_terms_matches_nothing() -> None:
    matches = match(texts("the capital of France"), "what of the")
    assert matches.best(10).size == 0
    assert matches.scores(np.array([1]), np.array([21]))[0].tolist() == [0]


def test_unknown_word_matches_nothing() -> None:
    assert match(texts("tea"), "zeppelin").best(10).size == 0


def test_rare_word_counts_more_than_a_common_one() -> None:
    found = scores(texts("tea kettle", "tea cosy", "tea saucer"), "tea cosy")
    assert found[2] > found[1] == found[3] > 0


def test_repeated_word_counts_more_but_less_each_time() -> None:
    found = scores(texts("tea milk milk", "tea tea milk", "tea tea tea", "milk milk milk"), "tea")
    assert found[4] == 0
    assert found[3] - found[2] < found[2] - found[1]


def test_long_memory_scores_less_for_the_same_words() -> None:
    found = scores(texts("a kettle", "a kettle " + "and much else besides " * 20), "kettle")
    assert found[1] > found[2] > 0


def test_score_is_bm25() -> None:
    store = texts("red kettle", "red teapot", "blue teapot", "blue bicycle")
    # One of four has "kettle", two have "red"; all are about equally long, so the length hardly counts.
    numbers, lengths = np.array([1]), np.array([10])
    ((score,), _) = match(store, "red kettle").scores(numbers, lengths)
    expected = np.log1p(3.5 / 1.5) * 1.9 / 1.9 + np.log1p(2.5 / 2.5) * 1.9 / 1.9
    assert score == pytest.approx(expected)


def test_word_in_every_memory_never_lowers_a_score() -> None:
    found = scores(texts("tea one", "tea two"), "tea")
    assert found[1] > 0


def test_words_of_what_stands_aside_make_none_more_frequent() -> None:
    said = ["the kettle sings", "the kettle boils", "a bicycle"]
    alone = LexicalIndex(texts(*said)).match(["kettle"])
    aside = np.array([False, False, False, False, True])
    beside = LexicalIndex(texts(*said, "a summary: kettle, kettle, bicycle")).match(["kettle"], aside)
    numbers, lengths = np.array([1, 2, 3]), np.array([16, 16, 9])
    assert np.array_equal(alone.scores(numbers, lengths)[0], beside.scores(numbers, lengths)[0])
    assert alone.rarities(1) == beside.rarities(1)
    every, sizes = np.array([1, 2, 3, 4]), np.array([16, 16, 9, 34])
    scores = beside.scores(every, sizes)[0]
    assert np.array_equal(scores[:3], alone.scores(numbers, lengths)[0])
    assert scores[3] > 0


def test_matched_terms_are_named_by_their_bits() -> None:
    store = texts("the kettle sings", "kettles and teapots", "bicycle")
    _, matched = match(store, "teapot kettle zeppelin").scores(np.array([1, 2, 3]), np.array([16, 19, 7]))
    assert matched.tolist() == [0b010, 0b011, 0]


def test_two_forms_of_one_word_count_once() -> None:
    store = texts("the kettle sings", "bicycle")
    once, _ = match(store, "kettle").scores(np.array([1]), np.array([16]))
    twice, matched = match(store, "kettle kettles").scores(np.array([1]), np.array([16]))
    assert once.tolist() == twice.tolist()
    assert matched.tolist() == [0b11]


def test_best_are_the_best_and_filtered_before_they_are_cut() -> None:
    store = texts(*["tea"] * 5, "tea kettle", "tea kettle")
    matches = match(store, "tea kettle")
    assert sorted(matches.best(2).tolist()) == [6, 7]
    allowed = np.array([False, True, True, False, False, False, False, True])
    assert sorted(matches.best(2, allowed).tolist())[1] == 7
    assert matches.best(10, allowed).tolist() == [1, 2, 7]


def test_number_beyond_the_mask_is_not_allowed() -> None:
    assert match(texts("tea", "tea", "tea"), "tea").best(10, np.array([True, True])).tolist() == [1]


def test_mask_may_be_longer_than_the_matches() -> None:
    assert match(texts("tea", "milk"), "tea").best(10, np.ones(100, np.bool_)).tolist() == [1]


def test_memory_added_later_is_found() -> None:
    store = texts("tea")
    index = LexicalIndex(store)
    store.execute("INSERT INTO memories (content) VALUES ('kettle')")
    store.execute("INSERT INTO memories_text (rowid, content) VALUES (2, 'kettle')")
    assert index.match(["kettle"]).best(10).tolist() == [2]


def test_memory_taken_out_is_not_found() -> None:
    store = texts("tea", "kettle")
    index = LexicalIndex(store)
    store.execute("INSERT INTO memories_text (memories_text, rowid, content) VALUES ('delete', 2, 'kettle')")
    assert index.match(["kettle"]).best(10).size == 0


def test_two_indexes_can_look_at_one_connection() -> None:
    store = texts("tea")
    assert LexicalIndex(store).match(["tea"]).best(1).tolist() == [1]
    assert LexicalIndex(store).match(["tea"]).best(1).tolist() == [1]


def test_image_of_the_database_carries_nothing_of_the_index() -> None:
    store = texts("tea")
    before = store.serialize()
    LexicalIndex(store).match(["tea"])
    assert store.serialize() == before


STORE = texts('"quoted" AND OR NOT NEAR near* ^col:', "tea kettle")


@given(st.text())
def test_any_text_is_harmless_as_a_query(text: str) -> None:
    found = match(STORE, text).best(10)
    assert set(found.tolist()) <= {1, 2}


@given(st.lists(st.text(min_size=1), max_size=5))
def test_any_terms_are_harmless_even_if_nobody_cleaned_them(terms: list[str]) -> None:
    assert set(LexicalIndex(STORE).match(terms).best(10).tolist()) <= {1, 2}


def test_term_that_cannot_be_encoded_leaves_the_index_usable() -> None:
    index = LexicalIndex(STORE)
    with pytest.raises(UnicodeEncodeError):
        index.match(["tea", "\ud800"])
    assert index.match(["tea"]).best(10).tolist() == [2]
