"""Find a vault's newest version, logs and segments in a store that gives no view of one moment.

Versions, names of logs, and each log's segments above the floor are numbered without a gap and never go away, so
the newest is found from the last one known, and no listing is believed.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from memseal_server import keys
from memseal_server.blobs import BlobStore, Run, Stored, StoreUnavailable, numbered
from memseal_server.recent import Recent

# In logs of all vaults; each takes some 200 bytes.
_BOUND = 200_000
_ID_SIZE = 16


class Missing(StoreUnavailable):
    """An object is not there that was seen, or that others need: swept since, or lost."""


@dataclass
class _Known:
    """What was there: the number of the newest version, how many names were read and which, the newest segments."""

    version: int = 0
    names: int = 0
    streams: frozenset[bytes] = frozenset()
    segments: dict[bytes, int] = field(default_factory=dict[bytes, int])


class Newest:
    """The newest numbers of all vaults of one store."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._known: Recent[bytes, _Known] = Recent(_BOUND)
        self._naming: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    def known_version(self, vault: bytes) -> int | None:
        """Return the number of the newest version that was ever seen here."""
        known = self._known.get(vault)
        return known.version if known is not None and known.version else None

    def known_streams(self, vault: bytes) -> frozenset[bytes]:
        """Return the ids of the logs that were ever seen here."""
        known = self._known.get(vault)
        return frozenset() if known is None else known.streams

    def known_segments(self, vault: bytes, bases: Mapping[bytes, int]) -> dict[bytes, int | None]:
        """Return what `segments` would if nothing had come since."""
        known = self._known.get(vault) or _Known()
        newest = {stream: known.segments.get(stream) for stream in bases}
        return {stream: seq if seq is not None and seq >= bases[stream] else None for stream, seq in newest.items()}

    def forget(self, vault: bytes) -> None:
        """Look anew at a vault of which something is gone: its store was put back to an older state."""
        self._known.drop(lambda key: key == vault)

    async def version(self, vault: bytes, *, doubts: bool) -> int | None:
        """Return the newest version's number, or None for a vault that is not there.

        With `doubts` the one that was known is looked at again. In a store that was put back to an older state the
        next one would else be stored above a gap.
        """
        folder = keys.versions_folder(vault)
        known = self.known_version(vault)
        if known is None:
            [number] = await self._store.last([Run(folder, 1)])
        else:
            [number] = await self._store.last([Run(folder, known if doubts else known + 1)])
            if number is None and doubts:
                self.forget(vault)
                [number] = await self._store.last([Run(folder, 1)])
            elif number is None:
                number = known
        if number is not None:
            known_now = self._learn(vault)
            known_now.version = max(number, known_now.version)
        return number

    async def streams(self, vault: bytes) -> frozenset[bytes]:
        """Return the ids of all logs that have a segment, or had one when they were named."""
        known = self._learn(vault)
        folder = keys.names_folder(vault)
        [last] = await self._store.last([Run(folder, known.names)])
        if last is not None:
            numbers = range(known.names, last + 1)
            found = await asyncio.gather(*(self._store.get(numbered(folder, number)) for number in numbers))
            known.streams |= {_stream_named(content) for content in found}
            known.names = max(known.names, last + 1)
            self._learn(vault)
        return known.streams

    async def add_stream(self, vault: bytes, stream: bytes) -> None:
        """Name a log that has a segment, unless it is named: no other process would look for it."""
        if stream in self.known_streams(vault):
            return
        naming = self._naming.setdefault(vault, asyncio.Lock())
        async with naming:  # one after the other: else all would race for one number
            while stream not in await self.streams(vault):
                await self._name(vault, stream)

    async def _name(self, vault: bytes, stream: bytes) -> None:
        number = self._learn(vault).names
        outcome = await self._store.put_new(numbered(keys.names_folder(vault), number), stream.hex().encode())
        known = self._learn(vault)
        if isinstance(outcome, Stored) and known.names == number:
            known.streams |= {stream}
            known.names = number + 1

    async def segments(self, vault: bytes, bases: Mapping[bytes, int]) -> dict[bytes, int | None]:
        """Return the newest segment of each of these logs, None where nothing lies from its base on."""
        found = self.known_segments(vault, bases)
        runs = [
            Run(keys.log_folder(vault, stream), bases[stream] if seq is None else seq + 1)
            for stream, seq in found.items()
        ]
        for stream, seq in zip(found, await self._store.last(runs), strict=True):
            if seq is not None:
                found[stream] = seq
                self.add_segment(vault, stream, seq)
        return found

    async def before(self, vault: bytes, stream: bytes, base: int, seq: int) -> tuple[int, int | None]:
        """Return the newest version's number and a log's newest segment below `seq`, for whoever puts that one.

        A version has to be known. The two are not of one moment.
        """
        version, segment = self.known_version(vault) or 0, self.known_segments(vault, {stream: base})[stream]
        runs = [Run(keys.versions_folder(vault), version + 1)]
        if segment is not None or seq > base:  # the known one is looked at again, as `segment` does
            first = base if segment is None else segment
            runs.append(Run(keys.log_folder(vault, stream), first, max(first, seq - 1)))
        newer, *found = await self._store.last(runs)
        if newer is not None:
            self._learn(vault).version = max(newer, self._learn(vault).version)
        seen = next(iter(found), None)
        if seen is None and segment is not None:
            raise Missing("a segment is gone")
        if seen is not None:
            self.add_segment(vault, stream, seen)
        return newer or version, seen

    async def segment(self, vault: bytes, stream: bytes, base: int) -> int | None:
        """Return a log's newest segment, for whoever adds to it: what was known is looked at again."""
        known = self.known_segments(vault, {stream: base})[stream]
        folder = keys.log_folder(vault, stream)
        [seq] = await self._store.last([Run(folder, base if known is None else known)])
        if seq is None and known is not None:
            raise Missing("a segment is gone")
        if seq is not None:
            self.add_segment(vault, stream, seq)
        return seq

    def add_segment(self, vault: bytes, stream: bytes, seq: int) -> None:
        """Remember that a segment is there, and all between the floor and it."""
        segments = self._learn(vault).segments
        segments[stream] = max(seq, segments.get(stream, 0))

    def _learn(self, vault: bytes) -> _Known:
        known = self._known.get(vault) or _Known()
        self._known.put(vault, known, weight=1 + len(known.streams) + len(known.segments))
        return known


def _stream_named(content: bytes | None) -> bytes:
    if content is None:
        raise Missing("the name of a log is gone")
    try:
        stream = bytes.fromhex(content.decode("ascii"))
    except ValueError:
        stream = b""
    if len(stream) != _ID_SIZE:
        raise StoreUnavailable("the name of a log is damaged")
    return stream
