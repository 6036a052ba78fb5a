"""Proposals: what is stored until somebody agrees to it, and near-duplicates that are there (lifecycle.md §4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np

from memseal.embedding import Embedder
from memseal.errors import MemoryUnknown, ProposalUnknown
from memseal.index.state import VaultState
from memseal.index.validity import tip_of
from memseal.index.view import View
from memseal.memory.memory import Draft, Memory, State, check_reason, from_microseconds, to_microseconds
from memseal.memory.operations import Operation, Remember, Retraction, Setting, Tagging
from memseal.memory.proposals import (
    DECISION,
    PROPOSAL,
    Decision,
    Stored,
    Verdict,
    decision_name,
    pair_id,
    statement_id,
    stored_from,
    texts_in,
)
from memseal.memory.texts import parse_id
from memseal.recall.nearness import ALIKE, SAME_MEANING, Near, near_pairs, words_of
from memseal.vault.folder.batch import Batch
from memseal.vault.writes.drafting import draft_of, memory_of
from memseal.vault.writes.writing import embedded_vectors, new_id, remember_batches

HELD_SOURCES: Final = "held_sources"
MOST_COMPARED: Final = 20_000
"""So many of the newest memories are compared with each other: about a second."""
# Turns of a conversation repeat themselves and say nothing alone; an episode happened each time it is told.
_COMPARED: Final = """
SELECT m.n, m.id, m.content, m.kind, m.author, m.captured_at, coalesce(m.captured_at, m.written_at) AS start
FROM memories m WHERE m.state = 0 AND m.same IS NULL AND m.position IS NULL AND m.kind <> 'episode' AND m.tier IS NULL
ORDER BY start DESC, m.n DESC LIMIT ?
"""

ProposalKind = Literal["remember", "supersede", "duplicate", "replace"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What waits for `accept` or `reject`; ids are 32 hex digits.

    `remember` and `supersede` bring a new text (`memory`, whose id is the proposal's, of state HELD); `about` has the
    memory to be superseded. `duplicate` and `replace` are about two memories that are there, the earlier first;
    `likeness` is how much of their words they share, from 0 to 1. The `repr` shows no text.
    """

    id: str
    kind: ProposalKind
    why: str
    at: datetime | None = None
    about: tuple[str, ...] = ()
    memory: Memory | None = field(default=None, repr=False)
    likeness: float | None = None


# ── what is held ────────────────────────────────────────────────────────────────────────────────────


def held_sources(state: VaultState) -> tuple[str, ...]:
    """Return the sources whose writes are held for review; `*` at the end stands for any ending."""
    return texts_in(state.setting(HELD_SOURCES))


def is_held(source: str, sources: Sequence[str]) -> bool:
    """Return whether a source is one of those that are held."""
    return any(source.startswith(each[:-1]) if each.endswith("*") else source == each for each in sources)


def stored_of(draft: Draft, why: str, at: int, of: bytes | None = None, reason: str | None = None) -> Stored:
    """Return the proposal to write this memory."""
    return Stored(Remember(statement_id(draft.content, of), draft, at, of=of, reason=reason), why, at)


def held_among(state: VaultState, drafts: Sequence[Draft], trusted: bool, now: int) -> dict[int, Stored | bytes]:
    """Return by its place what of drafts is held for review; an id for what is a memory already, which is no news."""
    _check_flag(trusted)
    sources = held_sources(state)
    places = [place for place, each in enumerate(drafts) if not trusted or is_held(each.source, sources)]
    known = state.same_as([drafts[place] for place in places]) if places else []
    return {
        place: stored_of(drafts[place], _why(trusted), now) if same is None else same
        for place, same in zip(places, known, strict=True)
    }


def held_version(
    state: VaultState, draft: Draft, trusted: bool, now: int, of: bytes, reason: str | None
) -> Stored | None:
    """Return the proposal to supersede, where the new version is held for review."""
    _check_flag(trusted)
    if trusted and not is_held(draft.source, held_sources(state)):
        return None
    return stored_of(draft, _why(trusted), now, of, reason)


def _check_flag(trusted: bool) -> None:
    if not isinstance(trusted, bool):
        raise TypeError(f"trusted is True or False, not {type(trusted).__name__}")


def _why(trusted: bool) -> str:
    return "its source is held for review" if trusted else "whoever wrote it does not vouch for it"


def batches_for(state: VaultState, held: Iterable[Stored | bytes]) -> list[Batch]:
    """Return the batches that propose what is news."""
    news = {each.id: each for each in held if isinstance(each, Stored) and is_news(state, each)}
    return [Batch([Setting(new_id(), each.name, each.to_value(), each.at) for each in news.values()])] if news else []


def in_place(state: VaultState, written: Sequence[Memory], held: Mapping[int, Stored | bytes]) -> list[Memory]:
    """Return written and held memories in the order in which they were given."""
    rest = iter(written)
    return [
        _held_or_known(state, held[place]) if place in held else next(rest) for place in range(len(written) + len(held))
    ]


def _held_or_known(state: VaultState, held: Stored | bytes) -> Memory:
    if isinstance(held, Stored):
        return held_memory(state, held)
    return state.memories([state.number_of(held) or 0])[0]


def is_news(state: VaultState, stored: Stored) -> bool:
    """Return whether a proposal is not there, not decided, not erased, and no memory yet."""
    return (
        state.setting_stamp(stored.name) is None
        and state.setting_stamp(decision_name(stored.id)) is None
        and stored.id not in state.erasures.ids
        and state.number_of(stored.id) is None
    )


def held_memory(state: VaultState, stored: Stored) -> Memory:
    """Return a proposed memory as it would be: held, or retracted where its proposal was decided before."""
    operation = stored.operation
    of = None if operation.of is None else operation.of.hex()
    decided = state.setting_stamp(decision_name(stored.id)) is not None
    memory = memory_of(operation, from_microseconds(stored.at), State.RETRACTED if decided else State.HELD)
    return replace(memory, reason=operation.reason, supersedes=of)


# ── what is proposed ────────────────────────────────────────────────────────────────────────────────


def proposals(view: View, limit: int) -> list[Proposal]:
    """Return the open proposals: those that are stored, by time, then pairs, the most alike first."""
    if type(limit) is not int or limit < 0:
        raise ValueError("limit is a whole number from 0")
    waiting = [_waiting(view.state, each) for each in open_ones(view.state)]
    if len(waiting) >= limit:
        return waiting[:limit]
    pairs = sorted(_pairs(view), key=lambda each: (-(each.likeness or 0), each.id))
    return [*waiting, *pairs][:limit]


def open_ones(state: VaultState) -> list[Stored]:
    """Return the stored proposals that nobody decided, the earliest first."""
    decided = _decided(state)
    listed = [
        stored
        for name, value in state.settings_named(PROPOSAL)
        if (stored := stored_from(name, value)) is not None
        and stored.id not in decided
        and state.number_of(stored.id) is None
    ]
    known = state.same_as([each.operation.draft for each in listed])
    new = [each for each, same in zip(listed, known, strict=True) if same is None or each.operation.of is not None]
    return sorted(new, key=lambda each: (each.at, each.id))


def _decided(state: VaultState) -> set[bytes]:
    return {bytes.fromhex(name.removeprefix(DECISION)) for name, _ in state.settings_named(DECISION)}


def _waiting(state: VaultState, stored: Stored) -> Proposal:
    of = stored.operation.of
    return Proposal(
        id=stored.id.hex(),
        kind="remember" if of is None else "supersede",
        why=stored.why,
        at=from_microseconds(stored.at),
        about=() if of is None else (of.hex(),),
        memory=held_memory(state, stored),
    )


def _pairs(view: View) -> Iterator[Proposal]:
    rows = {row[0]: row for row in view.state.connection.execute(_COMPARED, (MOST_COMPARED,))}
    decided = _decided(view.state)
    for near in near_pairs({number: words_of(row[2]) for number, row in rows.items()}):
        pair = sorted((rows[near.first], rows[near.second]), key=lambda row: (row[6], row[0]))
        kind = _kind_of(near, pair[0], pair[1])
        proposal_id = pair_id(pair[0][1], pair[1][1])
        if kind is not None and proposal_id not in decided and _is_near(view, near):
            ids = (pair[0][1].hex(), pair[1][1].hex())
            yield Proposal(proposal_id.hex(), kind, _WHY[kind], about=ids, likeness=round(near.likeness, 3))


_WHY: Final[dict[ProposalKind, str]] = {
    "duplicate": "the two say nearly the same",
    "replace": "the two differ in a few words: the later may say what holds now",
}


def _kind_of(near: Near, earlier: tuple[Any, ...], later: tuple[Any, ...]) -> ProposalKind | None:
    """Return what a pair would be, None where its memories stand apart: of other kinds, authors, or times."""
    if earlier[3:5] != later[3:5]:
        return None
    if near.only_first and near.only_second:
        return "replace"
    both_dated = earlier[5] is not None and later[5] is not None
    return None if both_dated and earlier[5] != later[5] else "duplicate"


def _is_near(view: View, near: Near) -> bool:
    if near.likeness >= ALIKE:
        return True
    if view.vectors is None:
        return False
    one, other = np.asarray(view.vectors.vectors(np.array([near.first, near.second], np.int64)), np.float32)
    return bool(np.dot(one, other) >= SAME_MEANING)  # NaN, for one without a vector, is not


# ── deciding ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Accepted:
    """The batches that accept a proposal, and the memory that stands afterwards."""

    batches: list[Batch]
    memory_id: bytes


def accept(view: View, embedder: Embedder | None, proposal_id: str, reason: str | None, now: int) -> Accepted:
    """Return what accepting writes; raises `ProposalUnknown`, or `MemoryUnknown` where its memory went."""
    state, key, why = view.state, parse_id(proposal_id), check_reason(reason)
    stored = next((each for each in open_ones(state) if each.id == key), None)
    if stored is not None:
        operation = stored.operation._replace(written_at=now, row=None, of=_newest(state, stored.operation.of))
        return _accepted(view, embedder, key, operation, [], why, now, stored)
    pair = _pair(view, proposal_id)
    earlier, later = (state.memories([state.number_of(parse_id(each)) or 0])[0] for each in pair.about)
    if pair.kind == "duplicate":
        gone = Retraction(new_id(), parse_id(later.id), True, now, why or f"a near-duplicate of {earlier.id}")
        more = tuple(sorted(set(later.tags).difference(earlier.tags)))
        tagging = [Tagging(new_id(), parse_id(earlier.id), now, more)] if more else []
        decided = _decision(key, "accepted", why, now, parse_id(earlier.id))
        return Accepted([Batch([gone, *tagging, *decided])], parse_id(earlier.id))
    what = draft_of(later)._replace(captured_at=to_microseconds(later.captured_at or later.written_at))
    operation = Remember(new_id(), what, now, of=_newest(state, parse_id(earlier.id)), reason=why or pair.why)
    moved = Retraction(new_id(), parse_id(later.id), True, now, f"its text is {operation.id.hex()} now")
    return _accepted(view, embedder, key, operation, [moved], why, now, None)


def _accepted(
    view: View,
    embedder: Embedder | None,
    key: bytes,
    operation: Remember,
    others: list[Operation],
    why: str | None,
    now: int,
    stored: Stored | None,
) -> Accepted:
    vectors = embedded_vectors(view, embedder, [operation.draft])
    batches = remember_batches(view, [operation], vectors, now)
    decided = _decision(key, "accepted", why, now, operation.id, stored)
    return Accepted([*batches, Batch([*others, *decided])], operation.id)


def reject(view: View, proposal_id: str, reason: str | None, now: int) -> list[Batch]:
    """Return what rejecting writes; raises `ProposalUnknown`."""
    key, why = parse_id(proposal_id), check_reason(reason)
    stored = next((each for each in open_ones(view.state) if each.id == key), None)
    if stored is None:
        _pair(view, proposal_id)
    return [Batch(_decision(key, "rejected", why, now, None, stored))]


def _decision(
    key: bytes, verdict: Verdict, reason: str | None, at: int, result: bytes | None, stored: Stored | None = None
) -> list[Operation]:
    decision = Decision(verdict, at, reason, result)
    decided = [Setting(new_id(), decision_name(key), decision.to_value(), at)]
    # Nil takes the text out of the settings at once, and out of the logs with the next compaction.
    return [*decided, Setting(new_id(), stored.name, None, at)] if stored else [*decided]


def decide_conflict(key: bytes, reason: str | None, at: int, result: bytes) -> list[Operation]:
    """Return the operations that settle a conflict."""
    return _decision(key, "accepted", reason, at, result)


def _pair(view: View, proposal_id: str) -> Proposal:
    found = next((each for each in _pairs(view) if each.id == proposal_id), None)
    if found is None:
        raise ProposalUnknown("no open proposal has this id: `proposals` lists them")
    return found


def _newest(state: VaultState, of: bytes | None) -> bytes | None:
    """Return the id of the newest version of the memory to be superseded."""
    if of is None:
        return None
    number = state.number_of(of)
    if number is None:
        raise MemoryUnknown("the memory that this proposal replaces is not here any more: reject it")
    return parse_id(state.memories([tip_of(state, number)])[0].id)
