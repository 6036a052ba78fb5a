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


async def test_put_whose_caller_went_away_disturbs_no_other(store: BlobStore) -> None:
    gone = [asyncio.create_task(store.put_new(f"a/{number}", b"")) for number in range(8)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    assert await store.put_new("b/1", b"x") == Stored()
    assert await store.get("b/1") == b"x"
