"""Keep large objects as whole, durable files beside a database that names them."""

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_LOCK = ".lock"
# Without it Windows would translate line ends.
_BINARY = getattr(os, "O_BINARY", 0)


class LargeFiles:
    """Files of one folder, named by the process that wrote them, which holds a lock as long as it lives.

    A file counts once a database names it. One that no database names and whose writer is gone was left by a
    crash: it is removed when the next process starts.
    """

    def __init__(self, folder: Path, named: Callable[[], Set[str]]) -> None:
        """Take a name for this process and sweep what dead ones left; `named` lists what the database names.

        Starting processes have to wait for each other outside: a sweep must not see a writer that has its name
        and not yet its lock.
        """
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        self._folder = folder
        self._writer = secrets.token_hex(8)
        self._alive = FileLock(self._lock_of(self._writer), mode=FILE_MODE, thread_local=False)
        self._alive.acquire(blocking=False)
        self._sweep(named)

    def write(self, content: bytes) -> str:
        """Write a new file, durable with its name, and return the name."""
        name = f"{self._writer}-{secrets.token_hex(8)}"
        # Under its own name from the beginning: half a file is one that no database names. Renamed, it would cost a
        # second commit of the file system's journal.
        descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, FILE_MODE)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            _make_durable(descriptor)
        finally:
            os.close(descriptor)
        make_names_durable(self._folder)
        return name

    def read(self, name: str, start: int, end: int | None) -> bytes:
        """Return a file's bytes from `start` up to `end` (None: all that follow)."""
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    def remove(self, name: str) -> None:
        """Remove a file that the database will not name."""
        (self._folder / name).unlink(missing_ok=True)

    def remove_all(self, names: Iterable[str]) -> None:
        """Remove files that the database no longer names."""
        for name in names:
            # Windows keeps a file that is being read: it goes when a process starts.
            with suppress(PermissionError):
                self.remove(name)
        make_names_durable(self._folder)

    def close(self) -> None:
        """Give up this process's name."""
        self._alive.release()
        self._lock_of(self._writer).unlink(missing_ok=True)

    def _lock_of(self, writer: str) -> Path:
        return self._folder / (writer + _LOCK)

    def _sweep(self, named: Callable[[], Set[str]]) -> None:
        paths = list(self._folder.iterdir())
        locks = [path for path in paths if path.suffix == _LOCK]
        dead = [path for path in locks if path.stem != self._writer and not _is_held(path)]
        alive = {path.stem for path in locks if path not in dead}
        # Asked last: a writer that is dead by now has named all that it ever will.
        kept = named()
        for path in paths:
            if path.suffix != _LOCK and path.name not in kept and path.name.partition("-")[0] not in alive:
                path.unlink(missing_ok=True)  # a living process may delete it at the same time
        for path in dead:
            path.unlink(missing_ok=True)


def make_names_durable(folder: Path) -> None:
    """Make the names in a folder survive a power cut; Windows has no call for it, its journal does that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_held(lock: Path) -> bool:
    try:
        with FileLock(lock, mode=FILE_MODE, blocking=False):
            return False
    except Timeout:
        return True


def _make_durable(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # There fsync leaves the bytes in the drive's cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
