"""How logs go on above a floor, and what the heads say of both (sync-protocol §2 and §4)."""

import pytest

from tests.server.building import Draft, Log, manifest, object_id, part, preamble, private_key, record, segment
from tests.server.calling import Caller
from tests.server.seaweed import on_each_store

pytestmark = on_each_store

BELOW = (410, "below_floor")
REFILL = "refill=true"


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log with eight records; pushed in segments of two, but for the last three."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(8)


BOUNDS = [0, 2, 4, 5]


async def register_and_push(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, BOUNDS)


# Logs above a floor.


async def test_log_is_given_from_the_row_on(caller: Caller, first: Draft, log: Log, other_caller: Caller) -> None:
    await register_and_push(caller, first, log)
    await caller.put_segment(log, 3, log.segment(5, 8))
    await caller.commit(first, "one", [], log.row(4, 2))
    base, whole = len(log.content(4)), log.content()
    for each in (caller, other_caller):
        for start in (base, base + 1, len(log.content(5)) - 1, len(log.content(5)), len(whole) - 1, len(whole)):
            for limit in (1, 1_500, 10**7):
                answer = await each.get_log(log, f"from={start}&limit={limit}")
                assert (answer.status, answer.body) == (200, whole[start : start + limit])
                assert answer.headers["Memseal-Log-Length"] == str(len(whole))
        for start in (0, 1, 64, base - 1):
            assert (await each.get_log(log, f"from={start}")).outcome == BELOW
        assert (await each.get_log(log)).outcome == BELOW
        assert (await each.get_log(log, f"from={len(whole) + 1}")).outcome == (416, "log_range")
        assert await each.end_of(log) == log.end(next_seq=4)


async def test_log_with_nothing_above_the_floor_ends_at_the_row(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", [], log.row(5, 3))
    assert await caller.end_of(log) == log.end(5, next_seq=3)
    length = len(log.content(5))
    answer = await caller.get_log(log, f"from={length}")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Memseal-Log-Length"] == str(length)
    assert (await caller.get_log(log, f"from={length - 1}")).outcome == BELOW
    assert (await caller.get_log(log, f"from={length + 1}")).outcome == (416, "log_range")


async def test_segment_below_the_floor_is_refused(caller: Caller, first: Draft, log: Log, other_caller: Caller) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", [], log.row(4, 2))
    for each in (caller, other_caller):
        for seq, (start, stop) in enumerate([(0, 2), (2, 4)]):
            content = log.segment(start, stop)
            assert (await each.put_segment(log, seq, content)).outcome == BELOW
            assert (await each.put_segment(log, seq, content, query=REFILL)).outcome == BELOW
        assert (await each.put_segment(log, 2, log.segment(4, 5))).status == 200
        assert (await each.put_segment(log, 2, log.segment(4, 6))).outcome == (409, "segment_conflict")


async def test_log_goes_on_above_the_floor(caller: Caller, first: Draft, log: Log, other_caller: Caller) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", [], log.row(5, 3))
    assert (await other_caller.put_segment(log, 3, log.segment(5, 7))).status == 201
    assert (await caller.put_segment(log, 4, log.segment(7, 8))).status == 201
    assert await other_caller.end_of(log) == log.end(next_seq=5)
    start = len(log.content(5))
    assert (await caller.get_log(log, f"from={start}")).body == log.content()[start:]


@pytest.mark.parametrize(
    ("start", "stop", "seq"),
    [(4, 6, 3), (6, 8, 3), (5, 7, 4)],
    ids=["before the row", "behind the row", "a number left out"],
)
async def test_first_segment_above_the_floor_starts_at_the_row(
    caller: Caller, first: Draft, log: Log, start: int, stop: int, seq: int
) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", [], log.row(5, 3))
    refused = await caller.put_segment(log, seq, log.segment(start, stop))
    assert refused.outcome == (409, "segment_order")
    assert refused.json["end"] == log.end(5, next_seq=3)
    assert (await caller.put_segment(log, 3, log.segment(5, 7))).status == 201


async def test_segment_above_the_floor_has_no_preamble(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    await caller.commit(first, "one", [], log.row(5, 3))
    piece = log.preamble + log.pieces[5]
    for content in (segment(len(log.content(5)), 5, log.chain(5), piece), segment(0, 0, bytes(32), piece)):
        assert (await caller.put_segment(log, 3, content)).outcome == (422, "segment_invalid")


async def test_owner_is_known_without_the_logs_beginning(
    caller: Caller, first: Draft, second: Draft, log: Log, other_caller: Caller
) -> None:
    await caller.register(first, second)
    await caller.push(log, BOUNDS)
    await caller.commit(second, "one", [], log.row(5, 3))
    content = log.segment(5, 7)
    assert (await other_caller.put_segment(log, 3, content, "bob")).outcome == (403, "key_forbidden")
    assert (await other_caller.put_segment(log, 3, content, "bob", query=REFILL)).status == 201


async def test_epoch_is_known_without_the_logs_beginning(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    floor = await caller.commit(first, "one", [], log.row(5, 3))
    await caller.register(floor.next("alice").new_epoch())
    content = log.segment(5, 7)
    assert (await caller.put_segment(log, 3, content)).outcome == (409, "epoch_ended")
    assert (await caller.put_segment(log, 3, content, query=REFILL)).status == 201


async def test_ended_owners_log_goes_as_far_as_it_is_named(caller: Caller, first: Draft, second: Draft) -> None:
    log = Log(first.vault, private_key("bob"), 1, first.digest()).append(8)
    await caller.register(first, second)
    await caller.push(log, BOUNDS, "bob")
    floor = await caller.commit(second, "one", [], log.row(5, 3))
    await caller.register(floor.next("alice").new_epoch().end(1, [log.stream_end(7)]))
    too_far = await caller.put_segment(log, 3, log.segment(5, 8), query=REFILL)
    assert too_far.outcome == (409, "stream_ended")
    assert (await caller.put_segment(log, 3, log.segment(5, 7), query=REFILL)).status == 201


# Heads.


async def test_heads_name_the_newest_floor(caller: Caller, first: Draft, log: Log) -> None:
    await register_and_push(caller, first, log)
    tag = (await caller.get_heads(first.vault)).headers["ETag"]
    one = await caller.commit(first, "one", ["a"], log.row(4, 2))
    heads = await caller.get_heads(first.vault, more_headers={"If-None-Match": tag})
    assert heads.json == {
        "keyring": {"version": 2, "digest": one.digest().hex(), "whole": True},
        "floor": {"checkpoint": object_id("one").hex(), "whole": True},
        "logs": {log.stream.hex(): log.end(5, next_seq=3)},
    }
    await caller.register(one.next("alice").add("carol"))
    assert (await caller.get_heads(first.vault)).json["floor"] == heads.json["floor"]


async def test_heads_say_whether_the_floors_checkpoint_is_here(caller: Caller, first: Draft) -> None:
    floor = first.next("alice").floor("one", ["a", "b"])
    for draft in (first, floor):
        assert (await caller.put_version(draft, query=REFILL)).status == 201
    heads = [await caller.get_heads(first.vault)]
    await caller.put_part(first.vault, "b", part(first.vault, "b"))
    heads.append(await caller.get_heads(first.vault))
    await caller.put_manifest(first.vault, "one", manifest(first.vault, "one"))
    heads.append(await caller.get_heads(first.vault))
    await caller.put_part(first.vault, "a", part(first.vault, "a"))
    heads.append(await caller.get_heads(first.vault))
    assert [answer.json["floor"]["whole"] for answer in heads] == [False, False, False, True]
    tags = [answer.headers["ETag"] for answer in heads]
    assert tags == [tags[0]] * 3 + [tags[3]]
    assert tags[3] != tags[0]


async def test_another_manifest_does_not_make_a_floor_whole(caller: Caller, first: Draft) -> None:
    floor = first.next("alice").floor("one")
    for draft in (first, floor):
        await caller.put_version(draft, query=REFILL)
    other = preamble(3, 1, first.vault, object_id("one"), bytes(12)) + record(0, bytes(1_096))
    assert (await caller.put_manifest(first.vault, "one", other)).status == 201
    assert (await caller.get_heads(first.vault)).json["floor"]["whole"] is False
