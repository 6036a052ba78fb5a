"""Serve checkpoints, and decide what a floor needs and what it makes needless (sync-protocol §4)."""

import asyncio
from weakref import WeakValueDictionary

from memseal_server import access, segments
from memseal_server.access import Role
from memseal_server.blobs import Stored
from memseal_server.checkpoints import Kind, ObjectInvalid
from memseal_server.limits import Limits, check_floor, check_room
from memseal_server.objects import Missing, Objects, check_checkpoint, digest_of
from memseal_server.problems import Problem
from memseal_server.versions import Floor, Row, Version
from memseal_server.waiting import Waiters


class Floors:
    """The checkpoints of all vaults of one store, and their floors."""

    def __init__(self, objects: Objects, limits: Limits, waiters: Waiters) -> None:
        self._objects = objects
        self._limits = limits
        self._waiters = waiters
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    # Manifests and parts.

    async def length(self, vault: bytes, kind: Kind, name: bytes) -> int:
        """Return the length of a manifest's or part's file in bytes; `not_found` if it is not there."""
        info = await self._objects.checkpoint_info(vault, kind, name)
        if info is None:
            raise _not_found()
        return info.length

    async def read(self, vault: bytes, kind: Kind, name: bytes, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a manifest's or part's file; `not_found` if it is gone."""
        try:
            return await self._objects.checkpoint_bytes(vault, kind, name, start, end)
        except Missing:
            raise _not_found() from None

    async def put(self, vault: bytes, kind: Kind, name: bytes, content: bytes, key: bytes) -> bool:
        """Store a manifest's or part's file; whether it is new, else the same bytes were there already."""
        newest = await self._objects.newest_version(vault)
        if newest is None:
            raise Problem("vault_unknown", "Register the vault first.")
        access.require(access.role_of(key, newest), Role.DEVICE)
        try:
            await check_checkpoint(content, vault, kind, name)
        except ObjectInvalid as error:
            raise Problem("object_invalid", str(error)) from None
        new = await self._store(vault, kind, name, content)
        # Also where it was there: it may be that a crash came before the sweep.
        await self._sweep_if_named(vault, name)
        return new

    # Floors.

    async def is_whole(self, vault: bytes, floor: Floor) -> bool:
        """Return whether the manifest and all parts of a floor are there."""
        manifest = await self._objects.checkpoint_info(vault, Kind.MANIFEST, floor.checkpoint)
        return (
            manifest is not None
            and manifest.digest == floor.digest
            and not await self._objects.missing_checkpoints(vault, Kind.PART, floor.parts)
        )

    async def check(self, previous: Version | None, candidate: Version, *, refill: bool) -> None:
        """Refuse with `floor_unmet` a version whose new floor names what is not here.

        With `refill` nothing has to be here yet, but what is here must not contradict it: deleting what lies below
        the rows would lose bytes of a log that was cut at other places.
        """
        floor = candidate.floor
        if previous is None or floor is None or floor == previous.floor:
            return
        check_floor(self._limits, floor)
        if not refill:
            await self._check_checkpoint(candidate.vault, floor)
        newest = (await self._objects.contents(candidate.vault)).streams
        for stream, row in floor.rows.items():
            if row != previous.row(stream) and not await self._is_met(
                previous, stream, row, newest.get(stream), refill=refill
            ):
                raise Problem("floor_unmet", "Push the log up to the row, which ends a segment.", stream=stream.hex())

    def turn(self, vault: bytes) -> asyncio.Lock:
        """Return what is held while a version is stored, or swept for: a floor counts on what a sweep might delete."""
        return self._turns.setdefault(vault, asyncio.Lock())

    async def sweep(self, vault: bytes) -> None:
        """Delete what the newest floor makes needless, if its checkpoint is here; what a crash left is taken along."""
        newest = await self._objects.newest_version(vault)
        if newest is None or newest.floor is None or not await self.is_whole(vault, newest.floor):
            return
        for stream, row in newest.floor.rows.items():
            await self._objects.delete_segments_below(vault, stream, row.segment)
        swept: Floor | None = newest.floor
        for number in range(newest.number - 1, 0, -1):
            before = (await self._objects.version(vault, number)).floor
            if before is None:
                return  # a floor never goes away again, so there is none further back
            if before != swept:
                await self._delete_unnamed(vault, before, newest.floor)
            swept = before

    async def _store(self, vault: bytes, kind: Kind, name: bytes, content: bytes) -> bool:
        there = await self._objects.checkpoint_info(vault, kind, name)
        if there is None:
            await check_room(self._objects, self._limits, vault, len(content))
            outcome = await self._objects.put_checkpoint(vault, kind, name, content)
            if isinstance(outcome, Stored):
                return True
            there = outcome
        if there.digest != await digest_of(content):
            raise Problem("object_conflict", "Other bytes have this id: give these an id of their own.")
        return False

    async def _sweep_if_named(self, vault: bytes, name: bytes) -> None:
        newest = await self._objects.newest_version(vault)
        floor = None if newest is None else newest.floor
        if floor is None or name not in (floor.checkpoint, *floor.parts):
            return
        self._waiters.wake(vault)  # the heads say whether the floor is whole
        turn = self.turn(vault)
        async with turn:
            await self.sweep(vault)

    async def _check_checkpoint(self, vault: bytes, floor: Floor) -> None:
        manifest = await self._objects.checkpoint_info(vault, Kind.MANIFEST, floor.checkpoint)
        if manifest is None or manifest.digest != floor.digest:
            raise Problem("floor_unmet", "Put the checkpoint's manifest first.", object=floor.checkpoint.hex())
        for part in await self._objects.missing_checkpoints(vault, Kind.PART, floor.parts):
            raise Problem("floor_unmet", "Put the checkpoint's parts first.", object=part.hex())

    async def _is_met(self, previous: Version, stream: bytes, row: Row, seq: int | None, *, refill: bool) -> bool:
        vault, base = previous.vault, previous.row(stream)
        if seq is None or (base is not None and seq < base.segment):
            return refill  # nothing of it is here
        preamble = await self._objects.log_preamble(previous, stream)
        if (preamble.epoch, preamble.nonce) != (row.epoch, row.nonce):
            return False
        if seq >= row.segment:
            return segments.starts_at(await self._objects.header(vault, stream, row.segment), row)
        end = await self._objects.segment_end(vault, stream, seq)
        if end.next == row.segment:
            return end == segments.end_at(row)
        return refill and end.length < row.length

    async def _delete_unnamed(self, vault: bytes, before: Floor, newest: Floor) -> None:
        kept = frozenset(newest.parts)
        parts = [part for part in before.parts if part not in kept]
        await self._objects.delete_checkpoints(vault, Kind.PART, parts)
        if before.checkpoint != newest.checkpoint:
            await self._objects.delete_checkpoints(vault, Kind.MANIFEST, [before.checkpoint])


def _not_found() -> Problem:
    return Problem("not_found", "Ask the newest keyring version which checkpoint and parts there are.")
