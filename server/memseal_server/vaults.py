"""Serve vaults: put together the rules, the store, and the requests that wait."""

import asyncio
import hashlib
import json
from collections.abc import Container, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from memseal_server import access, keyring
from memseal_server.access import Role
from memseal_server.blobs import BlobStore, Stored
from memseal_server.floors import Floors
from memseal_server.invitations import Invitations
from memseal_server.limits import Limits, Use, check_room
from memseal_server.newest import Missing
from memseal_server.objects import Objects, parse_version
from memseal_server.problems import Problem
from memseal_server.segments import End
from memseal_server.sharing import Sharing
from memseal_server.streams import Streams
from memseal_server.versions import Refused, Version
from memseal_server.waiting import Waiters

# Who may bring a keyring version; which one is decided by its content.
VERSION_ROLES = (Role.DEVICE, Role.EPOCH, Role.FOUNDER, Role.BEARER)


@dataclass(frozen=True)
class Heads:
    """A vault's newest version, whether its sealed part is there, and the end of each of its logs, by stream id.

    `floor_whole` says whether the checkpoint of the version's floor is there.
    """

    version: Version
    whole: bool
    floor_whole: bool
    logs: Mapping[bytes, End]

    def to_json(self) -> bytes:
        """Return the document of sync-protocol §2; equal heads are equal bytes."""
        floor = self.version.floor
        document = {
            "keyring": {"version": self.version.number, "digest": self.version.digest.hex(), "whole": self.whole},
            "floor": None if floor is None else {"checkpoint": floor.checkpoint.hex(), "whole": self.floor_whole},
            "logs": {stream.hex(): end.to_members() for stream, end in sorted(self.logs.items())},
        }
        return json.dumps(document, separators=(",", ":")).encode()


def tag_of(document: bytes) -> str:
    """Return the entity tag of a heads document, without its quotes."""
    return hashlib.sha256(document).hexdigest()


class Vaults:
    """All vaults of one store; `streams` are their logs, `waiters` the requests that wait."""

    def __init__(self, store: BlobStore, limits: Limits) -> None:
        self._objects = Objects(store)
        self._limits = limits
        self._invitations = Invitations(store)
        self._storing: set[asyncio.Task[bool]] = set()  # the event loop itself keeps no task alive
        # Of those that wait for a vault all look again when it changes, and in a bucket each log is a question.
        self._sharing = Sharing[bytes, Heads]()
        self.waiters = Waiters(limits.max_waiters)
        self.streams = Streams(self._objects, limits, self.waiters)
        self.floors = Floors(self._objects, limits, self.waiters)

    async def admit(
        self, vault: bytes, key: bytes, *, registers: bool = False, refills: bool = False, provisional: bool = False
    ) -> Role:
        """Return what a key is in the vault now.

        With `registers` the vault may be one that is not there yet; with `refills` any key may bring a version. With
        `provisional` a device counts as one that was active when last looked: whoever asks looks again afterwards.
        """
        if provisional and await self._was_active(vault, key):
            return Role.DEVICE
        newest = await self._objects.newest_version(vault)
        return self._role(vault, key, newest, registers=registers, refills=refills)

    async def heads(self, vault: bytes) -> Heads:
        """Return the vault's heads as the store has them now."""
        return await self._sharing.run(vault, lambda: self._objects.settled(vault, lambda: self._heads(vault)))

    async def heads_for(self, vault: bytes, key: bytes) -> bytes:
        """Return the heads document as of now, for a key that may still read it."""
        heads = await self.heads(vault)
        access.require(access.role_of(key, heads.version), Role.DEVICE, Role.EPOCH)
        return heads.to_json()

    async def changed_heads(
        self, vault: bytes, key: bytes, known_tags: Container[str], wait_seconds: float
    ) -> bytes | None:
        """Return the heads document once its tag is none of those known, or None when the time is over."""
        clock = asyncio.get_running_loop().time
        until = clock() + wait_seconds
        with self.waiters.waiting(vault) as changed:
            while True:
                changed.clear()
                # A device that was ended while it waited learns nothing more.
                document = await self.heads_for(vault, key)
                if tag_of(document) not in known_tags:
                    return document
                left = until - clock()
                if left <= 0 or self.waiters.closed:
                    return None
                await _wait(changed, min(left, self.waiters.pause(self._limits.recheck_seconds)))

    async def version_bytes(self, vault: bytes, number: int | None, *, stripped: bool) -> bytes:
        """Return a version (None: the newest), whole where all of it is there, or stripped; else `not_found`."""
        newest = await self._objects.newest_version(vault)
        if newest is None:
            raise _vault_unknown()
        wanted = newest.number if number is None else number
        if not 1 <= wanted <= newest.number:
            raise Problem("not_found", "Ask for a version up to the newest.")
        return await self._objects.version_bytes(vault, wanted, whole=not stripped)

    async def put_version(
        self, vault: bytes, number: int, content: bytes, key: bytes, *, refill: bool, invitation: str | None = None
    ) -> bool:
        """Store a version that is accepted after the newest, or complete one; whether any of it is new."""
        newest = await self._objects.newest_version(vault, doubts=True)
        role = self._role(vault, key, newest, registers=number == 1, refills=refill)
        access.require(role, *VERSION_ROLES)
        next_number = 1 if newest is None else newest.number + 1
        if number > next_number:
            raise _conflict()
        candidate = await _parse(content, vault, role)
        if number == next_number:
            await _check_version(newest, candidate, role)
            await self._check_room(vault, len(content))
        if newest is None and self._limits.registration == "token":
            await self._invitations.spend(invitation, vault)
        # A device that hangs up cancels its request, which would leave what a floor makes needless.
        storing = asyncio.create_task(self._store(number, newest, candidate, content, refill=refill))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        return await asyncio.shield(storing)

    async def _was_active(self, vault: bytes, key: bytes) -> bool:
        assumed = await self._objects.assumed_version(vault)
        return assumed is not None and any(entry.sign == key and entry.active for entry in assumed.entries)

    def _role(self, vault: bytes, key: bytes, newest: Version | None, *, registers: bool, refills: bool) -> Role:
        if newest is not None:
            return Role.BEARER if refills else access.role_of(key, newest)
        if not registers:
            raise _vault_unknown()
        if self._limits.registration == "closed":
            raise Problem("registration_closed", "Ask the server's operator to open it for new vaults.")
        return Role.BEARER if refills else access.founder_role(key, vault)

    async def _heads(self, vault: bytes) -> Heads:
        contents = await self._objects.contents(vault)
        if contents is None:
            raise _vault_unknown()
        newest, floor = contents.version, contents.version.floor
        logs = {
            stream: await self._objects.end(newest, stream, seq)
            for stream, seq in contents.segments.items()
            if seq is not None or newest.row(stream) is not None  # else it was only named, by a crash
        }
        whole = await self._objects.is_whole(newest)
        floor_whole = floor is not None and await self.floors.is_whole(vault, floor)
        if floor is not None and not floor_whole:
            await self._check_newest(newest)
        return Heads(newest, whole, floor_whole, logs)

    async def _check_newest(self, version: Version) -> None:
        # Else a checkpoint that a newer floor swept just now would look as if it were lost.
        newest = await self._objects.newest_version(version.vault)
        if newest is None or newest.number != version.number:
            raise Missing("a newer version came meanwhile")

    async def _store(
        self, number: int, newest: Version | None, candidate: Version, content: bytes, *, refill: bool
    ) -> bool:
        vault = candidate.vault
        turn = self.floors.turn(vault)
        async with turn:
            if newest is not None and number <= newest.number:
                new = await self._complete(number, candidate, content)
                # It may be that a crash came before the sweep.
                sweeps = number == newest.number
            else:
                await self._check_floor(newest, candidate, refill=refill)
                new = await self._store_next(candidate, content)
                sweeps = newest is not None and newest.floor != candidate.floor
            self.waiters.wake(vault)
            if sweeps:
                await self.floors.sweep(vault)
        return new

    async def _check_floor(self, newest: Version | None, candidate: Version, *, refill: bool) -> None:
        try:
            await self._objects.settled(candidate.vault, lambda: self.floors.check(newest, candidate, refill=refill))
        except Problem:
            # The same version, stored meanwhile, may have swept what it needed.
            now = await self._objects.newest_version(candidate.vault)
            if now is None or now.number < candidate.number:
                raise

    async def _store_next(self, candidate: Version, content: bytes) -> bool:
        # The sealed part first, under a name of its own: the open part, of which one wins the number, is the commit.
        open_part, sealed_part = _parts(candidate, content)
        completes = bool(sealed_part) and isinstance(
            await self._objects.put_sealed_part(candidate, sealed_part), Stored
        )
        if isinstance(await self._objects.put_open_part(candidate, open_part), Stored):
            return True
        winner = await self._objects.version(candidate.vault, candidate.number)
        if winner.sealed != candidate.sealed:
            await self._objects.delete_sealed_part(candidate)
        if winner.digest != candidate.digest:
            raise _conflict()
        return completes

    async def _complete(self, number: int, candidate: Version, content: bytes) -> bool:
        _, sealed_part = _parts(candidate, content)
        # The digest, not the bytes: the same signatures in another order must not keep the sealed part out.
        if number < 1 or (await self._objects.version(candidate.vault, number)).digest != candidate.digest:
            raise _conflict()
        with _refusals():
            keyring.check_sealed(candidate)
        if not sealed_part or await self._objects.is_whole(candidate):
            return False
        await self._check_room(candidate.vault, len(sealed_part))
        return isinstance(await self._objects.put_sealed_part(candidate, sealed_part), Stored)

    async def _check_room(self, vault: bytes, size: int) -> None:
        await check_room(self._objects, self._limits, vault, size, Use.KEYRING)


async def _parse(content: bytes, vault: bytes, role: Role) -> Version:
    with _refusals():
        version = await parse_version(content, vault)
    if version.sealed_found is None and role is not Role.BEARER:
        raise Problem("keyring_sealed", "Send the whole version, with its sealed part.")
    return version


async def _check_version(newest: Version | None, candidate: Version, role: Role) -> None:
    with _refusals():
        # In a thread: up to two thousand signatures are verified.
        await asyncio.to_thread(keyring.accept, newest, candidate)
    if role is Role.EPOCH and (newest is None or not keyring.is_join(newest, candidate)):
        raise Problem("key_forbidden", "The epoch key puts join versions only.")


def _parts(version: Version, content: bytes) -> tuple[bytes, bytes]:
    return content[: version.open_length], content[version.open_length :]


@contextmanager
def _refusals() -> Generator[None]:
    try:
        yield
    except Refused as refused:
        raise Problem(refused.code, refused.detail) from None


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _vault_unknown() -> Problem:
    return Problem("vault_unknown", "Register the vault with its keyring, if this is the right server.")


def _conflict() -> Problem:
    return Problem("keyring_conflict", "Fetch the newest version and start again on it.")
