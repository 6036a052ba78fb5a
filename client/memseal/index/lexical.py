"""Find memories by words, with BM25 over SQLite's full-text index."""

import math
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memseal.index.postings import Occurrences, Postings, Words
from memseal.recall.stopwords import STOP_WORDS
from memseal.recall.words import asked

# The tokenizer of `memories_text`. Another one there would make the words of queries and memories differ. Marks and
# signs are parts of words: without them Hindi would fall apart into consonants, and an emoji would be nothing.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co So'"

# A word that more than this part of all memories has says little about any of them: the "der" and "que" of languages
# whose stop words are not listed. Among few memories a topic can be as frequent.
_COMMON = 0.2
_COMMON_FROM = 100

# With the 1.2 and 0.75 that FTS5's own rank fixes, the whole ranking falls on LoCoMo from 0.849 to 0.840 (recall
# at 10) and from 0.551 to 0.523 (mean reciprocal rank), measured with a pool of 50.
_K1 = 0.9
_B = 0.4


class LexicalIndex:
    """The words of all memories: a view on the tables `memories` and `memories_text` of a connection.

    FTS5's own rank reads the size of each matching memory one by one: 160 ms for five common words among
    100,000 memories. Here the occurrences of a word come out as one string and numpy counts them, about six
    times faster, and those of frequent words are kept. No text of a query ever becomes part of an FTS5 expression.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._words = Words(TOKENIZER)
        self._postings = Postings(connection, self._words)

    def close(self) -> None:
        """Let go of the tokenizer, and of the words in it."""
        self._words.close()

    def match(self, terms: Sequence[str], aside: NDArray[np.bool_] | None = None) -> "Matches":
        """Return where the terms occur; each is split and stemmed as the memories were.

        What is `aside` (a mask indexed by number) is found like all else, and does not count: a summary that repeats
        words of others would make them look more frequent than they are.
        """
        (total,) = self._connection.execute("SELECT count(*) FROM memories").fetchone()
        words = _split(self._words, terms)
        # Without its ending "one" is "on", and "WA" is what is left of "was".
        dull = 0
        for word, places in words.items():
            dull |= places if word in _dull_words() else 0
        found = zip(words.values(), self._postings.of(words), strict=True)
        postings = [_Posting(places, each, each.numbers.size - _count(aside, each.numbers)) for places, each in found]
        return Matches(total - (0 if aside is None else int(aside.sum())), postings, dull, aside)


@dataclass(frozen=True)
class _Posting:
    """Where one word occurs, the query's terms that it stands for (bits), and how many memories count as having it."""

    terms: int
    at: Occurrences
    having: int

    @property
    def numbers(self) -> NDArray[np.int32]:
        return self.at.numbers

    @property
    def counts(self) -> NDArray[np.uint16]:
        return self.at.counts


class Matches:
    """The memories in which the terms of one query occur."""

    def __init__(
        self, total: int, postings: Iterable[_Posting], dull: int, aside: NDArray[np.bool_] | None = None
    ) -> None:
        self._total = total
        self._dull = dull
        self._aside = aside
        self._postings = [posting for posting in postings if posting.numbers.size]

    @property
    def common(self) -> int:
        """The terms that a large part of all memories has, or that look like a stop word, as bits."""
        few = self._total * _COMMON if self._total >= _COMMON_FROM else self._total
        bits = self._dull
        for posting in self._postings:
            bits |= posting.terms if posting.having > few else 0
        return bits

    def rarities(self, terms: int) -> tuple[float, ...]:
        """Return how rare each of that many terms is among all memories; of several words the commonest's."""
        most = [0] * terms
        for posting in self._postings:
            for place in range(terms):
                if posting.terms >> place & 1:
                    most[place] = max(most[place], posting.having)
        return tuple(math.log1p((self._total - having + 0.5) / (having + 0.5)) for having in most)

    def best(self, limit: int, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of about the best `limit` matches: the order is BM25's without the lengths,
        which only `scores` reads.

        `allowed` is a mask indexed by number; a number beyond its end is not allowed.
        """
        size = 1 + max((int(posting.numbers[-1]) for posting in self._postings), default=-1)
        scores = np.zeros(size)
        for posting in self._postings:
            scores[posting.numbers] += self._gain(posting.having, posting.counts, 1.0)
        if allowed is not None:
            scores[: allowed.size] *= allowed[:size]
            scores[allowed.size :] = 0
        matching = np.flatnonzero(scores >= self._least(scores, limit))
        if matching.size <= limit:
            return matching
        return matching[np.argpartition(-scores[matching], limit - 1)[:limit]]

    def _least(self, scores: NDArray[np.float64], limit: int) -> float:
        """Return what the best `limit` all score at least, if there are so many: what the rarest word's best do.

        Without it the half of a million memories would be sorted, that have one frequent word or another.
        """
        for posting in sorted(self._postings, key=lambda posting: posting.numbers.size):
            some = scores[posting.numbers]
            if np.count_nonzero(some) >= limit:
                return float(np.partition(some, some.size - limit)[some.size - limit])
        return float(np.nextafter(0, 1))

    def scores(
        self, numbers: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        """Return the BM25 score of each number (0: no term matches) and which terms match it, one bit per
        term.

        The mean length is the mean of `lengths` (of the texts, in any unit): that of all memories would
        have to be kept up to date, and finds no more.
        """
        scores = np.zeros(numbers.size)
        matched = np.zeros(numbers.size, np.uint64)
        relative = lengths / self._usual_length(numbers, lengths) if lengths.size else np.ones(0)
        for posting in self._postings:
            # Of one type with what is searched, or all of that would be converted first.
            place = np.searchsorted(posting.numbers, numbers.astype(posting.numbers.dtype))
            place = np.minimum(place, posting.numbers.size - 1)
            rows = np.flatnonzero(posting.numbers[place] == numbers)
            scores[rows] += self._gain(posting.having, posting.counts[place[rows]], relative[rows])
            matched[rows] |= np.uint64(posting.terms)
        return scores, matched

    def _usual_length(self, numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> float:
        counting = lengths if self._aside is None else lengths[~self._aside[numbers]]
        return max(float((counting if counting.size else lengths).mean()), 1.0)

    def _gain(
        self, having: int, counts: NDArray[np.uint16], relative: NDArray[np.float64] | float
    ) -> NDArray[np.float64]:
        # The form of Lucene, whose rarity never falls below 0: a word that most memories have must not make
        # one worse.
        rarity = np.log1p((self._total - having + 0.5) / (having + 0.5))
        gain: NDArray[np.float64] = rarity * counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * relative))
        return gain


def _count(mask: NDArray[np.bool_] | None, numbers: NDArray[np.int32]) -> int:
    return 0 if mask is None else int(np.count_nonzero(mask[numbers]))


def _split(splitter: Words, terms: Sequence[str]) -> dict[str, int]:
    """Return the distinct words of the terms, each with the terms it comes from as bits."""
    words: dict[str, int] = {}
    for word, place in splitter.places(list(enumerate(map(asked, terms)))):
        words[word] = words.get(word, 0) | 1 << place
    return words


@cache
def _dull_words() -> frozenset[str]:
    # Once for each process, and not before a search: it is half of what opening a small vault took.
    with closing(Words(TOKENIZER)) as splitter:
        return frozenset(_split(splitter, sorted(STOP_WORDS)))
