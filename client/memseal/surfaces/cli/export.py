"""The command that writes memories to a file."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from memseal.errors import DiskError, DiskFull
from memseal.index.filters import STATES
from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.files import counting
from memseal.surfaces.cli.options import DEFAULT_STATE, FilePassphraseFd, State, one_of
from memseal.surfaces.cli.output import advise, json_text, screen, write_json
from memseal.surfaces.display import visible
from memseal.surfaces.exporting import jsonl
from memseal.surfaces.exporting.markdown import GROUPS, markdown
from memseal.vault.vault import Vault

_FORMATS = ("jsonl", "markdown")


def export_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write, or - for standard output.")],
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Write everything, sealed behind a passphrase of its own, as one file.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            parser=one_of(_FORMATS),
            metavar="FORMAT",
            help="jsonl (`import` reads it) or markdown; if not given, as FILE ends: .md, .mseal (a bundle), or jsonl.",
        ),
    ] = None,
    group: Annotated[
        str,
        typer.Option("--by", parser=one_of(GROUPS), metavar="GROUP", help="How Markdown is ordered: by day or thread."),
    ] = "day",
    state: State = DEFAULT_STATE,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    file_passphrase_fd: FilePassphraseFd = None,
    *,
    access: Access,
) -> int:
    """Write memories as JSON Lines or Markdown, oldest first, in clear text; or as a sealed bundle.

    What was superseded or retracted is left out of clear text unless --state asks for it; a bundle has all, opens
    anywhere with its own passphrase (asked for, or MEMSEAL_FILE_PASSPHRASE), and `import` takes it in.
    """
    if file == "-" and (access.as_json or bundle):
        raise exits.WrongUsage("with - the lines are the output: leave --json and --bundle out, or name a file")
    path = None if file == "-" else Path(file)
    if form is None and not bundle:
        ending = "" if path is None else path.suffix.lower()
        bundle, form = ending == ".mseal", "markdown" if ending in (".md", ".markdown") else "jsonl"
    if path is not None and path.exists() and not overwrite:
        raise exits.WrongUsage(f"{path} is there already: choose another name, or --overwrite it")
    with access.open(read_only=True) as opened:
        if bundle:
            written = _write_bundle(opened, Path(file), file_passphrase_fd)
        else:
            with target_file(path) as target:
                written = _write(opened, form or "jsonl", group, state, target)
        left_out = 0 if bundle else opened.count(state="all") - written
        reasons = _reasons(opened, state) if left_out else ""
    if access.as_json:
        write_json({"path": str(path), "memories": written, "left_out": left_out})
        return exits.DONE
    if path is not None:
        screen().print(
            f"{written} memories are in {visible(str(path))}, {left_out} were left out{reasons}", soft_wrap=True
        )
        advise(_advice(bundle=bundle, left_out=left_out))
    return exits.DONE


def _reasons(vault: Vault, state: str) -> str:
    """Return in which other states there are memories; one can be in two."""
    counts = {other: vault.count(state=other) for other in STATES if other not in (state, "all")}
    return f" ({', '.join(f'{count} {other}' for other, count in counts.items() if count)})"


def _advice(*, bundle: bool, left_out: int) -> str:
    if bundle:
        return "Keep its passphrase: nothing else opens the file, and this vault does not know it."
    return "The file is not encrypted: whoever has it can read it." + (" --state all takes all." if left_out else "")


def _write_bundle(vault: Vault, path: Path, descriptor: int | None) -> int:
    passphrase = asking.new_file_passphrase(descriptor)
    with counting("exporting") as progress:
        return vault.export_bundle(path, passphrase, progress=progress)


def _write(vault: Vault, form: str, group: str, state: str, target: TextIO) -> int:
    lines = (
        markdown(vault, state, group) if form == "markdown" else (json_text(row) for row in jsonl.rows(vault, state))
    )
    for line in lines:
        target.write(line + "\n")
    return vault.count(state=state)


@contextmanager
def target_file(path: Path | None) -> Generator[TextIO]:
    """Open what to write to; a file is there whole or not at all, and only its owner may read it."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600),
            "w",
            encoding="utf-8",
            newline="\n",
        ) as file:
            yield file
        fresh.replace(path)
    except OSError as error:
        raise _disk_error(path, error) from error
    finally:
        fresh.unlink(missing_ok=True)


def _disk_error(path: Path, error: OSError) -> DiskError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"the disk is full: free some space, or write {path.name} elsewhere")
    return DiskError(f"{path.name} cannot be written ({error.strerror}): choose another place")
