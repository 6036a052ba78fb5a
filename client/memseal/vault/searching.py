"""Search what is open in RAM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memseal.embedding import Embedder
from memseal.errors import EmbedderAnswer, EmbedderUnavailable, VectorInvalid
from memseal.index.filters import condition
from memseal.index.gather import POOL, gather
from memseal.index.view import View
from memseal.memory.memory import Memory
from memseal.recall import Why, parse_query, rank

_NO_FLOOR = -1.0  # a ready query vector is the caller's: what is near enough, the caller knows
_ORDER = "coalesce(m.captured_at, m.written_at)"


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: the memory, its score (to compare within one search only), and why it was found."""

    memory: Memory
    score: float
    why: Why


def search(
    view: View,
    embedder: Embedder | None,
    query: str | None,
    vector: ArrayLike | None,
    limit: int,
    filters: Mapping[str, Any],
) -> list[Hit]:
    """Return at most `limit` hits, best first; none where nothing is related to the query."""
    if query is None and vector is None:
        raise TypeError("search needs a query or a vector")
    if type(limit) is not int or limit < 1:
        raise ValueError("limit is a whole number from 1")
    parsed = parse_query(query or "", datetime.now(UTC))
    ready = _ready(view, vector) if vector is not None else _embedded(view, embedder, parsed.text)
    candidates = gather(
        view.state.connection,
        view.lexical,
        view.vectors,
        parsed,
        ready,
        _allowed(view, filters),
        pool=max(POOL, limit),
    )
    floor = _NO_FLOOR if vector is not None or embedder is None else embedder.floor
    ranked = rank(parsed, candidates, floor=floor, limit=limit)
    found = view.state.memories([hit.number for hit in ranked])
    return [Hit(memory, hit.score, hit.why) for memory, hit in zip(found, ranked, strict=True)]


def _ready(view: View, vector: ArrayLike) -> NDArray[np.float32] | None:
    """Return the caller's query vector at unit length; raises `VectorInvalid`."""
    try:
        ready = np.asarray(vector, np.float32)
    except (TypeError, ValueError):
        raise VectorInvalid("a query vector is numbers, shape (d,)") from None
    norm = float(np.linalg.norm(ready)) if ready.ndim == 1 else 0.0
    if not np.isfinite(norm) or norm == 0.0:
        raise VectorInvalid("a query vector has shape (d,), finite values and a length")
    if view.pinned is not None and ready.shape != (view.pinned[1],):
        raise VectorInvalid(f"the query vector has {ready.size} dimensions, this vault's have {view.pinned[1]}")
    if view.vectors is None:
        return None
    unit: NDArray[np.float32] = ready / np.float32(norm)
    return unit


def _embedded(view: View, embedder: Embedder | None, text: str) -> NDArray[np.float32] | None:
    """Return the query's vector, or None where words alone must do: no model, another one, or out of reach."""
    if embedder is None or not text.strip() or view.vectors is None or not len(view.vectors):
        return None
    if view.pinned != (embedder.name, embedder.dimension):
        return None
    try:
        vector: NDArray[np.float32] = embedder.embed([text])[0]
        return vector
    except (EmbedderUnavailable, EmbedderAnswer):
        return None


def _allowed(view: View, filters: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Return which memories may be found, as a mask by `n`; None for all."""
    wanted, state = condition(filters), view.state
    if not wanted.narrow and not state.count("m.state <> 0 OR m.same IS NOT NULL"):
        return None
    return state.mask(wanted.where, wanted.values)


def listed(view: View, limit: int, offset: int, filters: Mapping[str, Any]) -> Sequence[Memory]:
    """Return memories by time, newest first."""
    if type(limit) is not int or type(offset) is not int or limit < 0 or offset < 0:
        raise ValueError("limit and offset are whole numbers from 0")
    wanted = condition(filters)
    rows = view.state.connection.execute(
        f"SELECT m.n FROM memories m WHERE {wanted.where} ORDER BY {_ORDER} DESC, m.n DESC LIMIT ? OFFSET ?",  # noqa: S608
        (*wanted.values, limit, offset),
    )
    return view.state.memories([row[0] for row in rows])


def counted(view: View, filters: Mapping[str, Any]) -> int:
    """Return how many memories the filters leave."""
    wanted = condition(filters)
    return view.state.count(wanted.where, wanted.values)
