"""What a floor needs before it is stored, what it deletes, and how logs go on above it (sync-protocol §4)."""

from typing import Any

import pytest

from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from tests.server.building import Draft, Log, object_id, part, private_key
from tests.server.calling import Caller
from tests.server.seaweed import on_each_store

BELOW = (410, "below_floor")
UNMET = (409, "floor_unmet")
REFILL = "refill=true"


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log with eight records; pushed in segments of two, but for the last three."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(8)


BOUNDS = [0, 2, 4, 5]


async def register_and_push(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, BOUNDS)


async def keys_of(store: BlobStore, log: Log) -> list[int]:
    """The numbers of a log's stored segments."""
    folder = f"{log.vault.hex()}/logs/{log.stream.hex()}/"
    return [int(key.removeprefix(folder)) for key, _ in await store.listed(folder, "", 100)]


# What a floor needs.


@on_each_store
async def test_floor_whose_manifest_is_not_here_is_unmet(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    await caller.put_part(first.vault, "a", part(first.vault, "a"))
    floor = first.next("alice").floor("one", ["a"], [log.row(4, 2)])
    answer = await caller.put_version(floor)
    assert answer.outcome == UNMET
    assert answer.json["object"] == object_id("one").hex()
    assert "stream" not in answer.json
    await caller.put_checkpoint(first.vault, "one")
    assert (await caller.put_version(floor)).status == 201


async def test_floor_with_the_digest_of_another_manifest_is_unmet(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_checkpoint(first.vault, "one")
    floor = first.next("alice").floor("one")
    floor.fields["floor"]["digest"] = bytes(32)
    answer = await caller.put_version(floor)
    assert answer.outcome == UNMET
    assert answer.json["object"] == object_id("one").hex()


@on_each_store
async def test_floor_with_a_part_that_is_not_here_is_unmet(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_checkpoint(first.vault, "one", "a", "c")
    floor = first.next("alice").floor("one", ["a", "b", "c"])
    answer = await caller.put_version(floor)
    assert answer.outcome == UNMET
    assert answer.json["object"] == object_id("b").hex()
    await caller.put_part(first.vault, "b", part(first.vault, "b"))
    assert (await caller.put_version(floor)).status == 201


@pytest.mark.parametrize(
    "place",
    [
        pytest.param((4, 1), id="a lower segment"),
        pytest.param((4, 3), id="a higher segment"),
        pytest.param((3, 2), id="within a segment"),
        pytest.param((6, 3), id="beyond the log"),
        pytest.param((8, 4), id="beyond the segments"),
        pytest.param((4, 0), id="no segment before"),
        pytest.param((4, 4), id="a segment for each record"),
    ],
)
@pytest.mark.parametrize("bounds", [[0, 2, 4], [0, 2, 4, 5]], ids=["at the end", "within"])
async def test_row_that_is_no_segments_end_is_unmet(
    caller: Caller, first: Draft, log: Log, place: tuple[int, int], bounds: list[int]
) -> None:
    await caller.register(first)
    await caller.push(log, bounds)
    await assert_unmet(caller, first, log, log.row(*place))
    assert (await caller.get_log(log)).body == log.content(bounds[-1])
    await caller.commit(first, "one", [], log.row(4, 2))


@pytest.mark.parametrize(
    ("position", "value"),
    [
        pytest.param(4, 64 + 5 * 1108, id="another length"),
        pytest.param(5, 3, id="another number of records"),
        pytest.param(6, bytes(32), id="another chain"),
    ],
)
@pytest.mark.parametrize("bounds", [[0, 2, 4], [0, 2, 4, 5]], ids=["at the end", "within"])
async def test_row_that_says_otherwise_than_the_log_is_unmet(
    caller: Caller, first: Draft, log: Log, position: int, value: Any, bounds: list[int]
) -> None:
    await caller.register(first)
    await caller.push(log, bounds)
    row = log.row(4, 2)
    row[position] = value
    await assert_unmet(caller, first, log, row)
    await caller.commit(first, "one", [], log.row(4, 2))


@pytest.mark.parametrize("bounds", [[0, 2, 4], [0, 2, 4, 5]], ids=["at the end", "within"])
async def test_row_with_another_epoch_than_the_log_is_unmet(
    caller: Caller, first: Draft, log: Log, bounds: list[int]
) -> None:
    await caller.register(first)
    await caller.push(log, bounds)
    later = first.next("alice").new_epoch()
    assert (await caller.put_version(later)).status == 201
    await assert_unmet(caller, later, log, [log.stream, 2, *log.row(4, 2)[2:]])
    await caller.commit(later, "one", [], log.row(4, 2))


async def assert_unmet(caller: Caller, first: Draft, log: Log, row: list[Any]) -> None:
    await caller.put_checkpoint(first.vault, "one")
    answer = await caller.put_version(first.next("alice").floor("one", [], [row]))
    assert answer.outcome == UNMET
    assert answer.json["stream"] == log.stream.hex()
    assert "object" not in answer.json


async def test_row_of_a_log_that_is_not_here_is_unmet(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    await caller.put_checkpoint(first.vault, "one")
    other = Log(first.vault, private_key("alice"), 1, first.digest(), b"salz").append(2)
    for row in (other.row(1, 0), other.row(1, 1)):
        answer = await caller.put_version(first.next("alice").floor("one", [], [log.row(4, 2), row]))
        assert answer.outcome == UNMET
        assert answer.json["stream"] == other.stream.hex()


async def test_row_that_stays_need_not_be_here(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    one = await caller.commit(first, "one", [], log.row(5, 3))
    two = await caller.commit(one, "two", [], log.row(5, 3))
    await caller.put_segment(log, 3, log.segment(5, 8))
    await caller.commit(two, "three", [], log.row(8, 4))
    assert await caller.end_of(log) == log.end(next_seq=4)


async def test_row_that_moves_within_a_segment_is_unmet(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    one = await caller.commit(first, "one", [], log.row(4, 2))
    await caller.put_checkpoint(first.vault, "two")
    for row in (log.row(5, 2), log.row(6, 3), log.row(8, 4)):
        assert (await caller.put_version(one.next("alice").floor("two", [], [row]))).outcome == UNMET


# What it deletes.


@on_each_store
async def test_what_lies_below_is_deleted_and_what_lies_above_stays(
    caller: Caller, first: Draft, log: Log, store: BlobStore
) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", ["a"], log.row(4, 2))
    assert await keys_of(store, log) == [2]
    assert await caller.there(first.vault, "one", "a") == ["one", "a"]


@on_each_store
async def test_next_floor_deletes_what_only_earlier_ones_name(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    await caller.put_checkpoint(first.vault, "to come", "d")
    one = await caller.commit(first, "one", ["a", "b"], log.row(2, 1))
    between = one.next("alice").add("carol")
    await caller.register(between)
    await caller.commit(between, "two", ["b", "c"], log.row(5, 3))
    # What no floor has named may belong to one that is about to come.
    everything = ["one", "two", "to come", "a", "b", "c", "d"]
    assert await caller.there(first.vault, *everything) == ["two", "to come", "b", "c", "d"]


@on_each_store
async def test_part_can_come_back_in_a_later_floor(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    one = await caller.commit(first, "one", ["a"])
    two = await caller.commit(one, "two", ["b"])
    three = two.next("alice").floor("three", ["a"])
    await caller.put_checkpoint(first.vault, "three")
    answer = await caller.put_version(three)
    assert answer.outcome == UNMET
    assert answer.json["object"] == object_id("a").hex()
    await caller.put_part(first.vault, "a", part(first.vault, "a"))
    assert (await caller.put_version(three)).status == 201
    assert await caller.there(first.vault, "one", "two", "three", "a", "b") == ["three", "a"]


@on_each_store
async def test_part_that_was_swept_and_put_again_is_swept_again(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    one = await caller.commit(first, "one", ["a"])
    two = await caller.commit(one, "two", ["b"])
    await caller.put_part(first.vault, "a", part(first.vault, "a"))
    await caller.commit(two, "three", ["b"])
    assert await caller.there(first.vault, "a", "b") == ["b"]


@on_each_store
async def test_more_segments_than_are_deleted_at_once_are_deleted(
    caller: Caller, first: Draft, log: Log, store: BlobStore
) -> None:
    await caller.register(first)
    log.append(300)
    await caller.push(log, range(301))
    await caller.commit(first, "one", [], log.row(290, 290))
    assert await keys_of(store, log) == list(range(290, 300))
    assert (await caller.get_log(log, f"from={len(log.content(290))}")).body == b"".join(log.pieces[290:300])


async def test_refused_floor_deletes_nothing(caller: Caller, first: Draft, log: Log, store: BlobStore) -> None:
    await register_and_push(caller, first, log)
    floor = first.next("alice").floor("one", [], [log.row(4, 2)])
    assert (await caller.put_version(floor)).outcome == UNMET
    await caller.put_checkpoint(first.vault, "one")
    floor.signers.pop()
    assert (await caller.put_version(floor)).outcome == (422, "keyring_signature")
    assert await keys_of(store, log) == [0, 1, 2]


# Room.


class TestFullVault:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_vault_bytes=20_100)

    async def test_floor_makes_room(self, caller: Caller, first: Draft, log: Log, store: BlobStore) -> None:
        await caller.register(first)
        log.append(10)
        await caller.push(log, range(9))
        await caller.put_checkpoint(first.vault, "one", "a")
        before = (await store.usage(first.vault.hex() + "/")).bytes
        refused = await caller.put_segment(log, 8, log.segment(8, 16))
        assert refused.outcome == (507, "limit")
        floor = await caller.commit(first, "one", ["a"], log.row(8, 8))
        gone = sum(len(log.segment(number, number + 1)) for number in range(8))
        assert (await store.usage(first.vault.hex() + "/")).bytes == before - gone + len(floor.build())
        assert (await caller.put_segment(log, 8, log.segment(8, 16))).status == 201


class TestFewStreams:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_streams=2)

    async def test_stream_of_which_only_the_floor_tells_counts(self, caller: Caller, first: Draft, log: Log) -> None:
        await register_and_push(caller, first, log)
        await caller.commit(first, "one", [], log.row(5, 3))
        others = [Log(first.vault, log.owner, 1, first.digest(), salt).append(1) for salt in (b"2222", b"3333")]
        outcomes = [(await caller.put_segment(other, 0, other.segment(0, 1))).outcome for other in others]
        assert outcomes == [(201, ""), (507, "limit")]
        assert (await caller.put_segment(log, 3, log.segment(5, 8))).status == 201


class TestSmallFloors:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_streams=2, max_parts=2)

    @pytest.mark.parametrize("query", ["", REFILL])
    async def test_floor_of_more_parts_than_a_vault_may_have_is_refused(
        self, caller: Caller, first: Draft, query: str
    ) -> None:
        await caller.register(first)
        await caller.put_checkpoint(first.vault, "one", "a", "b", "c")
        refused = await caller.put_version(first.next("alice").floor("one", ["a", "b", "c"]), query=query)
        assert refused.outcome == (507, "limit")
        assert refused.json["limit"] == 2
        assert (await caller.put_version(first.next("alice").floor("one", ["a", "b"]), query=query)).status == 201

    async def test_floor_of_more_logs_than_a_vault_may_have_is_refused(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        logs = [
            Log(first.vault, private_key("alice"), 1, first.digest(), salt).append(1)
            for salt in (b"1111", b"2222", b"3333")
        ]
        rows = [log.row(1, 1) for log in logs]
        refused = await caller.put_version(first.next("alice").floor("one", [], rows), query=REFILL)
        assert refused.outcome == (507, "limit")
        floor = first.next("alice").floor("one", [], rows[:2])
        assert (await caller.put_version(floor, query=REFILL)).status == 201
