"""Serve checkpoints, and decide what a floor needs and what it makes needless (sync-protocol §4)."""

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from memseal_server import access, segments
from memseal_server.access import Role
from memseal_server.blobs import Stored
from memseal_server.bodies import Body
from memseal_server.checkpoints import Kind, ObjectInvalid
from memseal_server.limits import Limits, Use, check_floor, check_room
from memseal_server.newest import Missing
from memseal_server.objects import Objects, check_checkpoint
from memseal_server.problems import Problem
from memseal_server.recent import Recent
from memseal_server.versions import Floor, Row, Version
from memseal_server.waiting import Waiters

_WHOLE_BOUND = 100_000


class Floors:
    """The checkpoints of all vaults of one store, and their floors."""

    def __init__(self, objects: Objects, limits: Limits, waiters: Waiters) -> None:
        self._objects = objects
        self._limits = limits
        self._waiters = waiters
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        # By vault: the newest checkpoint of which all was there. Only a newer floor takes anything of it away, so the
        # heads do not look for thousands of parts each time.
        self._whole: Recent[bytes, bytes] = Recent(_WHOLE_BOUND)

    # Manifests and parts.

    async def length(self, vault: bytes, kind: Kind, name: bytes) -> int:
        """Return the length of a manifest's or part's file in bytes; `not_found` if it is not there."""
        info = await self._objects.checkpoint_info(vault, kind, name)
        if info is None:
            self._whole.drop(lambda key: key == vault)  # it may be that one was lost
            raise _not_found()
        return info.length

    async def read(self, vault: bytes, kind: Kind, name: bytes, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of a manifest's or part's file; `not_found` if it is gone."""
        try:
            return await self._objects.checkpoint_bytes(vault, kind, name, start, end)
        except Missing:
            raise _not_found() from None

    async def put(self, vault: bytes, kind: Kind, name: bytes, body: Body, key: bytes) -> bool:
        """Store a manifest's or part's file; whether it is new, else the same bytes were there already."""
        newest = await self._objects.newest_version(vault)
        if newest is None:
            raise Problem("vault_unknown", "Register the vault first.")
        access.require(access.role_of(key, newest), Role.DEVICE)
        try:
            await check_checkpoint(body.content, vault, kind, name)
        except ObjectInvalid as error:
            raise Problem("object_invalid", str(error)) from None
        new = await self._store(vault, kind, name, body)
        # Also where it was there: it may be that a crash came before the sweep.
        await self._sweep_if_named(vault, name)
        return new

    # Floors.

    async def is_whole(self, vault: bytes, floor: Floor) -> bool:
        """Return whether the manifest and all parts of the newest floor are there, as far as was noticed."""
        return self._whole.get(vault) == floor.digest or await self._look_for(vault, floor)

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
        for stream, row in floor.rows.items():
            if row != previous.row(stream) and not await self._is_met(previous, stream, row, refill=refill):
                raise Problem("floor_unmet", "Push the log up to the row, which ends a segment.", stream=stream.hex())

    def turn(self, vault: bytes) -> asyncio.Lock:
        """Return what is held while a version is stored, or swept for: a floor counts on what a sweep might delete."""
        return self._turns.setdefault(vault, asyncio.Lock())

    async def sweep(self, vault: bytes) -> None:
        """Delete what the newest floor makes needless, if its checkpoint is here; what a crash left is taken along."""
        newest = await self._objects.newest_version(vault)
        if newest is None or newest.floor is None or not await self._look_for(vault, newest.floor):
            return
        earlier = await self._earlier_floors(newest)
        for stream, row in newest.floor.rows.items():
            before = earlier[0].rows.get(stream) if earlier else None
            first = 0 if before is None else before.segment
            await self._objects.delete_segments_below(vault, stream, row.segment, first=first)
        if earlier:
            await self._delete_unnamed(vault, earlier, newest.floor)

    async def _earlier_floors(self, newest: Version) -> list[Floor]:
        """Return the floors before the newest one, the last of them first."""
        found: list[Floor] = []
        for number in range(newest.number - 1, 0, -1):
            floor = (await self._objects.version(newest.vault, number)).floor
            if floor is None:
                break  # a floor never goes away again, so there is none further back
            if floor != newest.floor and (not found or floor != found[-1]):
                found.append(floor)
        return found

    async def _look_for(self, vault: bytes, floor: Floor) -> bool:
        manifest = await self._objects.checkpoint_info(vault, Kind.MANIFEST, floor.checkpoint)
        if manifest is None or manifest.digest != floor.digest:
            return False
        if await self._objects.missing_checkpoints(vault, Kind.PART, floor.parts):
            return False
        self._whole.put(vault, floor.digest)
        return True

    async def _store(self, vault: bytes, kind: Kind, name: bytes, body: Body) -> bool:
        there = await self._objects.checkpoint_info(vault, kind, name)
        if there is None:
            await check_room(self._objects, self._limits, vault, len(body.content), Use.CHECKPOINT)
            outcome = await self._objects.put_checkpoint(vault, kind, name, body)
            if isinstance(outcome, Stored):
                return True
            there = outcome
        if there.digest != body.digest:
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

    async def _is_met(self, previous: Version, stream: bytes, row: Row, *, refill: bool) -> bool:
        vault = previous.vault
        seq = await self._objects.newest_segment(previous, stream)
        if seq is None:
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

    async def _delete_unnamed(self, vault: bytes, earlier: Sequence[Floor], newest: Floor) -> None:
        """Delete what the floor before named, and what older ones did as far as a listing still has it."""
        for kind, named in ((Kind.PART, _parts_of), (Kind.MANIFEST, _manifest_of)):
            kept = frozenset(named(newest))
            last = [name for name in named(earlier[0]) if name not in kept]
            older = {name for floor in earlier[1:] for name in named(floor)} - kept - frozenset(last)
            listed = await self._objects.listed_checkpoints(vault, kind) if older else frozenset[str]()
            left = sorted(name for name in older if name.hex() in listed)
            await self._objects.delete_checkpoints(vault, kind, last + left)


def _parts_of(floor: Floor) -> tuple[bytes, ...]:
    return floor.parts


def _manifest_of(floor: Floor) -> tuple[bytes, ...]:
    return (floor.checkpoint,)


def _not_found() -> Problem:
    return Problem("not_found", "Ask the newest keyring version which checkpoint and parts there are.")
