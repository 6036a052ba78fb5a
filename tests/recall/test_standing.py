"""What tiers and age do to a ranking (recall.md §4)."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.recall.candidates import AFFINITIES, ATOMS, COMPOSITES, Candidates, Standing
from memseal.recall.query import parse_query
from memseal.recall.rank import Late, rank
from memseal.recall.standing import asks_for_pattern, from_standing
from memseal.recall.weights import Weights
from tests.recall.build import candidates

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def standing(
    tiers: list[int], significance: list[float] | None = None, faded: list[float] | None = None, **columns: list[float]
) -> Candidates:
    count = len(tiers)
    made = candidates(count, **columns)  # type: ignore[arg-type]
    ages = Standing(
        np.array(tiers, np.int8),
        np.array(significance or [0.0] * count),
        np.array(faded or [0.0] * count),
    )
    return replace(made, standing=ages)


@pytest.mark.parametrize(
    "query",
    [
        "What do I usually drink?",
        "how does Ada normally deal with stress",
        "Which kind of tea do we prefer?",
        "my favourite food",
        "WHAT DO I DO EVERY EVENING",
    ],
)
def test_question_about_a_habit(query: str) -> None:
    assert asks_for_pattern(parse_query(query, NOW))


@pytest.mark.parametrize(
    "query",
    [
        "When did I break my arm?",
        "What did Ada usually drink?",
        "What do I have on May 8, 2023?",
        "dentist",
        "Where is the key?",
        "What does Ada like?",
        "I do what I like",
        "",
        "was trinkt Ada",
    ],
)
def test_question_about_one_time_or_thing(query: str) -> None:
    assert not asks_for_pattern(parse_query(query, NOW))


def test_habit_comes_before_a_decoy_that_has_the_words_of_the_question() -> None:
    found = standing([ATOMS, AFFINITIES, ATOMS], [0.0, 0.92, 0.0], lexical=[9.0, 4.0, 0.0], cosine=[0.5, 0.45, 0.1])
    hits = rank(parse_query("what do I usually drink", NOW), found, floor=0.3, limit=3)
    assert [hit.number for hit in hits[:2]] == [2, 1]
    assert hits[0].why.standing > 0


def test_specific_memory_comes_before_the_habit() -> None:
    found = standing([ATOMS, AFFINITIES, ATOMS], [0.0, 0.92, 0.0], lexical=[6.0, 4.0, 0.0], cosine=[0.5, 0.45, 0.1])
    hits = rank(parse_query("when did I spill the coffee", NOW), found, floor=0.3, limit=3)
    assert [hit.number for hit in hits] == [1, 2]


def test_habit_of_something_else_stays_behind() -> None:
    found = standing([ATOMS, AFFINITIES], [0.0, 0.92], lexical=[9.0, 0.0], cosine=[0.8, 0.32])
    assert [hit.number for hit in rank(parse_query("what do I usually drink", NOW), found, floor=0.3, limit=2)] == [
        1,
        2,
    ]


def test_established_habit_comes_before_a_new_one() -> None:
    found = standing([AFFINITIES, AFFINITIES], [0.2, 0.92], cosine=[0.5, 0.5])
    assert [hit.number for hit in rank(parse_query("what do I usually drink", NOW), found, floor=0.3, limit=2)] == [
        2,
        1,
    ]


def test_what_was_made_of_others_comes_after_them_however_well_it_matches() -> None:
    found = standing([COMPOSITES, ATOMS, AFFINITIES, ATOMS], lexical=[9.0, 1.0, 8.0, 0.1], cosine=[0.9, 0.5, 0.8, 0.3])
    assert [hit.number for hit in rank(parse_query("coffee", NOW), found, floor=0.3, limit=4)] == [2, 4, 1, 3]


def test_places_of_a_named_time_are_kept_for_memories_alone() -> None:
    may = int(datetime(2019, 5, 2, tzinfo=UTC).timestamp()) * 1_000_000
    found = standing([ATOMS, ATOMS, COMPOSITES, COMPOSITES], lexical=[4.0, 3.0, 2.0, 1.0])
    found = replace(found, captured_at=np.array([1, 1, may, may]))
    hits = rank(parse_query("coffee in May 2019", NOW), found, floor=0.3, limit=2)
    assert [hit.number for hit in hits] == [1, 2]


ROWS = st.lists(
    st.tuples(st.sampled_from([ATOMS, ATOMS, COMPOSITES, AFFINITIES]), st.floats(0, 9), st.floats(-0.2, 0.9)),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.sampled_from(["coffee", "coffee in May 2019", "what do I usually drink"]), st.integers(0, 3))
def test_memories_come_in_the_same_order_with_and_without_what_was_made_of_them(
    rows: list[tuple[int, float, float]], query: str, top: int
) -> None:
    tiers, lexical, cosine = (list(column) for column in zip(*rows, strict=True))
    every = standing(tiers, [0.5] * len(rows), lexical=lexical, cosine=cosine)
    atoms = [place for place, tier in enumerate(tiers) if tier == ATOMS]
    alone = replace(
        standing([ATOMS] * len(atoms), lexical=[lexical[place] for place in atoms]),
        numbers=every.numbers[atoms],
        cosine=every.cosine[atoms],
    )
    late = Late(lambda numbers: np.sin(numbers.astype(np.float64)), top)
    found = [
        [hit.number for hit in rank(parse_query(query, NOW), each, floor=0.3, limit=12, late=late)]
        for each in (every, alone)
    ]
    assert [number for number in found[0] if number in set(every.numbers[atoms].tolist())] == found[1]


def test_of_equals_the_old_episode_comes_last() -> None:
    found = standing([ATOMS, ATOMS], faded=[0.9, 0.0], cosine=[0.5, 0.5])
    assert [hit.number for hit in rank(parse_query("coffee", NOW), found, floor=0.3, limit=2)] == [2, 1]


def test_who_asks_for_a_time_gets_what_is_old() -> None:
    found = standing([ATOMS, ATOMS], faded=[0.9, 0.0], cosine=[0.5, 0.5])
    assert not from_standing(found, parse_query("coffee in May 2019", NOW), np.zeros(2), Weights()).any()


def test_fading_never_outweighs_a_better_match() -> None:
    found = standing([ATOMS, ATOMS, ATOMS], faded=[1.0, 0.0, 0.0], cosine=[0.6, 0.5, 0.1])
    assert rank(parse_query("coffee", NOW), found, floor=0.3, limit=1)[0].number == 1
