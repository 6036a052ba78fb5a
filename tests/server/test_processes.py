"""Several server processes on one store, a folder or a bucket: they agree, and what one acknowledged all show."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientError, ClientSession

from memseal_server.blobs.opening import open_store
from memseal_server.checking import check_store
from tests.server.building import Draft, Log, private_key
from tests.server.calling import Caller
from tests.server.running import Running, end_all, start
from tests.server.seaweed import on_each_store
from tests.server.test_waiting import begin_poll

pytestmark = [on_each_store, pytest.mark.usefixtures("nothing_left_running")]

# Far more than any answer takes, and less than a poll would wait.
BOUND_SECONDS = 50


@pytest.fixture
async def nothing_left_running() -> AsyncIterator[None]:
    yield
    await end_all()


@pytest.fixture
async def servers(store_address: str, nothing_left_running: None) -> list[Running]:
    return [await start(store_address) for _ in range(2)]


@pytest.fixture
def callers(servers: list[Running], session: ClientSession) -> list[Caller]:
    """A client of each of the processes."""
    return [Caller(session, server.origin, BOUND_SECONDS) for server in servers]


def logs_of(first: Draft, count: int) -> list[Log]:
    return [Log(first.vault, private_key("alice"), 1, first.digest(), b"%04d" % number) for number in range(count)]


async def serious_findings(address: str) -> list[str]:
    store = await open_store(address)
    found = [finding.code async for finding in check_store(store) if finding.serious]
    await store.close()
    return found


async def test_poll_through_one_process_hears_of_what_comes_through_another(
    callers: list[Caller], first: Draft, second: Draft, log: Log
) -> None:
    await callers[0].register(first)
    poll = await begin_poll(callers[0], first)
    assert (await callers[1].put_segment(log, 0, log.segment(0, 1))).status == 201
    async with asyncio.timeout(BOUND_SECONDS):
        assert (await poll).json["logs"] == {log.stream.hex(): log.end(1, next_seq=1)}
    poll = await begin_poll(callers[0], first)
    assert (await callers[1].put_version(second)).status == 201
    async with asyncio.timeout(BOUND_SECONDS):
        assert (await poll).json["keyring"]["version"] == 2


async def test_what_one_process_acknowledged_the_other_shows_at_once(callers: list[Caller], first: Draft) -> None:
    await callers[0].register(first)
    newest = first
    expected = {}
    for turn, log in enumerate(logs_of(first, 6)):
        here, there = callers[turn % 2], callers[1 - turn % 2]
        log.append(2)
        for seq in range(2):
            assert (await here.put_segment(log, seq, log.segment(seq, seq + 1))).status == 201
            expected[log.stream.hex()] = log.end(seq + 1, next_seq=seq + 1)
            assert (await there.get_heads(first.vault)).json["logs"] == expected
            assert (await there.get_log(log)).body == log.content(seq + 1)
        newest = newest.next("alice").add(f"device {turn}")
        assert (await there.put_version(newest)).status == 201
        assert (await here.get_heads(first.vault)).json["keyring"]["digest"] == newest.digest().hex()
        assert (await here.get_version(newest, "latest")).body == newest.build()


async def test_floor_through_one_process_holds_in_the_other(callers: list[Caller], first: Draft, log: Log) -> None:
    await callers[0].register(first)
    log.append(3)
    for seq in range(4):
        assert (await callers[seq % 2].put_segment(log, seq, log.segment(seq, seq + 1))).status == 201
    floor = await callers[0].commit(first, "one", ["a"], log.row(3, 3))
    assert (await callers[1].get_heads(first.vault)).json["floor"]["whole"] is True
    assert (await callers[1].get_log(log)).outcome == (410, "below_floor")
    assert (await callers[1].put_segment(log, 2, log.segment(2, 3))).outcome == (410, "below_floor")
    assert (await callers[1].get_log(log, f"from={len(log.content(3))}")).body == log.pieces[3]
    second_floor = await callers[1].commit(floor, "two", ["b"], log.row(4, 4))
    for caller in callers:
        assert (await caller.end_of(log)) == log.end(4, next_seq=4)
        assert await caller.there(first.vault, "one", "two", "a", "b") == ["two", "b"]
        assert (await caller.get_version(second_floor, "latest")).body == second_floor.build()
    assert (await callers[0].put_segment(log, 4, log.segment(4, 5))).status == 201


async def test_racing_puts_through_two_processes_have_one_winner_for_each_number(
    callers: list[Caller], first: Draft
) -> None:
    await callers[0].register(first)
    drafts = [first.next("alice").add(f"device {number}") for number in range(4)]
    answers = await asyncio.gather(
        *(caller.put_version(draft) for caller, draft in zip(callers * 2, drafts, strict=True))
    )
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    [log] = logs_of(first, 1)
    log.append(3)
    # The same log, cut in two ways.
    cuts = [log.segment(0, 1), log.segment(0, 2)]
    answers = await asyncio.gather(
        *(caller.put_segment(log, 0, content) for caller, content in zip(callers, cuts, strict=True))
    )
    assert sorted(answer.outcome for answer in answers) == [(201, ""), (409, "segment_conflict")]
    stop = 1 + [answer.status for answer in answers].index(201)
    for caller in callers:
        assert await caller.end_of(log) == log.end(stop, next_seq=1)


async def test_everything_acknowledged_is_shown_by_the_others_after_a_kill(
    store_address: str, servers: list[Running], callers: list[Caller], first: Draft
) -> None:
    await callers[0].register(first)
    logs = [log.append(200) for log in logs_of(first, 6)]
    acknowledged = dict.fromkeys((log.stream for log in logs), 0)
    enough = asyncio.Event()

    async def push(caller: Caller, log: Log) -> None:
        for seq in range(200):
            try:
                answer = await caller.put_segment(log, seq, log.segment(seq, seq + 1))
            except (ClientError, ConnectionError):
                return
            assert answer.status == 201
            acknowledged[log.stream] = seq + 1
            if sum(acknowledged.values()) > 30:
                enough.set()

    pushes = [asyncio.create_task(push(callers[0], log)) for log in logs]
    async with asyncio.timeout(BOUND_SECONDS):
        await enough.wait()
    await servers[0].kill()
    await asyncio.gather(*pushes)
    heads = (await callers[1].get_heads(first.vault)).json["logs"]
    for log in logs:
        stored = heads[log.stream.hex()]["records"] if log.stream.hex() in heads else 0
        assert stored >= acknowledged[log.stream]
        if stored:
            assert (await callers[1].get_log(log)).body == log.content(stored)
        # Its device goes on where it was, through whoever answers: an answer that was lost is given again.
        seq = acknowledged[log.stream]
        again = await callers[1].put_segment(log, seq, log.segment(seq, seq + 1))
        assert again.status == (200 if seq < stored else 201)
    heads = (await callers[1].get_heads(first.vault)).json["logs"]
    assert all(heads[log.stream.hex()]["records"] > acknowledged[log.stream] for log in logs)
    assert await serious_findings(store_address) == []
