"""Floors that race each other, or segments and readers, and what a crash leaves (sync-protocol §4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession

from memseal_server.blobs import AlreadyThere, BlobStore, Info, Run, Stored, StoreUnavailable, numbered
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.checkpoints import Kind
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.vaults import Vaults
from tests.server.building import Draft, Log, manifest, object_id, part, private_key, public
from tests.server.calling import Caller
from tests.server.putting import body, put_segment
from tests.server.running import end_all, start, start_dying
from tests.server.seaweed import on_each_store
from tests.server.wrapping import Wrapping

ALICE = public(private_key("alice"))


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log with six records, in segments of two."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(6)


@pytest.fixture
def floor(first: Draft, log: Log) -> Draft:
    """Version 2, with a floor at four of the six records."""
    return first.next("alice").floor("one", ["a"], [log.row(4, 2)])


# Floors against each other.


@pytest.mark.parametrize("number", range(5))
async def test_one_of_two_racing_floors_wins(
    caller: Caller, other_caller: Caller, first: Draft, log: Log, number: int
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2, 4, 6])
    await caller.put_checkpoint(first.vault, "one", "a")
    await caller.put_checkpoint(first.vault, "two", "b")
    floors = [
        first.next("alice").floor("one", ["a"], [log.row(4, 2)]),
        first.next("alice").floor("two", ["b"], [log.row(6, 3)]),
    ]
    callers = [caller, (caller, other_caller)[number % 2]]
    answers = await asyncio.gather(*(each.put_version(draft) for each, draft in zip(callers, floors, strict=True)))
    assert sorted(answer.outcome for answer in answers) == [(201, ""), (409, "keyring_conflict")]
    winner = floors[[answer.status for answer in answers].index(201)]
    heads = (await other_caller.get_heads(first.vault)).json
    assert heads["keyring"]["digest"] == winner.digest().hex()
    assert heads["floor"] == {"checkpoint": winner.fields["floor"]["checkpoint"].hex(), "whole": True}
    assert heads["logs"] == {log.stream.hex(): log.end(next_seq=3)}
    # No floor has named the loser's checkpoint, so it stays for the next one.
    assert await caller.there(first.vault, "one", "two", "a", "b") == ["one", "two", "a", "b"]


@on_each_store
async def test_racing_puts_of_the_same_floor_all_succeed(
    caller: Caller, other_caller: Caller, first: Draft, log: Log, floor: Draft
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2, 4, 6])
    await caller.put_checkpoint(first.vault, "one", "a")
    answers = await asyncio.gather(*(each.put_version(floor) for each in [caller, other_caller] * 4))
    # One stores the open part; another may have been quicker with the sealed one, which completes the version.
    outcomes = sorted(answer.outcome for answer in answers)
    assert outcomes in ([(200, "")] * 7 + [(201, "")], [(200, "")] * 6 + [(201, "")] * 2)


# What happens in between, at a place of our choice.


class InterruptedStore(Wrapping):
    """Between one of its methods and what follows, something else happens once."""

    before_put: str | None = None
    after_looking: str | None = None
    before_head = False
    before_delete = False
    happens: Callable[[], Awaitable[object]]

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        if self.before_put is not None and key.endswith(self.before_put):
            self.before_put = None
            await self.happens()
        return await super().put_new(key, content, digest)

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        found = await super().last(runs)
        if self.after_looking is not None and runs[0].folder.endswith(self.after_looking):
            self.after_looking = None
            await self.happens()
        return found

    async def head(self, key: str) -> Info | None:
        if self.before_head:
            self.before_head = False
            await self.happens()
        return await super().head(key)

    async def delete(self, keys: Sequence[str]) -> None:
        if self.before_delete:
            self.before_delete = False
            await self.happens()
        await super().delete(keys)


async def put(vaults: Vaults, *drafts: Draft) -> list[bool]:
    return [
        await vaults.put_version(draft.vault, draft.fields["version"], draft.build(), ALICE, refill=False)
        for draft in drafts
    ]


async def put_checkpoint(vaults: Vaults, vault: bytes, name: str, *parts: str) -> None:
    for part_name in parts:
        await vaults.floors.put(vault, Kind.PART, object_id(part_name), body(part(vault, part_name)), ALICE)
    await vaults.floors.put(vault, Kind.MANIFEST, object_id(name), body(manifest(vault, name)), ALICE)


async def push(vaults: Vaults, log: Log, seq: int) -> bool:
    return await put_segment(vaults, log, seq, log.segment(2 * seq, 2 * seq + 2), ALICE)


async def is_there(vaults: Vaults, vault: bytes, name: str) -> bool:
    try:
        return await vaults.floors.length(vault, Kind.PART, object_id(name)) > 0
    except Problem:
        return False


@pytest.fixture
async def interrupted(store: BlobStore) -> InterruptedStore:
    return InterruptedStore(store)


@pytest.fixture
async def vaults(interrupted: InterruptedStore, first: Draft, log: Log) -> Vaults:
    """Alice's vault with two segments of her log and a checkpoint."""
    vaults = Vaults(interrupted, Limits())
    await put(vaults, first)
    await put_checkpoint(vaults, first.vault, "one", "a")
    await push(vaults, log, 0)
    await push(vaults, log, 1)
    return vaults


@on_each_store
async def test_segment_whose_number_a_sweep_freed_is_below_the_floor(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, floor: Draft
) -> None:
    other = Log(first.vault, private_key("alice"), 1, first.digest(), b"salz").append(4)
    await push(vaults, other, 0)
    floor.floor("one", ["a"], [other.row(4, 2)])

    async def another_puts_it_and_a_floor_covers_it() -> None:
        elsewhere = Vaults(interrupted, Limits())
        await push(elsewhere, other, 1)
        await put(elsewhere, floor)

    interrupted.before_put = f"{other.stream.hex()}/0000000001"
    interrupted.happens = another_puts_it_and_a_floor_covers_it
    with pytest.raises(Problem, match="below_floor"):
        await push(vaults, other, 1)
    folder = f"{first.vault.hex()}/logs/{other.stream.hex()}/"
    assert await interrupted.listed(folder, "", 9) == []


@on_each_store
async def test_floor_that_another_process_stores_meanwhile_is_there_already(
    interrupted: InterruptedStore, vaults: Vaults, floor: Draft, log: Log
) -> None:
    interrupted.before_head = True
    interrupted.happens = lambda: put(Vaults(interrupted, Limits()), floor)
    assert await put(vaults, floor) == [False]
    interrupted.before_head = True
    interrupted.happens = lambda: put(Vaults(interrupted, Limits()), floor.next("alice").add("carol"))
    with pytest.raises(Problem, match="keyring_conflict"):
        await put(vaults, floor.next("alice").floor("two", [], [log.row(4, 2)]))


@on_each_store
async def test_heads_that_a_sweep_overtakes_are_read_again(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, log: Log, floor: Draft
) -> None:
    fresh = Vaults(interrupted, Limits())
    interrupted.after_looking = f"{log.stream.hex()}/"
    interrupted.happens = lambda: put(Vaults(interrupted, Limits()), floor)
    heads = await fresh.heads(first.vault)
    assert heads.version.number == 2
    assert heads.floor_whole
    assert heads.logs[log.stream].to_members() == log.end(4, next_seq=2)


@on_each_store
async def test_heads_never_show_a_swept_checkpoint_as_lost(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, floor: Draft, log: Log
) -> None:
    await put(vaults, floor)
    await put_checkpoint(vaults, first.vault, "two")
    two = floor.next("alice").floor("two", [], [log.row(4, 2)])
    interrupted.after_looking = f"{log.stream.hex()}/"
    interrupted.happens = lambda: put(Vaults(interrupted, Limits()), two)
    heads = await vaults.heads(first.vault)
    assert (heads.version.number, heads.floor_whole) == (3, True)


@on_each_store
async def test_reader_that_a_sweep_overtakes_is_told_of_the_floor(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, log: Log, floor: Draft
) -> None:
    assert await vaults.streams.read(first.vault, log.stream, 0, 10**6) == (log.content(4), len(log.content(4)))
    interrupted.after_looking = f"{log.stream.hex()}/"
    interrupted.happens = lambda: put(Vaults(interrupted, Limits()), floor)
    with pytest.raises(Problem, match="below_floor"):
        await vaults.streams.read(first.vault, log.stream, 0, 10**6)


@on_each_store
async def test_floor_does_not_count_on_what_a_sweep_is_deleting(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, floor: Draft, log: Log
) -> None:
    await put(vaults, floor)
    await put_checkpoint(vaults, first.vault, "two", "b")
    await put_checkpoint(vaults, first.vault, "three")
    two = floor.next("alice").floor("two", ["b"], [log.row(4, 2)])
    three = two.next("alice").floor("three", ["a"], [log.row(4, 2)])
    racing: list[asyncio.Task[list[bool]]] = []

    async def the_next_floor_names_a_part_again() -> None:
        racing.append(asyncio.create_task(put(vaults, three)))
        for _ in range(20):  # time enough to read what it needs
            await interrupted.totals()

    interrupted.before_delete = True
    interrupted.happens = the_next_floor_names_a_part_again
    assert await put(vaults, two) == [True]
    with pytest.raises(Problem, match="floor_unmet"):
        await racing[0]
    assert (await vaults.heads(first.vault)).floor_whole
    assert not await is_there(vaults, first.vault, "a")


@on_each_store
async def test_part_that_another_process_sweeps_away_is_missed_and_can_be_put_back(
    interrupted: InterruptedStore, store: BlobStore, vaults: Vaults, first: Draft, floor: Draft, log: Log
) -> None:
    await put(vaults, floor)
    await put_checkpoint(vaults, first.vault, "two", "b")
    await put_checkpoint(vaults, first.vault, "three")
    two = floor.next("alice").floor("two", ["b"], [log.row(4, 2)])
    three = two.next("alice").floor("three", ["a"], [log.row(4, 2)])
    elsewhere = Vaults(store, Limits())
    interrupted.before_delete = True
    interrupted.happens = lambda: put(elsewhere, three)
    assert await put(vaults, two) == [True]
    # There is no turn between processes: the part is gone, and nothing else. Whoever asks for it is told.
    assert not await is_there(elsewhere, first.vault, "a")
    for each in (elsewhere, vaults, Vaults(store, Limits())):
        heads = await each.heads(first.vault)
        assert (heads.version.number, heads.floor_whole) == (4, False)
        assert heads.logs[log.stream].to_members() == log.end(4, next_seq=2)
    await elsewhere.floors.put(first.vault, Kind.PART, object_id("a"), body(part(first.vault, "a")), ALICE)
    for each in (elsewhere, vaults):
        assert (await each.heads(first.vault)).floor_whole


# Crashes.


@on_each_store
async def test_sweep_that_fails_is_not_acknowledged_and_goes_on_with_the_same_put(
    interrupted: InterruptedStore, vaults: Vaults, first: Draft, floor: Draft, log: Log
) -> None:
    async def the_store_goes_down() -> None:
        raise StoreUnavailable("down")

    interrupted.before_delete = True
    interrupted.happens = the_store_goes_down
    with pytest.raises(StoreUnavailable):
        await put(vaults, floor)
    assert (await vaults.heads(first.vault)).version.number == 2
    folder = f"{first.vault.hex()}/logs/{log.stream.hex()}/"
    assert await interrupted.last([Run(folder, 0)]) == [1]
    assert await put(vaults, floor) == [False]
    assert await interrupted.listed(folder, "", 9) == []


@pytest.fixture
async def nothing_left_running() -> AsyncIterator[None]:
    yield
    await end_all()


DYING = {
    "before anything is deleted": "memseal_server.blobs.sqlite:SqliteStore.delete",
    "between segments and checkpoint": "memseal_server.floors:Floors._delete_unnamed",
    "before a file is removed": "memseal_server.blobs.files:LargeFiles.remove_all",
}


@pytest.mark.usefixtures("nothing_left_running")
@pytest.mark.parametrize("where", DYING)
@pytest.mark.parametrize(
    ("again", "left"),
    [
        pytest.param(3, ["two", "three", "b"], id="the same put"),
        pytest.param(4, ["three", "b"], id="the next floor"),
    ],
)
async def test_what_a_crash_left_below_a_floor_is_taken_along(
    tmp_path: Path, session: ClientSession, first: Draft, where: str, again: int, left: list[str]
) -> None:
    # Half of the records lie in the database, half in files.
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(2, 2_000).append(3, 100_000)
    one = first.next("alice").floor("one", ["a", "b"], [log.row(1, 1)])
    two = one.next("alice").floor("two", ["b"], [log.row(4, 4)])
    three = two.next("alice").floor("three", ["b"], [log.row(4, 4)])
    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    await caller.register(first)
    await caller.push(log, range(6))
    await caller.put_checkpoint(first.vault, "one", "a", "b")
    await caller.register(one)
    await caller.put_checkpoint(first.vault, "two", "b")
    await caller.put_checkpoint(first.vault, "three", "b")
    await server.kill()

    dying = await start_dying(tmp_path / "store", DYING[where])
    with pytest.raises((ClientError, ConnectionError)):
        await Caller(session, dying.origin).put_version(two)
    assert await dying.process.wait() == 9

    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    start_of_rest = len(log.content(4))
    for _ in range(2):
        heads = (await caller.get_heads(first.vault)).json
        assert heads["logs"] == {log.stream.hex(): log.end(next_seq=5)}
        assert heads["floor"]["whole"] is True
        assert (await caller.get_log(log, f"from={start_of_rest - 1}")).outcome == (410, "below_floor")
        assert (await caller.get_log(log, f"from={start_of_rest}")).body == log.pieces[4]
        assert (await caller.put_segment(log, 2, log.segment(2, 3))).outcome == (410, "below_floor")
        assert (await caller.put_version({3: two, 4: three}[again])).status in (200, 201)
    assert await caller.there(first.vault, "one", "two", "three", "a", "b") == left
    await server.kill()
    store = await SqliteStore.open(tmp_path / "store")
    folder = f"{first.vault.hex()}/logs/{log.stream.hex()}/"
    assert [key for key, _ in await store.listed(folder, "", 9)] == [numbered(folder, 4)]
    assert len([path for path in (tmp_path / "store" / "large").iterdir() if path.suffix != ".lock"]) == 1
    await store.close()
