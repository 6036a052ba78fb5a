"""Commands that bring memories in from a file, and write them to one."""

import errno
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from memseal.errors import DiskError, DiskFull, ImportRowError
from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.bringing import Tally, bring
from memseal.surfaces.cli.options import AsJson, PassphraseFd, State, VaultPath, open_vault
from memseal.surfaces.cli.output import advise, json_text, notes, screen, write_json, write_lines
from memseal.surfaces.display import visible
from memseal.surfaces.importing.opening import open_import
from memseal.vault.vault import Vault

_REFUSED_SHOWN = 20
_PAGE = 4_096


class _Refusals:
    """Counts refused rows and keeps the first few."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.first: list[ImportRowError] = []
        self._most = most

    def add(self, error: ImportRowError) -> None:
        self.count += 1
        if len(self.first) < self._most:
            self.first.append(error)


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines, or a LoCoMo document.")],
    limit_errors: Annotated[
        int, typer.Option(metavar="N", min=0, help="Name at most this many refused or changed rows; all are counted.")
    ] = _REFUSED_SHOWN,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Bring in the memories of a file, leaving out what an earlier import brought.

    Broken off, it goes on where it was when it is run again. Rows that cannot be read are refused and named.
    """
    if not file.is_file():
        raise exits.WrongUsage(f"{file} is no file: give a JSON Lines file or a LoCoMo document")
    refusals, unknown_fields = _Refusals(limit_errors), Counter[str]()
    with open_vault(vault, passphrase_fd) as opened:
        form, items, rows = open_import(file, on_error=refusals.add, unknown_fields=unknown_fields)
        with progress_bar("importing", rows) as advance:
            tally = bring(opened, items, advance)
    if as_json:
        write_json(_report(form, rows, tally, refusals, unknown_fields, limit_errors))
    else:
        _show_report(tally, refusals, unknown_fields, limit_errors)
    if tally.interrupted:
        raise exits.Interrupted(f"stopped after {tally.new + tally.known} rows: they are stored, run it again to go on")
    return exits.NOT_ALL if refusals.count or tally.changed else exits.DONE


@contextmanager
def progress_bar(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Show a bar on a terminal and nothing elsewhere; yields the function to call with the steps taken."""
    console = notes()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)

        def advance(steps: int) -> None:
            progress.advance(task, steps)

        yield advance


def _report(
    form: str, rows: int, tally: Tally, refusals: _Refusals, unknown_fields: Counter[str], most: int
) -> documents.Document:
    return {
        "format": form,
        "rows": rows,
        "new": tally.new,
        "known": tally.known,
        "changed": len(tally.changed),
        "changed_origins": tally.changed[:most],
        "refused": refusals.count,
        "refused_rows": [{"line": error.line, "reason": error.reason} for error in refusals.first],
        "unknown_fields": dict(unknown_fields),
        "interrupted": tally.interrupted,
    }


def _show_report(tally: Tally, refusals: _Refusals, unknown_fields: Counter[str], most: int) -> None:
    console = screen()
    counts = {"new": tally.new, "known": tally.known, "changed": len(tally.changed), "refused": refusals.count}
    console.print(", ".join(f"{count} {word}" for word, count in counts.items()), soft_wrap=True)
    for error in refusals.first:
        write_lines(console, Text(visible(f"refused: {error}")), 2)
    for origin in tally.changed[:most]:
        write_lines(console, Text(visible(f"changed since it was imported, and left as it is: {origin}")), 2)
    if unknown_fields:
        names = ", ".join(f"{name} ({count})" for name, count in unknown_fields.most_common())
        write_lines(console, Text(visible(f"fields left out: {names}")), 2)
    if tally.changed:
        advise("`memseal list`, and `memseal supersede ID TEXT` to take a change over.")


def export_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write, or - for standard output.")],
    state: State = "active",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Write memories as JSON Lines, oldest first, in clear text: `import` reads them.

    What was superseded or retracted is left out unless --state asks for it.
    """
    if file == "-" and as_json:
        raise exits.WrongUsage("with - the lines are the output, and JSON already: leave --json out")
    path = None if file == "-" else Path(file)
    if path is not None and path.exists() and not overwrite:
        raise exits.WrongUsage(f"{path} is there already: choose another name, or --overwrite it")
    with open_vault(vault, passphrase_fd, read_only=True) as opened, _target(path) as target:
        written = _write_memories(opened, state, target)
        left_out = opened.count(state="all") - written
    if as_json:
        write_json({"path": str(path), "memories": written, "left_out": left_out})
        return exits.DONE
    if path is not None:
        screen().print(f"{written} memories are in {visible(str(path))}, {left_out} were left out", soft_wrap=True)
        advise(
            "The file is not encrypted: whoever has it can read it." + (" --state all takes all." if left_out else "")
        )
    return exits.DONE


def _write_memories(vault: Vault, state: str, target: TextIO) -> int:
    total = vault.count(state=state)
    # The vault lists the newest first; a file that is read from the top should begin with the oldest.
    for end in range(total, 0, -_PAGE):
        start = max(0, end - _PAGE)
        for memory in reversed(vault.list(limit=end - start, offset=start, state=state)):
            target.write(json_text(documents.of_export(memory)) + "\n")
    return total


@contextmanager
def _target(path: Path | None) -> Generator[TextIO]:
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
