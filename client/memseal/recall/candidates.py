"""The memories among which a query chooses, as columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ATOMS, COMPOSITES, AFFINITIES = range(3)
"""What `Standing.tiers` has."""


@dataclass(frozen=True)
class Standing:
    """What counts of each candidate beside the query (memory-model §2); all columns have its length.

    `significance` is σ of what was made of others, 0 of an atom; `faded` is how much of an episodic atom time has
    taken, from 0 to 1.
    """

    tiers: NDArray[np.int8]
    significance: NDArray[np.float64]
    faded: NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """One row per candidate; all columns have the same length, and each number occurs once.

    The neighbours of a good candidate must be among them (`weights.REACH` positions to each side): a memory
    that is not here cannot be found, however good its neighbour is.
    """

    numbers: NDArray[np.int64]
    # BM25; 0 where no term matches.
    lexical: NDArray[np.float64]
    # Which terms match: bit i stands for the query's term i (a query has at most 64).
    matched: NDArray[np.uint64]
    # Cosine to the query; NaN where the memory has no vector, or the query none.
    cosine: NDArray[np.float64]
    # The thread as a small number; -1 where a memory has none, or no position in it.
    threads: NDArray[np.int64]
    positions: NDArray[np.int64]
    # The author as a place in `author_names`; -1 where a memory has none.
    authors: NDArray[np.int64]
    author_names: tuple[str, ...]
    # Microseconds since 1970 in UTC.
    captured_at: NDArray[np.int64]
    # Terms that a large part of all memories has, as bits like those of `matched`.
    common: int = 0
    # How rare each of the query's terms is among all memories, as BM25 has it.
    rarities: tuple[float, ...] = ()
    # Whether the cosine speaks for all of a text: a model reads the beginning of a long one. None: for all of each.
    whole: NDArray[np.bool_] | None = None
    # None where all are atoms that do not fade.
    standing: Standing | None = None
    # The version that lent a memory its words or meaning, which it replaced; -1 where none did. None: of no memory.
    earlier: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Refuse columns of different lengths."""
        scores = (self.lexical, self.matched, self.cosine)
        facts = (self.threads, self.positions, self.authors, self.captured_at)
        if any(column.shape != (len(self),) for column in (*scores, *facts)):
            raise ValueError("the columns of the candidates differ in length")

    def __len__(self) -> int:
        return self.numbers.size

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Which of them scores are measured by: those that were not made of others, if there are any.

        What is said twice must not change how what was said once is ranked.
        """
        if self.standing is not None:
            atoms: NDArray[np.bool_] = self.standing.tiers == ATOMS
            if atoms.any():
                return atoms
        return np.ones(len(self), np.bool_)
