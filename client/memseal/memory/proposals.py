"""Proposals: what is not agreed to yet, as settings of the vault (lifecycle.md §4)."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from memseal.errors import FormatError
from memseal.format.preamble import ID_SIZE
from memseal.format.primitives import sha256
from memseal.memory.operations import Remember, decode_operation, encode_operation

PROPOSAL: Final = "proposal/"
DECISION: Final = "decision/"
Verdict = Literal["accepted", "rejected"]
_NO_ID: Final = bytes(ID_SIZE)
_EDGES: Final = " .!,;"
# Any counter above that of what is decoded will do: a proposal carries no stamp.
_COUNTER: Final = 1


@dataclass(frozen=True)
class Stored:
    """A proposal as it is stored: the operation that would be written, why, and since when (µs since 1970 UTC)."""

    operation: Remember
    why: str
    at: int

    @property
    def id(self) -> bytes:
        """The proposal's id, which is its memory's once it is accepted."""
        return self.operation.id

    @property
    def name(self) -> str:
        """The name of its setting."""
        return PROPOSAL + self.id.hex()

    def to_value(self) -> dict[str, Any]:
        """Return the setting's value."""
        return {"operation": encode_operation(self.operation), "why": self.why, "at": self.at}


@dataclass(frozen=True)
class Decision:
    """What was said of a proposal, or of a conflict, for good; `at` in µs since 1970 UTC, `result` what was written."""

    verdict: Verdict
    at: int
    reason: str | None = None
    result: bytes | None = None

    def to_value(self) -> dict[str, Any]:
        """Return the setting's value."""
        return {"verdict": self.verdict, "reason": self.reason, "result": self.result, "at": self.at}


def decision_name(proposal_id: bytes) -> str:
    """Return the name of the setting that decides."""
    return DECISION + proposal_id.hex()


def proposed_id(name: str) -> bytes:
    """Return the id in the name of a proposal's setting; no bytes where it has none."""
    digits = name.removeprefix(PROPOSAL)
    # `fromhex` would pass over white space, and take capitals: such names are no proposals.
    if digits == name or len(digits) != 2 * ID_SIZE or not set(digits) <= set("0123456789abcdef"):
        return b""
    return bytes.fromhex(digits)


def stored_from(name: str, value: Any) -> Stored | None:
    """Return the proposal that a setting holds; None for what is no proposal, such as the nil of a decided one."""
    match value:
        case {"operation": dict(), "why": str(why), "at": int(at)}:
            operation = _operation(cast("dict[str, Any]", value)["operation"])
            if operation is None or operation.id != proposed_id(name):
                return None
            return Stored(operation, why, at)
        case _:
            return None


def _operation(value: dict[str, Any]) -> Remember | None:
    try:
        operation, _ = decode_operation(value, _COUNTER, 0)
    except FormatError:
        return None
    return operation if isinstance(operation, Remember) else None


def texts_in(value: Any) -> tuple[str, ...]:
    """Return the texts of a setting that is an array of them; none where it is something else."""
    values: list[Any] = value
    if type(values) is not list:
        return ()
    return tuple(each for each in values if type(each) is str)


def folded(text: str) -> str:
    """Return what two spellings of one statement have in common: no case, no width, single spaces, no full stop."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_EDGES)


def statement_id(text: str, of: bytes | None = None) -> bytes:
    """Return the id of a stored proposal: the same statement is the same proposal on every device."""
    return sha256(b"memseal/v1/proposal", of or _NO_ID, folded(text).encode("utf-8", "surrogatepass"))[:ID_SIZE]


def pair_id(one: bytes, other: bytes) -> bytes:
    """Return the id of a proposal about two memories, whichever comes first."""
    return sha256(b"memseal/v1/pair", *sorted((one, other)))[:ID_SIZE]


def conflict_id(rivals: Iterable[bytes]) -> bytes:
    """Return the id of a conflict: of exactly these memories."""
    return sha256(b"memseal/v1/conflict", *sorted(rivals))[:ID_SIZE]
