"""A disk in memory that loses at a crash what a real one may lose, and can fail at any step.

It models a page cache. What was written is seen at once, but survives a crash for certain only after `sync` (content)
or `sync_folder` (names). Every other piece is kept, lost, cut short, or torn by sectors, in any combination.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random

from memseal.errors import DiskError, DiskFull

SECTOR = 512  # bytes that a drive writes whole or not at all


class Crash(BaseException):
    """The machine stops here; no handler of errors may hold it up."""


class Fate(Enum):
    """What a crash does to one piece that was not made durable."""

    KEPT = "kept"
    LOST = "lost"
    CUT = "cut"
    SCATTERED = "scattered"


class Choice:
    """Decides the fate of each piece in turn."""

    def __init__(self, fate: Fate | None, seed: int = 0) -> None:
        """Give every piece the same fate, or with None draw each one from the seed."""
        self._fate = fate
        self._random = Random(seed)

    def is_kept(self) -> bool:
        """Return whether one change of a name or a length survives."""
        return self._random.random() < 0.5 if self._fate is None else self._fate is not Fate.LOST

    def torn(self, content: bytes, under: bytes) -> bytes:
        """Return what is found where `content` was written over `under`, which ends where the file ended."""
        match self._fate or self._random.choice(list(Fate)):
            case Fate.KEPT:
                return content
            case Fate.LOST:
                return under
            case Fate.CUT:
                length = self._random.randrange(len(content) + 1)
                return content[:length] + under[length:]
            case Fate.SCATTERED:
                sectors = range(0, len(content), SECTOR)
                padded = under + bytes(len(content) - len(under))
                return b"".join(
                    (content if self._random.random() < 0.5 else padded)[start : start + SECTOR] for start in sectors
                )


ALL_KEPT, ALL_LOST = Choice(Fate.KEPT), Choice(Fate.LOST)


class _Durability(Enum):
    CACHED = "cached"
    STRANDED = "stranded"  # a sync failed: Linux then takes the page for clean, and never writes it again
    DURABLE = "durable"


@dataclass
class _Write:
    """Bytes put at an offset; with `content` None, the file ends there instead."""

    offset: int
    content: bytes | None
    durability: _Durability = _Durability.CACHED

    def after_crash(self, before: bytes, choice: Choice) -> bytes:
        if self.durability is _Durability.DURABLE:
            return self.on(before)
        if self.content is None:
            return self.on(before) if choice.is_kept() else before
        under = before[self.offset : self.offset + len(self.content)]
        return _Write(self.offset, choice.torn(self.content, under)).on(before)

    def on(self, before: bytes) -> bytes:
        if self.content is None:
            return before[: self.offset]
        gap = bytes(max(0, self.offset - len(before))) if self.content else b""
        return before[: self.offset] + gap + self.content + before[self.offset + len(self.content) :]


@dataclass
class _File:
    base: bytes = b""
    writes: list[_Write] = field(default_factory=list[_Write])
    content: bytes = b""

    def apply(self, write: _Write) -> None:
        self.writes.append(write)
        self.content = write.on(self.content)

    def settle(self, durability: _Durability) -> None:
        for write in self.writes:
            if write.durability is _Durability.CACHED:
                write.durability = durability
        while self.writes and self.writes[0].durability is _Durability.DURABLE:
            self.base = self.writes.pop(0).on(self.base)

    def after_crash(self, choice: Choice) -> "_File":
        found = self.base
        for write in self.writes:
            found = write.after_crash(found, choice)
        return _File(found, [], found)


@dataclass
class _Folder:
    """Names as they are seen, as they are durable, and the changes between, each of which happens whole or not."""

    names: "dict[str, _File | _Folder]" = field(default_factory=dict[str, "_File | _Folder"])
    durable: "dict[str, _File | _Folder]" = field(default_factory=dict[str, "_File | _Folder"])
    changes: "list[dict[str, _File | _Folder | None]]" = field(
        default_factory=list[dict[str, "_File | _Folder | None"]]
    )

    def change(self, change: "dict[str, _File | _Folder | None]") -> None:
        self.changes.append(change)
        _rename(self.names, change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.changes.clear()

    def after_crash(self, choice: Choice) -> "_Folder":
        found = dict(self.durable)
        for change in self.changes:
            if choice.is_kept():
                _rename(found, change)
        names = {name: node.after_crash(choice) for name, node in found.items()}
        return _Folder(names, dict(names))


def _all_there(folder: _Folder) -> "frozenset[tuple[str, object]]":
    return frozenset(
        (name, node.content if isinstance(node, _File) else _all_there(node)) for name, node in folder.names.items()
    )


def _rename(names: "dict[str, _File | _Folder]", change: "dict[str, _File | _Folder | None]") -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


@dataclass
class Mishap:
    """What happens instead of the change with this number, once: a crash, or a failure of the disk.

    Of writes alone it is the first from this number on that it happens to; that number `step` then is.
    """

    step: int
    kind: type[BaseException] = Crash
    happened: bool = False
    of_writes: bool = False

    def meet(self, number: int, operation: str, path: Path) -> None:
        """Raise, if this change is the one."""
        if self.of_writes:
            due = not self.happened and number >= self.step and operation == "write"
        else:
            due = number == self.step
        if due:
            self.step, self.happened = number, True
            raise self.kind(f"at change {number}: {operation} of {path.name}")


class CrashDisk:
    """A `Disk` in memory; `root` is the one folder that is there and durable from the start."""

    def __init__(self, root: Path, tree: _Folder | None = None) -> None:
        """Begin empty, or with what a crash left."""
        self.root = root
        self.changed = 0
        """Changes since the start, also those that were stopped."""
        self.mishap: Mishap | None = None
        self._tree = tree or _Folder()

    def after_crash(self, choice: Choice) -> "CrashDisk":
        """Return the disk as it may be found after the power came back."""
        return CrashDisk(self.root, self._tree.after_crash(choice))

    @classmethod
    def of(cls, root: Path, files: Mapping[Path, bytes]) -> "CrashDisk":
        """Return a disk on which these files are, durable; the folders they need are made."""
        disk = cls(root)
        for path, content in files.items():
            for folder in reversed([each for each in path.parents if each.is_relative_to(root) and each != root]):
                disk.make_folder(folder)
            disk.write(path, 0, content)
        return disk.copy()

    def copy(self) -> "CrashDisk":
        """Return another disk with everything that is seen here, all of it durable."""
        return self.after_crash(ALL_KEPT)

    def all_there(self) -> "frozenset[tuple[str, object]]":
        """Return every name with its content, to tell whether two disks look the same."""
        return _all_there(self._tree)

    def files(self, folder: Path | None = None) -> dict[Path, bytes]:
        """Return the content of every file, by path."""
        folder = folder or self.root
        found = dict[Path, bytes]()
        for name, node in self._folder(folder).names.items():
            found |= {folder / name: node.content} if isinstance(node, _File) else self.files(folder / name)
        return found

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes from `start` to `end`, or None where there is no such file."""
        node = self._find(path)
        if isinstance(node, _Folder):
            raise DiskError("the disk refused: a folder")
        return None if node is None else node.content[start : None if end is None else max(start, end)]

    def size(self, path: Path) -> int | None:
        """Return a file's length in bytes, or None."""
        node = self._find(path)
        return None if not isinstance(node, _File) else len(node.content)

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        node = self._find(folder)
        return sorted(node.names) if isinstance(node, _Folder) else []

    def is_free(self, path: Path) -> bool:
        """Return whether nothing is at a path, or only an empty folder."""
        node = self._find(path)
        return node is None or (isinstance(node, _Folder) and not node.names)

    # ── changing ────────────────────────────────────────────────────────────────────────────────────

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        """Write at an offset, making the file where it is missing, and cut off what is beyond."""
        folder = self._folder(path.parent)
        file = folder.names.get(path.name)
        try:
            self._step("write", path)
        except DiskFull:
            # A full disk takes what it has room for.
            if isinstance(file, _File):
                file.apply(_Write(offset, bytes(content[: len(content) // 2])))
            raise
        if file is None:
            file = _File()
            folder.change({path.name: file})
        if isinstance(file, _Folder):
            raise DiskError("the disk refused: a folder")
        file.apply(_Write(offset, bytes(content)))
        if len(file.content) > offset + len(content):
            file.apply(_Write(offset + len(content), None))

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        file = self._file(path)
        try:
            self._step("sync", path)
        except DiskError:
            file.settle(_Durability.STRANDED)
            raise
        file.settle(_Durability.DURABLE)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        node = self._folder(folder)
        self._step("sync_folder", folder)
        node.sync()

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or folder another name; a file there is replaced, in one step."""
        self._step("rename", target)
        self._move(source, target)

    def claim(self, folder: Path, path: Path) -> bool:
        """Rename a folder to a path that is free; False, and nothing done, where it is not."""
        self._step("claim", path)
        if not self.is_free(path):
            return False
        self._move(folder, path)
        return True

    def make_folder(self, folder: Path) -> None:
        """Make a folder, owner-only, where it is missing."""
        parent = self._folder(folder.parent)
        self._step("make_folder", folder)
        node = parent.names.get(folder.name)
        if isinstance(node, _File):
            raise DiskError("the disk refused: a file")
        if node is None:
            parent.change({folder.name: _Folder()})

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        self._step("remove", path)
        node = self._find(path)
        if isinstance(node, _Folder):
            raise DiskError("the disk refused: a folder")
        if node is not None:
            self._folder(path.parent).change({path.name: None})

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder."""
        self._step("remove_folder", folder)
        if self._folder(folder).names:
            raise DiskError("the disk refused: not empty")
        self._folder(folder.parent).change({folder.name: None})

    def _step(self, operation: str, path: Path) -> None:
        number, self.changed = self.changed, self.changed + 1
        if self.mishap is not None:
            self.mishap.meet(number, operation, path)

    def _move(self, source: Path, target: Path) -> None:
        if source.parent != target.parent:
            raise ValueError("a name moves within its folder: nothing in a vault moves between folders")
        folder = self._folder(source.parent)
        if source.name not in folder.names:
            raise DiskError("the disk refused: no such file")
        folder.change({source.name: None, target.name: folder.names[source.name]})

    def _find(self, path: Path) -> _File | _Folder | None:
        node: _File | _Folder | None = self._tree
        for part in path.relative_to(self.root).parts:
            node = node.names.get(part) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: Path) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise DiskError("the disk refused: no such folder")
        return node

    def _file(self, path: Path) -> _File:
        node = self._find(path)
        if not isinstance(node, _File):
            raise DiskError("the disk refused: no such file")
        return node


class NotingDisk(CrashDisk):
    """A disk that notes how it was before each change: what a machine that stopped there had."""

    def __init__(self, disk: CrashDisk) -> None:
        """Go on from a copy of `disk`."""
        super().__init__(disk.root, disk.copy()._tree)
        self.before = list[CrashDisk]()

    def _step(self, operation: str, path: Path) -> None:
        self.before.append(CrashDisk(self.root, deepcopy(self._tree)))
        super()._step(operation, path)


class LazyDisk(CrashDisk):
    """A disk that says it synced and did not: what a store without its fsyncs would leave."""

    def __init__(self, disk: CrashDisk, *, content: bool = False) -> None:
        """Go on where `disk` is; with `content`, only names are not synced."""
        super().__init__(disk.root, disk.after_crash(ALL_KEPT)._tree)
        self._content = content

    def sync(self, path: Path) -> None:
        """Do nothing, or make a file's content durable."""
        if self._content:
            super().sync(path)

    def sync_folder(self, folder: Path) -> None:
        """Do nothing."""
