"""What one recall did, in numbers and ids, sealed so that nobody but the vault can make one (recall.md §6)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from memseal.format.keys import ReceiptKey
from memseal.format.primitives import is_keyed_hash, keyed_hash
from memseal.recall.period import Period

VERSION: Final = 1
_LABEL: Final = b"memseal/v1/receipt"

Status = Literal["ok", "empty"]
Reason = Literal["no_terms", "nothing_matched", "other_time", "other_state", "budget"]
Engine = Literal["words", "meaning", "words and meaning", "time", "none"]
"""What the scores came from: `time` where the query asks for nothing else, `none` where nothing had a score."""
Degraded = Literal["model_differs", "model_unreachable", "model_unread"]
"""Why words alone counted though there are vectors: of another model, out of reach, or not made for this writing."""


@dataclass(frozen=True)
class Served:
    """A memory that was given out: the version with this id, in this state; whether it was cut, and secrets masked."""

    id: str
    state: int
    truncated: bool
    masked: bool


@dataclass(frozen=True)
class Counted:
    """How many memories came so far; `matched` = `returned` + `dropped`.

    `considered`: candidates that were scored. `matched`: related to the query, or beside one that is. `dropped`: beyond
    the limit or the budget. `truncated`: of the returned, those that are cut. `other_state` and `other_time`: related,
    but retracted or superseded, or of another time. `near_misses`: under the floor by little.
    """

    considered: int = 0
    matched: int = 0
    returned: int = 0
    dropped: int = 0
    truncated: int = 0
    other_state: int = 0
    other_time: int = 0
    near_misses: int = 0


@dataclass(frozen=True)
class Receipt:
    """What one recall looked for, with what, how far it came, and what it gave out.

    `complete` says whether all happened as asked, `warnings` what to know beside it. `seal` binds all fields to the
    vault: `Vault.is_own_receipt` checks it. The `repr` shows no text.
    """

    vault_id: str
    device_id: str
    at: str
    status: Status
    reason: Reason | None
    query: str = field(repr=False)
    searched: str = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    time: dict[str, Any] | None = field(repr=False)
    engine: Engine
    embedder: str | None
    degraded: Degraded | None
    floor: float | None
    counted: Counted
    budget: int
    unit: Literal["characters", "the caller's"]
    used: int
    rendered_chars: int
    used_chars: int
    text_sha256: str
    served: tuple[Served, ...]
    complete: bool
    warnings: tuple[str, ...] = ()
    version: int = VERSION
    seal: str = ""

    def to_value(self) -> dict[str, Any]:
        """Return the receipt as JSON has it."""
        value: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return value


def sealed(receipt: Receipt, key: ReceiptKey) -> Receipt:
    """Return the receipt with its seal."""
    return replace(receipt, seal=keyed_hash(key, _message(receipt.to_value())).hex())


def is_own(receipt: Receipt | Mapping[str, Any], key: ReceiptKey) -> bool:
    """Whether a receipt, or what `to_value` made of it, was sealed with this key and not changed since."""
    value = receipt.to_value() if isinstance(receipt, Receipt) else receipt
    try:
        seal = bytes.fromhex(value["seal"])
        message = _message(value)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    return value["seal"] == seal.hex() and is_keyed_hash(key, message, seal)


def _message(value: Mapping[str, Any]) -> bytes:
    """Return what is sealed: the label, and the fields in one form of JSON."""
    fields = {name: each for name, each in value.items() if name != "seal"}
    return _LABEL + json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def time_value(period: Period | None, rule: str) -> dict[str, Any] | None:
    """Return the time of a query for its receipt; months of any year have no spans, there would be hundreds."""
    if period is None:
        return None
    spans = [] if period.yearly else [[_text(span.start), _text(span.end)] for span in period.spans]
    return {"phrase": period.phrase, "rule": rule, "yearly": period.yearly, "spans": spans}


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def gap(counted: Counted, over_budget: int, floor: float | None, nearest: float | None) -> str:
    """Return one line that names what matches and is not shown, and how to see it; empty where nothing is left out."""
    beyond = counted.dropped - over_budget
    parts = [
        f"{over_budget} more over the budget" if over_budget else "",
        f"{beyond} more beyond the limit" if beyond else "",
        f"{counted.truncated} cut" if counted.truncated else "",
        f"{counted.other_state} related but retracted or superseded (state='all' shows them)"
        if counted.other_state
        else "",
        f"{counted.other_time} related but of another time (time='prefer' shows them)" if counted.other_time else "",
    ]
    if counted.near_misses and floor is not None and nearest is not None:
        lower = nearest * 100 // 1 / 100  # rounded down, so that it lets the nearest in
        parts.append(
            f"{counted.near_misses} a little under the floor of {floor:.2f} (floor={lower:.2f} shows the nearest)"
        )
    return "; ".join(filter(None, parts))


def reason_of(searchable: bool, counted: Counted) -> Reason:
    """Return why nothing was given out."""
    if not searchable:
        return "no_terms"
    if counted.matched:
        return "budget"
    if counted.other_time:
        return "other_time"
    return "other_state" if counted.other_state else "nothing_matched"


EXPLAINED: Final[dict[Reason, str]] = {
    "no_terms": "the query has no words to search for",
    "nothing_matched": "nothing here is related to that",
    "other_time": "what is related is of another time",
    "other_state": "what is related was retracted or superseded",
    "budget": "what is related did not fit the budget",
}
