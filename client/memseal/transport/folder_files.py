"""Files of a folder remote: written whole or not at all, and never replaced."""

import secrets
from pathlib import Path
from typing import Protocol

_DIGITS = 10
# A segment of the largest record, with room.
_FILE_MOST = 80 << 20


class Files(Protocol):
    """What a folder needs of a file system: a part of the vault's own port to it."""

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        """Return a file's bytes, or None where there is no such file."""
        ...

    def size(self, path: Path) -> int | None:
        """Return a file's length in bytes, or None."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        ...

    def write(self, path: Path, offset: int, content: bytes) -> None:
        """Write at an offset, making the file where it is missing."""
        ...

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Make a folder where it is missing."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        ...


def read(files: Files, path: Path, start: int = 0) -> bytes | None:
    """Return a file's bytes from an offset on; None where there is none, or one that is larger than any may be."""
    size = files.size(path)
    return None if size is None or size > _FILE_MOST else files.read(path, start)


def numbered(number: int) -> str:
    """Return the name of a numbered file; listing order is their order."""
    return f"{number:0{_DIGITS}d}"


def numbers(names: list[str]) -> list[int]:
    """Return the numbers that names are: what programs that copy or synchronise leave beside them is none."""
    return [int(name) for name in names if len(name) == _DIGITS and name.isascii() and name.isdigit()]


def add(files: Files, folder: Path, name: str, content: bytes) -> None:
    """Write a file durably under a name that is free: whoever looks sees it whole or not at all."""
    made = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(made):
        files.make_folder(each)
        files.sync_folder(each.parent)
    fresh = folder / f".{secrets.token_hex(8)}.new"
    files.write(fresh, 0, content)
    files.sync(fresh)
    files.rename(fresh, folder / name)
    files.sync_folder(folder)
