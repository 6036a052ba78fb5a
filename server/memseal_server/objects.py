"""Find a vault's objects in the store, and remember what is known of them: they never change.

What was deleted is remembered too, so whether an object is there is always asked of the store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from memseal_server import checkpoints, container, keys, segments, versions
from memseal_server.blobs import AlreadyThere, BlobStore, Info, Run, Stored, StoreUnavailable, Usage, numbered
from memseal_server.bodies import Body
from memseal_server.checkpoints import Kind
from memseal_server.newest import Missing, Newest
from memseal_server.recent import Recent
from memseal_server.versions import Version

# Parsing or hashing more than this would hold up the other requests for a millisecond.
_LONG_BYTES = 256 * 1024
# In bytes of public sections. Ordinary ones take twice that in memory, ones made to hurt up to sixty times.
_VERSIONS_BOUND = 4 * 1024 * 1024
# Places in logs: of each only the last are asked for again, and one takes less than a kilobyte.
_PLACES_BOUND = 10_000
# Objects deleted in one transaction: of inline ones up to 16 MiB.
_DELETED_AT_ONCE = 256
_LISTED_AT_ONCE = 1_000
# Between seeing and reading a floor would have to sweep each time.
_TRIES = 4

Value = TypeVar("Value")


@dataclass(frozen=True)
class View:
    """A vault's newest version, and the newest segment of one of its logs above the floor; None: none is there."""

    version: Version
    seq: int | None


@dataclass(frozen=True)
class Contents:
    """A vault at one moment: its newest version, and each log's newest segment above the floor."""

    version: Version
    segments: Mapping[bytes, int | None]


class Objects:
    """The keyring versions, segments, manifests and parts of all vaults in one store."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._newest = Newest(store)
        self._versions: Recent[tuple[bytes, int], Version] = Recent(_VERSIONS_BOUND)
        self._ends: Recent[tuple[bytes, bytes, int], segments.End] = Recent(_PLACES_BOUND)
        self._headers: Recent[tuple[bytes, bytes, int], segments.Header] = Recent(_PLACES_BOUND)
        self._preambles: Recent[tuple[bytes, bytes], container.Preamble] = Recent(_PLACES_BOUND)

    async def settled(self, vault: bytes, work: Callable[[], Awaitable[Value]]) -> Value:
        """Return what the work returns, done again where a new floor swept what it had just seen."""
        for _ in range(_TRIES - 1):
            try:
                return await work()
            except Missing:
                self._forget(vault)
        return await work()

    # What is newest.

    async def newest_version(self, vault: bytes, *, doubts: bool = False) -> Version | None:
        """Return the newest version as the store has it now, or None for a vault that is not there.

        With `doubts` it is noticed if the store was put back to an older state.
        """
        known = self._newest.known_version(vault)
        number = await self._newest.version(vault, doubts=doubts)
        if known is not None and (number is None or number < known):
            self._forget(vault)
        if number is None:
            return None
        try:
            return await self.version(vault, number)
        except Missing:
            if doubts:
                raise
            return await self.newest_version(vault, doubts=True)

    async def view(self, vault: bytes, stream: bytes) -> View | None:
        """Return the newest version and a log's newest segment, or None for a vault that is not there."""
        newest = await self.assumed_version(vault)
        while newest is not None:
            seq = await self._newest.segment(vault, stream, newest.base(stream))
            # Asked afterwards: a newer floor could have swept what was looked for.
            confirmed = await self.newest_version(vault)
            if _is_same(confirmed, newest):
                return View(newest, seq)
            newest = confirmed
        return None

    async def view_before(self, vault: bytes, stream: bytes, seq: int) -> View | None:
        """Return the newest version and a log's newest segment below `seq`, for whoever puts that one.

        At half of what `view` costs, for the two need not be of one moment: what is stored on it is create-only, and
        the version is asked for again afterwards; nothing may be refused on it.
        """
        assumed = await self.assumed_version(vault)
        if assumed is None:
            return None
        number, found = await self._newest.before(vault, stream, assumed.base(stream), seq)
        return View(assumed, found) if number == assumed.number else await self.view(vault, stream)

    async def contents(self, vault: bytes) -> Contents | None:
        """Return the newest version and all logs' newest segments, or None for a vault that is not there.

        Nothing ever goes back, so what is found unchanged was there all at one moment: it is looked for until
        nothing has come, or too often. The version is asked for last, as in `view`.
        """
        newest = await self.assumed_version(vault)
        for tries in count(1):
            if newest is None:
                break
            seen = self._newest.known_segments(vault, _bases(newest, self._newest.known_streams(vault)))
            streams = await self._newest.streams(vault)
            found = await self._newest.segments(vault, _bases(newest, streams))
            confirmed = await self.newest_version(vault, doubts=True)
            # Under a storm of pushes the moment never comes; each log is as new as it has to be all the same.
            if _is_same(confirmed, newest) and (found == seen or tries >= _TRIES):
                return Contents(newest, found)
            newest = confirmed
        return None

    async def newest_segment(self, newest: Version, stream: bytes) -> int | None:
        """Return the newest segment of a log that may not be named yet, None where nothing is above the floor."""
        return await self._newest.segment(newest.vault, stream, newest.base(stream))

    async def count_streams(self, newest: Version) -> int:
        """Return how many logs a vault has, those counted of which only the floor tells."""
        rows = frozenset[bytes]() if newest.floor is None else newest.floor.rows.keys()
        return len(await self._newest.streams(newest.vault) | rows)

    async def assumed_version(self, vault: bytes) -> Version | None:
        """Return the version that was the newest when last looked at, or None for a vault that is not there."""
        known = self._newest.known_version(vault)
        return await self.newest_version(vault) if known is None else await self.version(vault, known)

    def _forget(self, vault: bytes) -> None:
        self._newest.forget(vault)
        for cache in (self._versions, self._ends, self._headers, self._preambles):
            cache.drop(lambda key: key[0] == vault)

    # Versions.

    async def version(self, vault: bytes, number: int) -> Version:
        """Return a stored version."""
        known = self._versions.get((vault, number))
        if known is not None:
            return known
        open_part = _there(await self._store.get(numbered(keys.versions_folder(vault), number)))
        try:
            version = await parse_version(open_part, vault)
        except versions.Refused as error:
            raise StoreUnavailable("a stored keyring version is damaged") from error
        self._versions.put((vault, number), version, weight=version.open_length)
        return version

    async def version_bytes(self, vault: bytes, number: int, *, whole: bool) -> bytes:
        """Return a stored version's open part, followed with `whole` by the sealed part where that is there."""
        open_part = _there(await self._store.get(numbered(keys.versions_folder(vault), number)))
        if not whole:
            return open_part
        return open_part + (await self._store.get(_sealed_key(await self.version(vault, number))) or b"")

    async def is_whole(self, version: Version) -> bool:
        """Return whether a version's sealed part is there."""
        return not await self._store.missing([_sealed_key(version)])

    async def put_open_part(self, version: Version, content: bytes) -> Stored | AlreadyThere:
        """Store a version's open part unless its number is taken: from then on the version is there."""
        return await self._store.put_new(numbered(keys.versions_folder(version.vault), version.number), content)

    async def put_sealed_part(self, version: Version, content: bytes) -> Stored | AlreadyThere:
        """Store the sealed part that a version names, unless it is there; the open part need not be yet."""
        return await self._store.put_new(_sealed_key(version), content)

    async def delete_sealed_part(self, version: Version) -> None:
        """Delete the sealed part of a version that lost its number to another one."""
        await self._store.delete([_sealed_key(version)])

    # Segments.

    async def segment_bytes(self, vault: bytes, stream: bytes, seq: int) -> bytes:
        """Return a stored segment."""
        return _there(await self._store.get(numbered(keys.log_folder(vault, stream), seq)))

    async def put_segment(
        self, vault: bytes, stream: bytes, seq: int, body: Body, segment: segments.Segment
    ) -> Stored | AlreadyThere:
        """Store a segment, read from the body, unless its number is taken."""
        key = numbered(keys.log_folder(vault, stream), seq)
        outcome = await self._store.put_new(key, body.content, body.digest)
        if isinstance(outcome, Stored):
            self._ends.put((vault, stream, seq), segment.end)
            self._headers.put((vault, stream, seq), segment.header)
            self._newest.add_segment(vault, stream, seq)
        return outcome

    async def add_stream(self, vault: bytes, stream: bytes) -> None:
        """Name a log that has a segment, so that every process looks for it."""
        await self._newest.add_stream(vault, stream)

    async def delete_segment(self, vault: bytes, stream: bytes, seq: int) -> None:
        """Delete one segment."""
        await self._store.delete([numbered(keys.log_folder(vault, stream), seq)])

    async def delete_segments_below(self, vault: bytes, stream: bytes, seq: int, *, first: int) -> None:
        """Delete a log's segments below this one; the ones from `first` on have no gap, unless a crash made one."""
        folder = keys.log_folder(vault, stream)
        [last] = await self._store.last([Run(folder, first)])
        named = [] if last is None else [numbered(folder, number) for number in range(first, min(last + 1, seq))]
        await self._delete(named)
        # What a crash left has to be listed: nothing else tells which numbers it has.
        await self._delete([key for key in await self._listed(folder) if key < numbered(folder, seq)])

    async def end(self, newest: Version, stream: bytes, seq: int | None) -> segments.End:
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

    async def log_preamble(self, newest: Version, stream: bytes) -> container.Preamble:
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
        key = numbered(keys.log_folder(vault, stream), seq)
        header = segments.read_header(_there(await self._store.get(key, 0, segments.HEADER_SIZE)))
        self._headers.put((vault, stream, seq), header)
        return header

    async def piece(self, vault: bytes, stream: bytes, seq: int, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a stored segment's piece."""
        key = numbered(keys.log_folder(vault, stream), seq)
        return _there(await self._store.get(key, segments.HEADER_SIZE + start, segments.HEADER_SIZE + end))

    async def checkpoint_info(self, vault: bytes, kind: Kind, name: bytes) -> Info | None:
        """Return the length and digest of a manifest's or part's file, or None if it is not there."""
        return await self._store.head(_checkpoint_key(vault, kind, name))

    async def checkpoint_bytes(self, vault: bytes, kind: Kind, name: bytes, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a manifest's or part's file."""
        return _there(await self._store.get(_checkpoint_key(vault, kind, name), start, end))

    async def put_checkpoint(self, vault: bytes, kind: Kind, name: bytes, body: Body) -> Stored | AlreadyThere:
        """Store a manifest's or part's file unless its id is taken."""
        return await self._store.put_new(_checkpoint_key(vault, kind, name), body.content, body.digest)

    async def missing_checkpoints(self, vault: bytes, kind: Kind, names: Sequence[bytes]) -> list[bytes]:
        """Return those of these manifests or parts that are not there, in their order."""
        keys = await self._store.missing([_checkpoint_key(vault, kind, name) for name in names])
        return [bytes.fromhex(key.rpartition("/")[2]) for key in keys]

    async def listed_checkpoints(self, vault: bytes, kind: Kind) -> frozenset[str]:
        """Return the names of manifests or parts as the store lists them: one that was just put may be left out."""
        folder = keys.checkpoints_folder(vault, kind)
        return frozenset(key.removeprefix(folder) for key in await self._listed(folder))

    async def delete_checkpoints(self, vault: bytes, kind: Kind, names: Sequence[bytes]) -> None:
        """Delete the files of manifests or parts, as far as they are there."""
        await self._delete([_checkpoint_key(vault, kind, name) for name in names])

    async def _delete(self, found: Sequence[str]) -> None:
        for at in range(0, len(found), _DELETED_AT_ONCE):
            await self._store.delete(found[at : at + _DELETED_AT_ONCE])

    async def _listed(self, folder: str) -> list[str]:
        found: list[str] = []
        while page := await self._store.listed(folder, found[-1] if found else "", _LISTED_AT_ONCE):
            found += [each.key for each in page]
        return found

    async def usage(self, vault: bytes) -> Usage:
        """Return how many objects the vault has, and of how many bytes."""
        return await self._store.usage(keys.vault_folder(vault))


async def parse_segment(content: bytes, seq: int) -> segments.Segment:
    """Return the segment in `content`; `SegmentInvalid` where its form is wrong."""
    return await _long(content, lambda: segments.read_segment(content, seq=seq))


async def parse_version(content: bytes, vault: bytes) -> versions.Version:
    """Return the version in `content`; `Refused` where it breaks rule K1."""
    return await _long(content, lambda: versions.read_version(content, vault))


async def check_checkpoint(content: bytes, vault: bytes, kind: Kind, name: bytes) -> None:
    """Refuse with `ObjectInvalid` a manifest's or part's file whose form is wrong."""
    await _long(content, lambda: checkpoints.check(content, vault, kind, name))


async def _long(content: bytes, work: Callable[[], Value]) -> Value:
    return await asyncio.to_thread(work) if len(content) > _LONG_BYTES else work()


def _there(content: bytes | None) -> bytes:
    if content is None:
        raise Missing("an object is missing")
    return content


def _is_same(confirmed: Version | None, newest: Version) -> bool:
    return confirmed is not None and confirmed.digest == newest.digest


def _bases(newest: Version, streams: frozenset[bytes]) -> dict[bytes, int]:
    rows = frozenset[bytes]() if newest.floor is None else newest.floor.rows.keys()
    return {stream: newest.base(stream) for stream in streams | rows}


def _sealed_key(version: Version) -> str:
    return keys.sealed_key(version.vault, version.number, version.sealed)


def _checkpoint_key(vault: bytes, kind: Kind, name: bytes) -> str:
    return keys.checkpoints_folder(vault, kind) + name.hex()
