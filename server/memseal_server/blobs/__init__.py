"""The port to where a server's objects lie: create-only, whole, durable, until they are deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

__all__ = [
    "MAX_NUMBER",
    "AlreadyThere",
    "BlobStore",
    "Info",
    "Listed",
    "Run",
    "StoreUnavailable",
    "Stored",
    "Totals",
    "Usage",
    "numbered",
]

# Ten digits are enough for one object a second for three hundred years.
MAX_NUMBER = 9_999_999_999


class StoreUnavailable(Exception):
    """The store could not read or write; nothing is known of what was asked."""


@dataclass(frozen=True)
class Stored:
    """The object was not there, and is now durable."""


@dataclass(frozen=True)
class Info:
    """An object's length in bytes and the SHA-256 of its content."""

    length: int
    digest: bytes


@dataclass(frozen=True)
class AlreadyThere(Info):
    """An object was there, is durable and was left as it is: its length in bytes and SHA-256."""


@dataclass(frozen=True)
class Usage:
    """What lies under a first folder of keys: objects, and bytes of content."""

    objects: int
    bytes: int


@dataclass(frozen=True)
class Totals:
    """All that the store holds: first folders of keys, objects, and bytes of content."""

    folders: int
    objects: int
    bytes: int


class Run(NamedTuple):
    """The objects of a folder that are numbered without a gap, from `first` on; nobody asks beyond `most`."""

    folder: str
    first: int
    most: int = MAX_NUMBER


class Listed(NamedTuple):
    """An object as a listing has it: its key, and its length in bytes."""

    key: str
    length: int


def numbered(folder: str, number: int) -> str:
    """Return the key of a numbered object; all have the same width, so that the order of keys is that of numbers."""
    return f"{folder}{number:010d}"


class BlobStore(Protocol):
    """Objects under ASCII keys of folders joined by `/`; an object is never changed or replaced.

    What was acknowledged to anyone, through any process, is seen by whatever is asked afterwards, but for listings:
    they may lack what is there, so nothing is decided by them. Every method raises `StoreUnavailable` where the
    store fails. Any number of processes may share one store.
    """

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        """Store an object unless its key is taken; either answer promises that what lies there is durable.

        `digest` is the content's SHA-256, where it is known.
        """
        ...

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return an object's bytes from `start` up to `end` (None: all that follow), or None if it is not there."""
        ...

    async def head(self, key: str) -> Info | None:
        """Return an object's length and digest, or None if it is not there."""
        ...

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        """Return each run's last number, at most its `most`, or None where nothing lies under its first.

        They are not all of one moment.
        """
        ...

    async def missing(self, keys: Sequence[str]) -> list[str]:
        """Return those of these keys under which nothing lies, in their order; not all of one moment."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects for good; a key under which nothing lies is passed over."""
        ...

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        """Return at most `limit` objects under a folder (`""`: all), those with the least keys greater than `after`."""
        ...

    async def usage(self, folder: str) -> Usage:
        """Return what lies under a first folder (given with its `/`); it may be of some seconds ago."""
        ...

    async def totals(self) -> Totals | None:
        """Return what the store holds, or None where it would have to look at everything to know."""
        ...

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers now."""
        ...

    async def close(self) -> None:
        """End the store's work; what was acknowledged stays."""
        ...
