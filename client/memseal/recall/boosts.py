"""What a memory gains from its author and its time."""

import numpy as np
from numpy.typing import NDArray

from memseal.recall.candidates import Candidates
from memseal.recall.query import Query, words_of
from memseal.recall.stopwords import STOP_WORDS


def from_author(candidates: Candidates, query: Query, weight: float) -> NDArray[np.float64]:
    """Return `weight` for each memory of the one author whom the query names, if it names exactly one."""
    named = [place for place, name in enumerate(candidates.author_names) if _names(query, name)]
    if len(named) != 1:
        return np.zeros(len(candidates))
    return np.where(candidates.authors == named[0], weight, 0.0)


def from_date(candidates: Candidates, query: Query, weight: float) -> NDArray[np.float64]:
    """Return `weight` for each memory of the period that the query names, twice where it asks for nothing else."""
    if query.period is None or not weight:
        return np.zeros(len(candidates))
    return np.where(query.period.within(candidates.captured_at), weight * (2 if query.about_time else 1), 0.0)


def _names(query: Query, author: str) -> bool:
    """Whether a word of the author's name, other than a stop word, is a word of the query."""
    return bool((words_of(author) - STOP_WORDS) & query.words)
