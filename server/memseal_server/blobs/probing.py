"""Find out whether a store does what a server counts on, before it is shared."""

import asyncio
import secrets

from memseal_server.blobs import AlreadyThere, BlobStore, Stored, StoreUnavailable

_RACERS = 8


class StoreUnfit(StoreUnavailable):
    """The store answers, and does not do what it has to: no server may use it."""


async def probe(store: BlobStore) -> None:
    """Refuse with `StoreUnfit` a store that replaces objects; what is put for it is deleted again."""
    folder = f"probe/{secrets.token_hex(16)}/"
    keys = [folder + "twice", folder + "race"]
    try:
        await _put_twice(store, keys[0])
        await _race(store, keys[1])
    finally:
        await store.delete(keys)
    if await store.missing(keys) != keys:
        raise StoreUnfit("the store keeps objects that were deleted")


async def _put_twice(store: BlobStore, key: str) -> None:
    first, second = secrets.token_bytes(32), secrets.token_bytes(33)
    if not isinstance(await store.put_new(key, first), Stored):
        raise StoreUnfit("the store says of a new key that it is taken")
    if isinstance(await store.put_new(key, second), Stored):
        raise StoreUnfit(
            "the store replaces objects: it passes over `If-None-Match: *`, without which servers would overwrite"
            " each other's work; use a store that has conditional writes"
        )
    if await store.get(key) != first or await store.get(key, 7, 9) != first[7:9]:
        raise StoreUnfit("the store gives back other bytes than were put")


async def _race(store: BlobStore, key: str) -> None:
    contents = [secrets.token_bytes(32) for _ in range(_RACERS)]
    outcomes = await asyncio.gather(*(store.put_new(key, content) for content in contents))
    winners = [content for content, outcome in zip(contents, outcomes, strict=True) if isinstance(outcome, Stored)]
    digests = {outcome.digest for outcome in outcomes if isinstance(outcome, AlreadyThere)}
    if len(winners) != 1 or len(digests) != 1 or await store.get(key) != winners[0]:
        raise StoreUnfit(
            "of puts that race for one key the store acknowledges several: its `If-None-Match: *` does not hold"
            " between them; use a store whose conditional writes are atomic"
        )
