"""Gathering the candidates of a query."""

import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.index.gather import Favoured, gather
from memseal.index.lexical import LexicalIndex
from memseal.index.vectors import VectorIndex
from memseal.recall.candidates import Candidates
from memseal.recall.query import parse_query
from memseal.recall.rank import rank
from tests.index.build import memories

CONNECTION = memories(
    [
        ("Shall we go to the lake?", "Ann", "chat", 0),
        ("Yes, on Sunday", "Bob", "chat", 1),
        ("I bring the boat", "Ann", "chat", 2),
        ("And I the bread", "Bob", "chat", 3),
        ("Bees dance", None, None, None),
        ("Another lake", "Ann", "other", 0),
        ("Unplaced lake", "Ann", "chat", None),
    ]
)
NOWHERE = np.array([0.0, 0.0, 0.0, 1.0], np.float32)


@pytest.fixture
def vectors() -> VectorIndex:
    index = VectorIndex(4)
    index.add(np.array([5, 1]), np.eye(4, dtype="<f2")[:2])
    return index


def found(
    query: str,
    vectors: VectorIndex | None = None,
    vector: NDArray[np.float32] | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> Candidates:
    return gather(CONNECTION, LexicalIndex(CONNECTION), vectors, parse_query(query), vector, allowed)


def test_neighbours_of_a_match_come_along() -> None:
    columns = found("lake")
    assert columns.numbers.tolist() == [1, 2, 3, 6, 7]
    assert (columns.lexical > 0).tolist() == [True, False, False, True, True]


def test_thread_and_position_are_known_or_neither() -> None:
    columns = found("lake")
    assert columns.threads.tolist() == [0, 0, 0, 1, -1]
    assert columns.positions.tolist() == [0, 1, 2, 0, 0]


def test_authors_are_numbered_with_their_names() -> None:
    columns = found("lake bees")
    names = [columns.author_names[author] if author >= 0 else None for author in columns.authors]
    assert names == ["Ann", "Bob", "Ann", None, "Ann", "Ann"]


def test_near_vector_is_found_without_a_word(vectors: VectorIndex) -> None:
    columns = found("insects", vectors, np.array([1, 0, 0, 0], np.float32))
    assert 5 in columns.numbers
    assert columns.cosine[columns.numbers == 5].tolist() == [1]
    assert columns.cosine[columns.numbers == 1].tolist() == [0]
    assert np.isnan(columns.cosine[columns.numbers == 2]).all()


def test_without_a_query_vector_the_words_alone_decide(vectors: VectorIndex) -> None:
    assert np.isnan(found("lake", vectors).cosine).all()
    assert found("insects", vectors).numbers.size == 0


def test_forbidden_neighbours_stay_out() -> None:
    allowed = np.ones(8, np.bool_)
    allowed[[2, 6]] = False
    assert found("lake", allowed=allowed).numbers.tolist() == [1, 3, 7]


def test_number_beyond_the_mask_stays_out(vectors: VectorIndex) -> None:
    assert found("lake", vectors, NOWHERE, np.ones(2, np.bool_)).numbers.tolist() == [1]


def test_time_of_a_memory_is_when_it_was_captured_or_else_written() -> None:
    CONNECTION.execute("UPDATE memories SET captured_at = 7 WHERE n = 5")
    assert found("bees boat").captured_at.tolist()[-1] == 7
    assert set(found("lake").captured_at.tolist()) == {1000}


def test_nothing_found_gives_empty_columns() -> None:
    assert len(found("zeppelin")) == 0


def test_favoured_memories_have_a_pool_of_their_own() -> None:
    lexical = LexicalIndex(CONNECTION)
    mask = np.zeros(8, np.bool_)
    mask[7] = True
    for favoured, numbers in ((None, [1, 2, 3, 6]), (Favoured(mask, np.array([5])), [1, 2, 3, 5, 6, 7])):
        columns = gather(CONNECTION, lexical, None, parse_query("lake"), None, pool=2, favoured=favoured)
        assert set(columns.numbers.tolist()) <= set(numbers)
        assert (7 in columns.numbers) == (5 in columns.numbers) == (favoured is not None)


def test_what_the_model_does_not_read_has_no_cosine(vectors: VectorIndex) -> None:
    query, lexical = parse_query("bees"), LexicalIndex(CONNECTION)
    vector = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
    read = gather(CONNECTION, lexical, vectors, query, vector)
    unread = gather(CONNECTION, lexical, vectors, query, vector, reads=lambda text: "Bees" not in text)
    assert read.numbers.tolist() == unread.numbers.tolist()
    bees = read.numbers.tolist().index(5)
    assert read.cosine[bees] == 1
    assert np.isnan(unread.cosine[bees])


def test_term_that_a_large_part_of_many_memories_has_is_common() -> None:
    rows = [(f"tea {'green' if number < 15 else 'black'}", None, None, None) for number in range(110)]
    connection = memories(rows)
    columns = gather(connection, LexicalIndex(connection), None, parse_query("green tea bicycle"), None)
    assert columns.common == 0b010
    few = memories(rows[:20])
    assert gather(few, LexicalIndex(few), None, parse_query("green tea"), None).common == 0


def test_term_that_looks_like_a_stop_word_without_its_ending_is_common() -> None:
    rows = [("The lake was on the left", None, None, None), ("One boat", None, None, None)]
    connection = memories(rows)
    lexical = LexicalIndex(connection)
    query = parse_query("one satellite")
    assert query.terms == ("one", "satellite")
    columns = gather(connection, lexical, None, query, None)
    assert (columns.common, columns.numbers.tolist()) == (0b01, [1, 2])
    assert rank(query, columns, floor=0.3, limit=10) == []
    assert len(
        rank(parse_query("one"), gather(connection, lexical, None, parse_query("one"), None), floor=0.3, limit=1)
    )
