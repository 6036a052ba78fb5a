"""Floors and trimmed logs on a server that lost what it had, or never had it (`refill`, sync-protocol §4)."""

import pytest

from memseal_server.blobs import BlobStore
from tests.server.building import Draft, Log, object_id, private_key
from tests.server.calling import Caller

BELOW = (410, "below_floor")
UNMET = (409, "floor_unmet")
REFILL = "refill=true"


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log with eight records."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(8)


async def keys_of(store: BlobStore, log: Log) -> list[int]:
    """The numbers of a log's stored segments."""
    folder = f"{log.vault.hex()}/logs/{log.stream.hex()}/"
    return [int(key.removeprefix(folder)) for key, _ in await store.listed(folder, "", 100)]


async def put_back(caller: Caller, *drafts: Draft) -> list[tuple[int, str]]:
    return [(await caller.put_version(draft, "bob", query=REFILL)).outcome for draft in drafts]


async def test_empty_server_is_refilled_from_a_log_without_its_beginning(
    caller: Caller, first: Draft, second: Draft, log: Log
) -> None:
    floor = second.next("alice").floor("one", ["a"], [log.row(5, 3)])
    assert await put_back(caller, first, second, floor) == [(201, "")] * 3
    assert await caller.end_of(log) == log.end(5, next_seq=3)
    assert (await caller.put_segment(log, 0, log.segment(0, 2), "bob", query=REFILL)).outcome == BELOW
    assert (await caller.put_segment(log, 3, log.segment(4, 7), "bob", query=REFILL)).outcome == (409, "segment_order")
    assert (await caller.put_segment(log, 3, log.segment(5, 7), "bob")).outcome == (403, "key_forbidden")
    assert (await caller.put_segment(log, 3, log.segment(5, 7), "bob", query=REFILL)).status == 201
    assert (await caller.put_segment(log, 4, log.segment(7, 8))).status == 201
    await caller.put_checkpoint(first.vault, "one", "a")
    assert (await caller.get_heads(first.vault)).json == {
        "keyring": {"version": 3, "digest": floor.digest().hex(), "whole": True},
        "floor": {"checkpoint": object_id("one").hex(), "whole": True},
        "logs": {log.stream.hex(): log.end(next_seq=5)},
    }


async def test_log_whose_beginning_was_on_no_server_starts_with_segment_0_at_the_row(
    caller: Caller, first: Draft, log: Log, other_caller: Caller
) -> None:
    one = first.next("alice").floor("one", [], [log.row(2, 0)])
    two = one.next("alice").floor("two", [], [log.row(4, 0)])
    assert await put_back(caller, first, one, two) == [(201, "")] * 3
    assert await caller.end_of(log) == log.end(4, next_seq=0)
    assert (await caller.put_segment(log, 0, log.segment(0, 5))).outcome == (409, "segment_order")
    assert (await caller.put_segment(log, 0, log.segment(4, 6))).status == 201
    assert (await other_caller.put_segment(log, 1, log.segment(6, 8))).status == 201
    start = len(log.content(4))
    assert (await other_caller.get_log(log, f"from={start}")).body == log.content()[start:]
    assert await other_caller.end_of(log) == log.end(next_seq=2)
    await caller.put_checkpoint(first.vault, "three")
    three = two.next("alice").floor("three", [], [log.row(6, 1)])
    assert (await caller.put_version(three)).status == 201
    assert await caller.end_of(log) == log.end(next_seq=2)


async def test_row_whose_epoch_no_version_began_is_refused(caller: Caller, first: Draft, log: Log) -> None:
    log.epoch = 2
    floor = first.next("alice").floor("one", [], [log.row(5, 3)])
    assert await put_back(caller, first, floor) == [(201, ""), (422, "keyring_floor")]


async def test_row_of_an_epoch_that_began_otherwise_lets_nothing_in(caller: Caller, first: Draft) -> None:
    log = Log(first.vault, private_key("alice"), 1, bytes(32)).append(8)
    floor = first.next("alice").floor("one", [], [log.row(5, 3)])
    assert await put_back(caller, first, floor) == [(201, "")] * 2
    answer = await caller.put_segment(log, 3, log.segment(5, 7), query=REFILL)
    assert answer.outcome == (422, "segment_invalid")


async def test_row_of_no_devices_stream_is_refused(caller: Caller, first: Draft) -> None:
    log = Log(first.vault, private_key("stranger"), 1, first.digest()).append(8)
    floor = first.next("alice").floor("one", [], [log.row(5, 3)])
    assert await put_back(caller, first, floor) == [(201, ""), (422, "keyring_floor")]


async def test_server_from_a_backup_takes_the_floor_before_it_has_the_logs(
    caller: Caller, first: Draft, second: Draft, log: Log, store: BlobStore
) -> None:
    await caller.register(first, second)
    await caller.push(log, [0, 2])
    assert await put_back(caller, second.next("alice").floor("one", ["a"], [log.row(5, 3)])) == [(201, "")]
    assert await caller.end_of(log) == log.end(5, next_seq=3)
    assert (await caller.put_segment(log, 1, log.segment(2, 4))).outcome == BELOW
    assert (await caller.put_segment(log, 3, log.segment(5, 8))).status == 201
    # Nothing is deleted while what is to replace it is not here.
    assert await keys_of(store, log) == [0, 3]
    await caller.put_checkpoint(first.vault, "one", "a")
    assert await keys_of(store, log) == [3]
    assert await caller.end_of(log) == log.end(next_seq=4)


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param([0, 1, 2, 3, 4, 5], id="shorter segments"),
        pytest.param([0, 6], id="longer segments"),
        pytest.param([0, 2, 4, 6], id="another end of the last"),
        pytest.param([0, 2, 4, 6, 8], id="another start of the next"),
    ],
)
async def test_floor_that_would_lose_bytes_of_a_log_cut_elsewhere_is_unmet(
    caller: Caller, first: Draft, second: Draft, log: Log, bounds: list[int], store: BlobStore
) -> None:
    await caller.register(first, second)
    await caller.push(log, bounds)
    floor = second.next("alice").floor("one", [], [log.row(5, 3)])
    assert await put_back(caller, floor) == [UNMET]
    assert await keys_of(store, log) == list(range(len(bounds) - 1))
    assert (await caller.get_log(log)).body == log.content(bounds[-1])


async def test_floor_with_another_epoch_than_the_log_here_is_unmet(
    caller: Caller, first: Draft, second: Draft, log: Log
) -> None:
    await caller.register(first, second)
    await caller.push(log, [0, 2])
    later = second.next("alice").new_epoch()
    row = [log.stream, 2, *log.row(5, 3)[2:]]
    assert await put_back(caller, later, later.next("alice").floor("one", [], [row])) == [(201, ""), UNMET]
