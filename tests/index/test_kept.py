"""What is kept between two searches, occurrences of words and answers of filters, follows every change."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from memseal.index import masks, postings
from memseal.index.filters import condition
from memseal.index.lexical import LexicalIndex
from memseal.index.postings import Postings, Words
from memseal.index.view import View
from tests.index.build import texts
from tests.index.histories import MODEL, apply, told_in_two_orders
from tests.index.reference import Stamped

FILTERS: list[Mapping[str, Any]] = [
    {},
    {"state": "superseded"},
    {"state": "all", "tags": ["red"]},
    {"tags": ["red", "blue"]},
    {"author": "Ann"},
    {"state": "retracted", "author": "Ann"},
]
TERMS = ["tea", "coffee", "ann"]
NUMBERS = np.arange(1, 30)
LENGTHS = np.full(NUMBERS.size, 10)


@pytest.fixture(autouse=True, scope="module")
def keep_all() -> Any:
    """Let every word be frequent, and every answer worth keeping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_KEPT_FROM", 1)
        patch.setattr(masks, "_KEPT_FROM", 1)
        yield


@settings(max_examples=40)
@given(told_in_two_orders())
def test_kept_answers_are_what_a_fresh_question_gets_after_every_record(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    view = View(pin=(MODEL, 3))
    for record in [*orders[0], *orders[1]]:
        apply(view, record)
        for filters in FILTERS:
            wanted = condition(filters)
            kept, fresh = view.masks.of(wanted.where, wanted.values), view.state.mask(wanted.where, wanted.values)
            assert np.flatnonzero(kept).tolist() == np.flatnonzero(fresh).tolist()
        anew = LexicalIndex(view.state.connection).match(TERMS)
        for one, other in zip(
            view.lexical.match(TERMS).scores(NUMBERS, LENGTHS), anew.scores(NUMBERS, LENGTHS), strict=True
        ):
            assert np.array_equal(one, other)
    view.close()


def test_a_tag_that_came_with_a_memory_lets_nothing_be_forgotten_and_one_of_later_does() -> None:
    view = View(pin=(MODEL, 3))
    connection = view.state.connection
    connection.execute("INSERT INTO tags VALUES (x'01', 'red', x'01')")
    assert connection.execute("SELECT times FROM temp.changes").fetchone() == (0,)
    connection.execute("INSERT INTO tags VALUES (x'01', 'blue', x'02')")
    assert connection.execute("SELECT times FROM temp.changes").fetchone() == (1,)
    view.close()


def test_frequent_word_is_read_once_and_extended_by_what_comes() -> None:
    store = texts("tea", "tea tea", "milk")
    words = Words("porter unicode61")
    kept, asked = Postings(store, words), list[str]()
    store.set_trace_callback(asked.append)
    for number, content in ((4, "tea and tea"), (5, "milk")):
        kept.of(["tea"])
        store.execute("INSERT INTO memories (n, content) VALUES (?, ?)", (number, content))
        store.execute("INSERT INTO memories_text (rowid, content) VALUES (?, ?)", (number, content))
    (found,) = kept.of(["tea"])
    assert (found.numbers.tolist(), found.counts.tolist()) == ([1, 2, 4], [1, 2, 2])
    assert sum("memories_words" in each for each in asked) == 1


def test_kept_occurrences_have_a_limit_and_the_longest_unused_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_KEPT_LIMIT", 4)
    kept = Postings(texts("tea milk", "tea milk", "tea cake"), Words("porter unicode61"))
    kept.of(["milk", "tea", "milk", "cake"])
    assert list(kept._kept) == ["milk", "cake"]


def test_kept_answers_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_KEPT_BYTES", 2)
    view = View(pin=(MODEL, 3))
    for filters in FILTERS:
        wanted = condition(filters)
        view.masks.of(wanted.where, wanted.values)
    assert len(view.masks._kept) == 2
    view.close()


@pytest.mark.parametrize("limit", [1, 5, 30, 200])
def test_the_best_are_the_same_whether_or_not_the_rest_is_looked_at(limit: int) -> None:
    rng = np.random.default_rng(1)
    words = ["often", "half", "some", "rare", "rarest"]
    share = np.array([0.9, 0.5, 0.2, 0.05, 0.01])
    store = texts(*[" ".join(np.array(words)[rng.random(5) < share]) or "none" for _ in range(2_000)])
    matches = LexicalIndex(store).match(words)
    numbers = np.arange(1, 2_001)
    scores, _ = matches.scores(numbers, np.ones(2_000, np.int64))
    best = matches.best(limit)
    assert best.size == min(limit, int((scores > 0).sum()))
    assert sorted(scores[best - 1], reverse=True) == pytest.approx(sorted(scores, reverse=True)[:limit])
