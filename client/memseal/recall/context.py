"""What a memory gains from the conversation around it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memseal.recall.candidates import Candidates
from memseal.recall.weights import Weights

# The thread boost looks at this many of a thread's best scores.
BEST_OF_THREAD = 3

# Neighbours further apart in time are not turns of one conversation: the entries of a diary's thread stand beside one
# another by topic, and what the one says is no answer to the other.
SITTING_MICROSECONDS = 6 * 3_600 * 1_000_000


@dataclass(frozen=True)
class Pairs:
    """Neighbours at one distance: the candidates in `rows` gain `weight` times the score of those in `others`."""

    weight: float
    rows: NDArray[np.int64]
    others: NDArray[np.int64]


def neighbours(candidates: Candidates, weights: Weights) -> list[Pairs]:
    """Return who stands beside whom; nobody stands beside a memory without a thread and position."""
    rows = np.flatnonzero(candidates.threads >= 0)
    places = _places(candidates.threads[rows], candidates.positions[rows])
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    pairs: list[Pairs] = []
    for distance, weight in weights.kernel:
        if weight and rows.size:
            found = np.searchsorted(ordered, places + distance)
            found[found == rows.size] = 0
            matches = np.flatnonzero(ordered[found] == places + distance)
            here, there = rows[matches], rows[order[found[matches]]]
            close = _close(candidates.captured_at[here], candidates.captured_at[there])
            pairs.append(Pairs(weight, here[close], there[close]))
    return pairs


def _close(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pairs are of one sitting; a memory without a time (0) is taken to be."""
    close: NDArray[np.bool_] = (one == 0) | (other == 0) | (np.abs(one - other) <= SITTING_MICROSECONDS)
    return close


def from_neighbours(pairs: Sequence[Pairs], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each candidate gets of its neighbours' scores."""
    gained = np.zeros_like(scores)
    for pair in pairs:
        gained[pair.rows] += pair.weight * scores[pair.others]
    return gained


def from_thread(candidates: Candidates, scores: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """Return what each candidate gets of the best scores of its thread; 0 for all without one."""
    gained = np.zeros_like(scores)
    rows = np.flatnonzero(candidates.threads >= 0)
    if weights.thread and rows.size:
        rows = rows[np.lexsort((-scores[rows], candidates.threads[rows]))]
        _, starts, group, sizes = np.unique(
            candidates.threads[rows], return_index=True, return_inverse=True, return_counts=True
        )
        best = np.arange(rows.size) - starts[group] < BEST_OF_THREAD
        sums = np.bincount(group[best], weights=scores[rows[best]])
        gained[rows] = weights.thread * (sums / np.minimum(sizes, BEST_OF_THREAD))[group]
    return gained


def supported(pairs: Sequence[Pairs], relevant: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which candidates are relevant, or stand beside one that is."""
    kept = relevant.copy()
    for pair in pairs:
        kept[pair.rows] |= relevant[pair.others]
    return kept


def _places(threads: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the (thread, position) pairs so that only neighbours in one thread are close."""
    distinct, ranks = np.unique(positions, return_inverse=True)
    # Positions may be huge, so gaps are shortened to a width that no kernel reaches across.
    steps = np.minimum(np.diff(distinct, prepend=distinct[:1]), 16)
    compact = np.cumsum(steps)[ranks]
    return np.asarray(threads * (compact.max(initial=0) + 32) + compact, np.int64)
