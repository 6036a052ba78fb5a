"""Order the candidates of a query."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memseal.recall.boosts import from_author, from_date
from memseal.recall.candidates import Candidates
from memseal.recall.context import Pairs, from_neighbours, from_thread, neighbours, supported
from memseal.recall.fusion import fuse, standardise
from memseal.recall.query import Query
from memseal.recall.standing import from_standing
from memseal.recall.weights import LENT, WITH_LATE, Weights


@dataclass(frozen=True)
class Why:
    """The reasons of one hit: its own two scores, and what was added to their fusion.

    `lexical` is BM25 (0: no term matched), `cosine` is None where there is no vector, and `late` the score of the late
    interaction, None where it did not look; the rest are parts of the final score, `fused` of these three.
    """

    terms: tuple[str, ...] = field(repr=False)
    lexical: float
    cosine: float | None
    fused: float
    context: float
    author: float
    date: float
    standing: float = 0.0
    late: float | None = None
    earlier: bool = False


@dataclass(frozen=True)
class Ranked:
    """One hit: the memory's number, its score (to compare within this query only) and why."""

    number: int
    score: float
    why: Why


@dataclass(frozen=True)
class Late:
    """Late interaction: the scores of memories by their numbers (NaN: none), asked for of the `top` best candidates."""

    scores: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    top: int


@dataclass(frozen=True)
class _Scores:
    fused: NDArray[np.float64]
    context: NDArray[np.float64]
    author: NDArray[np.float64]
    date: NDArray[np.float64]
    standing: NDArray[np.float64]
    late: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        return self.fused + self.context + self.author + self.date + self.standing


# A cosine that is under the floor by no more than this is a near miss: a floor of 0.5 hides the answer that has 0.46.
NEAR = 0.1
# For the cosine below which some of the words of a query are no evidence: they always are.
NO_LEAST = -2.0


@dataclass(frozen=True)
class Tally:
    """How many candidates are related, or beside one that is; how many nearly are, and the cosine of their nearest."""

    matched: int
    near_misses: int
    nearest: float | None


def tally(
    query: Query, candidates: Candidates, *, floor: float, least: float = NO_LEAST, weights: Weights | None = None
) -> Tally:
    """Return the count of what `rank` would return without a limit, and of what the floor kept out by little."""
    pairs = neighbours(candidates, weights or Weights())
    return _tally(candidates, supported(pairs, _relevant(query, candidates, floor, least)), floor)


def _tally(candidates: Candidates, kept: NDArray[np.bool_], floor: float) -> Tally:
    near = ~kept & (candidates.cosine >= floor - NEAR)
    nearest = float(candidates.cosine[near].max()) if near.any() else None
    return Tally(int(kept.sum()), int(near.sum()), nearest)


def rank(
    query: Query,
    candidates: Candidates,
    *,
    floor: float,
    limit: int,
    least: float = NO_LEAST,
    weights: Weights | None = None,
    late: Late | None = None,
) -> list[Ranked]:
    """Return at most `limit` hits, best first; equal scores keep the order of the candidates' numbers.

    A hit has a matching term, or a cosine of at least `floor` (the embedder's), or stands in a thread
    beside a memory that has: a query that is related to nothing gives no hits. Where some terms match and others do
    not, a cosine below `least` says that it is another thing of the same word. For one that asks about nothing but a
    time, the memories of then are hits. `late` orders the best of the hits anew, and adds none.
    """
    return weigh(query, candidates, floor=floor, least=least, weights=weights, late=late).hits(limit)


@dataclass(frozen=True, slots=True)
class Scored:
    """One candidate, a hit or not: its score as `rank` has it, its own two, and whether it is related to the query."""

    number: int
    score: float
    lexical: float
    cosine: float | None
    related: bool


@dataclass(frozen=True)
class Weighed:
    """The candidates of a query with their scores, from which hits, counts and what was passed over are taken."""

    query: Query
    candidates: Candidates
    floor: float
    scores: _Scores
    total: NDArray[np.float64]
    kept: NDArray[np.bool_]
    order: NDArray[np.int64]

    def hits(self, limit: int) -> list[Ranked]:
        """Return at most `limit` hits, as `rank` does."""
        query, candidates, total = self.query, self.candidates, self.total
        best = _shared(query, candidates, self.order[self.kept[self.order]], limit)
        return [
            Ranked(int(candidates.numbers[row]), float(total[row]), _why(query, candidates, self.scores, row))
            for row in best
        ]

    def tally(self) -> Tally:
        """Return what `tally` does."""
        return _tally(self.candidates, self.kept, self.floor)

    def best(self, most: int) -> list[Scored]:
        """Return the best candidates, at most `most`, also those under the floor: what the hits were chosen from."""
        best, candidates = self.order[:most], self.candidates
        return [
            Scored(number, score, lexical, None if cosine != cosine else cosine, related)
            for number, score, lexical, cosine, related in zip(
                candidates.numbers[best].tolist(),
                self.total[best].tolist(),
                candidates.lexical[best].tolist(),
                candidates.cosine[best].tolist(),
                self.kept[best].tolist(),
                strict=True,
            )
        ]


def weigh(
    query: Query,
    candidates: Candidates,
    *,
    floor: float,
    least: float = NO_LEAST,
    weights: Weights | None = None,
    late: Late | None = None,
) -> Weighed:
    """Return the candidates with their scores; those that late interaction looked at come before all others."""
    weights = weights or Weights()
    pairs = neighbours(candidates, weights)
    seen = np.full(len(candidates), np.nan)
    scores = _score(query, candidates, pairs, weights, seen)
    total = scores.total
    kept = supported(pairs, _relevant(query, candidates, floor, least))
    order = np.lexsort((candidates.numbers, -total))
    chosen = _chosen(candidates, order[kept[order]], 0 if late is None else late.top)
    if late is not None and chosen.size:
        seen[chosen] = _looked_at(candidates, chosen, late)
        if not np.isnan(seen).all():
            scores = _score(query, candidates, neighbours(candidates, WITH_LATE), WITH_LATE, seen)
            total = _those_first(chosen, scores.total, total)
            order = np.lexsort((candidates.numbers, -total))
    return Weighed(query, candidates, floor, scores, total, kept, order)


def _chosen(candidates: Candidates, order: NDArray[np.int64], top: int) -> NDArray[np.int64]:
    """Return the best `top`, and those beside them that they would be without what was made of others."""
    within = np.arange(order.size) < top
    counting = candidates.counting[order]
    chosen: NDArray[np.int64] = order[within | (counting & (np.cumsum(counting) <= top))]
    return chosen


def _looked_at(candidates: Candidates, chosen: NDArray[np.int64], late: Late) -> NDArray[np.float64]:
    """Return what late interaction says of the chosen; of one that was found by a version before, of the better."""
    seen = late.scores(candidates.numbers[chosen])
    if candidates.earlier is not None:
        lent = np.flatnonzero(candidates.earlier[chosen] >= 0)
        seen[lent] = np.fmax(seen[lent], LENT * late.scores(candidates.earlier[chosen[lent]]))
    return seen


def _those_first(
    chosen: NDArray[np.int64], anew: NDArray[np.float64], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the new scores of the chosen, and below them the others in the order that they had."""
    others = np.delete(np.arange(before.size), chosen)
    total = anew.copy()
    if others.size:
        total[others] = before[others] - max(0.0, float(before[others].max() - anew[chosen].min()))
    return total


def _shared(query: Query, candidates: Candidates, order: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Return the first `limit`, of which half the places are kept for the memories of the time that the query names.

    However well others match, those are not starved; nor are the others, since a day is often told later.
    """
    if query.period is None:
        return order[:limit]
    then = query.period.within(candidates.captured_at[order]) & candidates.counting[order]
    missing = min(int(then.sum()), (limit + 1) // 2) - int(then[:limit].sum())
    if missing <= 0:
        return order[:limit]
    out = np.flatnonzero(~then[:limit])[-missing:]
    places = np.concatenate([np.delete(np.arange(limit), out), limit + np.flatnonzero(then[limit:])[:missing]])
    shared: NDArray[np.int64] = order[places]
    return shared


def _relevant(query: Query, candidates: Candidates, floor: float, least: float) -> NDArray[np.bool_]:
    relevant: NDArray[np.bool_] = _by_words(query, candidates, least) | (candidates.cosine >= floor)
    if query.about_time and query.period is not None:
        relevant |= query.period.within(candidates.captured_at)
    return relevant


def _by_words(query: Query, candidates: Candidates, least: float) -> NDArray[np.bool_]:
    """Return which candidates have a word that says something, or all those that name the time.

    What most memories have says nothing, unless the query has nothing else; "last" and "week" say nothing one by one;
    and what is of another meaning only shares the word: "plants" on a balcony, asked for plants that desalinate. One
    word alone needs more of the meaning than several.
    """
    topic = ((1 << len(query.terms)) - 1) & ~query.time_terms
    time_terms, strong = np.uint64(query.time_terms), np.uint64(topic & ~candidates.common or topic)
    with_time = (candidates.matched & time_terms) == time_terms if query.time_terms else np.False_
    found = candidates.matched & strong
    # A turn of a conversation says the rest beside it.
    lone = ((found & (found - np.uint64(1))) == 0) & (candidates.threads < 0)
    denied = (found != strong) & (candidates.cosine < np.where(lone, least + NEAR / 2, least))
    if candidates.whole is not None:
        denied &= candidates.whole
    telling = (found != 0) & ~denied
    return np.asarray((candidates.lexical > 0) & (telling | with_time | (candidates.matched == 0)), np.bool_)


def _score(
    query: Query, candidates: Candidates, pairs: list[Pairs], weights: Weights, late: NDArray[np.float64]
) -> _Scores:
    counting = candidates.counting
    fused = fuse(candidates.lexical, candidates.cosine, weights.dense, counting)
    if not np.isnan(late).all():
        near = standardise(late, counting, least_spread=0.0)
        # What was not looked at stands behind what was: it is no nearer than the farthest of those.
        fused = fused + weights.late * np.where(np.isnan(late), near[counting].min(), near)
    beside = from_neighbours(pairs, fused)
    thread = from_thread(candidates, fused + beside, weights)
    author, date = from_author(candidates, query, weights.author), from_date(candidates, query, weights.date)
    standing = from_standing(candidates, query, fused + beside + thread + author + date, weights)
    return _Scores(fused, beside + thread, author, date, standing, late)


def _why(query: Query, candidates: Candidates, scores: _Scores, row: np.int64) -> Why:
    cosine = float(candidates.cosine[row])
    matched = int(candidates.matched[row])
    return Why(
        terms=tuple(term for place, term in enumerate(query.terms) if matched >> place & 1),
        lexical=float(candidates.lexical[row]),
        cosine=None if np.isnan(cosine) else cosine,
        fused=float(scores.fused[row]),
        context=float(scores.context[row]),
        author=float(scores.author[row]),
        date=float(scores.date[row]),
        standing=float(scores.standing[row]),
        late=None if np.isnan(scores.late[row]) else float(scores.late[row]),
        earlier=candidates.earlier is not None and bool(candidates.earlier[row] >= 0),
    )
