"""Look up traces, and tell from one why something was given out."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from memseal.errors import TraceUnknown
from memseal.format.primitives import sha256
from memseal.format.trace import Candidate, Trace, made_at
from memseal.index.state import VaultState
from memseal.memory.memory import Memory, State, from_microseconds, to_microseconds
from memseal.memory.texts import parse_id
from memseal.recall.forgetting import without
from memseal.recall.quoting import quoted
from memseal.vault.folder.opening import Opened

# Of two clocks that a process reads one after the other.
_SLACK = 1_000_000


@dataclass(frozen=True, slots=True)
class Considered:
    """A memory of a trace: how it scored then, and what it is now.

    `memory` is None where it was erased since, and for a proposal, which is no memory. Scores are None for one that was
    given out without having been scored.
    """

    id: str
    memory: Memory | None
    served: bool
    related: bool
    state_then: State | None = None
    truncated: bool = False
    masked: bool = False
    score: float | None = None
    lexical: float | None = None
    cosine: float | None = None

    @property
    def missing(self) -> str:
        """What to say in the place of its content, where there is none."""
        return "(a proposal)" if self.state_then == State.HELD else "(erased since)"


@dataclass(frozen=True)
class Explanation:
    """Why something was given out: the trace, the exact text, and every memory that was considered.

    `text` is what was given out, byte for byte; None where only memories as they are were, or a part of it was erased
    since. `is_exact` says whether it has the SHA-256 of the receipt; None where there is no text or no receipt.
    """

    trace: Trace
    at: datetime
    text: str | None = field(repr=False)
    is_exact: bool | None
    served: tuple[Considered, ...]
    passed_over: tuple[Considered, ...]

    def to_value(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        trace = asdict(self.trace)
        trace.pop("others")
        return {
            **trace,
            "at": self.at.isoformat(),
            "text": self.text,
            "is_exact": self.is_exact,
            "candidates": [_value(each) for each in (*self.served, *self.passed_over)],
        }

    def to_text(self) -> str:
        """Return it for people, every stored text quoted."""
        return "\n".join(_lines(self))


class Lookup:
    """What is looked for among the traces; made of an open vault, and used without it: reading takes a while."""

    def __init__(
        self,
        opened: Opened,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        memory: str | None = None,
        turn: str | None = None,
    ) -> None:
        """Take what to look for; raises `ValueError` for what is no id, or a naive time."""
        self._traces, self._device = opened.traces, opened.device
        state = opened.logbook.view.state
        self._erased = frozenset(each.hex() for each in state.erasures.ids)
        self._since = None if since is None else to_microseconds(since)
        self._until = None if until is None else to_microseconds(until)
        self._ids = None if memory is None else _ids(state, parse_id(memory))
        self._turn = turn

    def found(self) -> list[Trace]:
        """Return the traces, the newest first."""
        # An erase that was cut short can have left a trace in the file before and in the one that replaces it.
        found = {each.id: each for each in self._clean(self._since, self._until) if self._is_wanted(each)}
        return sorted(found.values(), key=lambda trace: (trace.at, trace.id), reverse=True)

    def one(self, trace_id: str) -> Trace:
        """Return one trace by its id; raises `ValueError` for what is no id, or `TraceUnknown`."""
        wanted = parse_id(trace_id).hex()
        for trace in self._clean(made_at(wanted) - _SLACK, made_at(wanted) + _SLACK):
            if trace.id == wanted:
                return trace
        raise TraceUnknown("no trace has this id, or it is older than traces are kept: `traces` lists what is there")

    def _is_wanted(self, trace: Trace) -> bool:
        return (
            (self._since is None or trace.at >= self._since)
            and (self._until is None or trace.at < self._until)
            and (self._turn is None or trace.turn == self._turn)
            and (self._ids is None or not self._ids.isdisjoint({*trace.memories, trace.about}))
        )

    def _clean(self, since: int | None, until: int | None) -> Iterator[Trace]:
        """Yield traces without what was erased: a file may still have it where the disk refused."""
        for found in self._traces.read(self._device, since, until):
            if isinstance(found, Trace):
                yield without(found, self._erased, ()) if self._erased else found


def _ids(state: VaultState, memory: bytes) -> set[str]:
    """Return the ids by which a trace can name a memory: its own, and that of the one it is the same as."""
    number = state.number_of(memory)
    return {memory.hex(), *(each.hex() for each in state.ids_of([] if number is None else [number]).values())}


def explained(state: VaultState, trace: Trace) -> Explanation:
    """Return what a trace tells, beside what its memories are now."""
    text = trace.text
    digest = None if trace.receipt is None else trace.receipt.get("text_sha256")
    scores = {each.memory: each for each in trace.candidates}
    served = {each.memory for each in trace.served}
    return Explanation(
        trace=trace,
        at=from_microseconds(trace.at),
        text=text,
        is_exact=None if text is None or digest is None else sha256(text.encode()).hex() == digest,
        served=tuple(
            _considered(
                state,
                each.memory,
                scores.get(each.memory),
                served=True,
                state_then=State(each.state) if each.state in list(State) else None,
                truncated=each.truncated,
                masked=each.masked,
            )
            for each in trace.served
        ),
        passed_over=tuple(
            _considered(state, each.memory, each, served=False)
            for each in trace.candidates
            if each.memory not in served
        ),
    )


def _considered(state: VaultState, memory: str, scores: Candidate | None, *, served: bool, **then: Any) -> Considered:
    number = state.number_with(bytes.fromhex(memory))
    now = state.memories([number])[0] if number is not None else None
    if scores is None:
        return Considered(memory, now, served, related=True, **then)
    return Considered(
        memory,
        now,
        served,
        scores.related,
        score=scores.score,
        lexical=scores.lexical,
        cosine=scores.cosine,
        **then,
    )


# ── as JSON, and for people ─────────────────────────────────────────────────────────────────────────


def _value(each: Considered) -> dict[str, Any]:
    memory = each.memory
    return {
        "id": each.id,
        "content": None if memory is None else memory.content,
        "state_then": None if each.state_then is None else int(each.state_then),
        "state_now": None if memory is None else int(memory.state),
        "superseded_by": None if memory is None else memory.superseded_by,
        "served": each.served,
        "related": each.related,
        "truncated": each.truncated,
        "masked": each.masked,
        "score": each.score,
        "lexical": each.lexical,
        "cosine": each.cosine,
    }


def _lines(told: Explanation) -> Iterator[str]:
    trace = told.trace
    yield f"{trace.surface} {trace.id} at {told.at:%Y-%m-%d %H:%M:%S} UTC" + (
        "" if trace.turn is None else f", turn {quoted(trace.turn)}"
    )
    if trace.query is not None:
        yield f"asked: {quoted(trace.query)}"
    if trace.terms:
        yield f"words: {', '.join(quoted(term) for term in trace.terms)}"
    if trace.considered:
        yield f"by {method_of(trace)}; {trace.considered} memories were scored, {len(told.served)} given out"
    for number, each in enumerate(told.served, start=1):
        yield f"{number:>3}. {_content(each)} [{each.id}] {'; '.join(reasons_of(each))}"
    for each in told.passed_over:
        yield f"  -  {_content(each)} [{each.id}] {'; '.join(reasons_of(each))}"
    if told.text is not None:
        yield f"exact text, {len(told.text)} characters: {quoted(told.text)}"
    if trace.erased:
        yield f"erased since: {', '.join(trace.erased)}"
    if trace.stages:
        yield "took: " + ", ".join(f"{name} {spent / 1000:.1f} ms" for name, spent in trace.stages)


def _content(each: Considered) -> str:
    return each.missing if each.memory is None else quoted(each.memory.content)


def method_of(trace: Trace) -> str:
    """Return what scored: words, meaning by which model, from which floor on."""
    if trace.floor is None:
        return trace.engine
    model = "" if trace.embedder is None else f"{trace.embedder}, "
    return f"{trace.engine} ({model}floor {trace.floor:.2f})"


def reasons_of(each: Considered) -> list[str]:
    """Return why a memory was given out or not, and what became of it since."""
    reasons = list[str]()
    if each.score is not None:
        reasons.append(f"score {each.score:.2f}")
    if each.lexical:
        reasons.append(f"words {each.lexical:.2f}")
    if each.cosine is not None:
        reasons.append(f"meaning {each.cosine:.2f}")
    if not each.served:
        reasons.append("beyond the limit or the budget" if each.related else "not related")
    reasons += ["cut"] * each.truncated + ["secrets masked"] * each.masked
    if each.memory is not None and each.memory.state not in (State.ACTIVE, each.state_then):
        reasons.append(
            f"since {'superseded and retracted' if each.memory.state == State.BOTH else each.memory.state.name.lower()}"
        )
    return reasons
