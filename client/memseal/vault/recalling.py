"""Recall: search, pack what was found into a budget, and account for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memseal.embedding import Embedder
from memseal.format.derivation import receipt_key
from memseal.format.keys import ReceiptKey
from memseal.format.primitives import sha256
from memseal.index.filters import Condition, condition
from memseal.index.periods import of_time
from memseal.index.view import View
from memseal.recall import receipt as receipts
from memseal.recall.normaliser import QueryNormaliser
from memseal.recall.packet import Packet, Recalled
from memseal.recall.query import MAX_CHARS, MAX_TERMS, TimeRule
from memseal.recall.rank import tally
from memseal.recall.receipt import Counted, Engine, Receipt, Served
from memseal.recall.rendering import Count, Packed, pack
from memseal.vault.device import Device
from memseal.vault.opening import Opened
from memseal.vault.searching import Found, Question, candidates_of, find
from memseal.vault.zone import SystemZone


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
    filters: Mapping[str, Any]

    def check(self) -> None:
        """Refuse what cannot be meant; raises `TypeError` or `ValueError`."""
        if not isinstance(self.query, str):
            raise TypeError(f"a query is a text, not {type(self.query).__name__}")
        if type(self.budget) is not int or self.budget < 0:
            raise ValueError("a budget is a whole number from 0")
        if self.time not in ("prefer", "only", "ignore"):
            raise ValueError("time is prefer, only or ignore")
        if self.now is not None and self.now.tzinfo is None:
            raise ValueError("now needs a zone: datetime.now(ZoneInfo('Europe/Berlin'))")
        if type(self.first_weekday) is not int or not 0 <= self.first_weekday <= 6:
            raise ValueError("first_weekday is 0 (Monday) to 6 (Sunday)")
        if self.floor is not None and not -1 <= self.floor <= 1:
            raise ValueError("a floor is a cosine, from -1 to 1")


def recall(opened: Opened, embedder: Embedder | None, asked: Request) -> Packet:
    """Return the packet of one recall."""
    asked.check()
    view = opened.logbook.view
    searched = (asked.normaliser.normalise(asked.query) if asked.normaliser else "") or asked.query
    question = Question(
        query=searched,
        vector=None,
        limit=asked.limit,
        filters=asked.filters,
        now=asked.now or datetime.now(SystemZone()),
        first_weekday=asked.first_weekday,
        time=asked.time,
        floor=asked.floor,
    )
    found = find(view, embedder, question)
    packed = pack([hit.memory for hit in found.hits], asked.budget, asked.count)
    counted = _counted(view, embedder, question, found, packed)
    receipt = _receipt(opened, embedder, asked, question, found, packed, counted)
    by_id = {hit.memory.id: hit for hit in found.hits}
    hits = [
        Recalled(entry.memory, by_id[entry.memory.id].score, by_id[entry.memory.id].why, entry.truncated)
        for entry in packed.entries
    ]
    over_budget = len(found.hits) - len(hits)
    gap = receipts.gap(counted, over_budget, receipt.floor, found.tally.nearest)
    return Packet(receipt.status, receipt.reason, packed.text, tuple(hits), gap, receipt)


def is_own(opened: Opened, receipt: Receipt | Mapping[str, Any]) -> bool:
    """Whether this device made the receipt."""
    return receipts.is_own(receipt, _key(opened.device))


def _counted(view: View, embedder: Embedder | None, question: Question, found: Found, packed: Packed) -> Counted:
    returned = len(packed.entries)
    return Counted(
        considered=found.considered,
        matched=found.tally.matched,
        returned=returned,
        dropped=found.tally.matched - returned,
        truncated=sum(entry.truncated for entry in packed.entries),
        other_state=_related(view, embedder, question, found, _of_other_states(question.filters)),
        other_time=_related(view, embedder, question, found, _of_other_times(view, question, found)),
        near_misses=found.tally.near_misses,
    )


def _related(view: View, embedder: Embedder | None, question: Question, found: Found, wanted: Condition | None) -> int:
    """Return how many memories that were left out are related to the query."""
    if wanted is None or not found.query.searchable or not view.state.count(wanted.where, wanted.values):
        return 0
    candidates = candidates_of(view, embedder, found.query, found.vector, wanted, replace(question, time="prefer"))
    return tally(found.query, candidates, floor=found.floor).matched


def _of_other_states(filters: Mapping[str, Any]) -> Condition | None:
    """Return the condition of what a recall of active memories leaves out; who names a state knows what that does."""
    if filters.get("state") not in (None, "active"):
        return None
    every = condition({**filters, "state": "all"})
    return Condition(f"{every.where} AND m.state <> 0", every.values, narrow=True)


def _of_other_times(view: View, question: Question, found: Found) -> Condition | None:
    if question.time != "only" or found.query.period is None:
        return None
    wanted = condition(question.filters)
    then = of_time(view.state, found.query.period, Condition("1", (), narrow=True))
    return Condition(f"{wanted.where} AND NOT ({then.where})", (*wanted.values, *then.values), narrow=True)


def _receipt(
    opened: Opened,
    embedder: Embedder | None,
    asked: Request,
    question: Question,
    found: Found,
    packed: Packed,
    counted: Counted,
) -> Receipt:
    device, view = opened.device, opened.logbook.view
    query, ok = found.query, bool(packed.entries)
    receipt = Receipt(
        vault_id=device.vault_id.hex(),
        device_id=device.device_id.hex(),
        at=question.now.astimezone(UTC).isoformat(),
        status="ok" if ok else "empty",
        reason=None if ok else receipts.reason_of(query.searchable, counted),
        query=_readable(asked.query),
        searched=query.text,
        terms=query.terms,
        time=receipts.time_value(query.period, asked.time),
        engine=_engine(found),
        embedder=None if found.vector is None or embedder is None else embedder.name,
        degraded=found.degraded,
        floor=None if found.vector is None else found.floor,
        counted=counted,
        budget=asked.budget,
        unit="characters" if asked.count is len else "the caller's",
        used=asked.count(packed.text),
        rendered_chars=len(packed.text),
        used_chars=sum(entry.chars for entry in packed.entries),
        text_sha256=sha256(packed.text.encode()).hex(),
        served=tuple(Served(entry.memory.id, int(entry.memory.state), entry.truncated) for entry in packed.entries),
        complete=found.degraded is None,
        warnings=_warnings(view, embedder, asked.query, found),
    )
    return receipts.sealed(receipt, _key(device))


def _engine(found: Found) -> Engine:
    if not found.query.searchable:
        return "none"
    if found.query.about_time:
        return "time"
    if found.vector is None:
        return "words"
    return "words and meaning"


def _warnings(view: View, embedder: Embedder | None, query: str, found: Found) -> tuple[str, ...]:
    """Return what of the query was not used, and what of the vault could be found by words alone."""
    warnings = list[str]()
    without = view.state.count("1") - (0 if view.vectors is None else len(view.vectors))
    if embedder is not None and without > 0:
        warnings.append(f"{without} memories have no vector of this vault's model: reindex makes them")
    if len(query) > MAX_CHARS:
        warnings.append(f"only the first {MAX_CHARS} characters of the query were read")
    if len(found.query.terms) == MAX_TERMS:
        warnings.append(f"only the first {MAX_TERMS} words of the query were searched for")
    if _readable(query) != query:
        warnings.append("what is not valid Unicode in the query was replaced")
    return tuple(warnings)


def _readable(query: str) -> str:
    return query[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _key(device: Device) -> ReceiptKey:
    return receipt_key(device.keys.local, device.vault_id, device.device_id)
