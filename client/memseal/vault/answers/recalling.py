"""Recall: search, pack what was found into a budget, and account for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memseal.embedding import Embedder
from memseal.format.derivation import receipt_key
from memseal.format.keys import ReceiptKey
from memseal.format.primitives import sha256
from memseal.format.trace import Candidate
from memseal.index.filters import STATES, Condition, condition
from memseal.index.periods import of_time
from memseal.index.view import View
from memseal.recall import receipt as receipts
from memseal.recall.late import Effort
from memseal.recall.normaliser import QueryNormaliser
from memseal.recall.packet import Packet, Recalled
from memseal.recall.query import MAX_CHARS, MAX_TERMS, TimeRule
from memseal.recall.rank import tally
from memseal.recall.receipt import Counted, Engine, Receipt, Served
from memseal.recall.rendering import Count, Packed, pack
from memseal.vault.answers.considered import considered
from memseal.vault.answers.searching import Found, Question, candidates_of, find
from memseal.vault.answers.zone import SystemZone
from memseal.vault.folder.opening import Opened
from memseal.vault.writes.masking import masked

_MOST = 1 << 53  # what every reader of a receipt can count to


@dataclass(frozen=True)
class Request:
    """What a caller of `Vault.recall` gives."""

    query: str
    budget: int
    count: Count
    limit: int
    floor: float | None
    time: TimeRule
    now: datetime | None
    first_weekday: int
    normaliser: QueryNormaliser | None
    effort: Effort
    show_secrets: bool
    filters: Mapping[str, Any]

    def check(self) -> None:
        """Refuse what cannot be meant; raises `TypeError` or `ValueError`."""
        if not isinstance(self.query, str):
            raise TypeError(f"a query is a text, not {type(self.query).__name__}")
        if type(self.budget) is not int or not 0 <= self.budget < _MOST:
            raise ValueError("a budget is a whole number from 0 to 2^53: the receipt says it")
        if self.time not in ("prefer", "only", "ignore"):
            raise ValueError("time is prefer, only or ignore")
        if self.now is not None and not isinstance(self.now, datetime):
            raise TypeError(f"now is an aware datetime, not {type(self.now).__name__}")
        if self.now is not None and self.now.tzinfo is None:
            raise ValueError("now needs a zone: datetime.now(ZoneInfo('Europe/Berlin'))")
        try:
            (self.now or datetime.now(UTC)).astimezone(UTC)
        except OverflowError:
            raise ValueError("now is a time between the years 1 and 9999, in UTC too") from None
        if type(self.first_weekday) is not int or not 0 <= self.first_weekday <= 6:
            raise ValueError("first_weekday is 0 (Monday) to 6 (Sunday)")
        if not isinstance(self.show_secrets, bool):
            raise TypeError("show_secrets is True or False")
        if self.floor is not None and not -1 <= self.floor <= 1:
            raise ValueError("a floor is a cosine, from -1 to 1")


def question_of(asked: Request) -> Question:
    """Return what to search for; checks the request, and calls the app's normaliser, which may take its time."""
    asked.check()
    searched = "" if asked.normaliser is None else asked.normaliser.normalise(asked.query)
    return Question(
        query=searched or asked.query,
        vector=None,
        limit=asked.limit,
        filters=asked.filters,
        now=asked.now or datetime.now(SystemZone()),
        first_weekday=asked.first_weekday,
        time=asked.time,
        floor=asked.floor,
        effort=asked.effort,
    )


@dataclass(frozen=True)
class Looked:
    """All that a packet and its trace need of the vault."""

    question: Question
    found: Found
    other_state: int
    other_time: int
    embedder: str | None
    without_vector: int
    vault_id: bytes
    device_id: bytes
    key: ReceiptKey
    candidates: tuple[Candidate, ...]


def look(opened: Opened, embedder: Embedder | None, question: Question) -> Looked:
    """Search, and count what is related and left out."""
    view, device = opened.logbook.view, opened.device
    found = find(view, embedder, question)
    vectors = 0 if view.vectors is None else len(view.vectors)
    return Looked(
        question=question,
        found=found,
        other_state=_related(view, embedder, question, found, _of_other_states(view, question, found)),
        other_time=_related(view, embedder, question, found, _of_other_times(view, question, found)),
        embedder=None if found.vector is None or embedder is None else embedder.name,
        without_vector=0 if embedder is None else max(0, view.state.count("1") - vectors),
        vault_id=device.vault_id,
        device_id=device.device_id,
        key=receipt_key(device.keys.local, device.vault_id, device.device_id),
        candidates=considered(view.state, found) if opened.traces.wanted(device) else (),
    )


def answer(asked: Request, looked: Looked) -> Packet:
    """Return the packet; needs no open vault, since the app's count may take its time."""
    found = looked.found
    shown = [hit.memory if asked.show_secrets else masked(hit.memory) for hit in found.hits]
    packed = pack(shown, asked.budget, asked.count)
    by_id = {hit.memory.id: hit for hit in found.hits}
    hits = list[Recalled]()
    for entry in packed.entries:
        hit = by_id[entry.memory.id]
        hits.append(Recalled(hit.memory, hit.score, hit.why, entry.truncated, masked=entry.memory != hit.memory))
    receipt = receipts.sealed(_receipt(asked, looked, packed, [hit.masked for hit in hits]), looked.key)
    gap = receipts.gap(receipt.counted, len(found.hits) - len(hits), receipt.floor, found.tally.nearest)
    return Packet(receipt.status, receipt.reason, packed.text, tuple(hits), gap, receipt)


def is_own(opened: Opened, receipt: Receipt | Mapping[str, Any]) -> bool:
    """Whether this device made the receipt."""
    device = opened.device
    return receipts.is_own(receipt, receipt_key(device.keys.local, device.vault_id, device.device_id))


def _related(view: View, embedder: Embedder | None, question: Question, found: Found, wanted: Condition | None) -> int:
    """Return how many memories that were left out are related to the query."""
    if wanted is None or not found.query.searchable or not view.state.count(wanted.where, wanted.values):
        return 0
    candidates = candidates_of(view, embedder, found.query, found.vector, wanted, replace(question, time="prefer"))
    return tally(found.query, candidates, floor=found.floor, least=found.least).matched


def _of_other_states(view: View, question: Question, found: Found) -> Condition | None:
    """Return the condition of what a recall of active memories leaves out; who names a state knows what that does."""
    if question.filters.get("state") not in (None, "active"):
        return None
    every = condition({**question.filters, "state": "all"})
    left_out = "m.state <> 0" if question.filters.get("as_of") is None else STATES["retracted"]
    others = Condition(f"{every.where} AND {left_out}", every.values, narrow=True)
    period = found.query.period
    return of_time(view.state, period, others) if period is not None and question.time == "only" else others


def _of_other_times(view: View, question: Question, found: Found) -> Condition | None:
    if question.time != "only" or found.query.period is None:
        return None
    wanted = condition(question.filters)
    then = of_time(view.state, found.query.period, Condition("1", (), narrow=True))
    return Condition(f"{wanted.where} AND NOT ({then.where})", (*wanted.values, *then.values), narrow=True)


def _receipt(asked: Request, looked: Looked, packed: Packed, hidden: Sequence[bool]) -> Receipt:
    found, query, ok = looked.found, looked.found.query, bool(packed.entries)
    counted = _counted(looked, packed)
    return Receipt(
        vault_id=looked.vault_id.hex(),
        device_id=looked.device_id.hex(),
        at=looked.question.now.astimezone(UTC).isoformat(),
        status="ok" if ok else "empty",
        reason=None if ok else receipts.reason_of(query.searchable, counted),
        query=_readable(asked.query),
        searched=query.text,
        terms=query.terms,
        time=receipts.time_value(query.period, asked.time),
        engine=engine_of(found),
        embedder=looked.embedder,
        degraded=found.degraded,
        floor=None if found.vector is None else found.floor,
        counted=counted,
        budget=asked.budget,
        unit="characters" if asked.count is len else "the caller's",
        used=asked.count(packed.text),
        rendered_chars=len(packed.text),
        used_chars=sum(entry.chars for entry in packed.entries),
        text_sha256=sha256(packed.text.encode()).hex(),
        served=tuple(
            Served(entry.memory.id, int(entry.memory.state), entry.truncated, mask)
            for entry, mask in zip(packed.entries, hidden, strict=True)
        ),
        complete=found.degraded is None,
        warnings=_warnings(asked.query, looked),
    )


def _counted(looked: Looked, packed: Packed) -> Counted:
    found, returned = looked.found, len(packed.entries)
    return Counted(
        considered=found.considered,
        matched=found.tally.matched,
        returned=returned,
        dropped=found.tally.matched - returned,
        truncated=sum(entry.truncated for entry in packed.entries),
        other_state=looked.other_state,
        other_time=looked.other_time,
        near_misses=found.tally.near_misses,
    )


def engine_of(found: Found) -> Engine:
    """Return what gave scores to the candidates."""
    if found.query.about_time:
        return "time"
    if found.by_words:
        return "words and meaning" if found.by_meaning else "words"
    return "meaning" if found.by_meaning else "none"


def _warnings(query: str, looked: Looked) -> tuple[str, ...]:
    """Return what of the query was not used, and what of the vault could be found by words alone."""
    warnings = list[str]()
    if looked.without_vector:
        warnings.append(f"{looked.without_vector} memories have no vector of this vault's model: reindex makes them")
    if len(query) > MAX_CHARS:
        warnings.append(f"only the first {MAX_CHARS} characters of the query were read")
    if len(looked.found.query.terms) == MAX_TERMS:
        warnings.append(f"only the first {MAX_TERMS} words of the query were searched for")
    if _readable(query) != query[:MAX_CHARS]:
        warnings.append("what is not valid Unicode in the query was replaced")
    return tuple(warnings)


def _readable(query: str) -> str:
    return query[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
