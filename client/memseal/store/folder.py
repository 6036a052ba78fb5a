"""A vault's folder: sealed files by name, replaced whole or appended, durable when a method returns."""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from memseal.errors import DiskError, MemsealError, VaultExists
from memseal.store.disk import Disk

DEVICE = "device.mseal"
KEYRING = "keyring"
LOGS = "logs"
CHECKPOINTS = "checkpoints"
PARTS = "parts"
CACHE = "cache"
TRACES = "traces"
SESSIONS = "sessions"
LOCK = "lock"
_FOLDERS = (KEYRING, LOGS, CHECKPOINTS, PARTS, CACHE, TRACES, SESSIONS)
_SUFFIX = ".mseal"
_UNFINISHED = ".new"
_BEGUN = ".begun"


class VaultFolder:
    """The files of one vault on one disk."""

    def __init__(self, path: Path, disk: Disk) -> None:
        """Take the folder's path; nothing is read or made yet."""
        self.path = path
        self._disk = disk
        self._durable_names: set[str] = set()

    @property
    def disk(self) -> Disk:
        """The disk that it lies on."""
        return self._disk

    def exists(self) -> bool:
        """Return whether a vault is here: a device file or a keyring."""
        return self._disk.size(self.path / DEVICE) is not None or bool(self._disk.names(self.path / KEYRING))

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes from `start` to `end`, or None where it is missing."""
        return self._disk.read(self.path / name, start, end)

    def size(self, name: str) -> int | None:
        """Return a file's length in bytes, or None where it is missing."""
        return self._disk.size(self.path / name)

    def stems(self, folder: str) -> list[str]:
        """Return the names in a folder that end in `.mseal`, without that, sorted."""
        return [name.removesuffix(_SUFFIX) for name in self._disk.names(self.path / folder) if name.endswith(_SUFFIX)]

    def replace(self, name: str, content: bytes | Iterable[bytes | bytearray]) -> None:
        """Put a file in the place of the one there, all or nothing; pieces are written one after the other."""
        path = self.path / name
        fresh = path.with_name(f".{path.name}{_UNFINISHED}")
        offset = 0
        try:
            for piece in (content,) if isinstance(content, bytes) else content:
                self._disk.write(fresh, offset, piece)
                offset += len(piece)
            self._disk.sync(fresh)
            # Until the folder is synced the name may fall back to the file before: whoever appends has to do it.
            self._durable_names.discard(name)
            self._disk.rename(fresh, path)
        except DiskError:
            with contextlib.suppress(DiskError):
                self._disk.remove(fresh)  # on a full disk it takes the room that a smaller write could use
            raise
        self._disk.sync_folder(path.parent)
        self._durable_names.add(name)

    def begun_names(self, folder: str) -> list[str]:
        """Return the names of files in a folder of which a beginning is kept."""
        names = self._disk.names(self.path / folder)
        return [f"{folder}/{name.removesuffix(_BEGUN)}" for name in names if name.endswith(_BEGUN)]

    def begun(self, name: str) -> bytes:
        """Return the beginning of a file that is kept beside it until all of it is here; a crash may have spoilt it."""
        return self._disk.read(self.path / (name + _BEGUN)) or b""

    def begin(self, name: str, offset: int, piece: bytes) -> None:
        """Keep a piece of the beginning of a file, not durably: it saves time alone."""
        self._disk.write(self.path / (name + _BEGUN), offset, piece)

    def forget_begun(self, name: str) -> None:
        """Remove the beginning of a file."""
        self._disk.remove(self.path / (name + _BEGUN))

    def jot(self, name: str, offset: int, content: bytes) -> None:
        """Write at an offset, making the file where it is missing; not durably: for what may be lost in a power cut."""
        path = self.path / name
        if offset == 0:
            self._disk.make_folder(path.parent)
        self._disk.write(path, offset, content)

    def append(self, name: str, offset: int, *pieces: bytes) -> None:
        """Write at the end of the good part of a file, cutting off what is beyond it.

        The last piece is written only when all before it are durable; one piece takes one fsync. A file that begins
        here (offset 0) is there whole or not at all.
        """
        path = self.path / name
        if offset == 0:
            self.replace(name, pieces)
        else:
            *before, last = pieces
            for piece in before:
                self._disk.write(path, offset, piece)
                offset += len(piece)
            if before:
                self._disk.sync(path)
            self._disk.write(path, offset, last)
            self._disk.sync(path)
            if name not in self._durable_names:
                # Whoever made the file may have been stopped before its name was durable.
                self._disk.sync_folder(path.parent)
        self._durable_names.add(name)

    def take_over(self) -> None:
        """Begin after a process that may have been killed.

        What it did not finish is removed, and the names that it left, which this process is going to build on, are made
        durable: a key change that is finished here must not lose its keyring to the next power cut. Folders that were
        deleted, or left out of a backup because they were empty, are made anew.
        """
        for folder in (*_FOLDERS, ""):
            self._disk.make_folder(self.path / folder)
            for name in self._disk.names(self.path / folder):
                if name.startswith(".") and name.endswith(_SUFFIX + _UNFINISHED):
                    self._disk.remove(self.path / folder / name)
            self._disk.sync_folder(self.path / folder)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._disk.remove(self.path / name)

    def settle(self, folder: str) -> None:
        """Make it durable which files are in a folder: what was removed does not come back."""
        self._disk.sync_folder(self.path / folder)

    @classmethod
    def create(cls, path: Path, disk: Disk, token: str, files: Callable[["VaultFolder"], None]) -> "VaultFolder":
        """Make a vault's folder: `files` fills it under another name first, so that it is there whole or not at all.

        `token` makes the other name unique. `VaultExists` where anything but an empty folder is at the path.
        """
        taken = VaultExists(f"something is already at {path}: choose another path")
        if not disk.is_free(path):
            raise taken
        folder = cls(path.with_name(f".{path.name}.{token}{_UNFINISHED}"), disk)
        claimed = False
        try:
            folder._build(files)
            claimed = disk.claim(folder.path, path)
            if not claimed:
                raise taken
            disk.sync_folder(path.parent)
        except (MemsealError, KeyboardInterrupt):
            with contextlib.suppress(DiskError):
                if claimed:
                    disk.rename(path, folder.path)
                folder._discard()
            raise
        return cls(path, disk)

    def _build(self, files: Callable[["VaultFolder"], None]) -> None:
        self._disk.make_folder(self.path)
        for name in _FOLDERS:
            self._disk.make_folder(self.path / name)
        files(self)
        self._disk.sync_folder(self.path)

    def _discard(self) -> None:
        """Remove what was built in vain."""
        for folder in (*_FOLDERS, ""):
            for name in self._disk.names(self.path / folder):
                if name not in _FOLDERS:
                    self._disk.remove(self.path / folder / name)
        for folder in (*_FOLDERS, ""):
            if folder in ("", *self._disk.names(self.path)):
                self._disk.remove_folder(self.path / folder)
