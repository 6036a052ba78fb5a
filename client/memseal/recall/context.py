"""What a memory gains from the conversation around it."""

import numpy as np
from numpy.typing import NDArray

from memseal.recall.candidates import Candidates
from memseal.recall.weights import Weights

# The thread boost looks at this many of a thread's best scores.
BEST_OF_THREAD = 3


def from_neighbours(candidates: Candidates, scores: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """Return what each candidate gets of its neighbours' scores; 0 for all that lack a thread or position."""
    gained = np.zeros_like(scores)
    for distance, weight in weights.kernel:
        if weight:
            rows, neighbours = _pairs(candidates, distance)
            gained[rows] += weight * scores[neighbours]
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


def supported(candidates: Candidates, relevant: NDArray[np.bool_], weights: Weights) -> NDArray[np.bool_]:
    """Return which candidates are relevant, or stand beside one that is."""
    kept = relevant.copy()
    for distance, weight in weights.kernel:
        if weight:
            rows, neighbours = _pairs(candidates, distance)
            kept[rows] |= relevant[neighbours]
    return kept


def _pairs(candidates: Candidates, distance: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and, for each, the row of the memory `distance` positions on in the same thread."""
    rows = np.flatnonzero(candidates.threads >= 0)
    places = _places(candidates.threads[rows], candidates.positions[rows])
    order = np.argsort(places, kind="stable")
    wanted = places + distance
    found = np.searchsorted(places[order], wanted)
    found[found == rows.size] = 0
    matches = np.flatnonzero(places[order][found] == wanted) if rows.size else rows
    return rows[matches], rows[order[found[matches]]]


def _places(threads: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the (thread, position) pairs so that only neighbours in one thread are close."""
    distinct, ranks = np.unique(positions, return_inverse=True)
    # Positions may be huge, so gaps are shortened to a width that no kernel reaches across.
    steps = np.minimum(np.diff(distinct, prepend=distinct[:1]), 16)
    compact = np.cumsum(steps)[ranks]
    return np.asarray(threads * (compact.max(initial=0) + 32) + compact, np.int64)
