"""Long polls: held until something changes, and no longer."""

import asyncio
import time

import pytest

from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.waiting import Waiters
from tests.server.building import Draft, Log, object_id
from tests.server.calling import Answer, Caller

# Less than the polls would wait.
BOUND_SECONDS = 50


@pytest.fixture
def limits() -> Limits:
    """A server that never looks by itself what has changed: a poll that is answered was woken."""
    return Limits(recheck_seconds=3_600)


async def begin_poll(caller: Caller, first: Draft, key: str = "alice") -> asyncio.Task[Answer]:
    """Start a poll that knows the heads as they are, and return once it waits."""
    tag = (await caller.get_heads(first.vault)).headers["ETag"]
    before = await waiting(caller)
    poll = asyncio.create_task(caller.get_heads(first.vault, key, query="wait=60", more_headers={"If-None-Match": tag}))
    async with asyncio.timeout(BOUND_SECONDS):
        while await waiting(caller) == before:
            assert not poll.done()
    return poll


async def waiting(caller: Caller) -> float:
    lines = (await caller.send_as_is("GET", "/metrics")).body.decode().splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith("memseal_waiters ")]
    return float(value)


async def woken(poll: asyncio.Task[Answer]) -> Answer:
    async with asyncio.timeout(BOUND_SECONDS):
        return await poll


async def none_waiting(caller: Caller) -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        while await waiting(caller):
            pass


async def test_poll_wakes_at_once_when_a_log_grows(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    poll = await begin_poll(caller, first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    answer = await woken(poll)
    assert answer.status == 200
    assert answer.json["logs"] == {log.stream.hex(): log.end(1, next_seq=1)}
    assert await waiting(caller) == 0


async def test_poll_wakes_when_the_keyring_changes(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    poll = await begin_poll(caller, first)
    await caller.register(first.next("alice").add("bob"))
    assert (await woken(poll)).json["keyring"]["version"] == 2


async def test_poll_wakes_at_once_when_a_floor_comes(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2])
    await caller.put_checkpoint(first.vault, "one")
    poll = await begin_poll(caller, first)
    await caller.register(first.next("alice").floor("one", [], [log.row(2, 1)]))
    answer = await woken(poll)
    assert answer.json["floor"] == {"checkpoint": object_id("one").hex(), "whole": True}


async def test_poll_wakes_at_once_when_the_floors_checkpoint_is_whole(caller: Caller, first: Draft) -> None:
    for draft in (first, first.next("alice").floor("one", ["a"])):
        await caller.put_version(draft, query="refill=true")
    poll = await begin_poll(caller, first)
    await caller.put_checkpoint(first.vault, "one", "a")
    answer = await woken(poll)
    assert answer.json["floor"]["whole"] is True


async def test_poll_wakes_at_once_when_the_version_is_completed(caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query="refill=true")
    poll = await begin_poll(caller, first)
    await caller.put_version(first)
    answer = await woken(poll)
    assert answer.json["keyring"]["whole"] is True


async def test_poll_waits_on_where_an_object_changes_no_head(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    poll = await begin_poll(caller, first)
    await caller.put_checkpoint(first.vault, "one", "a")
    assert await waiting(caller) == 1
    await caller.put_segment(log, 0, log.segment(0, 1))
    assert (await woken(poll)).status == 200


async def test_all_polls_of_a_vault_wake(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    polls = [await begin_poll(caller, first) for _ in range(5)]
    await caller.put_segment(log, 0, log.segment(0, 1))
    assert [answer.status for answer in await asyncio.gather(*polls)] == [200] * 5


async def test_poll_ends_with_304_when_nothing_changes(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    tag = (await caller.get_heads(first.vault)).headers["ETag"]
    started = time.perf_counter()
    answer = await caller.get_heads(first.vault, query="wait=1", more_headers={"If-None-Match": tag})
    assert (answer.status, answer.body, answer.headers["ETag"]) == (304, b"", tag)
    assert time.perf_counter() - started > 0.9


async def test_poll_that_knows_less_is_answered_at_once(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    tag = (await caller.get_heads(first.vault)).headers["ETag"]
    await caller.put_segment(log, 0, log.segment(0, 1))
    started = time.perf_counter()
    for known in ({"If-None-Match": tag}, {}):
        answer = await caller.get_heads(first.vault, query="wait=60", more_headers=known)
        assert answer.status == 200
    assert time.perf_counter() - started < BOUND_SECONDS


async def test_device_that_is_ended_while_it_waits_learns_nothing(caller: Caller, first: Draft) -> None:
    second = first.next("alice").add("bob")
    await caller.register(first, second)
    poll = await begin_poll(caller, first, "bob")
    await caller.register(second.next("alice").new_epoch().end(1))
    assert (await poll).outcome == (401, "key_ended")


async def test_poll_whose_client_went_away_waits_no_longer(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    poll = await begin_poll(caller, first)
    poll.cancel()
    await none_waiting(caller)


class TestAcrossProcesses:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(recheck_seconds=0.05)

    async def test_change_through_another_process_is_noticed(
        self, caller: Caller, other_caller: Caller, first: Draft, log: Log
    ) -> None:
        await caller.register(first)
        poll = await begin_poll(caller, first)
        await other_caller.put_segment(log, 0, log.segment(0, 1))
        assert (await poll).json["logs"] == {log.stream.hex(): log.end(1, next_seq=1)}


class TestBounded:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_waiters=2)

    async def test_poll_beyond_the_bound_is_told_to_come_back(self, caller: Caller, first: Draft, log: Log) -> None:
        await caller.register(first)
        polls = [await begin_poll(caller, first) for _ in range(2)]
        tag = (await caller.get_heads(first.vault)).headers["ETag"]
        known = {"If-None-Match": tag}
        refused = await caller.get_heads(first.vault, query="wait=60", more_headers=known)
        assert refused.outcome == (429, "rate")
        assert int(refused.headers["Retry-After"]) > 0
        assert (await caller.get_heads(first.vault, more_headers=known)).status == 304
        await caller.put_segment(log, 0, log.segment(0, 1))
        await asyncio.gather(*polls)
        assert await waiting(caller) == 0


def test_one_vault_cannot_use_up_all_waiters() -> None:
    waiters = Waiters(1_000)
    held = [waiters.waiting(bytes(16)) for _ in range(64)]
    for waiter in held:
        waiter.__enter__()
    with pytest.raises(Problem, match="rate"), waiters.waiting(bytes(16)):
        pass
    with waiters.waiting(b"\x01" * 16):
        assert len(waiters) == 65
    for waiter in held:
        waiter.__exit__(None, None, None)
    assert len(waiters) == 0
