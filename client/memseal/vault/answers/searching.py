"""Search what is open in RAM."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memseal.embedding import Embedder, Selective
from memseal.errors import EmbedderAnswer, EmbedderUnavailable, VectorInvalid
from memseal.index.filters import STALE, Condition, condition
from memseal.index.gather import POOL, Aged, gather
from memseal.index.periods import favoured, of_time
from memseal.index.view import View
from memseal.memory.data_class import SETTING, decay_of
from memseal.memory.memory import Memory, State, to_microseconds
from memseal.recall import Candidates, Query, Why, parse_query
from memseal.recall.late import Effort
from memseal.recall.query import TimeRule
from memseal.recall.rank import NEAR, Tally, Weighed, weigh
from memseal.recall.receipt import Degraded
from memseal.vault.answers.late import late_of
from memseal.vault.answers.stages import Stages
from memseal.vault.answers.zone import SystemZone

_DERIVED = "m.tier IS NOT NULL"
_INACTIVE = "(m.state <> 0 OR m.same IS NOT NULL)"
_NO_FLOOR = -1.0  # a ready query vector is the caller's: what is near enough, the caller knows
_ORDER = "coalesce(m.captured_at, m.written_at)"
_MOST = (1 << 63) - 1  # SQLite counts no further, and a caller's "all" may be any number


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: the memory, its score (to compare within one search only), and why it was found."""

    memory: Memory
    score: float
    why: Why


class Hits(list[Hit]):
    """Search results, best first, and the id of the trace that tells how they came about; None where none is kept."""

    def __init__(self, hits: Iterable[Hit] = (), trace_id: str | None = None) -> None:
        """Take the hits and the id."""
        super().__init__(hits)
        self.trace_id = trace_id


@dataclass(frozen=True)
class Question:
    """What is asked, of which memories, and when: `now` is aware, and its zone is that of every date."""

    query: str | None
    vector: ArrayLike | None
    limit: int
    filters: Mapping[str, Any]
    now: datetime
    first_weekday: int = 0
    time: TimeRule = "prefer"
    floor: float | None = None
    effort: Effort = "default"


@dataclass(frozen=True)
class Found:
    """The hits, and how they came about."""

    query: Query
    hits: list[Hit]
    tally: Tally
    considered: int
    by_words: bool
    by_meaning: bool
    vector: NDArray[np.float32] | None
    degraded: Degraded | None
    floor: float
    least: float
    weighed: Weighed
    stages: Stages


def search(
    view: View,
    embedder: Embedder | None,
    query: str | None,
    vector: ArrayLike | None,
    limit: int,
    filters: Mapping[str, Any],
) -> list[Hit]:
    """Return at most `limit` hits, best first; none where nothing is related to the query."""
    return find(view, embedder, question_of(query, vector, limit, filters)).hits


def question_of(
    query: str | None,
    vector: ArrayLike | None,
    limit: int,
    filters: Mapping[str, Any],
    effort: Effort = "default",
) -> Question:
    """Return a question that is asked now."""
    return Question(query, vector, limit, filters, datetime.now(SystemZone()), effort=effort)


def find(view: View, embedder: Embedder | None, asked: Question) -> Found:
    """Return at most `limit` hits, best first, and what is to say of them."""
    if asked.query is None and asked.vector is None:
        raise TypeError("search needs a query or a vector")
    if asked.query is not None and not isinstance(asked.query, str):
        raise TypeError(f"a query is a text, not {type(asked.query).__name__}")
    if type(asked.limit) is not int or asked.limit < 1:
        raise ValueError("limit is a whole number from 1")
    if asked.effort not in ("economy", "default", "best"):
        raise ValueError("effort is economy, default or best")
    stages = Stages()
    query = parse_query(asked.query or "", asked.now, first_weekday=asked.first_weekday, time=asked.time)
    stages.done("read")
    if asked.vector is None:
        vector, degraded = _embedded(view, embedder, query)
    else:
        vector, degraded = _ready(view, asked.vector), None
    floor = asked.floor
    if floor is None:
        floor = _NO_FLOOR if asked.vector is not None or embedder is None else embedder.floor
    least = _least(floor, embedder)
    stages.done("embed")
    wanted = condition(asked.filters)
    candidates = candidates_of(view, embedder, query, vector, wanted, asked, _replaced(view, asked.filters))
    stages.done("gather")
    late = (
        late_of(view, embedder, query, candidates, asked.effort)
        if asked.vector is None and vector is not None
        else None
    )
    stages.done("late")
    weighed = weigh(query, candidates, floor=floor, least=least, late=late)
    ranked = weighed.hits(asked.limit)
    counted = weighed.tally()
    stages.done("rank")
    memories = view.state.memories([hit.number for hit in ranked])
    stages.done("fetch")
    return Found(
        query=query,
        hits=[Hit(memory, hit.score, hit.why) for memory, hit in zip(memories, ranked, strict=True)],
        tally=counted,
        considered=len(candidates),
        by_words=bool((candidates.lexical > 0).any()),
        by_meaning=not np.isnan(candidates.cosine).all(),
        vector=vector,
        degraded=degraded,
        floor=floor,
        least=least,
        weighed=weighed,
        stages=stages,
    )


def candidates_of(
    view: View,
    embedder: Embedder | None,
    query: Query,
    vector: NDArray[np.float32] | None,
    wanted: Condition,
    asked: Question,
    replaced: NDArray[np.bool_] | None = None,
) -> Candidates:
    """Return the candidates of a condition; those of the time that the query names are among them.

    What was `replaced` (a mask by `n`) lends its words to what stands for it now.
    """
    state, pool, then = view.state, max(POOL, asked.limit), None
    if query.period is not None:
        narrowed = of_time(state, query.period, wanted)
        then = favoured(state, narrowed, pool if query.about_time else 0)
        if asked.time == "only":
            wanted = narrowed
    allowed = _allowed(view, wanted)
    derived = _derived(view)
    aged = Aged(to_microseconds(asked.now), decay_of(state.setting(SETTING)), state.is_episodic)
    reads = _reads(embedder)
    return gather(
        state.connection, view.lexical, view.vectors, query, vector, allowed, pool, then, reads, derived, aged, replaced
    )


def _reads(embedder: object) -> Callable[[str], bool] | None:
    return embedder.reads if isinstance(embedder, Selective) else None


def _least(floor: float, embedder: Embedder | None) -> float:
    """Return the cosine below which meaning denies what only some of the words say: not even a near miss.

    A caller's higher floor makes meaning count for less, and not words.
    """
    return (floor if embedder is None else min(floor, embedder.floor)) - NEAR


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


def _embedded(
    view: View, embedder: Embedder | None, query: Query
) -> tuple[NDArray[np.float32] | None, Degraded | None]:
    """Return the query's vector, or None where words alone must do, and why if that is no choice of the app.

    What has no words to look for is near to anything, and what only names a time has no meaning of its own.
    """
    if embedder is None or view.vectors is None or not len(view.vectors) or not query.terms or query.about_time:
        return None, None
    if view.pinned != (embedder.name, embedder.dimension):
        return None, "model_differs"
    reads = _reads(embedder)
    if reads is not None and not reads(query.text):
        return None, "model_unread"
    try:
        vector: NDArray[np.float32] = embedder.embed([query.text])[0]
        return vector, None
    except (EmbedderUnavailable, EmbedderAnswer):
        return None, "model_unreachable"


def _allowed(view: View, wanted: Condition) -> NDArray[np.bool_] | None:
    """Return which memories may be found, as a mask by `n`; None for all."""
    if wanted.narrow:
        return view.masks.of(wanted.where, wanted.values)
    # Each read off an index of its own.
    others = view.masks.of(_INACTIVE, ()) | view.masks.of(f"{_DERIVED} AND {STALE}", ())
    return ~others if others.any() else None


def _derived(view: View) -> NDArray[np.bool_] | None:
    """Return which memories were made of others, as a mask by `n`; None where none was."""
    derived = view.masks.of(_DERIVED, ())
    return derived if derived.any() else None


def _replaced(view: View, filters: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Return the versions whose words find what replaced them, as a mask by `n`; None where there are none.

    What was never true lends nothing, and who asks for another state or day asks for the versions themselves.
    """
    if filters.get("state") not in (None, "active") or filters.get("as_of") is not None:
        return None
    # Its first part names an index.
    replaced = view.masks.of(f"{_INACTIVE} AND m.state = {int(State.SUPERSEDED)} AND m.tier IS NULL", ())
    return replaced if replaced.any() else None


def listed(view: View, limit: int, offset: int, filters: Mapping[str, Any]) -> Sequence[Memory]:
    """Return memories by time, newest first."""
    if type(limit) is not int or type(offset) is not int or limit < 0 or offset < 0:
        raise ValueError("limit and offset are whole numbers from 0")
    wanted = condition(filters)
    rows = view.state.connection.execute(
        f"SELECT m.n FROM memories m WHERE {wanted.where} ORDER BY {_ORDER} DESC, m.n DESC LIMIT ? OFFSET ?",  # noqa: S608
        (*wanted.values, min(limit, _MOST), min(offset, _MOST)),
    )
    return view.state.memories([row[0] for row in rows])


def counted(view: View, filters: Mapping[str, Any]) -> int:
    """Return how many memories the filters leave."""
    wanted = condition(filters)
    return view.state.count(wanted.where, wanted.values)
