"""The relay of a pairing: who may speak in a channel, for how long, and how much of it there is."""

import asyncio

import pytest

from memseal_server.blobs import BlobStore
from memseal_server.problems import Problem
from memseal_server.relay import CHANNELS_OF_A_VAULT, MAX_MESSAGE_BYTES, Relay
from memseal_server.waiting import Waiters
from tests.server.building import Draft
from tests.server.calling import Answer, Caller
from tests.server.seaweed import on_each_store

CHANNEL = "04821"


def shown(draft: Draft, number: int, channel: str = CHANNEL) -> str:
    return f"/v1/vaults/{draft.vault.hex()}/pairing/{channel}/{number}"


def joining(number: int, channel: str = CHANNEL) -> str:
    return f"/v1/pairing/{channel}/{number}"


async def opened(caller: Caller, first: Draft, channel: str = CHANNEL, key: str = "alice") -> Answer:
    return await caller.send("PUT", shown(first, 1, channel), key, b"opening")


@pytest.fixture
async def channel(caller: Caller, first: Draft, second: Draft) -> str:
    """A channel that Alice opened; Bob is a device too."""
    await caller.register(first, second)
    assert (await opened(caller, first)).outcome == (201, "")
    return CHANNEL


# ── what is said ────────────────────────────────────────────────────────────────────────────────────


@on_each_store
async def test_what_one_says_the_other_hears(caller: Caller, first: Draft, channel: str) -> None:
    assert (await caller.send("GET", joining(1), "new")).body == b"opening"
    assert (await caller.send("PUT", joining(1), "new", b"answer")).outcome == (201, "")
    assert (await caller.send("GET", shown(first, 1))).body == b"answer"
    assert (await caller.send("PUT", shown(first, 2), "alice", b"welcome")).outcome == (201, "")
    assert (await caller.send("GET", joining(2), "new")).body == b"welcome"
    assert (await caller.send("PUT", joining(2), "new", b"joined")).outcome == (201, "")
    assert (await caller.send("GET", shown(first, 2))).body == b"joined"


@on_each_store
async def test_same_message_again_is_there_already_and_another_is_refused(
    caller: Caller, first: Draft, channel: str
) -> None:
    assert (await opened(caller, first)).outcome == (200, "")
    for path, key in ((joining(1), "new"), (shown(first, 2), "alice"), (joining(2), "new")):
        assert (await caller.send("PUT", path, key, b"said")).outcome == (201, "")
        assert (await caller.send("PUT", path, key, b"said")).outcome == (200, "")
        assert (await caller.send("PUT", path, key, b"else")).outcome == (409, "pairing_taken")
    assert (await caller.send("PUT", shown(first, 1), "alice", b"else")).outcome == (409, "pairing_taken")


async def test_what_was_not_said_yet_is_not_found(caller: Caller, first: Draft, channel: str) -> None:
    assert (await caller.send("GET", shown(first, 1))).outcome == (404, "not_found")
    assert (await caller.send("GET", joining(2), "new")).outcome == (404, "not_found")
    assert (await caller.send("GET", shown(first, 1), query="wait=1")).outcome == (404, "not_found")


@on_each_store
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one process", "two processes"])
async def test_who_waits_hears_it_when_it_is_said(
    elsewhere: bool, caller: Caller, other_caller: Caller, first: Draft, channel: str
) -> None:
    speaker = other_caller if elsewhere else caller
    waits = asyncio.create_task(caller.send("GET", shown(first, 1), query="wait=30"))
    assert (await speaker.send("PUT", joining(1), "new", b"answer")).outcome == (201, "")
    assert (await waits).body == b"answer"


async def test_message_has_at_most_four_kib(caller: Caller, first: Draft, channel: str) -> None:
    assert (await caller.send("PUT", joining(1), "new", bytes(MAX_MESSAGE_BYTES + 1))).outcome == (413, "too_large")
    assert (await caller.send("PUT", joining(1), "new", bytes(MAX_MESSAGE_BYTES))).outcome == (201, "")


@pytest.mark.parametrize("path", ["0482/1", "048211/1", "0482x/1", "04821/0", "04821/4", "04821/01", "04821/x"])
async def test_path_that_is_none_is_refused(caller: Caller, first: Draft, channel: str, path: str) -> None:
    assert (await caller.send("GET", f"/v1/pairing/{path}", "new")).outcome == (400, "request_invalid")
    whole = f"/v1/vaults/{first.vault.hex()}/pairing/{path}"
    assert (await caller.send("PUT", whole, "alice", b"x")).outcome == (400, "request_invalid")


# ── who may ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", ["stranger", "epoch 1", "kit 1"])
async def test_only_a_device_opens_a_channel(caller: Caller, first: Draft, key: str) -> None:
    await caller.register(first)
    answer = await opened(caller, first, key=key)
    assert answer.outcome in ((401, "key_unknown"), (403, "key_forbidden"))
    assert (await caller.send("GET", joining(1), "new")).outcome == (404, "pairing_gone")


async def test_channel_that_is_not_open_takes_nothing(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for number in (1, 2):
        assert (await caller.send("GET", joining(number), "new")).outcome == (404, "pairing_gone")
        assert (await caller.send("PUT", joining(number), "new", b"x")).outcome == (404, "pairing_gone")
        assert (await caller.send("GET", shown(first, number))).outcome == (404, "pairing_gone")
    assert (await caller.send("PUT", shown(first, 2), "alice", b"x")).outcome == (404, "pairing_gone")


async def test_only_the_device_that_opened_it_speaks_in_it(caller: Caller, first: Draft, channel: str) -> None:
    assert (await caller.send("PUT", shown(first, 2), "bob", b"x")).outcome == (403, "key_forbidden")
    assert (await caller.send("GET", shown(first, 1), "bob")).outcome == (403, "key_forbidden")
    assert (await opened(caller, first, key="bob")).outcome == (409, "pairing_taken")


@on_each_store
async def test_first_to_answer_is_the_joiner_and_others_are_shut_out(
    caller: Caller, first: Draft, channel: str
) -> None:
    assert (await caller.send("PUT", joining(2), "new", b"x")).outcome == (409, "pairing_taken")
    assert (await caller.send("PUT", joining(1), "new", b"answer")).outcome == (201, "")
    assert (await caller.send("PUT", joining(1), "thief", b"answer")).outcome == (409, "pairing_taken")
    assert (await caller.send("PUT", shown(first, 2), "alice", b"welcome")).outcome == (201, "")
    for number in (1, 2):
        assert (await caller.send("GET", joining(number), "thief")).outcome == (409, "pairing_taken")
    assert (await caller.send("PUT", joining(2), "thief", b"x")).outcome == (409, "pairing_taken")


async def test_joiner_signs_as_everybody_does(caller: Caller, channel: str) -> None:
    assert (await caller.send_as_is("GET", joining(1))).outcome == (401, "signature_missing")
    assert (await caller.send("PUT", joining(1), "new", b"x", sent_body=b"y")).outcome == (400, "content_digest")
    elsewhere = await caller.send("GET", joining(1), "new", identity="https://elsewhere.example")
    assert elsewhere.outcome == (421, "server_identity")


# ── how many, and how long ──────────────────────────────────────────────────────────────────────────


@on_each_store
async def test_device_that_opens_another_channel_gives_up_the_one_before(
    caller: Caller, first: Draft, channel: str
) -> None:
    await caller.send("PUT", joining(1), "new", b"answer")
    assert (await opened(caller, first, "00002")).outcome == (201, "")
    assert (await caller.send("GET", joining(1), "new")).outcome == (404, "pairing_gone")
    assert (await opened(caller, first, key="bob")).outcome == (201, "")
    assert (await caller.send("GET", shown(first, 1), "bob")).outcome == (404, "not_found")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def relay(store: BlobStore, clock: Clock) -> Relay:
    return Relay(store, Waiters(10), clock)


VAULT, OTHER = bytes(16), bytes(range(16))
KEY = bytes(32)


def key(number: int) -> bytes:
    return bytes((number,)) * 32


async def test_vault_has_three_channels_at_most(relay: Relay) -> None:
    for number in range(CHANNELS_OF_A_VAULT):
        assert await relay.open(f"0000{number}", VAULT, key(number), b"x")
    with pytest.raises(Problem) as caught:
        await relay.open("00009", VAULT, key(9), b"x")
    assert caught.value.code == "limit"
    assert await relay.open("00009", OTHER, key(9), b"x")
    # One more of a device that has one is no more.
    assert await relay.open("00008", VAULT, key(0), b"x")


@on_each_store
@pytest.mark.parametrize("seconds", [301, -301])
async def test_channel_is_over_after_five_minutes_and_leaves_nothing(
    seconds: float, relay: Relay, store: BlobStore, clock: Clock
) -> None:
    await relay.open(CHANNEL, VAULT, KEY, b"x")
    await relay.answer(CHANNEL, key(1), 1, b"answer")
    await relay.say(CHANNEL, VAULT, KEY, 2, b"welcome")
    clock.now += seconds
    with pytest.raises(Problem) as caught:
        await relay.said(CHANNEL, key(1), 2, 0)
    assert caught.value.code == "pairing_expired"
    with pytest.raises(Problem) as caught:
        await relay.said(CHANNEL, key(1), 2, 0)
    assert caught.value.code == "pairing_gone"
    assert [each.key for each in await store.listed("pairing/channels/", "", 10)] == []
    assert await relay.open("00001", VAULT, key(2), b"x")
    assert len(await store.listed("pairing/", "", 10)) == 2


@on_each_store
async def test_channel_that_is_over_can_be_opened_by_another_vault(relay: Relay, clock: Clock) -> None:
    await relay.open(CHANNEL, VAULT, KEY, b"x")
    clock.now += 301
    assert await relay.open(CHANNEL, OTHER, key(1), b"y")
    # The one that had it before lets go of its slot, and of nothing else.
    assert await relay.open("00001", VAULT, KEY, b"z")
    assert await relay.said(CHANNEL, key(2), 1, 0) == b"y"


async def test_channel_that_is_in_use_costs_the_vault_no_slot(relay: Relay, store: BlobStore) -> None:
    await relay.open(CHANNEL, OTHER, key(1), b"x")
    for number in range(CHANNELS_OF_A_VAULT + 1):
        with pytest.raises(Problem) as caught:
            await relay.open(CHANNEL, VAULT, key(number), b"x")
        assert caught.value.code == "pairing_taken"
    assert len(await store.listed("pairing/slots/", "", 10)) == 1
