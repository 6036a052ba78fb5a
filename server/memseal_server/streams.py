"""Serve the logs of vaults: which segment may be added, and what has been."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from memseal_server import access, container, segments
from memseal_server.access import Role
from memseal_server.blobs import Stored
from memseal_server.bodies import Body
from memseal_server.limits import Limits, Use, check_room, check_streams
from memseal_server.objects import Objects, View, parse_segment
from memseal_server.problems import Problem
from memseal_server.segments import End, Segment, SegmentInvalid
from memseal_server.versions import Entry, Version
from memseal_server.waiting import Waiters

# The most of a log that one answer carries (sync-protocol §2).
MAX_ANSWER_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Piece:
    """A segment as it came, and what its form says: that it is one, or why it is none."""

    seq: int
    body: Body
    form: Segment | SegmentInvalid

    @property
    def content(self) -> bytes:
        """Its bytes."""
        return self.body.content

    def segment(self) -> Segment:
        """Return the segment; `SegmentInvalid` where its form is wrong."""
        if isinstance(self.form, SegmentInvalid):
            raise self.form
        return self.form


async def read_piece(seq: int, body: Body) -> Piece:
    """Return what came for a number: its form depends on nothing else, so nobody has to wait for its turn to look."""
    try:
        return Piece(seq, body, await parse_segment(body.content, seq))
    except SegmentInvalid as error:
        return Piece(seq, body, error)


@dataclass(frozen=True)
class Coming:
    """A segment that is on its way to this process, among those of its log that are."""

    log: Mapping[int, asyncio.Event]
    seq: int

    async def turn(self) -> None:
        """Wait until the segment before it is stored or refused, if that one is on its way here too."""
        before = self.log.get(self.seq - 1)
        if before is not None:
            await before.wait()


class Streams:
    """The logs of all vaults of one store."""

    def __init__(self, objects: Objects, limits: Limits, waiters: Waiters) -> None:
        self._objects = objects
        self._limits = limits
        self._waiters = waiters
        # By log and whose they are: nobody waits for what another one sends slowly.
        self._coming: dict[tuple[bytes, bytes, bytes], dict[int, asyncio.Event]] = {}

    @contextmanager
    def coming(self, vault: bytes, stream: bytes, seq: int, key: bytes) -> Generator["Coming"]:
        """Note that a segment is on its way here, and give what is used to wait for the one before it."""
        place, done = (vault, stream, key), asyncio.Event()
        log = self._coming.setdefault(place, {})
        log[seq] = done
        try:
            yield Coming(log, seq)
        finally:
            done.set()
            if log.get(seq) is done:
                del log[seq]
            if not log and self._coming.get(place) is log:
                del self._coming[place]

    async def read(self, vault: bytes, stream: bytes, start: int, limit: int) -> tuple[bytes, int]:
        """Return at most `limit` bytes of a log from offset `start`, and the log's length in bytes."""
        return await self._objects.settled(vault, lambda: self._read(vault, stream, start, limit))

    async def put(self, vault: bytes, stream: bytes, piece: Piece, key: bytes, *, refill: bool) -> bool:
        """Store a segment that continues its log; whether it is new, else the same bytes were there already."""
        return await self._objects.settled(vault, lambda: self._put(vault, stream, piece, key, refill=refill))

    async def _read(self, vault: bytes, stream: bytes, start: int, limit: int) -> tuple[bytes, int]:
        view = await self._view(vault, stream)
        newest, newest_seq = view.version, view.seq
        row = newest.row(stream)
        if newest_seq is None and row is None:
            raise Problem("not_found", "Ask the heads which logs there are.")
        if row is not None and start < row.length:
            raise _below_floor()
        length = (await self._objects.end(newest, stream, newest_seq)).length
        if start > length:
            raise Problem("log_range", "Ask from an offset within the log's length.")
        stop = min(length, start + limit)
        if newest_seq is None or start == stop:
            return b"", length
        seq = await self._find(vault, stream, start, 0 if row is None else row.segment, newest_seq)
        pieces: list[bytes] = []
        while start < stop:
            header = await self._objects.header(vault, stream, seq)
            end = min(stop - header.start, header.length)
            pieces.append(await self._objects.piece(vault, stream, seq, start - header.start, end))
            start, seq = header.start + end, seq + 1
        return b"".join(pieces), length

    async def _put(self, vault: bytes, stream: bytes, piece: Piece, key: bytes, *, refill: bool) -> bool:
        view = await self._objects.view_before(vault, stream, piece.seq)
        if view is None:
            raise _vault_unknown()
        try:
            return await self._put_on(view, stream, piece, key, refill=refill)
        except Problem:
            # Most puts are accepted; only one that is not needs to know how it stands at one moment.
            settled = await self._view(vault, stream)
            if (settled.version.digest, settled.seq) == (view.version.digest, view.seq):
                raise
        return await self._put_on(settled, stream, piece, key, refill=refill)

    async def _put_on(self, view: View, stream: bytes, piece: Piece, key: bytes, *, refill: bool) -> bool:
        newest, newest_seq, seq = view.version, view.seq, piece.seq
        access.require(access.role_of(key, newest), Role.DEVICE)
        if _is_below_floor(newest, stream, seq):
            raise _below_floor()
        try:
            segment = piece.segment()
            end = await self._objects.end(newest, stream, newest_seq)
            if seq > end.next:
                raise _order(end)
            preamble = await self._preamble(newest, stream, piece)
            owner = _owner_of(newest, preamble, key)
            await self._check_epoch(newest, preamble)
        except SegmentInvalid as error:
            raise Problem("segment_invalid", str(error)) from None
        if owner.sign != key and not refill:
            raise Problem("key_forbidden", "Another device's log is only put back, with `refill`.")
        if seq < end.next:
            return await self._is_same(newest, stream, piece)
        if owner.ended_streams is not None and not segments.is_within(segment.end, owner.ended_streams.get(stream)):
            raise Problem("stream_ended", "Write what lies beyond into a stream of an active device.")
        if preamble.epoch < newest.epoch and not refill:
            raise Problem("epoch_ended", "Go on in a new stream of the newest epoch.")
        if not segments.continues(segment, end):
            raise _order(end)
        return await self._store(newest, stream, piece, segment)

    async def _view(self, vault: bytes, stream: bytes) -> View:
        view = await self._objects.view(vault, stream)
        if view is None:
            raise _vault_unknown()
        return view

    async def _find(self, vault: bytes, stream: bytes, offset: int, first_seq: int, newest_seq: int) -> int:
        low, high = first_seq, newest_seq
        while low < high:
            middle = (low + high + 1) // 2
            if (await self._objects.header(vault, stream, middle)).start <= offset:
                low = middle
            else:
                high = middle - 1
        return low

    async def _preamble(self, newest: Version, stream: bytes, piece: Piece) -> container.Preamble:
        if piece.seq > 0 or newest.row(stream) is not None:
            return await self._objects.log_preamble(newest, stream)
        start = segments.HEADER_SIZE
        head = piece.content[start : start + container.PREAMBLE_SIZE]
        return segments.read_log_preamble(head, vault=newest.vault, stream=stream)

    async def _check_epoch(self, newest: Version, preamble: container.Preamble) -> None:
        if preamble.epoch > newest.epoch:
            raise SegmentInvalid("The log's epoch is one that the keyring here does not have.")
        version = await self._objects.version(newest.vault, newest.epoch_since)
        while version.epoch > preamble.epoch:
            before = await self._objects.version(newest.vault, version.number - 1)
            version = await self._objects.version(newest.vault, before.epoch_since)
        if not segments.begins_on(preamble, version.digest):
            raise SegmentInvalid("The log began on another keyring.")

    async def _store(self, newest: Version, stream: bytes, piece: Piece, segment: Segment) -> bool:
        vault, seq = newest.vault, piece.seq
        if seq == 0 and newest.row(stream) is None:
            await check_streams(self._objects, self._limits, newest)
        await check_room(self._objects, self._limits, vault, len(piece.content), Use.LOG)
        outcome = await self._objects.put_segment(vault, stream, seq, piece.body, segment)
        await self._check_floor_again(vault, stream, seq)
        if not isinstance(outcome, Stored):
            return await self._is_same(newest, stream, piece)
        await self._add_stream(newest, stream)
        self._waiters.wake(vault)
        return True

    async def _check_floor_again(self, vault: bytes, stream: bytes, seq: int) -> None:
        # Where a floor came in between and its sweep was done, the number was free again.
        newest = await self._objects.newest_version(vault)
        if newest is not None and _is_below_floor(newest, stream, seq):
            await self._objects.delete_segment(vault, stream, seq)
            raise _below_floor()

    async def _is_same(self, newest: Version, stream: bytes, piece: Piece) -> bool:
        # A crash may have come before it, and no other process would show what is here.
        await self._add_stream(newest, stream)
        there = await self._objects.segment_bytes(newest.vault, stream, piece.seq)
        if there != piece.content:
            raise Problem(
                "segment_conflict",
                "Fetch the heads, and go on from the log's end if its chain is yours.",
                length=len(there) - segments.HEADER_SIZE,
                digest=segments.piece_digest(there).hex(),
            )
        return False

    async def _add_stream(self, newest: Version, stream: bytes) -> None:
        if newest.row(stream) is None:  # else the floor names it
            await self._objects.add_stream(newest.vault, stream)


def _is_below_floor(newest: Version, stream: bytes, seq: int) -> bool:
    row = newest.row(stream)
    return row is not None and seq < row.segment


def _owner_of(newest: Version, preamble: container.Preamble, key: bytes) -> Entry:
    # The signer first: it mostly is the owner, and each try is a hash.
    for entry in sorted(newest.entries, key=lambda entry: entry.sign != key):
        if container.stream_id(newest.vault, entry.sign, preamble.nonce) == preamble.stream:
            return entry
    raise SegmentInvalid("The log's stream id is derived from no device's signing key.")


def _vault_unknown() -> Problem:
    return Problem("vault_unknown", "Register the vault first.")


def _below_floor() -> Problem:
    return Problem("below_floor", "Take in the newest floor's checkpoint, and go on from its row for this log.")


def _order(end: End) -> Problem:
    return Problem("segment_order", "Go on from the log's end, which `end` gives.", end=end.to_members())
