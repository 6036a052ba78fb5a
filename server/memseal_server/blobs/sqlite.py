"""Keep objects in one folder: small ones in an SQLite database, large ones in files that it names."""

import asyncio
import hashlib
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from filelock import FileLock

from memseal_server.blobs import (
    AlreadyThere,
    Info,
    Listed,
    Run,
    Stored,
    StoreUnavailable,
    Totals,
    Usage,
    numbered,
)
from memseal_server.blobs.files import FILE_MODE, FOLDER_MODE, LargeFiles, make_names_durable
from memseal_server.blobs.worker import Worker

# Up to here a row costs less than a file with an fsync of its own.
MAX_INLINE_BYTES = 64 * 1024

_LAYOUT = 2
_READERS = 2
# Another process's commit is waited for; longer than this means that something holds the database.
_BUSY_SECONDS = 20
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    key TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL,
    digest BLOB NOT NULL,
    content BLOB,
    file TEXT
);
CREATE TABLE IF NOT EXISTS folders (
    name TEXT PRIMARY KEY,
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;
"""


class SqliteStore:
    """A folder with `objects.db` and `large/`, for any number of processes of one machine."""

    def __init__(self, files: LargeFiles, writer: Worker, readers: Sequence[Worker]) -> None:
        self._files = files
        self._writer = writer
        self._readers = readers
        self._turn = 0

    @classmethod
    async def open(cls, folder: Path) -> Self:
        """Open the store in a folder, which is made if it is not there; `StoreUnavailable` if it cannot be."""
        try:
            files, connections = await asyncio.to_thread(_open_folder, folder)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable("the store's folder cannot be opened") from error
        writer = Worker(connections[0], begin="BEGIN IMMEDIATE")
        readers = [Worker(connection, begin="BEGIN") for connection in connections[1:]]
        return cls(files, writer, readers)

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        """Store an object unless its key is taken; either answer promises that what lies there is durable."""
        if len(content) <= MAX_INLINE_BYTES:
            small = digest or hashlib.sha256(content).digest()
            return await self._writer.run(lambda db: _insert(db, key, len(content), small, content, None))
        try:
            large, file = await asyncio.to_thread(self._write_large, content, digest)
            outcome = await self._writer.run(lambda db: _insert(db, key, len(content), large, None, file))
            if isinstance(outcome, AlreadyThere):
                await asyncio.to_thread(self._files.remove, file)
        except OSError as error:
            raise StoreUnavailable("a file cannot be written") from error
        return outcome

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return an object's bytes from `start` up to `end` (None: all that follow), or None if it is not there."""
        row = await self._reader().run(lambda db: _select_content(db, key, start, end))
        if row is None:
            return None
        content, file = row
        if file is None:
            return content or b""  # SQLite makes NULL of a part of nothing
        try:
            return await asyncio.to_thread(self._files.read, file, start, end)
        except OSError as error:
            # The database forgets an object before its file is removed.
            if await self.head(key) is None:
                return None
            raise StoreUnavailable("a file cannot be read") from error

    async def head(self, key: str) -> Info | None:
        """Return an object's length and digest, or None if it is not there."""
        return await self._reader().run(lambda db: _select_info(db, key))

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        """Return each run's last number, at most its `most`, or None where nothing lies under its first.

        They are all of one moment.
        """
        return await self._reader().run(lambda db: [_select_last(db, run) for run in runs])

    async def missing(self, keys: Sequence[str]) -> list[str]:
        """Return those of these keys under which nothing lies, in their order; all of one moment."""
        return await self._reader().run(lambda db: _select_missing(db, keys))

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects for good; a key under which nothing lies is passed over."""
        # The database first: a file that it names has to be there, one that it does not name is swept at a start.
        files = await self._writer.run(lambda db: [file for key in keys if (file := _delete(db, key))])
        try:
            if files:
                await asyncio.to_thread(self._files.remove_all, files)
        except OSError as error:
            raise StoreUnavailable("a file cannot be removed") from error

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        """Return at most `limit` objects under a folder (`""`: all), those with the least keys greater than `after`."""
        return await self._reader().run(lambda db: _select_listed(db, folder, after, limit))

    async def usage(self, folder: str) -> Usage:
        """Return what lies under a first folder (given with its `/`)."""
        return await self._reader().run(lambda db: _select_usage(db, folder))

    async def totals(self) -> Totals:
        """Return what the store holds."""
        return await self._reader().run(_select_totals)

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers now."""
        await self._reader().run(_select_totals)

    async def close(self) -> None:
        """End the store's work; what was acknowledged stays."""
        for worker in (self._writer, *self._readers):
            await worker.close()
        await asyncio.to_thread(self._files.close)

    def _reader(self) -> Worker:
        self._turn = (self._turn + 1) % len(self._readers)
        return self._readers[self._turn]

    def _write_large(self, content: bytes, digest: bytes | None) -> tuple[bytes, str]:
        return digest or hashlib.sha256(content).digest(), self._files.write(content)


def _open_folder(folder: Path) -> tuple[LargeFiles, list[sqlite3.Connection]]:
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    for path in made:
        make_names_durable(path.parent)
    # One process at a time makes the schema and sweeps; afterwards they need no lock but the database's own.
    with FileLock(folder / "start.lock", mode=FILE_MODE), ExitStack() as unfinished:
        path = folder / "objects.db"
        # SQLite gives its other files the mode of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
        connections = [_connect(path) for _ in range(1 + _READERS)]
        for connection in connections:
            unfinished.callback(connection.close)
        _make_schema(connections[0])
        make_names_durable(folder)
        files = LargeFiles(folder / "large", lambda: _select_files(connections[0]))
        make_names_durable(folder)
        unfinished.pop_all()
    return files, connections


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: a commit is on disk, not only in order.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    # What was deleted is overwritten, and not only unlisted.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _make_schema(connection: sqlite3.Connection) -> None:
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout not in (0, _LAYOUT):
        raise sqlite3.DatabaseError("the store was made by another version of the server")
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_LAYOUT}; COMMIT;")


def _insert(
    db: sqlite3.Connection, key: str, length: int, digest: bytes, content: bytes | None, file: str | None
) -> Stored | AlreadyThere:
    there = _select_info(db, key)
    if there is not None:
        return AlreadyThere(there.length, there.digest)
    db.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", (key, length, digest, content, file))
    db.execute(
        "INSERT INTO folders VALUES (?, 1, ?) ON CONFLICT (name)"
        " DO UPDATE SET objects = objects + 1, bytes = bytes + excluded.bytes",
        (key.partition("/")[0], length),
    )
    return Stored()


def _delete(db: sqlite3.Connection, key: str) -> str | None:
    """Delete an object; return the name of its file, if it has one."""
    row = db.execute("SELECT length, file FROM objects WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    length, file = row
    db.execute("DELETE FROM objects WHERE key = ?", (key,))
    folder = key.partition("/")[0]
    db.execute("UPDATE folders SET objects = objects - 1, bytes = bytes - ? WHERE name = ?", (length, folder))
    db.execute("DELETE FROM folders WHERE name = ? AND objects = 0", (folder,))
    return None if file is None else str(file)


def _select_info(db: sqlite3.Connection, key: str) -> Info | None:
    row = db.execute("SELECT length, digest FROM objects WHERE key = ?", (key,)).fetchone()
    return None if row is None else Info(*row)


def _select_content(
    db: sqlite3.Connection, key: str, start: int, end: int | None
) -> tuple[bytes | None, str | None] | None:
    length = MAX_INLINE_BYTES if end is None else max(0, end - start)
    row: tuple[bytes | None, str | None] | None = db.execute(
        "SELECT substr(content, ?, ?), file FROM objects WHERE key = ?", (start + 1, length, key)
    ).fetchone()
    return row


def _select_last(db: sqlite3.Connection, run: Run) -> int | None:
    # The run has no gap, so the greatest key is its end; but only if it begins.
    first, last = numbered(run.folder, run.first), numbered(run.folder, run.most)
    row = db.execute(
        "SELECT key FROM objects WHERE key BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM objects WHERE key = ?)"
        " ORDER BY key DESC LIMIT 1",
        (first, last, first),
    ).fetchone()
    return None if row is None else int(row[0][len(run.folder) :])


def _select_listed(db: sqlite3.Connection, folder: str, after: str, limit: int) -> list[Listed]:
    # The first key behind all keys of a folder: keys are ASCII.
    behind = folder + "\x7f"
    rows = db.execute(
        "SELECT key, length FROM objects WHERE key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
        (after, folder, behind, limit),
    )
    return [Listed(*row) for row in rows]


def _select_missing(db: sqlite3.Connection, keys: Sequence[str]) -> list[str]:
    # One statement for all: the heads ask for every part of a checkpoint.
    rows = db.execute(
        "SELECT wanted.value FROM json_each(?) AS wanted"
        " WHERE NOT EXISTS (SELECT 1 FROM objects WHERE key = wanted.value) ORDER BY wanted.key",
        (json.dumps(list(keys)),),
    )
    return [str(key) for (key,) in rows]


def _select_usage(db: sqlite3.Connection, folder: str) -> Usage:
    row = db.execute("SELECT objects, bytes FROM folders WHERE name = ?", (folder.removesuffix("/"),)).fetchone()
    return Usage(0, 0) if row is None else Usage(*row)


def _select_totals(db: sqlite3.Connection) -> Totals:
    row = db.execute("SELECT count(*), coalesce(sum(objects), 0), coalesce(sum(bytes), 0) FROM folders")
    return Totals(*row.fetchone())


def _select_files(db: sqlite3.Connection) -> set[str]:
    return {str(file) for (file,) in db.execute("SELECT file FROM objects WHERE file IS NOT NULL")}
