"""Find a vault's objects in the store, and remember what is known of them: they never change.

What was deleted is remembered too, so whether an object is there is always asked of the store.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memseal_server import checkpoints, container, segments, versions
from memseal_server.blobs import AlreadyThere, BlobStore, Info, Stored, StoreUnavailable
from memseal_server.checkpoints import Kind
from memseal_server.recent import Recent

# Ten digits are enough for one object a second for three hundred years.
MAX_NUMBER = 9_999_999_999

# Parsing or hashing more than this would hold up the other requests for a millisecond.
_LONG_BYTES = 256 * 1024
# In bytes of public sections. Ordinary ones take twice that in memory, ones made to hurt up to sixty times.
_VERSIONS_BOUND = 4 * 1024 * 1024
_PLACES_BOUND = 50_000
# Objects deleted in one transaction: of inline ones up to 16 MiB.
_DELETED_AT_ONCE = 256
# Between listing and reading a floor would have to sweep each time.
_TRIES = 4

Value = TypeVar("Value")


@dataclass(frozen=True)
class View:
    """A vault at one moment: its newest version's number, and the newest segment's of one stream; None: no such."""

    version: int | None
    seq: int | None


@dataclass(frozen=True)
class Contents:
    """A vault at one moment: its newest version's number, whether that is whole, each stream's newest segment's."""

    version: int | None
    whole: bool
    streams: Mapping[bytes, int]


class Missing(StoreUnavailable):
    """An object is not there that was listed, or that others need: swept since, or lost."""


async def settled(work: Callable[[], Awaitable[Value]]) -> Value:
    """Return what the work returns, done again where a new floor swept what it had just seen listed."""
    for _ in range(_TRIES - 1):
        try:
            return await work()
        except Missing:
            continue
    return await work()


class Objects:
    """The keyring versions, segments, manifests and parts of all vaults in one store."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._versions: Recent[tuple[bytes, int], versions.Version] = Recent(_VERSIONS_BOUND)
        self._ends: Recent[tuple[bytes, bytes, int], segments.End] = Recent(_PLACES_BOUND)
        self._headers: Recent[tuple[bytes, bytes, int], segments.Header] = Recent(_PLACES_BOUND)
        self._preambles: Recent[tuple[bytes, bytes], container.Preamble] = Recent(_PLACES_BOUND)

    async def newest_version(self, vault: bytes) -> versions.Version | None:
        """Return the newest version as the store has it now, or None for a vault that is not there."""
        [key] = await self._store.newest([_keyring_folder(vault)])
        number = _number_of(key)
        return None if number is None else await self.version(vault, number)

    async def view(self, vault: bytes, stream: bytes) -> View:
        """Return the newest numbers of a vault's keyring and of one of its streams, of one moment."""
        version, seq = await self._store.newest([_keyring_folder(vault), _stream_folder(vault, stream)])
        return View(_number_of(version), _number_of(seq))

    async def contents(self, vault: bytes) -> Contents:
        """Return the newest version's number and whether it is whole, and the newest segment's of each stream."""
        version: int | None = None
        sealed: int | None = None
        streams: dict[bytes, int] = {}
        for key in await self._store.newest_of_each(vault.hex() + "/"):
            match key.split("/"):
                case [_, "keyring", number]:
                    version = int(number)
                case [_, "sealed", number]:
                    sealed = int(number)
                case [_, "logs", stream, seq]:
                    streams[bytes.fromhex(stream)] = int(seq)
                case [_, "checkpoints" | "parts", _]:
                    pass
                case _:
                    raise StoreUnavailable("the store has a key that this server does not know")
        return Contents(version, sealed == version, streams)

    async def version(self, vault: bytes, number: int) -> versions.Version:
        """Return a stored version."""
        known = self._versions.get((vault, number))
        if known is not None:
            return known
        open_part = await self.version_bytes(vault, number, whole=False)
        try:
            version = await parse_version(open_part, vault)
        except versions.Refused as error:
            raise StoreUnavailable("a stored keyring version is damaged") from error
        self._versions.put((vault, number), version, weight=version.open_length)
        return version

    async def version_bytes(self, vault: bytes, number: int, *, whole: bool) -> bytes:
        """Return a stored version's open part, followed with `whole` by the sealed part where that is there."""
        open_part = _there(await self._store.get(_keyring_folder(vault) + _digits(number)))
        return open_part + (await self.sealed_part(vault, number) or b"") if whole else open_part

    async def sealed_part(self, vault: bytes, number: int) -> bytes | None:
        """Return a stored version's sealed part, or None where it is not there."""
        return await self._store.get(_sealed_folder(vault) + _digits(number))

    async def put_open_part(self, vault: bytes, number: int, content: bytes) -> Stored | AlreadyThere:
        """Store a version's open part unless its number is taken."""
        return await self._store.put_new(_keyring_folder(vault) + _digits(number), content)

    async def put_sealed_part(self, vault: bytes, number: int, content: bytes) -> Stored | AlreadyThere:
        """Store the sealed part that the stored open part approves, unless it is there."""
        return await self._store.put_new(_sealed_folder(vault) + _digits(number), content)

    async def segment_bytes(self, vault: bytes, stream: bytes, seq: int) -> bytes:
        """Return a stored segment."""
        return _there(await self._store.get(_stream_folder(vault, stream) + _digits(seq)))

    async def put_segment(
        self, vault: bytes, stream: bytes, seq: int, content: bytes, end: segments.End
    ) -> Stored | AlreadyThere:
        """Store a segment, after which the log ends at `end`, unless its number is taken."""
        outcome = await self._store.put_new(_stream_folder(vault, stream) + _digits(seq), content)
        if isinstance(outcome, Stored):
            self._ends.put((vault, stream, seq), end)
        return outcome

    async def delete_segments_below(self, vault: bytes, stream: bytes, seq: int) -> None:
        """Delete a stream's segments with lower numbers than this one."""
        before = _stream_folder(vault, stream) + _digits(seq)
        while keys := await self._store.keys_before(before, _DELETED_AT_ONCE):
            await self._store.delete(keys)

    async def end(self, newest: versions.Version, stream: bytes, seq: int | None) -> segments.End:
        """Return where a log ends whose newest stored segment is `seq` (None: none is), given the newest version."""
        row = newest.row(stream)
        if row is not None and (seq is None or seq < row.segment):
            return segments.end_at(row)
        return segments.End() if seq is None else await self.segment_end(newest.vault, stream, seq)

    async def segment_end(self, vault: bytes, stream: bytes, seq: int) -> segments.End:
        """Return where a log ends after its stored segment `seq`."""
        known = self._ends.get((vault, stream, seq))
        if known is not None:
            return known
        content = await self.segment_bytes(vault, stream, seq)
        try:
            segment = await parse_segment(content, seq)
        except segments.SegmentInvalid as error:
            raise StoreUnavailable("a stored segment is damaged") from error
        self._ends.put((vault, stream, seq), segment.end)
        return segment.end

    async def log_preamble(self, newest: versions.Version, stream: bytes) -> container.Preamble:
        """Return the preamble of a log that is in the newest floor, or whose segment 0 is stored."""
        vault, row = newest.vault, newest.row(stream)
        if row is not None:
            return segments.preamble_at(row, vault=vault, stream=stream)
        known = self._preambles.get((vault, stream))
        if known is not None:
            return known
        piece = await self.piece(vault, stream, 0, 0, container.PREAMBLE_SIZE)
        try:
            preamble = segments.read_log_preamble(piece, vault=vault, stream=stream)
        except segments.SegmentInvalid as error:
            raise StoreUnavailable("a stored log is damaged") from error
        self._preambles.put((vault, stream), preamble)
        return preamble

    async def header(self, vault: bytes, stream: bytes, seq: int) -> segments.Header:
        """Return a stored segment's header."""
        known = self._headers.get((vault, stream, seq))
        if known is not None:
            return known
        key = _stream_folder(vault, stream) + _digits(seq)
        header = segments.read_header(_there(await self._store.get(key, 0, segments.HEADER_SIZE)))
        self._headers.put((vault, stream, seq), header)
        return header

    async def piece(self, vault: bytes, stream: bytes, seq: int, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a stored segment's piece."""
        key = _stream_folder(vault, stream) + _digits(seq)
        return _there(await self._store.get(key, segments.HEADER_SIZE + start, segments.HEADER_SIZE + end))

    async def checkpoint_info(self, vault: bytes, kind: Kind, name: bytes) -> Info | None:
        """Return the length and digest of a manifest's or part's file, or None if it is not there."""
        return await self._store.head(_checkpoint_key(vault, kind, name))

    async def checkpoint_bytes(self, vault: bytes, kind: Kind, name: bytes, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a manifest's or part's file."""
        return _there(await self._store.get(_checkpoint_key(vault, kind, name), start, end))

    async def put_checkpoint(self, vault: bytes, kind: Kind, name: bytes, content: bytes) -> Stored | AlreadyThere:
        """Store a manifest's or part's file unless its id is taken."""
        return await self._store.put_new(_checkpoint_key(vault, kind, name), content)

    async def missing_checkpoints(self, vault: bytes, kind: Kind, names: Sequence[bytes]) -> list[bytes]:
        """Return those of these manifests or parts that are not there, in their order."""
        keys = await self._store.missing([_checkpoint_key(vault, kind, name) for name in names])
        return [bytes.fromhex(key.rpartition("/")[2]) for key in keys]

    async def delete_checkpoints(self, vault: bytes, kind: Kind, names: Sequence[bytes]) -> None:
        """Delete the files of manifests or parts, as far as they are there."""
        # Most were deleted long ago: looking is a reader's work, and holds up no put.
        missing = frozenset(await self.missing_checkpoints(vault, kind, names))
        keys = [_checkpoint_key(vault, kind, name) for name in names if name not in missing]
        for at in range(0, len(keys), _DELETED_AT_ONCE):
            await self._store.delete(keys[at : at + _DELETED_AT_ONCE])

    async def usage_bytes(self, vault: bytes) -> int:
        """Return how many bytes the vault's objects have."""
        return await self._store.usage_bytes(vault.hex() + "/")


async def parse_segment(content: bytes, seq: int) -> segments.Segment:
    """Return the segment in `content`; `SegmentInvalid` where its form is wrong."""
    return await _long(content, lambda: segments.read_segment(content, seq=seq))


async def parse_version(content: bytes, vault: bytes) -> versions.Version:
    """Return the version in `content`; `Refused` where it breaks rule K1."""
    return await _long(content, lambda: versions.read_version(content, vault))


async def check_checkpoint(content: bytes, vault: bytes, kind: Kind, name: bytes) -> None:
    """Refuse with `ObjectInvalid` a manifest's or part's file whose form is wrong."""
    await _long(content, lambda: checkpoints.check(content, vault, kind, name))


async def digest_of(content: bytes) -> bytes:
    """Return the SHA-256 of an object's content."""
    return await _long(content, lambda: hashlib.sha256(content).digest())


async def _long(content: bytes, work: Callable[[], Value]) -> Value:
    return await asyncio.to_thread(work) if len(content) > _LONG_BYTES else work()


def _there(content: bytes | None) -> bytes:
    if content is None:
        raise Missing("an object is missing")
    return content


def _keyring_folder(vault: bytes) -> str:
    return f"{vault.hex()}/keyring/"


def _sealed_folder(vault: bytes) -> str:
    return f"{vault.hex()}/sealed/"


def _stream_folder(vault: bytes, stream: bytes) -> str:
    return f"{vault.hex()}/logs/{stream.hex()}/"


def _checkpoint_key(vault: bytes, kind: Kind, name: bytes) -> str:
    return f"{vault.hex()}/{kind.value}/{name.hex()}"


def _digits(number: int) -> str:
    return f"{number:010d}"


def _number_of(key: str | None) -> int | None:
    return None if key is None else int(key.rpartition("/")[2])
