"""The order of the hits, and their reasons."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memseal.recall.query import parse_query
from memseal.recall.rank import Late, Ranked, rank, tally
from memseal.recall.weights import Weights
from tests.recall.build import candidates

QUERY = parse_query("Where is the red bicycle?")


def numbers(**columns: Any) -> list[int]:
    hits = rank(QUERY, candidates(3, **columns), floor=0.3, limit=10)
    return [hit.number for hit in hits]


def test_best_of_both_scores_comes_first() -> None:
    assert numbers(lexical=[1.0, 5.0, 3.0], cosine=[0.4, 0.8, 0.5]) == [2, 3, 1]


def test_unrelated_candidates_are_no_hits() -> None:
    assert numbers(cosine=[0.29, 0.1, 0.2]) == []


def test_cosine_at_the_floor_is_enough() -> None:
    assert numbers(cosine=[0.3, 0.1, 0.2]) == [1]


def test_floor_below_all_cosines_lets_in_only_what_has_a_vector() -> None:
    two = candidates(2, cosine=[-0.9, float("nan")])
    assert [hit.number for hit in rank(QUERY, two, floor=-1.0, limit=10)] == [1]


def test_matching_term_is_enough() -> None:
    assert numbers(lexical=[0.0, 0.1, 0.0]) == [2]


def test_neighbour_of_a_hit_is_a_hit() -> None:
    assert numbers(lexical=[2.0, 0.0, 0.0], threads=[0, 0, 1], positions=[4, 5, 6]) == [1, 2]


def test_better_neighbour_lifts_one_of_two_equal_hits() -> None:
    five = candidates(5, lexical=[0.0, 2.0, 2.0, 9.0, 0.0], threads=[0, 1, 2, 2, 3], positions=[0, 5, 6, 5, 9])
    assert [hit.number for hit in rank(QUERY, five, floor=0.3, limit=3)] == [4, 3, 2]
    plain = Weights(one_before=0, two_before=0, one_after=0, two_after=0, thread=0)
    off = rank(QUERY, five, floor=0.3, limit=3, weights=plain)
    assert [hit.number for hit in off] == [4, 2, 3]
    assert off[1].score == off[2].score


def test_equal_scores_keep_the_order_of_the_numbers() -> None:
    assert numbers(lexical=[1.0, 1.0, 1.0]) == [1, 2, 3]


def test_limit_cuts_after_the_best() -> None:
    hits = rank(QUERY, candidates(3, lexical=[1.0, 3.0, 2.0]), floor=0.3, limit=2)
    assert [hit.number for hit in hits] == [2, 3]


def test_no_candidates_give_no_hits() -> None:
    assert rank(QUERY, candidates(0), floor=0.3, limit=10) == []


def test_parts_of_the_reason_add_up_to_the_score() -> None:
    three = candidates(
        3,
        lexical=[1.0, 4.0, 0.0],
        cosine=[0.2, 0.6, 0.5],
        matched=[0b10, 0b11, 0],
        threads=[0, 0, 0],
        positions=[0, 1, 2],
        authors=[0, 1, 0],
        author_names=("Red", "Bob"),
    )
    best, *_ = hits = rank(QUERY, three, floor=0.3, limit=3)
    assert best.number == 2
    assert best.why.terms == ("red", "bicycle")
    assert best.why.lexical == 4.0
    assert best.why.cosine == 0.6
    for hit in hits:
        why = hit.why
        assert hit.score == pytest.approx(why.fused + why.context + why.author + why.date)
    assert {hit.number: hit.why.author for hit in hits} == {1: 0.5, 2: 0.0, 3: 0.5}


def test_hit_without_a_vector_has_no_cosine() -> None:
    (hit,) = rank(QUERY, candidates(1, lexical=[1.0]), floor=0.3, limit=1)
    assert hit.why.cosine is None


def test_columns_of_different_lengths_are_refused() -> None:
    three = candidates(3)
    with pytest.raises(ValueError, match="differ in length"):
        replace(three, cosine=np.zeros(2))


# ── time ────────────────────────────────────────────────────────────────────────────────────────────

MAY = int(datetime(2023, 5, 8, tzinfo=UTC).timestamp()) * 1_000_000
DATED = parse_query("the red bicycle in May 2023")


def of_may(hits: list[Ranked], last: int) -> int:
    """How many hits are among the candidates from `last` on."""
    return sum(hit.number >= last for hit in hits)


def test_half_of_the_places_are_kept_for_the_named_time_and_half_for_the_rest() -> None:
    # Forty matches that are far better, and forty poor ones of the time.
    eighty = candidates(80, lexical=[50.0] * 40 + [0.1] * 40, matched=[1] * 80, captured_at=[1] * 40 + [MAY] * 40)
    for limit in (1, 2, 5, 10):
        hits = rank(DATED, eighty, floor=0.3, limit=limit)
        assert len(hits) == limit
        assert of_may(hits, 41) == (limit + 1) // 2
    few = candidates(42, lexical=[50.0] * 40 + [0.1] * 2, matched=[1] * 42, captured_at=[1] * 40 + [MAY] * 2)
    assert of_may(rank(DATED, few, floor=0.3, limit=10), 41) == 2


def test_named_time_makes_nothing_unrelated_a_hit() -> None:
    two = candidates(2, lexical=[1.0, 0.0], matched=[1, 0], captured_at=[1, MAY])
    assert [hit.number for hit in rank(DATED, two, floor=0.3, limit=10)] == [1]


def test_words_of_the_time_match_only_together() -> None:
    query = parse_query("bicycle last week", datetime(2024, 3, 13, tzinfo=UTC))
    assert query.terms == ("bicycle", "last", "week")
    four = candidates(4, lexical=[1.0] * 4, matched=[0b010, 0b100, 0b110, 0b001])
    assert {hit.number for hit in rank(query, four, floor=0.3, limit=10)} == {3, 4}


def test_term_that_most_memories_have_makes_none_a_hit_beside_another_term() -> None:
    both = replace(candidates(2, lexical=[1.0, 1.0], matched=[0b01, 0b10]), common=0b01)
    assert [hit.number for hit in rank(QUERY, both, floor=0.3, limit=10)] == [2]
    assert len(rank(QUERY, replace(both, common=0b11), floor=0.3, limit=10)) == 2


def test_query_about_a_time_is_answered_by_all_of_then() -> None:
    query = parse_query("what happened in May 2023?")
    two = candidates(2, captured_at=[1, MAY])
    assert [hit.number for hit in rank(query, two, floor=0.3, limit=10)] == [2]
    assert tally(query, two, floor=0.3).matched == 1


# ── what is left out ────────────────────────────────────────────────────────────────────────────────


def test_near_misses_are_under_the_floor_by_little_and_are_no_hits() -> None:
    five = candidates(5, cosine=[0.46, 0.41, 0.39, 0.5, float("nan")])
    counted = tally(QUERY, five, floor=0.5)
    assert (counted.matched, counted.near_misses) == (1, 2)
    assert counted.nearest == pytest.approx(0.46)


def test_near_miss_that_is_a_hit_by_its_words_is_no_near_miss() -> None:
    assert tally(QUERY, candidates(1, cosine=[0.46], lexical=[1.0]), floor=0.5).near_misses == 0


def test_no_near_miss_has_no_nearest() -> None:
    assert tally(QUERY, candidates(1, cosine=[0.1]), floor=0.5).nearest is None


# ── words that meaning denies ───────────────────────────────────────────────────────────────────────


def related(cosine: float, matched: int, **columns: Any) -> bool:
    """Whether a memory with some of the words (red: 1, bicycle: 2) of the query is a hit, at a least cosine of 0.2."""
    found = candidates(1, lexical=[2.0], matched=[matched], cosine=[cosine], **columns)
    return bool(rank(QUERY, found, floor=0.3, least=0.2, limit=1))


def test_one_word_alone_is_no_evidence_where_meaning_denies_it() -> None:
    assert not related(0.24, 1)
    assert related(0.26, 1)


def test_all_words_are_evidence_whatever_meaning_says() -> None:
    assert related(-0.1, 3)


def test_several_words_need_less_of_the_meaning_than_one() -> None:
    query = parse_query("Where is the red bicycle of Nora?")
    for cosine, is_hit in ((0.19, False), (0.21, True)):
        found = candidates(1, lexical=[2.0], matched=[3], cosine=[cosine])
        assert bool(rank(query, found, floor=0.3, least=0.2, limit=1)) == is_hit


def test_turn_of_a_conversation_says_the_rest_beside_it() -> None:
    assert related(0.21, 1, threads=[0], positions=[7])
    assert not related(0.19, 1, threads=[0], positions=[7])


def test_words_count_where_there_is_no_meaning_or_not_of_all_of_the_text() -> None:
    assert related(float("nan"), 1)
    found = replace(candidates(1, lexical=[2.0], matched=[1], cosine=[0.0]), whole=np.array([False]))
    assert rank(QUERY, found, floor=0.3, least=0.2, limit=1)


def test_what_meaning_denies_is_neither_counted_nor_a_near_miss() -> None:
    found = candidates(1, lexical=[2.0], matched=[1], cosine=[0.1])
    assert tally(QUERY, found, floor=0.3, least=0.2) == tally(QUERY, candidates(1, cosine=[0.1]), floor=0.3)


# ── versions ────────────────────────────────────────────────────────────────────────────────────────


def test_hit_that_a_version_before_it_found_says_so() -> None:
    two = replace(candidates(2, lexical=[2.0, 1.0]), earlier=np.array([-1, 7]))
    assert [hit.why.earlier for hit in rank(QUERY, two, floor=0.3, limit=2)] == [False, True]


def test_late_interaction_looks_at_the_version_that_found_a_memory_too() -> None:
    two = replace(candidates(2, lexical=[2.0, 2.0]), earlier=np.array([-1, 7]))
    scores = {1: 0.5, 2: 0.1, 7: 0.9}
    late = Late(lambda asked: np.array([scores[number] for number in asked.tolist()]), 30)
    hits = rank(QUERY, two, floor=0.3, limit=2, late=late)
    assert [hit.number for hit in hits] == [2, 1]
    assert [hit.why.late for hit in hits] == pytest.approx([0.72, 0.5])
