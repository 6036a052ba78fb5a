"""Late interaction: how near each word of a query is to the nearest word of a memory (recall.md §4).

Source of the score: ColBERT (Khattab and Zaharia, SIGIR 2020), with rarities as weights. Source of the code: RaBitQ
(Gao and Long, SIGMOD 2024), one bit a dimension, here without its rotation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from memseal.recall.stopwords import STOP_WORDS

Effort = Literal["economy", "default", "best"]
"""What a search spends: `economy` asks one vector a memory alone, the others look at the words of the best too."""

# Of a small word, which is no term and has no rarity here. On six conversations of LoCoMo 0 to 2 find within 0.004 as
# much.
_SMALL = 1.5


class TokenCode(Protocol):
    """A text's token vectors, kept for later."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    def nearest(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each of the query's tokens, shape (t, d), the greatest cosine to one of the text's, shape (t,)."""
        ...


@dataclass(frozen=True)
class Whole:
    """Token vectors as they are, in float16: 2 · d bytes a token."""

    vectors: NDArray[np.float16] = field(repr=False)

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> "Whole":
        """Keep unit vectors, shape (n, d)."""
        return cls(vectors.astype(np.float16))

    @property
    def size(self) -> int:
        """Bytes."""
        return self.vectors.nbytes

    def nearest(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each of the query's tokens the greatest cosine."""
        return _greatest(query @ self.vectors.astype(np.float32).T)


@dataclass(frozen=True)
class Signs:
    """The sign of each value, and one scale a token by which the cosine is estimated: d / 8 + 2 bytes a token.

    For a unit vector x and its signs s, ⟨q, s⟩ / ⟨x, s⟩ estimates ⟨q, x⟩ (RaBitQ, theorem 3.2).
    """

    bits: NDArray[np.uint8] = field(repr=False)
    scales: NDArray[np.float16] = field(repr=False)

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> "Signs":
        """Keep unit vectors, shape (n, d)."""
        # Of a unit vector the sum of the magnitudes is at least 1.
        scales = 1 / np.maximum(np.abs(vectors).sum(axis=1), 1)
        return cls(np.packbits(vectors > 0, axis=1), scales.astype(np.float16))

    @property
    def size(self) -> int:
        """Bytes."""
        return self.bits.nbytes + self.scales.nbytes

    def nearest(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each of the query's tokens the greatest estimate of a cosine."""
        positive = np.unpackbits(self.bits, axis=1, count=query.shape[1]).astype(np.float32)
        # The signs are 2 · bit - 1.
        products = 2 * (query @ positive.T) - query.sum(axis=1, keepdims=True)
        return _greatest(products * self.scales.astype(np.float32))


@dataclass(frozen=True)
class LateQuery:
    """A query's tokens: unit vectors, shape (t, d), and what each weighs, shape (t,)."""

    vectors: NDArray[np.float32] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)

    def score(self, code: TokenCode) -> float:
        """Return the weighted mean of the greatest cosines, from -1 to 1."""
        return float(self.weights @ code.nearest(self.vectors) / self.weights.sum())


def late_query(vectors: NDArray[np.float32], words: Sequence[str], rarities: Mapping[str, float]) -> LateQuery | None:
    """Return the tokens of a query that count, or None where none does.

    `words` has for each token the word it is a part of, in lower case; what has no letter or digit weighs nothing, a
    term its rarity among the memories.
    """
    weights = np.array([_weight(word, rarities) for word in words], np.float64)
    counting = weights > 0
    return LateQuery(vectors[counting], weights[counting]) if counting.any() else None


def _weight(word: str, rarities: Mapping[str, float]) -> float:
    if not word.isalnum():
        return 0.0
    return _SMALL if word in STOP_WORDS else rarities.get(word, _SMALL)


def _greatest(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    greatest: NDArray[np.float32] = cosines.max(axis=1)
    return greatest
