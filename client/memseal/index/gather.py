"""Gather the candidates of a query from all that is open in RAM."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memseal.index.lending import lend
from memseal.index.lexical import LexicalIndex
from memseal.index.vectors import VectorIndex
from memseal.memory.significance import DAY_MICROSECONDS, freshness, significance
from memseal.memory.traits import AFFINITY, COMPOSITE
from memseal.recall.candidates import AFFINITIES, ATOMS, COMPOSITES, Candidates, Standing
from memseal.recall.query import Query
from memseal.recall.weights import REACH

# How many candidates each engine brings, before their neighbours join. On LoCoMo 20 to 100 find the same within
# 0.01; fewer is faster, and a caller that wants more hits asks for more.
POOL = 30

# By so much of a text one can tell its writing; and about so much is read by models that were trained on sentences.
_START = 1_000

_COLUMNS = """
SELECT n, thread, position, author, coalesce(captured_at, written_at),
    length(content) + coalesce(length(author), 0), substr(content, 1, :start), tier, seen
FROM memories
WHERE n IN (
    SELECT value FROM json_each(:found)
    UNION
    SELECT near.n
    FROM json_each(:found) AS found
    JOIN memories AS here ON here.n = found.value
    JOIN memories AS near ON near.thread = here.thread
        AND near.position BETWEEN here.position - :reach AND here.position + :reach
)
ORDER BY n
"""


@dataclass(frozen=True)
class Favoured:
    """The memories of the time that a query names: those `allowed` among them as a mask, and some of them as they are.

    `newest` are candidates whatever they say; empty where the query asks about more than a time.
    """

    mask: NDArray[np.bool_]
    newest: NDArray[np.int64]


_TIERS: Mapping[str | None, int] = {COMPOSITE: COMPOSITES, AFFINITY: AFFINITIES}


@dataclass(frozen=True)
class Aged:
    """When it is (µs since 1970 UTC), how fast memories fade (λ per day), and which are episodic, by their numbers."""

    now: int
    decay: float
    is_episodic: Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def gather(
    connection: sqlite3.Connection,
    lexical: LexicalIndex,
    vectors: VectorIndex | None,
    query: Query,
    query_vector: NDArray[np.float32] | None,
    allowed: NDArray[np.bool_] | None = None,
    pool: int = POOL,
    favoured: Favoured | None = None,
    reads: Callable[[str], bool] | None = None,
    derived: NDArray[np.bool_] | None = None,
    aged: Aged | None = None,
    replaced: NDArray[np.bool_] | None = None,
) -> Candidates:
    """Return the best `pool` memories of each engine and their neighbours in their threads.

    For all hits up to a limit, `pool` is at least that limit.

    `allowed` is a mask indexed by number that holds for neighbours too; None allows all. Without vectors or
    a query vector the words alone decide. What is `favoured` has a pool of its own, so that better matches of
    another time do not keep it out; so has what was `derived` of others: words of many memories must not keep out the
    one that speaks for them. What the model does not read (`reads`) has no cosine. What was
    `replaced` lends its words to what stands for it now, which is among them.
    """
    matches = lexical.match(query.terms, derived)
    found = list[NDArray[np.int64]]()
    pools = [allowed] if derived is None else _apart(allowed, derived)
    if favoured is not None:
        pools.append(favoured.mask if derived is None else favoured.mask & ~derived)
    for mask in pools:
        found.append(matches.best(pool, mask))
        if vectors is not None and query_vector is not None:
            found.append(vectors.search(query_vector, pool, mask)[0])
    if favoured is not None:
        found.append(favoured.newest)
    begins, lent = _START if reads else 0, None
    if replaced is not None:
        lent = lend(connection, matches, vectors, query_vector, replaced, pool, begins, reads)
        found.append(lent.newest)
    joined = json.dumps(np.unique(np.concatenate(found)).tolist())
    rows = connection.execute(_COLUMNS, {"found": joined, "reach": REACH, "start": begins}).fetchall()
    if allowed is not None:
        rows = [row for row in rows if row[0] < allowed.size and allowed[row[0]]]
    numbers = np.array([row[0] for row in rows], np.int64)
    lengths = np.array([row[5] for row in rows], np.int64)
    scores, matched = matches.scores(numbers, lengths)
    cosine = np.full(numbers.size, np.nan)
    if vectors is not None and query_vector is not None:
        cosine = vectors.similarities(query_vector, numbers).astype(np.float64)
        if reads is not None:
            cosine[[not reads(row[6]) for row in rows]] = np.nan
    earlier = None if lent is None else lent.given(numbers, scores, matched, cosine)
    threads, _ = _numbered([row[1] if row[2] is not None else None for row in rows])
    authors, names = _numbered([row[3] for row in rows])
    return Candidates(
        numbers=numbers,
        lexical=scores,
        matched=matched,
        cosine=cosine,
        threads=threads,
        positions=np.array([row[2] or 0 for row in rows], np.int64),
        authors=authors,
        author_names=names,
        captured_at=np.array([row[4] for row in rows], np.int64),
        common=matches.common,
        rarities=matches.rarities(len(query.terms)),
        whole=lengths <= _START,
        earlier=earlier,
        standing=None if aged is None else _standing(rows, numbers, aged),
    )


def _apart(allowed: NDArray[np.bool_] | None, derived: NDArray[np.bool_]) -> list[NDArray[np.bool_] | None]:
    """Return the masks of what is allowed and was not derived, and of what was."""
    return [~derived, derived] if allowed is None else [allowed & ~derived, allowed & derived]


def _standing(rows: Sequence[tuple[Any, ...]], numbers: NDArray[np.int64], aged: Aged) -> Standing:
    tiers = np.array([_TIERS.get(row[7], ATOMS) for row in rows], np.int8)
    days = (aged.now - np.array([row[4] for row in rows], np.int64)) / DAY_MICROSECONDS
    seen = np.array([row[8] or 1 for row in rows], np.int64)
    faded = np.where(aged.is_episodic(numbers), 1 - freshness(days, aged.decay), 0.0)
    return Standing(
        tiers, np.where(tiers == ATOMS, 0.0, significance(seen, days, aged.decay)), np.where(tiers == ATOMS, faded, 0.0)
    )


def _numbered(values: list[str | None]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number the distinct values in order of appearance; None is -1."""
    places: dict[str, int] = {}
    numbers = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return np.array(numbers, np.int64), tuple(places)
