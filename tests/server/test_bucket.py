"""What the store makes of what buckets, proxies and lines do to it; over SeaweedFS where nothing else is said."""

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Mapping
from typing import cast

import boto3
import pytest
from aiohttp import ClientSession

from memseal_server.blobs import AlreadyThere, Info, Listed, Run, Stored, StoreUnavailable, Usage, bucket, numbered, s3
from memseal_server.blobs.bucket import BucketStore
from memseal_server.blobs.s3 import Bucket, Checksums
from memseal_server.limits import Limits
from memseal_server.listening import listen
from tests.ports import own_port
from tests.server.building import Draft, Log, some_bytes
from tests.server.calling import Caller
from tests.server.meddling import Meddler, is_put, meddling, of_method
from tests.server.seaweed import BUCKET

MEBIBYTE = 1024 * 1024


@pytest.fixture
async def meddler(
    seaweed: Mapping[str, str], seaweed_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Meddler]:
    async with meddling(seaweed["AWS_ENDPOINT_URL_S3"]) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", running.endpoint)
        yield running


@pytest.fixture
async def store(seaweed_bucket: str, meddler: Meddler) -> AsyncIterator[BucketStore]:
    """A store whose requests all go through the meddler."""
    opened = await BucketStore.open(seaweed_bucket)
    yield opened
    await opened.close()


# Checksums and sizes.


@pytest.mark.parametrize("server", ["moto", "seaweed"])
@pytest.mark.parametrize("checksums", ["when_required", "when_supported"])
async def test_bodies_of_any_size_are_put_and_read_in_either_mode_of_checksums(
    request: pytest.FixtureRequest, server: str, checksums: str
) -> None:
    prefix = request.getfixturevalue(f"{server}_bucket").removeprefix(f"s3://{BUCKET}/")
    store = BucketStore(await Bucket.open(BUCKET, prefix + "/", cast("Checksums", checksums)))
    for size in (0, 1, 5 * MEBIBYTE + 1):
        content = some_bytes("content", size)
        assert await store.put_new(f"a/{size:09}", content) == Stored()
        assert await store.get(f"a/{size:09}") == content
        assert await store.put_new(f"a/{size:09}", b"x") == AlreadyThere(size, hashlib.sha256(content).digest())
    await store.close()


async def test_largest_segment_is_put_at_once_and_read_in_pieces(seaweed_bucket: str) -> None:
    store = await BucketStore.open(seaweed_bucket)
    content = some_bytes("content", MEBIBYTE) * 68
    assert await store.put_new("a/1", content) == Stored()
    assert await store.head("a/1") is not None
    for start in (0, 33 * MEBIBYTE - 7, 68 * MEBIBYTE - 5):
        assert await store.get("a/1", start, start + 10) == content[start : start + 10]
    await store.close()


# Answers that are lost, or say "again".


async def test_put_whose_answer_was_lost_knows_its_own_object(store: BucketStore, meddler: Meddler) -> None:
    meddler.lost.append(is_put)
    assert await store.put_new("a/1", b"x") == Stored()
    assert meddler.seen.count("PUT") == 2
    assert await store.put_new("a/1", b"x") == AlreadyThere(1, hashlib.sha256(b"x").digest())


async def test_put_whose_answer_was_lost_does_not_take_the_same_bytes_of_another_for_its_own(
    store: BucketStore, meddler: Meddler
) -> None:
    await store.put_new("a/1", b"x")
    meddler.lost.append(is_put)
    assert await store.put_new("a/1", b"x") == AlreadyThere(1, hashlib.sha256(b"x").digest())


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "ConditionalRequestConflict"),
        (500, "InternalError"),
        (503, "SlowDown"),
        (429, "TooManyRequests"),
        (400, "RequestTimeout"),
    ],
)
async def test_put_that_is_told_to_come_again_comes_again_with_the_same_key(
    store: BucketStore, meddler: Meddler, status: int, code: str
) -> None:
    meddler.answered += [(is_put, status, code)] * 2
    assert await store.put_new("a/1", b"x") == Stored()
    assert meddler.seen.count("PUT") == 3
    assert await store.listed("", "", 9) == [Listed("a/1", 1)]


async def test_put_that_breaks_off_before_its_body_leaves_nothing_under_its_key(
    store: BucketStore, meddler: Meddler
) -> None:
    meddler.torn += [is_put] * 6
    with pytest.raises(StoreUnavailable):
        await store.put_new("a/1", b"x")
    assert meddler.torn == []
    assert await store.listed("", "", 9) == []
    assert await store.put_new("a/1", b"y") == Stored()
    assert await store.get("a/1") == b"y"


@pytest.mark.parametrize("checks", [True, False], ids=["checked", "unchecked"])
async def test_put_that_broke_off_before_its_body_is_whole_when_it_is_acknowledged(
    store: BucketStore, meddler: Meddler, monkeypatch: pytest.MonkeyPatch, checks: bool
) -> None:
    if not checks:  # the bucket keeps what had come: nothing
        monkeypatch.setattr(s3, "_checked", lambda content: dict[str, str]())
    meddler.torn.append(is_put)
    assert await store.put_new("a/1", b"x") == Stored()
    assert await store.get("a/1") == b"x"
    assert (meddler.torn, meddler.seen.count("DELETE")) == ([], 0 if checks else 1)


async def test_reads_and_deletes_whose_answers_are_lost_are_asked_again(store: BucketStore, meddler: Meddler) -> None:
    await store.put_new("a/1", b"x")
    meddler.lost += [of_method(method) for method in ("GET", "HEAD", "GET", "DELETE")]
    assert await store.get("a/1") == b"x"
    assert await store.missing(["a/1"]) == []
    assert await store.listed("", "", 9) == [Listed("a/1", 1)]
    await store.delete(["a/1"])
    assert await store.get("a/1") is None
    assert meddler.lost == []


async def test_body_that_was_cut_off_is_asked_for_again(store: BucketStore, meddler: Meddler) -> None:
    content = some_bytes("content", MEBIBYTE)
    await store.put_new("a/1", content)
    meddler.cut += [of_method("GET")] * 2
    assert await store.get("a/1") == content
    assert await store.get("a/1", 100, 900_000) == content[100:900_000]
    assert meddler.cut == []


async def test_bucket_that_never_answers_is_unavailable(
    seaweed_bucket: str, meddler: Meddler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_READ_SECONDS", 0.2)
    store = await BucketStore.open(seaweed_bucket)
    meddler.holds = True
    with pytest.raises(StoreUnavailable):
        await store.put_new("a/1", b"x")
    with pytest.raises(StoreUnavailable):
        await store.check()
    meddler.holds = False
    assert await store.put_new("a/1", b"x") == Stored()
    await store.close()


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (400, "InvalidRequest"), (404, "NoSuchBucket")])
async def test_refusal_is_told_with_its_code_and_not_asked_again(
    store: BucketStore, meddler: Meddler, status: int, code: str
) -> None:
    meddler.answered.append((is_put, status, code))
    with pytest.raises(StoreUnavailable, match=code):
        await store.put_new("a/1", b"x")
    assert meddler.seen.count("PUT") == 1


async def test_bucket_that_only_says_again_is_unavailable(store: BucketStore, meddler: Meddler) -> None:
    meddler.answered += [(lambda request: True, 503, "SlowDown")] * 6
    with pytest.raises(StoreUnavailable):
        await store.get("a/1")
    assert await store.get("a/1") is None


async def test_key_that_is_taken_by_nothing_is_an_error(store: BucketStore, meddler: Meddler) -> None:
    meddler.answered += [(is_put, 412, "PreconditionFailed")] * 6
    with pytest.raises(StoreUnavailable):
        await store.put_new("a/1", b"x")


# What others do to a bucket.


async def test_tags_and_times_that_a_proxy_rewrites_change_nothing(store: BucketStore, meddler: Meddler) -> None:
    meddler.rewrites = True
    for number in range(3):
        assert await store.put_new(numbered("a/", number), b"x") == Stored()
    assert await store.put_new(numbered("a/", 1), b"yy") == AlreadyThere(1, hashlib.sha256(b"x").digest())
    assert await store.last([Run("a/", 0), Run("b/", 0)]) == [2, None]
    assert [length for _, length in await store.listed("a/", "", 9)] == [1, 1, 1]
    assert await store.get(numbered("a/", 1), 0, 5) == b"x"


async def test_object_that_lost_its_metadata_is_read_to_know_its_digest(
    store: BucketStore, seaweed_bucket: str
) -> None:
    prefix = seaweed_bucket.removeprefix(f"s3://{BUCKET}/")
    content = some_bytes("content", MEBIBYTE)
    # In a thread: the meddler needs this one.
    await asyncio.to_thread(lambda: boto3.client("s3").put_object(Bucket=BUCKET, Key=f"{prefix}/a/1", Body=content))
    found = AlreadyThere(MEBIBYTE, hashlib.sha256(content).digest())
    assert await store.put_new("a/1", b"x") == found
    assert await store.head("a/1") == Info(found.length, found.digest)
    assert await store.get("a/1") == content


async def test_prefixes_keep_stores_of_one_bucket_apart(seaweed_bucket: str) -> None:
    stores = [await BucketStore.open(seaweed_bucket + suffix) for suffix in ("/a", "/a/", "/ab", "/b")]
    for store in stores[1:]:
        assert await store.put_new("k/1", b"x") == Stored()
        assert await store.listed("", "", 9) == [Listed("k/1", 1)]
    assert await stores[0].get("k/1") == b"x"
    for store in stores:
        await store.close()


async def test_usage_is_counted_on_and_seen_by_others_later(store: BucketStore, seaweed_bucket: str) -> None:
    await store.put_new("a/1", b"123")
    assert (await store.usage("a/")).bytes == 3
    await store.put_new("a/2", b"4567")
    await store.put_new("b/1", b"8")
    assert (await store.usage("a/")).bytes == 7
    await store.delete(["a/1"])
    assert (await store.usage("a/")).objects == 1


async def test_usage_by_others_is_seen_after_a_while_and_nobody_waits_for_it(
    store: BucketStore, meddler: Meddler, seaweed_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "_USAGE_SECONDS", 0.0)
    other = await BucketStore.open(seaweed_bucket)
    await store.put_new("a/1", b"123")
    assert await asyncio.gather(*(store.usage("a/") for _ in range(9))) == [Usage(1, 3)] * 9
    assert meddler.seen.count("GET") == 2  # one page, and the end
    await other.put_new("a/2", b"4567")
    assert await store.usage("a/") == Usage(1, 3)
    await asyncio.gather(*store._recounts)
    assert await store.usage("a/") == Usage(2, 7)
    await other.close()


@pytest.mark.parametrize("address", ["s3://", "s3://A", "s3://bucket/a b", "s3://bucket?x=1"])
async def test_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(StoreUnavailable, match="s3://bucket"):
        await BucketStore.open(address)


# A bucket that is away.


async def test_server_says_that_its_bucket_is_away_and_goes_on_when_it_is_back(
    seaweed: Mapping[str, str],
    seaweed_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    session: ClientSession,
    first: Draft,
    log: Log,
) -> None:
    target = seaweed["AWS_ENDPOINT_URL_S3"]
    async with meddling(target, own_port()) as meddler:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", meddler.endpoint)
        store = await BucketStore.open(seaweed_bucket)
        listener = await listen(store, Limits(), host="127.0.0.1", port=0)
        caller = Caller(session, listener.origin)
        await caller.register(first)
        await caller.push(log, [0, 1])
        assert (await caller.send_as_is("GET", "/readyz")).status == 200
    assert (await caller.send_as_is("GET", "/readyz")).outcome == (503, "store_unavailable")
    assert (await caller.send_as_is("GET", "/healthz")).status == 200
    assert (await caller.get_heads(first.vault)).outcome == (503, "store_unavailable")
    assert (await caller.put_segment(log, 1, log.segment(1, 3))).outcome == (503, "store_unavailable")
    async with meddling(target, meddler.port):
        assert (await caller.send_as_is("GET", "/readyz")).status == 200
        assert (await caller.put_segment(log, 1, log.segment(1, 3))).status == 201
        assert await caller.end_of(log) == log.end(3, next_seq=2)
        await listener.close()
        await store.close()


async def test_racing_puts_through_a_line_that_loses_answers_have_one_winner(
    store: BucketStore, meddler: Meddler
) -> None:
    turns = itertools.count()
    meddler.lost += [lambda request: is_put(request) and next(turns) % 2 == 0] * 3
    contents = [some_bytes(f"racer {number}", 100) for number in range(6)]
    outcomes = await asyncio.gather(*(store.put_new("a/1", content) for content in contents))
    [winner] = [content for content, outcome in zip(contents, outcomes, strict=True) if outcome == Stored()]
    assert await store.get("a/1") == winner
