"""Near-duplicates by shared words: nothing above the threshold is missed, and nothing below is found."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memseal.recall.nearness import (
    ALIKE_WITH_MEANING,
    LEAST_WORDS,
    MOST_DIFFERENCES,
    likeness,
    near_pairs,
    words_of,
)

WORDS = st.frozensets(st.sampled_from("abcdefghij"), max_size=9)


@given(st.lists(WORDS, max_size=12))
def test_pairs_found_by_rare_words_are_those_of_comparing_all_with_all(sets: list[frozenset[str]]) -> None:
    texts = dict(enumerate(sets))
    found = {(near.first, near.second): near.likeness for near in near_pairs(texts)}
    expected = {
        (one, other): likeness(texts[one], texts[other])
        for one, other in combinations(texts, 2)
        if min(len(texts[one]), len(texts[other])) >= LEAST_WORDS
        and likeness(texts[one], texts[other]) >= ALIKE_WITH_MEANING
        and max(len(texts[one] - texts[other]), len(texts[other] - texts[one])) <= MOST_DIFFERENCES
    }
    assert found == expected


def test_case_accents_of_typing_and_punctuation_make_no_difference() -> None:
    assert words_of("The spare key: under the BLUE pot!") == words_of("the spare key, under the blue pot")


def test_texts_of_unspaced_scripts_are_compared_by_neighbouring_characters() -> None:
    (near,) = near_pairs({1: words_of("我喜欢喝绿茶和咖啡"), 2: words_of("我喜欢喝绿茶和咖啡吗")})
    assert near.likeness > 0.8


def test_empty_texts_are_not_alike() -> None:
    assert likeness(frozenset(), frozenset()) == 0.0
