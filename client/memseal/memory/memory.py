"""A memory, and the rules for its fields (vault-format §9)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from memseal.errors import MemoryInvalid

KINDS: Final = ("fact", "decision", "preference", "episode", "hazard", "note")
DEFAULT_KIND: Final = "note"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_I64 = 1 << 63
ID_SIZE: Final = 16


class State(IntEnum):
    """Where a memory stands."""

    ACTIVE = 0
    SUPERSEDED = 1
    RETRACTED = 2
    BOTH = 3


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
    others: Mapping[str, Any] = MappingProxyType({})
    """Fields of newer software, carried on."""


def to_microseconds(moment: datetime) -> int:
    """Return µs since 1970 UTC of an aware datetime; `ValueError` for a naive one."""
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
) -> Draft:
    """Return a memory's fields, checked; raises `MemoryInvalid` or `TypeError` that name the field, never its text."""
    if isinstance(tags, str):
        raise TypeError("tags is a list of texts, not one text")
    if kind not in KINDS:
        raise MemoryInvalid(f"kind is one of {', '.join(KINDS)}")
    return Draft(
        content=_text("content", content),
        source=_text("source", source),
        kind=kind,
        tags=() if tags == () else tuple(dict.fromkeys(_text("tag", tag) for tag in tags)),
        author=None if author is None else _text("author", author),
        thread=None if thread is None else _text("thread", thread),
        position=_optional_integer("position", position),
        captured_at=_moment("captured_at", captured_at),
        origin=None if origin is None else _text("origin", origin),
    )


def check_reason(reason: str | None) -> str | None:
    """Return a reason that can be stored."""
    return None if reason is None else _text("reason", reason)


def _text(name: str, value: str) -> str:
    if type(value) is not str:
        if not isinstance(value, str):
            raise TypeError(f"{name} is a text, not {type(value).__name__}")
        value = str(value)
    if not value or value.isspace():
        raise MemoryInvalid(f"{name} is empty")
    if not value.isascii() and not _is_unicode(value):
        raise MemoryInvalid(f"{name} has a lone surrogate: it is not valid Unicode text")
    return value


def _is_unicode(value: str) -> bool:
    # On its own, so that the text, which the encoding error holds, is no context of ours.
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


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


def parse_id(value: str) -> bytes:
    """Return the 16 bytes of a memory id; `ValueError` for what is not 32 hex digits."""
    if not isinstance(value, str):
        raise TypeError(f"a memory id is a text of 32 hex digits, not {type(value).__name__}")
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        raw = b""
    if len(raw) != ID_SIZE or len(value) != 2 * ID_SIZE:
        raise ValueError("a memory id has 32 hex digits")
    return raw
