"""Segments broken in one place each (sync-protocol §4)."""

from collections.abc import Callable

import pytest

from tests.server.building import BODY_SIZE, Draft, Log, preamble, private_key, record, segment, sha256
from tests.server.calling import Caller

Change = Callable[[Log], bytes]
INVALID = (422, "segment_invalid")


def flipped(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)


def first_piece(log: Log) -> bytes:
    return log.segment(0, 1)[52:]


def with_preamble(log: Log, **parts: object) -> bytes:
    nonce = log.preamble[48:60]
    values = {"kind": 2, "epoch": log.epoch, "vault": log.vault, "stream": log.stream, "nonce": nonce, **parts}
    return segment(0, 0, bytes(32), preamble(**values) + log.pieces[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda log: b"", id="empty"),
        pytest.param(lambda log: log.segment(0, 1)[:51], id="half a header"),
        pytest.param(lambda log: log.segment(0, 1)[:52], id="no piece"),
        pytest.param(lambda log: log.segment(0, 1)[:-1], id="cut off"),
        pytest.param(lambda log: log.segment(0, 1) + b"\x00", id="more bytes than it says"),
        pytest.param(lambda log: segment(0, 0, bytes(32), first_piece(log), 10**18), id="a length that lies"),
        pytest.param(lambda log: segment(1, 0, bytes(32), first_piece(log)), id="start"),
        pytest.param(lambda log: segment(0, 1, bytes(32), first_piece(log)), id="first index"),
        pytest.param(lambda log: segment(0, 0, b"\x01" * 32, first_piece(log)), id="chain"),
        pytest.param(lambda log: segment(0, 0, bytes(32), log.preamble), id="no record"),
        pytest.param(lambda log: segment(0, 0, bytes(32), log.preamble[:63]), id="half a preamble"),
        pytest.param(lambda log: segment(0, 0, bytes(32), first_piece(log)[:-1]), id="torn record"),
        pytest.param(
            lambda log: segment(0, 0, bytes(32), first_piece(log) + log.pieces[1][:11]), id="half a record header"
        ),
        pytest.param(lambda log: segment(0, 0, bytes(32), log.preamble + log.pieces[1]), id="a record left out"),
        pytest.param(
            lambda log: segment(0, 0, bytes(32), log.preamble + record(0, bytes(BODY_SIZE - 1))),
            id="a record smaller than any",
        ),
        pytest.param(
            lambda log: segment(0, 0, bytes(32), log.preamble + flipped(log.pieces[0], 8)), id="record header"
        ),
        pytest.param(lambda log: with_preamble(log, kind=1), id="kind"),
        pytest.param(lambda log: with_preamble(log, epoch=0), id="epoch 0"),
        pytest.param(lambda log: with_preamble(log, epoch=2), id="an epoch to come"),
        pytest.param(lambda log: with_preamble(log, vault=bytes(16)), id="another vault"),
        pytest.param(lambda log: with_preamble(log, stream=bytes(16)), id="another stream"),
        pytest.param(lambda log: with_preamble(log, nonce=bytes(12)), id="another nonce"),
    ],
)
async def test_broken_first_segment_is_refused(caller: Caller, first: Draft, log: Log, change: Change) -> None:
    await caller.register(first)
    assert (await caller.put_segment(log, 0, change(log))).outcome == INVALID
    assert (await caller.get_log(log)).outcome == (404, "not_found")


@pytest.mark.parametrize("position", range(64))
async def test_any_flipped_byte_of_the_preamble_is_refused(
    caller: Caller, first: Draft, log: Log, position: int
) -> None:
    await caller.register(first)
    content = flipped(log.segment(0, 1), 52 + position)
    assert (await caller.put_segment(log, 0, content)).outcome == INVALID


@pytest.mark.parametrize("position", range(12))
async def test_any_flipped_byte_of_a_record_header_is_refused(
    caller: Caller, first: Draft, log: Log, position: int
) -> None:
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    content = flipped(log.segment(1, 3), 52 + position)
    assert (await caller.put_segment(log, 1, content)).outcome == INVALID
    assert (await caller.put_segment(log, 1, log.segment(1, 3))).status == 201


async def test_log_that_began_on_another_keyring_is_refused(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    log = Log(first.vault, private_key("alice"), 1, bytes(32)).append()
    assert (await caller.put_segment(log, 0, log.segment(0, 1))).outcome == INVALID


async def test_log_of_a_key_that_no_entry_has_is_refused(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    log = Log(first.vault, private_key("stranger"), 1, first.digest()).append()
    assert (await caller.put_segment(log, 0, log.segment(0, 1))).outcome == INVALID
    answer = await caller.put_segment(log, 0, log.segment(0, 1), query="refill=true")
    assert answer.outcome == INVALID


# Whose log it is.


@pytest.fixture
def bobs_log(first: Draft) -> Log:
    return Log(first.vault, private_key("bob"), 1, first.digest()).append(4)


async def test_another_devices_log_is_only_put_back_with_refill(
    caller: Caller, first: Draft, second: Draft, bobs_log: Log
) -> None:
    await caller.register(first, second)
    answer = await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 2))
    assert answer.outcome == (403, "key_forbidden")
    assert (await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 2), query="refill=true")).status == 201
    assert (await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 2), "bob")).status == 200
    assert (await caller.put_segment(bobs_log, 1, bobs_log.segment(2, 4))).outcome == (403, "key_forbidden")
    assert (await caller.put_segment(bobs_log, 1, bobs_log.segment(2, 4), "bob")).status == 201


async def test_ended_devices_log_goes_as_far_as_the_keyring_names_it(
    caller: Caller, first: Draft, second: Draft, bobs_log: Log
) -> None:
    third = second.next("alice").new_epoch().end(1, [bobs_log.stream_end(2)])
    await caller.register(first, second, third)
    refill = {"query": "refill=true"}
    too_far = await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 3), **refill)
    assert too_far.outcome == (409, "stream_ended")
    assert (await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 1), **refill)).status == 201
    assert (await caller.put_segment(bobs_log, 1, bobs_log.segment(1, 3), **refill)).outcome == (
        409,
        "stream_ended",
    )
    assert (await caller.put_segment(bobs_log, 1, bobs_log.segment(1, 2), **refill)).status == 201
    assert (await caller.put_segment(bobs_log, 2, bobs_log.segment(2, 3), **refill)).outcome == (
        409,
        "stream_ended",
    )
    assert (await caller.get_log(bobs_log)).body == bobs_log.content(2)


async def test_ended_devices_log_that_the_keyring_does_not_name_is_refused(
    caller: Caller, first: Draft, second: Draft, bobs_log: Log
) -> None:
    await caller.register(first, second, second.next("alice").new_epoch().end(1))
    answer = await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 1), query="refill=true")
    assert answer.outcome == (409, "stream_ended")


async def test_ended_devices_log_with_another_chain_at_its_end_is_refused(
    caller: Caller, first: Draft, second: Draft, bobs_log: Log
) -> None:
    named = bobs_log.stream_end(2)
    named[2] = sha256(b"another branch")
    await caller.register(first, second, second.next("alice").new_epoch().end(1, [named]))
    answer = await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 2), query="refill=true")
    assert answer.outcome == (409, "stream_ended")


async def test_log_of_an_older_epoch_is_only_put_back_with_refill(
    caller: Caller, first: Draft, second: Draft, bobs_log: Log
) -> None:
    await caller.register(first, second)
    assert (await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 1), "bob")).status == 201
    third = second.next("alice").new_epoch()
    fourth = third.next("alice").new_epoch()
    await caller.register(third, fourth)
    again = await caller.put_segment(bobs_log, 0, bobs_log.segment(0, 1), "bob")
    assert again.status == 200
    late = await caller.put_segment(bobs_log, 1, bobs_log.segment(1, 2), "bob")
    assert late.outcome == (409, "epoch_ended")
    refilled = await caller.put_segment(bobs_log, 1, bobs_log.segment(1, 2), "bob", query="refill=true")
    assert refilled.status == 201


async def test_log_of_each_epoch_begins_on_the_version_that_began_it(
    caller: Caller, first: Draft, second: Draft
) -> None:
    third = second.next("alice").new_epoch()
    fourth = third.next("alice").add("carol")
    fifth = fourth.next("alice").new_epoch()
    await caller.register(first, second, third, fourth, fifth)
    begun_by = {1: first, 2: third, 3: fifth}
    for epoch, draft in begun_by.items():
        log = Log(first.vault, private_key("alice"), epoch, draft.digest()).append()
        wrong = Log(first.vault, private_key("alice"), epoch, fourth.digest()).append()
        refill = {"query": "refill=true"}
        assert (await caller.put_segment(wrong, 0, wrong.segment(0, 1), **refill)).outcome == INVALID
        assert (await caller.put_segment(log, 0, log.segment(0, 1), **refill)).status == 201


async def test_device_that_replaced_its_keys_goes_on_in_a_new_stream(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 3))
    second = first.next("alice").new_epoch().end(0, [log.stream_end()]).add("alice:2")
    await caller.register(second)
    assert (await caller.get_heads(first.vault)).outcome == (401, "key_ended")
    fresh = Log(first.vault, private_key("alice:2"), 2, second.digest()).append()
    assert (await caller.put_segment(fresh, 0, fresh.segment(0, 1), "alice:2")).status == 201
    logs = (await caller.get_heads(first.vault, "alice:2")).json["logs"]
    assert logs == {log.stream.hex(): log.end(next_seq=1), fresh.stream.hex(): fresh.end(next_seq=1)}


async def test_segment_over_68_mib_is_refused_before_it_is_sent(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/0"
    # Only the length says so: nothing of the body is needed to refuse it.
    answer = await caller.send("PUT", path, body=b"x", more_headers={"Content-Length": str(68 * 1024 * 1024 + 1)})
    assert answer.outcome == (413, "too_large")
