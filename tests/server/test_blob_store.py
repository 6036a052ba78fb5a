"""What every store must do; a new implementation joins `OPENERS`."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from memseal_server.blobs import AlreadyThere, BlobStore, Info, Stored, StoreUnavailable, Totals
from memseal_server.blobs.sqlite import MAX_INLINE_BYTES, SqliteStore
from tests.server.building import some_bytes

Opener = Callable[[Path], Awaitable[BlobStore]]

OPENERS: dict[str, Opener] = {"sqlite": SqliteStore.open}
SIZES = [0, 1, MAX_INLINE_BYTES, MAX_INLINE_BYTES + 1, 3 * MAX_INLINE_BYTES]


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return OPENERS[request.param]


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


async def test_object_that_was_not_put_is_not_there(store: BlobStore) -> None:
    await store.put_new("a/1", b"x")
    assert await store.get("a/2") is None
    assert await store.get("a") is None
    assert await store.head("a/2") is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other_size", SIZES)
async def test_object_is_never_replaced(store: BlobStore, size: int, other_size: int) -> None:
    content = some_bytes("content", size)
    await store.put_new("a/1", content)
    assert await store.put_new("a/1", some_bytes("other", other_size)) == already_there(content)
    assert await store.get("a/1") == content


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (1, None), (5, 9), (10**6, None), (3, 10**6), (9, 5)])
async def test_part_of_an_object_is_that_slice(store: BlobStore, size: int, start: int, end: int | None) -> None:
    content = some_bytes("content", size)
    await store.put_new("a/1", content)
    assert await store.get("a/1", start, end) == content[start:end]


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
    for number in range(20):
        content = some_bytes(f"object {number}", 5_000 * number)
        await store.put_new(f"a/{number:02}", content)
        assert await other_store.get(f"a/{number:02}") == content
        assert await other_store.newest(["a/"]) == [f"a/{number:02}"]


async def test_newest_is_the_greatest_key_of_each_folder(store: BlobStore) -> None:
    for key in ("a/k/01", "a/k/03", "a/k/02", "a/l/s/09", "a/l/t/10", "b/k/07"):
        await store.put_new(key, b"")
    folders = ["a/k/", "a/l/s/", "a/l/t/", "a/l/u/", "b/k/", "a/"]
    assert await store.newest(folders) == ["a/k/03", "a/l/s/09", "a/l/t/10", None, "b/k/07", "a/l/t/10"]


async def test_newest_of_each_has_one_key_per_folder(store: BlobStore) -> None:
    for key in ("a/k/01", "a/k/03", "a/k/02", "a/l/s/09", "a/l/s/08", "a/l/t/10", "aa/k/01", "b/k/07"):
        await store.put_new(key, b"")
    assert await store.newest_of_each("a/") == ["a/l/t/10", "a/l/s/09", "a/k/03"]
    assert await store.newest_of_each("a/l/") == ["a/l/t/10", "a/l/s/09"]
    assert await store.newest_of_each("c/") == []


async def test_keys_before_one_are_those_of_its_folder(store: BlobStore) -> None:
    for key in ("a/k/03", "a/k/01", "a/k/02", "a/j/09", "a/l/01", "a/k-/01", "a/k/"):
        await store.put_new(key, b"")
    await store.delete(["a/k/"])
    assert await store.keys_before("a/k/03", 9) == ["a/k/01", "a/k/02"]
    assert await store.keys_before("a/k/99", 9) == ["a/k/01", "a/k/02", "a/k/03"]
    assert await store.keys_before("a/k/99", 2) == ["a/k/01", "a/k/02"]
    assert await store.keys_before("a/k/01", 9) == []
    assert await store.keys_before("b/k/99", 9) == []


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
        assert await each.newest(["a/"]) == ["a/2"]
        assert await each.newest_of_each("a/") == ["a/2"]
    assert await store.usage_bytes("a/") == size
    assert await store.totals() == Totals(folders=1, objects=1, bytes=size)


@pytest.mark.parametrize("size", SIZES)
async def test_key_of_a_deleted_object_is_free(store: BlobStore, size: int) -> None:
    await store.put_new("a/1", some_bytes("content", size))
    await store.delete(["a/1"])
    await store.delete(["a/1"])
    assert await store.totals() == Totals(folders=0, objects=0, bytes=0)
    other = some_bytes("other", size)
    assert await store.put_new("a/1", other) == Stored()
    assert await store.get("a/1") == other
    assert await store.usage_bytes("a/") == size


async def test_deleted_object_is_not_there_after_the_store_was_closed(opener: Opener, tmp_path: Path) -> None:
    store = await opener(tmp_path)
    for size in SIZES:
        await store.put_new(f"a/{size:06}", some_bytes("content", size))
    await store.delete([f"a/{size:06}" for size in SIZES])
    await store.close()
    again = await opener(tmp_path)
    assert await again.missing([f"a/{size:06}" for size in SIZES]) == [f"a/{size:06}" for size in SIZES]
    assert await again.usage_bytes("a/") == 0
    await again.close()


@pytest.mark.parametrize("size", [10, 3 * MAX_INLINE_BYTES])
async def test_object_that_is_read_while_it_is_deleted_is_whole_or_not_there(
    store: BlobStore, other_store: BlobStore, size: int
) -> None:
    content = some_bytes("content", size)
    for _ in range(20):
        await store.put_new("a/1", content)
        *found, _ = await asyncio.gather(*(other_store.get("a/1") for _ in range(8)), store.delete(["a/1"]))
        assert {bytes(each) for each in found if each is not None} <= {content}
        assert await other_store.get("a/1") is None


async def test_usage_counts_each_object_once(store: BlobStore) -> None:
    await store.put_new("a/k/1", bytes(10))
    await store.put_new("a/k/1", bytes(10))
    await store.put_new("a/l/1", bytes(MAX_INLINE_BYTES + 1))
    await store.put_new("b/k/1", bytes(5))
    assert await store.usage_bytes("a/") == 10 + MAX_INLINE_BYTES + 1
    assert await store.usage_bytes("c/") == 0
    assert await store.totals() == Totals(folders=2, objects=3, bytes=10 + MAX_INLINE_BYTES + 1 + 5)


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
