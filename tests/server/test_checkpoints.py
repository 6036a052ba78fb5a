"""Manifests and parts: stored once, given whole or in ranges, refused where their form is broken."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import ClientPayloadError
from yarl import URL

from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from tests.server.building import (
    BODY_SIZE,
    Draft,
    Signing,
    manifest,
    object_id,
    part,
    preamble,
    private_key,
    record,
    some_bytes,
)
from tests.server.calling import Answer, Caller

INVALID = (422, "object_invalid")

Put = Callable[..., Awaitable[Answer]]
Change = Callable[[bytes], bytes]


def both(caller: Caller) -> list[tuple[Put, Put, Callable[[bytes, str], bytes]]]:
    return [(caller.put_manifest, caller.get_manifest, manifest), (caller.put_part, caller.get_part, part)]


async def test_object_is_given_as_it_was_put(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for put, get, make in both(caller):
        assert (await get(first.vault, "one")).outcome == (404, "not_found")
        assert (await put(first.vault, "one", make(first.vault, "one"))).outcome == (201, "")
        answer = await get(first.vault, "one")
        assert (answer.status, answer.body) == (200, make(first.vault, "one"))
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Accept-Ranges"] == "bytes"


async def test_same_object_again_is_there_already(caller: Caller, first: Draft, other_caller: Caller) -> None:
    await caller.register(first)
    for put, _, make in both(caller):
        await put(first.vault, "one", make(first.vault, "one"))
        assert (await put(first.vault, "one", make(first.vault, "one"))).outcome == (200, "")
    assert (await other_caller.put_part(first.vault, "one", part(first.vault, "one"))).outcome == (200, "")


async def test_other_bytes_under_an_id_are_a_conflict(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_part(first.vault, "one", part(first.vault, "one"))
    other = preamble(3, 0, first.vault, object_id("one"), bytes(12)) + record(0, some_bytes("other", BODY_SIZE))
    for content in (other, part(first.vault, "one", 2)):
        assert (await caller.put_part(first.vault, "one", content)).outcome == (409, "object_conflict")
    assert (await caller.get_part(first.vault, "one")).body == part(first.vault, "one")


async def test_one_of_two_racing_objects_wins(caller: Caller, other_caller: Caller, first: Draft) -> None:
    await caller.register(first)
    contents = [part(first.vault, "one", 1 + number % 2) for number in range(8)]
    callers = [caller, caller, other_caller, other_caller] * 2
    answers = await asyncio.gather(
        *(each.put_part(first.vault, "one", content) for each, content in zip(callers, contents, strict=True))
    )
    outcomes = sorted(answer.outcome for answer in answers)
    assert outcomes == [(200, "")] * 3 + [(201, "")] + [(409, "object_conflict")] * 4


async def test_manifest_and_part_of_one_id_are_two_objects(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_part(first.vault, "one", part(first.vault, "one"))
    assert (await caller.get_manifest(first.vault, "one")).outcome == (404, "not_found")


# Who may.


async def test_only_active_devices_put_objects(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second, second.next("alice").new_epoch().end(1))
    keys = {"epoch 2": (403, "key_forbidden"), "kit 1": (403, "key_forbidden"), "bob": (401, "key_ended")}
    for key, outcome in {**keys, "stranger": (401, "key_unknown"), "epoch 1": (401, "key_unknown")}.items():
        for put, _, make in both(caller):
            assert (await put(first.vault, "one", make(first.vault, "one"), key)).outcome == outcome
            answer = await put(first.vault, "one", make(first.vault, "one"), key, query="refill=true")
            assert answer.outcome == outcome
    assert await caller.there(first.vault, "one") == []


async def test_devices_and_the_epoch_key_read_objects(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_checkpoint(first.vault, "one", "one")
    for _, get, make in both(caller):
        assert (await get(first.vault, "one", "epoch 1")).body == make(first.vault, "one")
        assert (await get(first.vault, "one", "kit 1")).outcome == (403, "key_forbidden")
        assert (await get(first.vault, "one", "stranger")).outcome == (401, "key_unknown")


async def test_object_of_an_unknown_vault_is_refused(caller: Caller, first: Draft) -> None:
    for put, get, make in both(caller):
        assert (await put(first.vault, "one", make(first.vault, "one"))).outcome == (404, "vault_unknown")
        assert (await get(first.vault, "one")).outcome == (404, "vault_unknown")


async def test_put_that_comes_twice_is_refused_once(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    content = part(first.vault, "one")
    path = f"/v1/vaults/{first.vault.hex()}/parts/{object_id('one').hex()}"
    headers = Signing(private_key("alice"), caller.origin, "PUT", path, body=content).headers()
    assert (await caller.send_as_is("PUT", path, headers, content)).status == 201
    assert (await caller.send_as_is("PUT", path, headers, content)).outcome == (401, "signature_replayed")
    assert (await caller.send_as_is("PUT", path, headers, content + b"x")).outcome == (400, "content_digest")


@pytest.mark.parametrize("name", ["0" * 31, "0" * 33, "0" * 31 + "A"])
@pytest.mark.parametrize("folder", ["checkpoints", "parts"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_path_without_an_id_is_refused(caller: Caller, first: Draft, method: str, folder: str, name: str) -> None:
    await caller.register(first)
    content = {"GET": None, "PUT": b"x"}[method]
    answer = await caller.send(method, f"/v1/vaults/{first.vault.hex()}/{folder}/{name}", body=content)
    assert answer.outcome == (400, "request_invalid")


# Form.


def made(vault: bytes, *records: bytes, **parts: object) -> bytes:
    values = {"kind": 3, "epoch": 0, "vault": vault, "stream": object_id("one"), "nonce": bytes(12), **parts}
    return preamble(**values) + b"".join(records)  # type: ignore[arg-type]


def body(name: str = "body", size: int = BODY_SIZE) -> bytes:
    return some_bytes(name, size)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda vault: b"", id="empty"),
        pytest.param(lambda vault: part(vault, "one")[:63], id="half a preamble"),
        pytest.param(lambda vault: made(vault), id="no record"),
        pytest.param(lambda vault: part(vault, "one")[:-1], id="cut off"),
        pytest.param(lambda vault: part(vault, "one") + b"\x00", id="more bytes"),
        pytest.param(lambda vault: part(vault, "one") + record(1, body())[:11], id="half a record header"),
        pytest.param(lambda vault: made(vault, record(1, body())), id="a record left out"),
        pytest.param(lambda vault: made(vault, record(0, body()), record(0, body())), id="an index twice"),
        pytest.param(lambda vault: made(vault, record(0, bytes(BODY_SIZE - 1))), id="a record smaller than any"),
        pytest.param(lambda vault: made(vault, record(0, body()), kind=2), id="a log"),
        pytest.param(lambda vault: made(vault, record(0, body()), kind=4), id="a media item"),
        pytest.param(lambda vault: made(bytes(16), record(0, body())), id="another vault"),
        pytest.param(lambda vault: part(vault, "two"), id="another id"),
        pytest.param(lambda vault: made(vault, record(0, body()), epoch=1), id="a manifest"),
    ],
)
async def test_broken_part_is_refused(caller: Caller, first: Draft, change: Change) -> None:
    await caller.register(first)
    assert (await caller.put_part(first.vault, "one", change(first.vault))).outcome == INVALID
    assert (await caller.get_part(first.vault, "one")).outcome == (404, "not_found")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda vault: made(vault, epoch=1), id="no record"),
        pytest.param(lambda vault: made(vault, record(0, body()), record(1, body()), epoch=1), id="two records"),
        pytest.param(lambda vault: made(vault, record(0, body())), id="a part"),
        pytest.param(lambda vault: manifest(vault, "two"), id="another id"),
        pytest.param(lambda vault: manifest(vault, "one") + b"\x00", id="more bytes"),
    ],
)
async def test_broken_manifest_is_refused(caller: Caller, first: Draft, change: Change) -> None:
    await caller.register(first)
    assert (await caller.put_manifest(first.vault, "one", change(first.vault))).outcome == INVALID
    assert (await caller.get_manifest(first.vault, "one")).outcome == (404, "not_found")


@pytest.mark.parametrize("position", [*range(16), *range(60, 76)])
async def test_any_flipped_byte_of_what_is_readable_is_refused(caller: Caller, first: Draft, position: int) -> None:
    await caller.register(first)
    content = bytearray(part(first.vault, "one"))
    content[position] ^= 1
    assert (await caller.put_part(first.vault, "one", bytes(content))).outcome == INVALID


# Size.


async def test_greatest_record_fits(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    content = part(first.vault, "one", 1, 64 * 1024 * 1024)
    assert (await caller.put_part(first.vault, "one", content)).status == 201
    assert (await caller.get_part(first.vault, "one")).body == content


async def test_object_of_more_than_64_mib_and_4_kib_is_too_large(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    content = bytes(64 * 1024 * 1024 + 4 * 1024 + 1)
    for put, _, _ in both(caller):
        assert (await put(first.vault, "one", content)).outcome == (413, "too_large")
    assert (await caller.put_part(first.vault, "one", content[:-1])).outcome == INVALID


class TestSmallObjects:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_object_bytes=1_500)

    async def test_operators_limit_counts(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        assert (await caller.put_part(first.vault, "one", part(first.vault, "one", 2))).outcome == (413, "too_large")
        assert (await caller.put_part(first.vault, "one", part(first.vault, "one"))).status == 201


class TestFullVault:
    @pytest.fixture
    def limits(self, first: Draft) -> Limits:
        # Checkpoints may go as far beyond the vault's limit again.
        return Limits(max_vault_bytes=(len(first.build()) + 2_000) // 2)

    async def test_object_beyond_the_limit_is_refused_and_the_rest_goes_on(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        assert (await caller.put_part(first.vault, "one", part(first.vault, "one"))).status == 201
        refused = await caller.put_part(first.vault, "two", part(first.vault, "two"))
        assert refused.outcome == (507, "limit")
        assert refused.json["limit"] == (len(first.build()) + 2_000) // 2
        assert (await caller.put_part(first.vault, "one", part(first.vault, "one"))).status == 200
        assert await caller.there(first.vault, "one", "two") == ["one"]


# Ranges.

LONG = 3 * 1024 * 1024 + 5


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-", 0, LONG),
        ("bytes=64-99", 64, 100),
        ("bytes=1048570-2097160", 1_048_570, 2_097_161),
        (f"bytes=10-{10**12}", 10, LONG),
        ("bytes=-7", LONG - 7, LONG),
        (f"bytes={LONG - 1}-", LONG - 1, LONG),
    ],
)
async def test_range_of_an_object_is_that_range(
    caller: Caller, first: Draft, asked: str, start: int, stop: int
) -> None:
    await caller.register(first)
    content = part(first.vault, "one", 1, LONG - 76)
    await caller.put_part(first.vault, "one", content)
    answer = await caller.get_part(first.vault, "one", more_headers={"Range": asked})
    assert (answer.status, answer.body) == (206, content[start:stop])
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{LONG}"


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=5-2", "bytes=-", "bytes=x-y", "lines=0-1", "0-1", "bytes"])
async def test_range_of_another_kind_is_passed_over(caller: Caller, first: Draft, asked: str) -> None:
    await caller.register(first)
    await caller.put_part(first.vault, "one", part(first.vault, "one"))
    answer = await caller.get_part(first.vault, "one", more_headers={"Range": asked})
    assert (answer.status, answer.body) == (200, part(first.vault, "one"))


async def test_range_on_a_condition_is_passed_over(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    await caller.put_part(first.vault, "one", part(first.vault, "one"))
    headers = {"Range": "bytes=0-1", "If-Range": '"x"'}
    answer = await caller.get_part(first.vault, "one", more_headers=headers)
    assert (answer.status, answer.body) == (200, part(first.vault, "one"))


@pytest.mark.parametrize("beyond", [0, 1, 10**15])
async def test_range_beyond_the_object_is_refused(caller: Caller, first: Draft, beyond: int) -> None:
    await caller.register(first)
    content = part(first.vault, "one")
    await caller.put_part(first.vault, "one", content)
    answer = await caller.get_part(first.vault, "one", more_headers={"Range": f"bytes={len(content) + beyond}-"})
    assert answer.outcome == (416, "log_range")
    assert answer.headers["Content-Range"] == f"bytes */{len(content)}"


async def test_object_that_is_deleted_while_it_is_sent_breaks_off(
    caller: Caller, first: Draft, store: BlobStore
) -> None:
    await caller.register(first)
    # More than lies in the buffers between a server and a client that does not read.
    await caller.put_part(first.vault, "one", part(first.vault, "one", 1, 48 * 1024 * 1024))
    path = f"/v1/vaults/{first.vault.hex()}/parts/{object_id('one').hex()}"
    headers = Signing(private_key("alice"), caller.origin, "GET", path).headers()
    async with caller.session.get(URL(caller.origin + path), headers=headers) as response:
        assert response.status == 200
        await store.delete([f"{first.vault.hex()}/parts/{object_id('one').hex()}"])
        # Sooner than an idle connection is closed.
        async with asyncio.timeout(50):
            with pytest.raises((ClientPayloadError, ConnectionError)):
                await response.read()
    assert (await caller.get_part(first.vault, "one")).outcome == (404, "not_found")
