"""The port to where a server's objects lie: create-only, whole, durable, until they are deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["AlreadyThere", "BlobStore", "Info", "StoreUnavailable", "Stored", "Totals"]


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
class Totals:
    """All that the store holds: first folders of keys, objects, and bytes of content."""

    folders: int
    objects: int
    bytes: int


class BlobStore(Protocol):
    """Objects under ASCII keys of folders joined by `/`; an object is never changed or replaced.

    The last part of a key has the same width in all keys of its folder, so that the order of keys is that of
    numbers. Every method raises `StoreUnavailable` where the store fails. Any number of processes may share one.
    """

    async def put_new(self, key: str, content: bytes) -> Stored | AlreadyThere:
        """Store an object unless its key is taken; either answer promises that what lies there is durable."""
        ...

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return an object's bytes from `start` up to `end` (None: all that follow), or None if it is not there."""
        ...

    async def head(self, key: str) -> Info | None:
        """Return an object's length and digest, or None if it is not there."""
        ...

    async def newest(self, folders: Sequence[str]) -> list[str | None]:
        """Return the greatest key in each folder (given with its last `/`), or None; all of one moment."""
        ...

    async def newest_of_each(self, folder: str) -> list[str]:
        """Return the greatest key of each folder anywhere under this one, greatest first; all of one moment."""
        ...

    async def keys_before(self, key: str, limit: int) -> list[str]:
        """Return at most `limit` keys of a key's folder that stand before it, least first; itself need not exist."""
        ...

    async def missing(self, keys: Sequence[str]) -> list[str]:
        """Return those of these keys under which nothing lies, in their order; all of one moment."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects for good; a key under which nothing lies is passed over."""
        ...

    async def usage_bytes(self, folder: str) -> int:
        """Return how many bytes of content lie under a first folder (given with its `/`)."""
        ...

    async def totals(self) -> Totals:
        """Return what the store holds."""
        ...

    async def close(self) -> None:
        """End the store's work; what was acknowledged stays."""
        ...
