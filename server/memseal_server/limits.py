"""What the operator allows, and what follows when it is used up."""

from dataclasses import dataclass

from memseal_server.objects import Objects
from memseal_server.problems import Problem
from memseal_server.segments import MAX_SEGMENT_BYTES
from memseal_server.versions import Floor, Version


@dataclass(frozen=True)
class Limits:
    """The operator's limits; sizes in bytes, None is no limit."""

    registration_open: bool = True
    max_object_bytes: int = MAX_SEGMENT_BYTES
    max_vault_bytes: int | None = None
    # Each device begins one stream in each epoch. The heads name them all, so there has to be an end.
    max_streams: int = 4_096
    # Each is looked for whenever the heads are asked for; of 16 MiB each they are 256 GiB.
    max_parts: int = 16_384
    max_waiters: int = 1_000
    # How often a waiting request looks at a store that another process may have changed.
    recheck_seconds: float = 3.0
    # A body has to be here within this time: enough for 68 MiB at 10 Mbit/s.
    body_seconds: float = 60.0


async def check_room(objects: Objects, limits: Limits, vault: bytes, size: int, *, headroom: int = 0) -> None:
    """Refuse with `limit` an object of `size` bytes that goes more than `headroom` beyond the vault's limit.

    Objects that arrive at the same moment may overshoot by what is in flight.
    """
    limit = limits.max_vault_bytes
    if limit is not None and await objects.usage_bytes(vault) + size > limit + headroom:
        raise _used_up(limit)


async def check_streams(objects: Objects, limits: Limits, newest: Version) -> None:
    """Refuse with `limit` one more stream than a vault may have, those counted of which only the floor tells."""
    floor = frozenset[bytes]() if newest.floor is None else newest.floor.rows.keys()
    if len((await objects.contents(newest.vault)).streams.keys() | floor) >= limits.max_streams:
        raise _used_up(limits.max_streams)


def check_floor(limits: Limits, floor: Floor) -> None:
    """Refuse with `limit` a floor of more logs or parts than a vault may have."""
    for count, limit in ((len(floor.rows), limits.max_streams), (len(floor.parts), limits.max_parts)):
        if count > limit:
            raise _used_up(limit)


def _used_up(limit: int) -> Problem:
    return Problem("limit", "Nothing more fits: ask the server's operator for more room.", limit=limit)
