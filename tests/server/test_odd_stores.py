"""Stores whose listings leave objects out, and whose times and tags are wrong, change no decision and lose nothing."""

import random
from collections.abc import AsyncIterator, Mapping

import pytest
from aiohttp import ClientSession

from memseal_server.blobs import BlobStore, Listed
from memseal_server.blobs.bucket import BucketStore
from memseal_server.limits import Limits
from memseal_server.listening import listen
from tests.server.building import Draft, Log, private_key
from tests.server.calling import Caller
from tests.server.meddling import meddling
from tests.server.seaweed import on_each_store
from tests.server.wrapping import Wrapping


class ForgetfulStore(Wrapping):
    """Each listing leaves out about half of what is there."""

    def __init__(self, inner: BlobStore) -> None:
        super().__init__(inner)
        self._random = random.Random(1)
        self.forgets = True

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        page = await super().listed(folder, after, limit)
        return [each for each in page if not self.forgets or self._random.random() < 0.5]


@pytest.fixture
async def forgetful(store: BlobStore) -> ForgetfulStore:
    return ForgetfulStore(store)


@pytest.fixture
async def caller(forgetful: ForgetfulStore, session: ClientSession) -> AsyncIterator[Caller]:
    listener = await listen(forgetful, Limits(), host="127.0.0.1", port=0)
    yield Caller(session, listener.origin)
    await listener.close()


def log_of(first: Draft, name: str) -> Log:
    return Log(first.vault, private_key(name), 1, first.digest()).append(8)


async def play(caller: Caller, first: Draft) -> Draft:
    """Two logs and three floors; return the last version."""
    second = first.next("alice").add("bob")
    await caller.register(first, second)
    alice, bob = log_of(first, "alice"), log_of(first, "bob")
    for seq in range(8):
        assert (await caller.put_segment(alice, seq, alice.segment(seq, seq + 1))).status == 201
        assert (await caller.put_segment(bob, seq, bob.segment(seq, seq + 1), "bob")).status == 201
    newest = second
    for number, (name, parts) in enumerate([("one", ["a", "b"]), ("two", ["b", "c"]), ("three", ["c"])], start=1):
        rows = [alice.row(2 * number, 2 * number), bob.row(number, number)]
        newest = await caller.commit(newest, name, parts, *rows)
        heads = (await caller.get_heads(first.vault)).json
        assert heads["floor"]["whole"] is True
        assert heads["logs"] == {each.stream.hex(): each.end(next_seq=8) for each in (alice, bob)}
    for log, kept in ((alice, 6), (bob, 3)):
        start = len(log.content(kept))
        assert (await caller.get_log(log, f"from={start}")).body == log.content()[start:]
        assert (await caller.get_log(log, f"from={start - 1}")).outcome == (410, "below_floor")
    return newest


async def segments_there(store: BlobStore, log: Log) -> list[int]:
    folder = f"{log.vault.hex()}/logs/{log.stream.hex()}/"
    return [int(key.removeprefix(folder)) for key, _ in await store.listed(folder, "", 100)]


@on_each_store
async def test_listings_that_leave_objects_out_change_no_decision(
    caller: Caller, store: BlobStore, forgetful: ForgetfulStore, first: Draft
) -> None:
    newest = await play(caller, first)
    # What each floor made needless is gone all the same: it was deleted by name.
    assert await segments_there(store, log_of(first, "alice")) == [6, 7]
    assert await segments_there(store, log_of(first, "bob")) == [3, 4, 5, 6, 7]
    assert await caller.there(first.vault, "one", "two", "three", "a", "b", "c") == ["three", "c"]
    for vaults in (caller, Caller(caller.session, caller.origin)):
        assert (await vaults.get_version(newest, "latest")).body == newest.build()
    # A process that knows nothing yet finds the same.
    listener = await listen(forgetful, Limits(), host="127.0.0.1", port=0)
    fresh = Caller(caller.session, listener.origin)
    assert (await fresh.get_heads(first.vault)).json == (await caller.get_heads(first.vault)).json
    await listener.close()


async def test_what_a_crash_left_goes_once_a_listing_has_it(
    caller: Caller, store: BlobStore, forgetful: ForgetfulStore, first: Draft
) -> None:
    newest = await play(caller, first)
    alice = log_of(first, "alice")
    folder = f"{first.vault.hex()}/logs/{alice.stream.hex()}/"
    for seq in range(4):
        await store.put_new(f"{folder}{seq:010}", alice.segment(seq, seq + 1))
    forgetful.forgets = False
    await caller.commit(newest, "four", [], alice.row(7, 7), log_of(first, "bob").row(3, 3))
    assert await segments_there(store, alice) == [7]


async def test_times_and_tags_that_are_wrong_by_years_change_no_decision(
    seaweed: Mapping[str, str],
    seaweed_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    session: ClientSession,
    first: Draft,
) -> None:
    async with meddling(seaweed["AWS_ENDPOINT_URL_S3"]) as meddler:
        meddler.rewrites = True
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", meddler.endpoint)
        store = await BucketStore.open(seaweed_bucket)
        listener = await listen(store, Limits(), host="127.0.0.1", port=0)
        await play(Caller(session, listener.origin), first)
        assert await segments_there(store, log_of(first, "alice")) == [6, 7]
        await listener.close()
        await store.close()
