"""What the operator allows, and what follows when it is used up."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from memseal_server.objects import Objects
from memseal_server.problems import Problem
from memseal_server.segments import MAX_SEGMENT_BYTES
from memseal_server.versions import Floor, Version

# A vault full of checkpoints can still end a device: a few versions more, of 4 MiB and two objects each.
_KEYRING_HEADROOM_BYTES = 64 * 1024 * 1024
_KEYRING_HEADROOM_OBJECTS = 1_024


class Use(Enum):
    """What an object is for; it decides how far beyond the vault's limits it may go (sync-protocol §4, "Room")."""

    LOG = "log"
    CHECKPOINT = "checkpoint"
    KEYRING = "keyring"


@dataclass(frozen=True)
class Limits:
    """The operator's limits; sizes in bytes, None is no limit."""

    registration: Literal["open", "token", "closed"] = "open"
    max_object_bytes: int = MAX_SEGMENT_BYTES
    max_vault_bytes: int | None = None
    max_vault_objects: int | None = None
    # Requests to one vault in a second; ten seconds' worth may come at once.
    max_vault_requests: int | None = None
    # Requests of joiners, whom no keyring lists yet, from one address, and to one channel, in a second; as above.
    max_pairing_requests: int | None = None
    # Each device begins one stream in each epoch. The heads name them all, so there has to be an end.
    max_streams: int = 4_096
    # Each is looked for whenever the heads are asked for; of 16 MiB each they are 256 GiB.
    max_parts: int = 16_384
    max_waiters: int = 10_000
    max_connections: int = 12_000
    # How often a waiting request looks at a store that another process may have changed, where not too many wait.
    recheck_seconds: float = 3.0
    # A body has to be here within this time: enough for 68 MiB at 10 Mbit/s. So has an answer to be taken.
    body_seconds: float = 60.0
    # Also ends a connection on which a request's head does not arrive. Longer than proxies keep theirs (60 s mostly).
    idle_seconds: float = 75.0


async def check_room(objects: Objects, limits: Limits, vault: bytes, size: int, use: Use) -> None:
    """Refuse with `limit` an object of `size` bytes for which the vault has no room.

    Objects that arrive at the same moment may overshoot by what is in flight.
    """
    if limits.max_vault_bytes is None and limits.max_vault_objects is None:
        return
    there = await objects.usage(vault)
    for limit, amount, headroom in (
        (limits.max_vault_bytes, there.bytes + size, _KEYRING_HEADROOM_BYTES),
        (limits.max_vault_objects, there.objects + 1, _KEYRING_HEADROOM_OBJECTS),
    ):
        if limit is not None and amount > _most(limit, use, headroom):
            raise _used_up(limit)


async def check_streams(objects: Objects, limits: Limits, newest: Version) -> None:
    """Refuse with `limit` one more stream than a vault may have, those counted of which only the floor tells."""
    if await objects.count_streams(newest) >= limits.max_streams:
        raise _used_up(limits.max_streams)


def check_floor(limits: Limits, floor: Floor) -> None:
    """Refuse with `limit` a floor of more logs or parts than a vault may have."""
    for count, limit in ((len(floor.rows), limits.max_streams), (len(floor.parts), limits.max_parts)):
        if count > limit:
            raise _used_up(limit)


def _most(limit: int, use: Use, headroom: int) -> int:
    match use:
        case Use.LOG:
            return limit
        case Use.CHECKPOINT:
            return 2 * limit  # beside full logs there is room for all that is in them, so that they can go
        case Use.KEYRING:
            return 2 * limit + headroom


def _used_up(limit: int) -> Problem:
    return Problem(
        "limit", "Nothing more fits: compact the vault, or ask the server's operator for more room.", limit=limit
    )
