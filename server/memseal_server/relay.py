"""Carry the few messages of a pairing from one device to another (sync-protocol, *Pairing*).

All of it lies in the store, so that the two devices may reach two processes. A channel's objects are deleted by whoever
finds that its time is over; nothing is decided by a listing.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from memseal_server.blobs import BlobStore, Stored
from memseal_server.problems import Problem
from memseal_server.waiting import Waiters

FOLDER = "pairing"
"""The first folder of all that lies here; it is no vault's."""
MAX_MESSAGE_BYTES = 4096
MESSAGES = 3
"""Messages that each side may send."""
CHANNELS_OF_A_VAULT = 3
_OPEN_SECONDS = 300
# How often a waiting request looks for what another process may have stored: two people look at two screens.
_RECHECK_SECONDS = 0.5


@dataclass(frozen=True)
class _Opening:
    """A channel's first object: when it was opened (Unix seconds), by which key of which vault, and the message."""

    opened: int
    vault: bytes
    key: bytes
    message: bytes

    def to_bytes(self) -> bytes:
        return self.opened.to_bytes(8, "big") + self.vault + self.key + self.message

    @classmethod
    def read(cls, content: bytes) -> Self:
        return cls(int.from_bytes(content[:8], "big"), content[8:24], content[24:56], content[56:])


class Relay:
    """The channels of one store."""

    def __init__(self, store: BlobStore, waiters: Waiters, clock: Callable[[], float] = time.time) -> None:
        """Take the store, where requests wait, and a clock that gives Unix seconds."""
        self._store = store
        self._waiters = waiters
        self._clock = clock

    # The shower, which is an active device of a vault.

    async def open(self, channel: str, vault: bytes, key: bytes, message: bytes) -> bool:
        """Open a channel with the shower's first message; whether it is new."""
        there = await self._opening(channel)
        if there is not None:
            if (there.vault, there.key, there.message) == (vault, key, message):
                return False
            raise Problem("pairing_taken", "Choose another channel.")
        opening = _Opening(int(self._clock()), vault, key, message)
        slot = await self._take_slot(channel, opening)
        if not isinstance(await self._store.put_new(_message_key(channel, "s", 1), opening.to_bytes()), Stored):
            await self._store.delete([slot])
            raise Problem("pairing_taken", "Choose another channel.")
        self._wake(channel)
        return True

    async def say(self, channel: str, vault: bytes, key: bytes, number: int, message: bytes) -> bool:
        """Store a further message of the shower; whether it is new."""
        await self._check_shower(channel, vault, key)
        return await self._put(channel, "s", number, message)

    async def hear(self, channel: str, vault: bytes, key: bytes, number: int, wait_seconds: float) -> bytes:
        """Return the joiner's message, or `not_found` if none comes in time."""
        await self._check_shower(channel, vault, key)
        content = await self._wait_for(channel, "j", number, wait_seconds)
        return content[32:] if number == 1 else content

    # The joiner, which nobody knows yet.

    async def answer(self, channel: str, key: bytes, number: int, message: bytes) -> bool:
        """Store a message of the joiner; the first one says who that is; whether it is new."""
        await self._open_channel(channel)
        if number == 1:
            return await self._put(channel, "j", 1, key + message)
        await self._check_joiner(channel, key, needed=True)
        return await self._put(channel, "j", number, message)

    async def said(self, channel: str, key: bytes, number: int, wait_seconds: float) -> bytes:
        """Return the shower's message, or `not_found` if none comes in time."""
        opening = await self._open_channel(channel)
        await self._check_joiner(channel, key, needed=False)
        return opening.message if number == 1 else await self._wait_for(channel, "s", number, wait_seconds)

    # What both do.

    async def _put(self, channel: str, side: str, number: int, content: bytes) -> bool:
        name = _message_key(channel, side, number)
        outcome = await self._store.put_new(name, content)
        if isinstance(outcome, Stored):
            self._wake(channel)
            return True
        if await self._store.get(name) != content:
            raise Problem("pairing_taken", "Somebody else has answered: show another code.")
        return False

    async def _wait_for(self, channel: str, side: str, number: int, wait_seconds: float) -> bytes:
        clock = asyncio.get_running_loop().time
        until = clock() + wait_seconds
        with self._waiters.waiting(_event_of(channel)) as changed:
            while True:
                changed.clear()
                content = await self._store.get(_message_key(channel, side, number))
                if content is not None:
                    return content
                left = until - clock()
                if left <= 0 or self._waiters.closed:
                    raise Problem("not_found", "Ask again: the other device has not said this yet.")
                await _wait(changed, min(left, _RECHECK_SECONDS))
                await self._open_channel(channel)

    async def _open_channel(self, channel: str) -> _Opening:
        opening = await self._opening(channel, tell=True)
        if opening is None:
            raise Problem("pairing_gone", "Compare the code with the other device, or show another one there.")
        return opening

    async def _opening(self, channel: str, *, tell: bool = False) -> _Opening | None:
        """Return a channel's opening; one whose time is over is deleted, and then, if asked to, told."""
        content = await self._store.get(_message_key(channel, "s", 1))
        if content is None:
            return None
        opening = _Opening.read(content)
        if not self._is_over(opening.opened):
            return opening
        await self._store.delete(_all_keys(channel))
        if tell:
            raise Problem("pairing_expired", "Show another code: the time of this one is over.")
        return None

    async def _check_shower(self, channel: str, vault: bytes, key: bytes) -> None:
        opening = await self._open_channel(channel)
        if (opening.vault, opening.key) != (vault, key):
            raise Problem("key_forbidden", "Only the device that opened the channel speaks in it.")

    async def _check_joiner(self, channel: str, key: bytes, *, needed: bool) -> None:
        first = await self._store.get(_message_key(channel, "j", 1), 0, 32)
        if (first is None and needed) or (first is not None and first != key):
            raise Problem("pairing_taken", "Somebody else has answered: show another code.")

    # How many a vault may have open.

    async def _take_slot(self, channel: str, opening: _Opening) -> str:
        """Return the key of the slot that a channel now has; one device has one at most."""
        slots = [f"{FOLDER}/slots/{opening.vault.hex()}/{number}" for number in range(CHANNELS_OF_A_VAULT)]
        for slot in slots:
            await self._free(slot, opening)
        content = opening.opened.to_bytes(8, "big") + opening.key + channel.encode("ascii")
        for slot in slots:
            if isinstance(await self._store.put_new(slot, content), Stored):
                return slot
        raise Problem("limit", "Wait until a code that is shown has been used.", limit=CHANNELS_OF_A_VAULT)

    async def _free(self, slot: str, opening: _Opening) -> None:
        """Free a slot whose time is over, or that the same device had before."""
        content = await self._store.get(slot)
        if content is None:
            return
        opened, key, channel = int.from_bytes(content[:8], "big"), content[8:40], content[40:].decode("ascii")
        if key != opening.key and not self._is_over(opened):
            return
        # By now the channel may be another's.
        there = await self._store.get(_message_key(channel, "s", 1))
        if there is not None and (mine := _Opening.read(there)).vault == opening.vault and mine.key == key:
            await self._store.delete(_all_keys(channel))
            self._wake(channel)
        await self._store.delete([slot])

    def _is_over(self, opened: int) -> bool:
        # Either way: the clock of the process that opened it may be ahead of this one's.
        return abs(self._clock() - opened) > _OPEN_SECONDS

    def _wake(self, channel: str) -> None:
        self._waiters.wake(_event_of(channel))


def _message_key(channel: str, side: str, number: int) -> str:
    return f"{FOLDER}/channels/{channel}/{side}{number}"


def _all_keys(channel: str) -> list[str]:
    """Return the keys of a channel's objects; the one that says it is open comes last."""
    return [_message_key(channel, side, number) for side in "js" for number in range(MESSAGES, 0, -1)]


def _event_of(channel: str) -> bytes:
    return b"pairing/" + channel.encode("ascii")


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
