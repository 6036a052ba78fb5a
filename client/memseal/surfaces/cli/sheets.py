"""Write the sheet of an emergency kit or recovery code to files that only their owner may read."""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from memseal.errors import DiskError, DiskFull
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.output import advise, screen
from memseal.surfaces.display import visible
from memseal.surfaces.kit_sheet import Sheet, as_html, as_png, as_text

AsPng = Annotated[
    Path | None, typer.Option("--png", metavar="FILE", help="Write the sheet as a picture, with a QR code.")
]
AsHtml = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the sheet as one HTML file, to be printed.")
]
AsText = Annotated[bool, typer.Option("--text", help="Show the whole sheet as plain text.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
_OWNER_ONLY: Final = 0o600


@dataclass(frozen=True)
class SheetFiles:
    """Where a sheet is to be written; makes sure of it before anything else is done."""

    png: Path | None
    html: Path | None
    force: bool

    def __post_init__(self) -> None:
        """Refuse a place where something is, or that is no place for a file."""
        for path in self.paths():
            if path.exists() and not self.force:
                raise exits.WrongUsage(f"{path} is there already: choose another name, or --force it")
            if path.is_dir() or not path.parent.is_dir():
                raise exits.WrongUsage(f"{path} cannot be a file: choose a name in a folder that is there")

    def names(self) -> list[str]:
        """Return their names, as a document lists them."""
        return [str(path) for path in self.paths()]

    def paths(self) -> list[Path]:
        """Return the files, in the order of their options."""
        return [path for path in (self.png, self.html) if path is not None]

    def write(self, sheet: Sheet) -> None:
        """Write them, each whole or not at all."""
        rendered: tuple[tuple[Path | None, Callable[[Sheet], bytes]], ...] = (
            (self.png, as_png),
            (self.html, lambda each: as_html(each).encode()),
        )
        for path, render in rendered:
            if path is not None:
                _write(path, render(sheet), replace=self.force)

    def show(self) -> None:
        """Say where they are, and what to do with them."""
        for path in self.paths():
            screen().print(f"The sheet is in {visible(str(path))}", soft_wrap=True)
        if self.paths():
            advise("Print it, then delete the file: it is a secret, in clear text.")


def show_text(sheet: Sheet) -> None:
    """Show the whole sheet as plain text."""
    screen().print(as_text(sheet), end="", soft_wrap=True)


def _write(path: Path, content: bytes, *, replace: bool) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new") if replace else path
    made = False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(fresh, flags, _OWNER_ONLY), "wb") as file:
            made = True
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            fresh.replace(path)
    except OSError as error:
        if made:
            with contextlib.suppress(OSError):
                fresh.unlink()
        raise _disk_error(path, error) from error


def _disk_error(path: Path, error: OSError) -> DiskError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"the disk is full: free some space, or write {path.name} elsewhere")
    return DiskError(f"{path.name} cannot be written ({error.strerror}): choose another place")
