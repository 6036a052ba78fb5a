"""What every store must do; a new implementation joins `STORES`."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from memseal_server.blobs import (
    AlreadyThere,
    BlobStore,
    Info,
    Listed,
    Run,
    Stored,
    StoreUnavailable,
    Totals,
    numbered,
)
from memseal_server.blobs.bucket import BucketStore
from memseal_server.blobs.sqlite import MAX_INLINE_BYTES, SqliteStore
from tests.server.building import some_bytes

Opener = Callable[[Path], Awaitable[BlobStore]]

STORES = ["sqlite", "moto", "seaweed"]
SIZES = [0, 1, MAX_INLINE_BYTES, MAX_INLINE_BYTES + 1]
PARTS = [(0, 0), (0, 1), (1, None), (5, 9), (10**6, None), (3, 10**6), (9, 5)]


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest) -> Opener:
    if request.param == "sqlite":
        return SqliteStore.open
    address = request.getfixturevalue(f"{request.param}_bucket")
    return lambda folder: BucketStore.open(f"{address}/{folder.name}")


@pytest.fixture
async def store(opener: Opener, tmp_path: Path) -> AsyncIterator[BlobStore]:
    opened = await opener(tmp_path / "store")
    yield opened
    await opened.close()


@pytest.fixture
async def other_store(store: BlobStore, opener: Opener, tmp_path: Path) -> AsyncIterator[BlobStore]:
    """A second opening of the same store, as another process would have."""
    opened = await opener(tmp_path / "store")
    yield opened
    await opened.close()


def already_there(content: bytes) -> AlreadyThere:
    return AlreadyThere(len(content), hashlib.sha256(content).digest())


@pytest.mark.parametrize("size", SIZES)
async def test_object_that_was_put_is_there(store: BlobStore, size: int) -> None:
    content = some_bytes("content", size)
    assert await store.put_new("a/1", content) == Stored()
    assert await store.get("a/1") == content
    assert await store.head("a/1") == Info(size, hashlib.sha256(content).digest())


@pytest.mark.parametrize("size", SIZES)
async def test_digest_that_is_known_is_kept_and_not_computed_again(store: BlobStore, size: int) -> None:
    assert await store.put_new("a/1", some_bytes("content", size), bytes(range(32))) == Stored()
    assert await store.head("a/1") == Info(size, bytes(range(32)))


async def test_object_that_was_not_put_is_not_there(store: BlobStore) -> None:
    await store.put_new("a/1", b"x")
    assert await store.get("a/2") is None
    assert await store.get("a") is None
    assert await store.head("a/2") is None


@pytest.mark.parametrize(("size", "other_size"), [(0, 1), (1, 0), (1, SIZES[-1]), (SIZES[-1], 1), (1, 1)])
async def test_object_is_never_replaced(store: BlobStore, size: int, other_size: int) -> None:
    content = some_bytes("content", size)
    await store.put_new("a/1", content)
    assert await store.put_new("a/1", some_bytes("other", other_size)) == already_there(content)
    assert await store.get("a/1") == content


@pytest.mark.parametrize("size", SIZES)
async def test_part_of_an_object_is_that_slice(store: BlobStore, size: int) -> None:
    content = some_bytes("content", size)
    await store.put_new("a/1", content)
    assert [await store.get("a/1", start, end) for start, end in PARTS] == [content[start:end] for start, end in PARTS]
    assert [await store.get("a/2", start, end) for start, end in PARTS] == [None] * len(PARTS)


@pytest.mark.parametrize("size", [10, MAX_INLINE_BYTES + 1])
async def test_one_of_many_racing_puts_wins(store: BlobStore, other_store: BlobStore, size: int) -> None:
    contents = [some_bytes(f"racer {number}", size) for number in range(16)]
    outcomes = await asyncio.gather(
        *((store, other_store)[number % 2].put_new("a/1", content) for number, content in enumerate(contents))
    )
    [winner] = [content for content, outcome in zip(contents, outcomes, strict=True) if outcome == Stored()]
    assert await store.get("a/1") == winner
    assert outcomes.count(already_there(winner)) == 15


async def test_what_one_process_puts_another_sees(store: BlobStore, other_store: BlobStore) -> None:
    for number in range(0, 20, 3):
        content = some_bytes(f"object {number}", 5_000 * number)
        await store.put_new(numbered("a/", number), content)
        assert await other_store.get(numbered("a/", number)) == content
        assert await other_store.last([Run("a/", number)]) == [number]


@pytest.mark.parametrize("length", [1, 2, 5, 17])
async def test_last_of_a_run_is_found_from_any_of_its_numbers(store: BlobStore, length: int) -> None:
    for number in range(7, 7 + length):
        await store.put_new(numbered("a/k/", number), b"")
    runs = [Run("a/k/", first) for first in range(7, 7 + length)]
    assert await store.last(runs) == [6 + length] * length
    assert await store.last([Run("a/k/", 7 + length), Run("a/k/", 6)]) == [None, None]


@pytest.mark.parametrize("most", [7, 8, 11, 23, 24])
async def test_run_is_looked_at_no_further_than_asked(store: BlobStore, most: int) -> None:
    for number in range(7, 24):
        await store.put_new(numbered("a/k/", number), b"")
    runs = [Run("a/k/", first, most) for first in range(7, most + 1)]
    assert await store.last(runs) == [min(most, 23)] * min(len(runs), 17) + [None] * (len(runs) - 17)
    assert await store.last([Run("a/k/", 6, most)]) == [None]


async def test_runs_of_several_folders_are_found_at_once(store: BlobStore) -> None:
    for folder, count in (("a/k/", 3), ("a/l/s/", 1), ("a/l/t/", 20), ("b/k/", 2)):
        for number in range(count):
            await store.put_new(numbered(folder, number), b"")
    folders = ["a/l/t/", "a/k/", "a/l/u/", "b/k/", "a/l/s/", "a/l/", "a/"]
    assert await store.last([Run(folder, 0) for folder in folders]) == [19, 2, None, 1, 0, None, None]
    assert await store.last([]) == []


async def test_listing_has_a_folders_objects_in_the_order_of_their_keys(store: BlobStore) -> None:
    sizes = {"a/k/01": 1, "a/k/02": MAX_INLINE_BYTES + 1, "a/l/s/01": 0, "a/l/t/01": 3, "aa/k/01": 4, "b/k/01": 5}
    for key in reversed(sizes):
        await store.put_new(key, bytes(sizes[key]))
    everything = [Listed(key, size) for key, size in sizes.items()]
    assert await store.listed("", "", 100) == everything
    assert await store.listed("a/", "", 100) == everything[:4]
    assert await store.listed("a/l/", "", 100) == everything[2:4]
    assert await store.listed("a/l/", "a/l/s/01", 100) == everything[3:4]
    assert await store.listed("a/", "a/k/01", 2) == everything[1:3]
    assert await store.listed("c/", "", 100) == []


async def test_listing_page_by_page_has_everything_once(store: BlobStore) -> None:
    expected = [Listed(numbered("a/", number), 0) for number in range(25)]
    await asyncio.gather(*(store.put_new(key, b"") for key, _ in expected))
    found: list[Listed] = []
    while page := await store.listed("a/", found[-1].key if found else "", 10):
        found += page
    assert found == expected


async def test_missing_are_those_that_were_not_put_or_are_deleted(store: BlobStore) -> None:
    for key in ("a/1", "a/2", "a/3"):
        await store.put_new(key, b"")
    await store.delete(["a/2"])
    assert await store.missing(["a/4", "a/3", "a/2", "a/1"]) == ["a/4", "a/2"]
    assert await store.missing([]) == []


@pytest.mark.parametrize("size", SIZES)
async def test_object_that_was_deleted_is_not_there(store: BlobStore, other_store: BlobStore, size: int) -> None:
    for key in ("a/1", "a/2", "a/3"):
        await store.put_new(key, some_bytes(key, size))
    await store.delete(["a/1", "a/3", "a/4"])
    for each in (store, other_store):
        assert [await each.get(key) for key in ("a/1", "a/2", "a/3")] == [None, some_bytes("a/2", size), None]
        assert await each.head("a/1") is None
        assert await each.listed("a/", "", 9) == [Listed("a/2", size)]
    assert (await store.usage("a/")).bytes == size
    assert await store.totals() in (Totals(folders=1, objects=1, bytes=size), None)


@pytest.mark.parametrize("size", SIZES)
async def test_key_of_a_deleted_object_is_free(store: BlobStore, size: int) -> None:
    await store.put_new("a/1", some_bytes("content", size))
    await store.delete(["a/1"])
    await store.delete(["a/1"])
    assert await store.totals() in (Totals(folders=0, objects=0, bytes=0), None)
    other = some_bytes("other", size)
    assert await store.put_new("a/1", other) == Stored()
    assert await store.get("a/1") == other
    assert (await store.usage("a/")).bytes == size


async def test_deleted_object_is_not_there_after_the_store_was_closed(opener: Opener, tmp_path: Path) -> None:
    store = await opener(tmp_path)
    for size in SIZES:
        await store.put_new(f"a/{size:06}", some_bytes("content", size))
    await store.delete([f"a/{size:06}" for size in SIZES])
    await store.close()
    again = await opener(tmp_path)
    assert await again.missing([f"a/{size:06}" for size in SIZES]) == [f"a/{size:06}" for size in SIZES]
    assert (await again.usage("a/")).bytes == 0
    await again.close()


@pytest.mark.parametrize("size", [10, 2 * MAX_INLINE_BYTES])
async def test_object_that_is_read_while_it_is_deleted_is_whole_or_not_there(
    store: BlobStore, other_store: BlobStore, size: int
) -> None:
    content = some_bytes("content", size)
    for _ in range(5):
        await store.put_new("a/1", content)
        *found, _ = await asyncio.gather(*(other_store.get("a/1") for _ in range(8)), store.delete(["a/1"]))
        assert {bytes(each) for each in found if each is not None} <= {content}
        assert await other_store.get("a/1") is None


async def test_usage_counts_each_object_once(store: BlobStore) -> None:
    await store.put_new("a/k/1", bytes(10))
    await store.put_new("a/k/1", bytes(10))
    await store.put_new("a/l/1", bytes(MAX_INLINE_BYTES + 1))
    await store.put_new("b/k/1", bytes(5))
    assert (await store.usage("a/")).bytes == 10 + MAX_INLINE_BYTES + 1
    assert (await store.usage("c/")).bytes == 0
    assert await store.totals() in (Totals(folders=2, objects=3, bytes=10 + MAX_INLINE_BYTES + 1 + 5), None)


async def test_everything_is_there_after_the_store_was_closed(opener: Opener, tmp_path: Path) -> None:
    contents = {f"a/{size:06}": some_bytes("content", size) for size in SIZES}
    store = await opener(tmp_path)
    await asyncio.gather(*(store.put_new(key, content) for key, content in contents.items()))
    await store.close()
    again = await opener(tmp_path)
    assert {key: await again.get(key) for key in contents} == contents
    await again.close()


async def test_closed_store_says_that_it_is_unavailable(opener: Opener, tmp_path: Path) -> None:
    store = await opener(tmp_path)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.put_new("a/1", b"")
    with pytest.raises(StoreUnavailable):
        await store.get("a/1")
    with pytest.raises(StoreUnavailable):
        await store.delete(["a/1"])


async def test_put_whose_caller_went_away_disturbs_no_other(store: BlobStore) -> None:
    gone = [asyncio.create_task(store.put_new(f"a/{number}", b"")) for number in range(8)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    assert await store.put_new("b/1", b"x") == Stored()
    assert await store.get("b/1") == b"x"
