"""Late interaction: codes, weights, and what it may change in a ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memseal.recall import Late, parse_query, rank
from memseal.recall.late import LateQuery, Signs, Whole, late_query
from tests.recall.build import candidates

DIMENSION = 384


def unit(seed: int, count: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    lengths: NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def near(vector: NDArray[np.float32], seed: int, noise: float) -> NDArray[np.float32]:
    moved = vector + noise * unit(seed, 1)[0]
    near_one: NDArray[np.float32] = moved / np.linalg.norm(moved)
    return near_one


@given(st.integers(1, 40), st.integers(0, 2**31))
def test_whole_vectors_give_the_greatest_cosine(count: int, seed: int) -> None:
    text, query = unit(seed, count), unit(seed + 1, 3)
    assert Whole.of(text).nearest(query) == pytest.approx((query @ text.T).max(axis=1), abs=1e-3)


@given(st.integers(0, 2**31))
def test_signs_estimate_the_cosine(seed: int) -> None:
    text, query = unit(seed, 20), unit(seed + 1, 1)
    text[7] = near(query[0], seed + 2, 0.5)
    exact = float(query[0] @ text[7])
    # The error of one bit a dimension falls with the root of the dimension: 4 of its deviations.
    assert Signs.of(text).nearest(query)[0] == pytest.approx(exact, abs=4 * 0.76 / np.sqrt(DIMENSION))


def test_signs_take_a_fifteenth_of_whole_vectors() -> None:
    text = unit(0, 40)
    assert Signs.of(text).size == 40 * (DIMENSION // 8 + 2)
    assert Whole.of(text).size == 40 * DIMENSION * 2


def test_token_vector_of_zeros_is_near_nothing() -> None:
    zeros = np.zeros((1, DIMENSION), np.float32)
    assert np.isfinite(Signs.of(zeros).nearest(unit(1, 2))).all()


def test_rare_word_weighs_more_and_a_mark_nothing() -> None:
    vectors = unit(3, 4)
    query = late_query(vectors, ["kettle", "the", "?", ""], {"kettle": 5.0})
    assert query is not None
    assert query.weights.tolist() == [5.0, 1.5]
    assert query.vectors.tolist() == vectors[:2].tolist()


@pytest.mark.parametrize("words", [[], ["?"], ["", "..."]])
def test_query_without_words_is_no_late_query(words: list[str]) -> None:
    assert late_query(unit(0, len(words)), words, {}) is None


def test_score_is_a_weighted_mean_of_cosines() -> None:
    vectors = np.eye(2, DIMENSION, dtype=np.float32)
    query = LateQuery(vectors, np.array([3.0, 1.0]))
    assert query.score(Whole.of(vectors[:1])) == pytest.approx(0.75)


QUERY = parse_query("kettle")


def ranked(late: Late | None, count: int = 6, limit: int = 10) -> list[int]:
    columns = candidates(count, lexical=[float(count - place) for place in range(count)], matched=[1] * count)
    return [hit.number for hit in rank(QUERY, columns, floor=0.3, limit=limit, late=late)]


def test_it_orders_the_first_ones_anew_and_leaves_the_rest_behind_them() -> None:
    asked: list[list[int]] = []

    def scores(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        asked.append(numbers.tolist())
        return np.linspace(0.1, 0.9, numbers.size)

    before = ranked(None)
    after = ranked(Late(scores, 3))
    assert asked == [before[:3]]
    assert after[:3] == before[:3][::-1]
    assert after[3:] == before[3:]


def test_scores_fall_along_the_order() -> None:
    columns = candidates(6, lexical=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0], matched=[1] * 6)
    hits = rank(QUERY, columns, floor=0.3, limit=6, late=Late(lambda numbers: np.linspace(0.2, 0.8, numbers.size), 3))
    totals = [hit.score for hit in hits]
    assert totals == sorted(totals, reverse=True)
    assert [hit.why.late is None for hit in hits] == [False] * 3 + [True] * 3


def test_it_adds_no_hit() -> None:
    columns = candidates(2, lexical=[0.0, 2.0], matched=[0, 1])
    hits = rank(QUERY, columns, floor=0.3, limit=5, late=Late(lambda numbers: np.ones(numbers.size), 30))
    assert [hit.number for hit in hits] == [int(columns.numbers[1])]


def test_memories_that_the_model_does_not_read_keep_their_place() -> None:
    nothing = Late(lambda numbers: np.full(numbers.size, np.nan), 30)
    assert ranked(nothing) == ranked(None)


def test_equal_late_scores_decide_nothing() -> None:
    assert ranked(Late(lambda numbers: np.full(numbers.size, 0.5), 30)) == ranked(None)
