"""What a memory gains from its tier and loses by age."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from memseal.recall.candidates import AFFINITIES, ATOMS, Candidates
from memseal.recall.query import Query
from memseal.recall.weights import Weights

_HABIT: Final = frozenset(
    """
    usually always often typically normally generally regularly every habit habits routine routines pattern patterns
    tend tends prefer prefers favourite favourites favorite favorites
    """.split()
)
# With less than this part of the nearest one's score a pattern is about something else.
_FAR: Final = 0.4
# Of a pattern that is established, and as near as two thirds of the nearest: less is no answer.
_CLEAR: Final = 0.25
_PAST: Final = frozenset("did was were had been yesterday ago last".split())


def asks_for_pattern(query: Query) -> bool:
    """Return whether a query (in English) asks what is so again and again, and not what was once.

    A question in the present tense alone ("what does she like?") does not: most of those ask for one thing.
    """
    if query.period is not None or not query.words.isdisjoint(_PAST):
        return False
    return not query.words.isdisjoint(_HABIT)


def from_standing(
    candidates: Candidates, query: Query, scores: NDArray[np.float64], weights: Weights
) -> NDArray[np.float64]:
    """Return what each candidate gains of its significance, and loses by its age; `scores` are those without it."""
    standing = candidates.standing
    if standing is None or not len(candidates):
        return np.zeros(len(candidates))
    # Who asks for a time asks for what is old.
    fading = weights.fading if query.period is None else 0.0
    # What was made of others says what they say, less exactly: it takes the place of none of them.
    behind = _too_high(candidates, scores) + 2 * weights.fading
    gained = np.where(standing.tiers == ATOMS, -fading * standing.faded, -behind)
    if weights.pattern and asks_for_pattern(query):
        worth = np.where(standing.tiers == AFFINITIES, standing.significance * _nearness(candidates), 0.0)
        gained = np.where(worth >= _CLEAR, scores.max() - scores + weights.pattern * worth, gained)
    return np.asarray(gained, np.float64)


def _too_high(candidates: Candidates, scores: NDArray[np.float64]) -> float:
    """Return by how much the best of what was made of others is above the last atom."""
    atoms = candidates.counting
    return 0.0 if atoms.all() else max(0.0, float(scores[~atoms].max() - scores[atoms].min()))


def _nearness(candidates: Candidates) -> NDArray[np.float64]:
    """Return how near each candidate is to the query beside the nearest: by words or meaning, from 0 to 1."""
    parts = np.maximum(_part(candidates.lexical), _part(np.nan_to_num(candidates.cosine, nan=0.0)))
    return np.maximum(parts - _FAR, 0.0) / (1 - _FAR)


def _part(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    best = float(scores.max(initial=0.0))
    return np.maximum(scores, 0.0) / best if best > 0 else np.zeros_like(scores)
