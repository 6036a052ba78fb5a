"""What the embedded store does on its disk."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memseal_server.blobs import Stored, StoreUnavailable
from memseal_server.blobs.sqlite import MAX_INLINE_BYTES, SqliteStore
from tests.server.building import some_bytes

LARGE = bytes(MAX_INLINE_BYTES + 1)


def large_files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "large").iterdir() if path.suffix != ".lock")


def leave_files_of_a_dead_process(folder: Path) -> None:
    """Files as a process leaves them that was killed before its database named them."""
    script = (
        "import os, sys; from pathlib import Path; from memseal_server.blobs.files import LargeFiles\n"
        "folder = Path(sys.argv[1]) / 'large'\n"
        "files = LargeFiles(folder, lambda: {path.name for path in folder.iterdir()})\n"
        "name = files.write(b'orphan')\n"
        "(folder / (name[:-1] + 'x')).write_bytes(b'half')\n"
        "os._exit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert ended.returncode == 9


async def test_files_that_a_dead_process_left_are_swept(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.put_new("a/1", LARGE)
    await store.close()
    kept = large_files(tmp_path)
    leave_files_of_a_dead_process(tmp_path)
    assert len(large_files(tmp_path)) == 3
    again = await SqliteStore.open(tmp_path)
    assert large_files(tmp_path) == kept
    assert await again.get("a/1") == LARGE
    await again.close()


async def test_file_of_a_deleted_object_is_removed(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.put_new("a/1", LARGE)
    await store.put_new("a/2", LARGE)
    await store.delete(["a/1"])
    assert len(large_files(tmp_path)) == 1
    await store.delete(["a/2"])
    assert large_files(tmp_path) == []
    await store.close()


def found_in_database(folder: Path, content: bytes) -> int:
    """How many of 100 samples of a content lie in the database's files."""
    bytes_there = b"".join(path.read_bytes() for path in sorted(folder.glob("objects.db*")))
    step = len(content) // 100
    return sum(content[at : at + 50] in bytes_there for at in range(0, 100 * step, step))


async def test_content_of_a_deleted_object_is_not_left_in_the_database(tmp_path: Path) -> None:
    content = some_bytes("erased", MAX_INLINE_BYTES)
    store = await SqliteStore.open(tmp_path)
    await store.put_new("a/1", content)
    await store.close()
    assert found_in_database(tmp_path, content) > 90
    again = await SqliteStore.open(tmp_path)
    await again.delete(["a/1"])
    await again.close()
    assert found_in_database(tmp_path, content) == 0


def delete_and_die(folder: Path) -> None:
    """Put two large objects and delete one, in a process that dies before the file is removed."""
    script = (
        "import asyncio, os, sys; from pathlib import Path; from memseal_server.blobs.sqlite import SqliteStore\n"
        "from memseal_server.blobs.files import LargeFiles\n"
        "LargeFiles.remove_all = lambda files, names: os._exit(9)\n"
        "async def run():\n"
        "    store = await SqliteStore.open(Path(sys.argv[1]))\n"
        "    for key in ('a/1', 'a/2'): await store.put_new(key, bytes(100_000))\n"
        "    await store.delete(['a/1'])\n"
        "asyncio.run(run())"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert ended.returncode == 9


async def test_file_that_a_crash_left_after_its_object_was_deleted_is_swept(tmp_path: Path) -> None:
    delete_and_die(tmp_path)
    assert len(large_files(tmp_path)) == 2
    store = await SqliteStore.open(tmp_path)
    assert len(large_files(tmp_path)) == 1
    assert await store.missing(["a/1", "a/2"]) == ["a/1"]
    await store.close()


async def test_files_of_a_living_process_are_not_swept(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    # As between writing a file and naming it.
    unnamed = tmp_path / "large" / (next((tmp_path / "large").glob("*.lock")).stem + "-1")
    unnamed.write_bytes(b"on its way")
    other = await SqliteStore.open(tmp_path)
    assert unnamed.exists()
    await other.close()
    await store.close()


async def test_lock_files_do_not_pile_up(tmp_path: Path) -> None:
    for _ in range(3):
        store = await SqliteStore.open(tmp_path)
        await store.close()
    leave_files_of_a_dead_process(tmp_path)
    store = await SqliteStore.open(tmp_path)
    assert len(list((tmp_path / "large").glob("*.lock"))) == 1
    await store.close()


async def test_file_of_a_put_that_came_second_is_removed(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.put_new("a/1", LARGE)
    await store.put_new("a/1", LARGE + b"x")
    assert len(large_files(tmp_path)) == 1
    await store.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
async def test_only_the_owner_may_read_what_is_created(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = await SqliteStore.open(tmp_path / "deep" / "store")
        await store.put_new("a/1", LARGE)
        await store.put_new("a/2", b"small")
        paths = [tmp_path / "deep" / "store", *(tmp_path / "deep" / "store").rglob("*")]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
        await store.close()
    finally:
        os.umask(before)
    assert {"store", "large", "objects.db", "objects.db-wal"} <= set(modes)
    assert not {name: oct(mode) for name, mode in modes.items() if mode & 0o077}


async def test_object_whose_file_is_gone_is_an_error_and_not_absent(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.put_new("a/1", LARGE)
    (tmp_path / "large" / large_files(tmp_path)[0]).unlink()
    with pytest.raises(StoreUnavailable):
        await store.get("a/1")
    await store.close()


async def test_put_that_cannot_be_written_is_an_error_and_not_stored(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    with sqlite3.connect(tmp_path / "objects.db") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'full'); END")
        with pytest.raises(StoreUnavailable):
            await store.put_new("a/1", b"x")
        assert await store.get("a/1") is None
        other.execute("DROP TRIGGER full")
    other.close()
    assert await store.put_new("a/1", b"x") == Stored()
    await store.close()


@pytest.mark.parametrize("layout", [1, 3])
async def test_store_of_another_version_of_the_server_is_left_alone(tmp_path: Path, layout: int) -> None:
    with sqlite3.connect(tmp_path / "objects.db") as other:
        other.execute(f"PRAGMA user_version = {layout}")
    other.close()
    with pytest.raises(StoreUnavailable):
        await SqliteStore.open(tmp_path)


async def test_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable):
        await SqliteStore.open(tmp_path / "file" / "store")


async def test_many_processes_can_start_at_once(tmp_path: Path) -> None:
    stores = await asyncio.gather(*(SqliteStore.open(tmp_path) for _ in range(6)))
    outcomes = await asyncio.gather(*(store.put_new(f"a/{n}", b"") for n, store in enumerate(stores)))
    assert outcomes == [Stored()] * 6
    for store in stores:
        await store.close()
