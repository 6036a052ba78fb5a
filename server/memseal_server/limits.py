"""What the operator allows, and what follows when it is used up."""

from dataclasses import dataclass

from memseal_server.objects import Objects
from memseal_server.problems import Problem
from memseal_server.segments import MAX_SEGMENT_BYTES


@dataclass(frozen=True)
class Limits:
    """The operator's limits; sizes in bytes, None is no limit."""

    registration_open: bool = True
    max_object_bytes: int = MAX_SEGMENT_BYTES
    max_vault_bytes: int | None = None
    # Each device begins one stream in each epoch. The heads name them all, so there has to be an end.
    max_streams: int = 4_096
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


async def check_streams(objects: Objects, limits: Limits, vault: bytes) -> None:
    """Refuse with `limit` one more stream than a vault may have."""
    _, _, streams = await objects.all_newest(vault)
    if len(streams) >= limits.max_streams:
        raise _used_up(limits.max_streams)


def _used_up(limit: int) -> Problem:
    return Problem("limit", "Nothing more fits: ask the server's operator for more room.", limit=limit)
