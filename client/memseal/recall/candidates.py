"""The memories among which a query chooses, as columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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

    def __post_init__(self) -> None:
        """Refuse columns of different lengths."""
        scores = (self.lexical, self.matched, self.cosine)
        facts = (self.threads, self.positions, self.authors, self.captured_at)
        if any(column.shape != (len(self),) for column in (*scores, *facts)):
            raise ValueError("the columns of the candidates differ in length")

    def __len__(self) -> int:
        return self.numbers.size
