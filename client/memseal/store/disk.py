"""The port to the file system: few operations, each with a known durability.

A crash may lose whatever was not followed by `sync` (of the file) or `sync_folder` (of a name). Tests put a disk
that does lose it in the place of `OsDisk`.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

from memseal.errors import DiskError, DiskFull

if sys.platform == "darwin":
    import fcntl


class Disk(Protocol):
    """What a vault needs of a file system; every failure is a `DiskError`."""

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes from `start` to `end`, or None where there is no such file."""
        ...

    def size(self, path: Path) -> int | None:
        """Return a file's length in bytes, or None."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        ...

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        """Write at an offset, making the file where it is missing, and cut off what is beyond."""
        ...

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or folder another name; a file there is replaced, in one step."""
        ...

    def is_free(self, path: Path) -> bool:
        """Return whether nothing is at a path, or only an empty folder."""
        ...

    def claim(self, folder: Path, path: Path) -> bool:
        """Rename a folder to a path that is free; False, and nothing done, where it is not."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Make a folder, owner-only, where it is missing."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        ...

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder."""
        ...


class OsDisk:
    """The file system of this computer."""

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes from `start` to `end`, or None where there is no such file."""
        with _translated():
            try:
                with open(path, "rb", opener=_file_alone) as file:
                    file.seek(start)
                    return file.read(-1 if end is None else max(0, end - start))
            except _MISSING:
                return None

    def size(self, path: Path) -> int | None:
        """Return a file's length in bytes, or None."""
        with _translated():
            try:
                return path.stat().st_size
            except _MISSING:
                return None

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        with _translated():
            try:
                return sorted(entry.name for entry in folder.iterdir())
            except _MISSING:
                return []

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        """Write at an offset, making the file where it is missing, and cut off what is beyond."""
        with _translated(), os.fdopen(_open(path, os.O_CREAT), "r+b", buffering=0) as file:
            file.seek(offset)
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            file.truncate()

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        with _translated():
            descriptor = _open(path)
            try:
                _sync(descriptor)
            finally:
                os.close(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        if os.name == "nt":
            return  # Windows has no handle to sync for a folder; its file systems journal names themselves.
        with _translated():
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                _sync(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or folder another name; a file there is replaced, in one step."""
        with _translated():
            source.replace(target)

    def is_free(self, path: Path) -> bool:
        """Return whether nothing is at a path, or only an empty folder."""
        with _translated():
            return not path.exists() or (path.is_dir() and not any(path.iterdir()))

    def claim(self, folder: Path, path: Path) -> bool:
        """Rename a folder to a path that is free; False, and nothing done, where it is not."""
        with _translated():
            try:
                if os.name == "nt" and path.is_dir():
                    path.rmdir()  # Windows renames onto nothing that is there, not even an empty folder
                folder.rename(path)
            except OSError as error:
                if error.errno in _TAKEN:
                    return False
                raise
            return True

    def make_folder(self, folder: Path) -> None:
        """Make a folder, owner-only, where it is missing."""
        with _translated():
            folder.mkdir(mode=0o700, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        with _translated():
            path.unlink(missing_ok=True)

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder."""
        with _translated():
            folder.rmdir()


# What systems say when a folder is renamed onto something: not empty, exists, is a file, or (Windows) denied.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EACCES)


# Where a file stands in a folder's place, nothing is there.
_MISSING = (FileNotFoundError, NotADirectoryError)


def _file_alone(path: str, flags: int) -> int:
    """Open a file, and nothing that could keep a reader waiting, or reading, for ever: a pipe, a device."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file")
    return descriptor


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | flags | getattr(os, "O_BINARY", 0), 0o600)


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # fsync on macOS leaves the data in the drive's cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


@contextlib.contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("the disk is full: free some space and try again; nothing acknowledged is lost") from error
        raise DiskError(f"the disk refused: {error.strerror or type(error).__name__}") from error
