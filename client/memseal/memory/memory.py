"""A memory, and the rules for its fields (vault-format §9)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from memseal.errors import MemoryInvalid
from memseal.memory.texts import ID_SIZE as ID_SIZE
from memseal.memory.texts import check_text
from memseal.memory.texts import parse_id as parse_id
from memseal.memory.traits import OWNER_ONLY, PLAIN, Derivation, Location, Traits, written_traits
from memseal.memory.types import type_of

KINDS: Final = ("fact", "decision", "preference", "episode", "hazard", "note")
DEFAULT_KIND: Final = "note"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_I64 = 1 << 63
_NONE: Mapping[str, Any] = MappingProxyType({})


class State(IntEnum):
    """Where a memory stands."""

    ACTIVE = 0
    SUPERSEDED = 1
    RETRACTED = 2
    BOTH = 3
    HELD = 4
    """Proposed, and no memory yet: `proposals` lists it, nothing else does."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as an app sees it; times are aware UTC, `id` is 32 hex digits.

    `captured_at` is when it happened, None where the app did not say; `written_at` is when it was stored.
    `state` and `tags` are the current ones; `superseded_by` is the memory that replaced this one. The `repr` shows no
    text, so that none gets into a log.
    """

    id: str
    content: str = field(repr=False)
    kind: str
    source: str = field(repr=False)
    written_at: datetime
    captured_at: datetime | None = None
    tags: tuple[str, ...] = field(default=(), repr=False)
    author: str | None = field(default=None, repr=False)
    thread: str | None = field(default=None, repr=False)
    position: int | None = None
    origin: str | None = field(default=None, repr=False)
    state: State = State.ACTIVE
    reason: str | None = field(default=None, repr=False)
    supersedes: str | None = None
    superseded_by: str | None = None
    traits: Traits = field(default=PLAIN, repr=False)

    @property
    def type(self) -> str:
        """One of episodic, semantic, persona, procedural: as its writer named it, or else as the rules say."""
        return self.traits.type or type_of(self.content)

    @property
    def tier(self) -> str:
        """`atom`, or what was made of others: `composite`, `affinity`."""
        return self.traits.tier

    @property
    def owner(self) -> str | None:
        """Whose it is; None: whose the vault is."""
        return self.traits.owner

    @property
    def policy(self) -> Mapping[str, Any]:
        """Who may read it."""
        return self.traits.stated_policy or OWNER_ONLY

    @property
    def location(self) -> Location | None:
        """Where it was."""
        return self.traits.location

    @property
    def derived_from(self) -> tuple[str, ...]:
        """The ids of the memories from whose text this one was made."""
        return self.traits.derived_from

    @property
    def derivation(self) -> Derivation | None:
        """How it was made of them, where a job did."""
        return self.traits.derivation


class Draft(NamedTuple):
    """The checked fields of a memory that is to be written; times in µs since 1970 UTC."""

    content: str
    source: str
    kind: str = DEFAULT_KIND
    tags: tuple[str, ...] = ()
    author: str | None = None
    thread: str | None = None
    position: int | None = None
    captured_at: int | None = None
    origin: str | None = None
    others: Mapping[str, Any] = _NONE
    """The rarer fields as they are stored (`traits`), and those of newer software: carried on."""


def to_microseconds(moment: datetime) -> int:
    """Return µs since 1970 UTC of an aware datetime; `ValueError` for a naive one, `TypeError` for anything else."""
    if not isinstance(moment, datetime):
        raise TypeError(f"a time is an aware datetime, not {type(moment).__name__}")
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone: use datetime.now(timezone.utc) or datetime(…, tzinfo=…)")
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """Return the aware UTC datetime; a value beyond what datetime can hold is clamped to its ends."""
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if value > 0 else datetime.min.replace(tzinfo=UTC)


def draft(
    content: str,
    *,
    source: str,
    kind: str = DEFAULT_KIND,
    tags: Iterable[str] = (),
    author: str | None = None,
    thread: str | None = None,
    position: int | None = None,
    captured_at: datetime | None = None,
    origin: str | None = None,
    **traits: Any,
) -> Draft:
    """Return a memory's fields, checked (`traits`: those of `written_traits`).

    Raises `MemoryInvalid` or `TypeError` that name the field, never its text.
    """
    if isinstance(tags, str):
        raise TypeError("tags is a list of texts, not one text")
    if kind not in KINDS:
        raise MemoryInvalid(f"kind is one of {', '.join(KINDS)}")
    return Draft(
        content=check_text("content", content),
        source=check_text("source", source),
        kind=kind,
        tags=() if tags == () else tuple(dict.fromkeys(check_text("tag", tag) for tag in tags)),
        author=None if author is None else check_text("author", author),
        thread=None if thread is None else check_text("thread", thread),
        position=_optional_integer("position", position),
        captured_at=_moment("captured_at", captured_at),
        origin=None if origin is None else check_text("origin", origin),
        others=written_traits(**traits) if traits else _NONE,
    )


def check_reason(reason: str | None) -> str | None:
    """Return a reason that can be stored."""
    return None if reason is None else check_text("reason", reason)


def _optional_integer(name: str, value: int | None) -> int | None:
    if value is None:
        return None
    if type(value) is not int:
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if not -_I64 <= value < _I64:
        raise MemoryInvalid(f"{name} does not fit 64 bits")
    return value


def _moment(name: str, value: datetime | None) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise TypeError(f"{name} is an aware datetime, not {type(value).__name__}")
    if value.tzinfo is None:
        raise MemoryInvalid(f"{name} has no zone: use datetime.now(timezone.utc) or datetime(…, tzinfo=…)")
    return to_microseconds(value)
