"""Which texts say nearly the same: by the words they share, found without comparing all with all (lifecycle.md §4)."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from memseal.recall.words import split

ALIKE: Final = 0.8
"""Jaccard's index from which two texts are near-duplicates by their words alone."""
ALIKE_WITH_MEANING: Final = 0.6
"""The same where the cosine of their vectors is at least `SAME_MEANING` as well."""
SAME_MEANING: Final = 0.93
# Of texts of two words half is another; of many other words the texts are two statements.
LEAST_WORDS: Final = 3
MOST_DIFFERENCES: Final = 4
MOST_COMPARISONS: Final = 500_000
"""Where all texts are made of the same few words, so many pairs are compared, in about a second, and no more."""


class Near(NamedTuple):
    """Two texts by their keys, the first given first, how alike they are, and how many words only each has."""

    first: int
    second: int
    likeness: float
    only_first: int
    only_second: int


def words_of(text: str) -> frozenset[str]:
    """Return the set of a text's words."""
    return frozenset(split(text))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return Jaccard's index of two sets of words, 0 where both are empty."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def near_pairs(texts: Mapping[int, frozenset[str]], least: float = ALIKE_WITH_MEANING) -> Iterator[Near]:
    """Yield all pairs of texts that are alike at least so much, each once; deterministic, in the order of the keys.

    Two sets with an index of at least t share a word among the first |x| − ⌈t·|x|⌉ + 1 of each, in any one order of
    words (Chaudhuri, Ganti, Kaushik: A Primitive Operator for Similarity Joins, 2006); with the rarest first few pairs
    are left to compare. After `MOST_COMPARISONS` it ends.
    """
    counts = Counter(word for words in texts.values() for word in words)
    beginnings = defaultdict[str, list[int]](list)
    left = MOST_COMPARISONS
    for key, words in texts.items():
        if len(words) < LEAST_WORDS:
            continue
        compared = set[int]()
        for word in _rarest(words, counts, least):
            for other in beginnings[word]:
                if other not in compared:
                    compared.add(other)
                    left -= 1
                    if not left:
                        return
                    if near := _compare(other, texts[other], key, words, least):
                        yield near
            beginnings[word].append(key)


def _rarest(words: frozenset[str], counts: Mapping[str, int], least: float) -> Sequence[str]:
    size = len(words) - math.ceil(least * len(words)) + 1
    return sorted(words, key=lambda word: (counts[word], word))[:size]


def _compare(first: int, one: frozenset[str], second: int, other: frozenset[str], least: float) -> Near | None:
    if min(len(one), len(other)) < least * max(len(one), len(other)):
        return None
    index = likeness(one, other)
    near = Near(first, second, index, len(one - other), len(other - one))
    return near if index >= least and max(near.only_first, near.only_second) <= MOST_DIFFERENCES else None
