"""The command that brings memories in from a file."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from memseal.errors import ImportRowError
from memseal.surfaces.cli import asking, documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.bringing import Tally, bring, preview
from memseal.surfaces.cli.options import FilePassphraseFd
from memseal.surfaces.cli.output import advise, notes, screen, write_json, write_lines
from memseal.surfaces.display import shortened, visible
from memseal.surfaces.importing.opening import open_import
from memseal.surfaces.importing.vaultmem import is_vaultmem
from memseal.vault.copies.bundle_import import BundleReport
from memseal.vault.copies.bundles import is_bundle
from memseal.vault.vault import Vault

_REFUSED_SHOWN = 20
_PREVIEW = 10
_CONTENT_SHOWN = 100


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
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A bundle, JSON Lines, an export of ChatGPT or Claude (JSON or zip) or of mem0, a provenmem database, "
            "the folder of a vaultmem vault, or a LoCoMo document.",
        ),
    ],
    limit_errors: Annotated[
        int, typer.Option(metavar="N", min=0, help="Name at most this many refused or changed rows; all are counted.")
    ] = _REFUSED_SHOWN,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come, and store nothing.")] = False,
    file_passphrase_fd: FilePassphraseFd = None,
    *,
    access: Access,
) -> int:
    """Bring in the memories of a file, leaving out what an earlier import brought.

    Broken off, it goes on where it was when it is run again. Rows that cannot be read are refused and named. Bundles
    and vaultmem vaults ask for a passphrase of their own, or take it from MEMSEAL_FILE_PASSPHRASE.
    """
    if not file.is_file() and not is_vaultmem(file):
        raise exits.WrongUsage(f"{file} is no file: give one that can be imported")
    if file.is_file() and is_bundle(file):
        with access.open(read_only=dry_run) as opened:
            return _import_bundle(opened, file, file_passphrase_fd, dry_run=dry_run, as_json=access.as_json)
    refusals, unknown_fields = _Refusals(limit_errors), Counter[str]()
    with access.open(read_only=dry_run) as opened:
        form, items, rows = open_import(
            file,
            on_error=refusals.add,
            unknown_fields=unknown_fields,
            passphrase=lambda: asking.file_passphrase(file_passphrase_fd),
        )
        with progress_bar("looking through" if dry_run else "importing", rows) as advance:
            if dry_run:
                tally, first = preview(opened, items, advance, _PREVIEW)
            else:
                tally, first = bring(opened, items, advance), []
    report = _report(form, rows, tally, refusals, unknown_fields, limit_errors)
    if access.as_json:
        write_json({**report, "dry_run": True, "first": documents.of_items(first)} if dry_run else report)
    else:
        _show_report(tally, refusals, unknown_fields, limit_errors)
        for item in first:
            write_lines(screen(), Text(shortened(f"would come: {item['content']}", _CONTENT_SHOWN)), 2)
    if tally.interrupted:
        raise exits.Interrupted(f"stopped after {tally.new + tally.known} rows: they are stored, run it again to go on")
    return exits.NOT_ALL if refusals.count or tally.changed else exits.DONE


def _import_bundle(vault: Vault, file: Path, descriptor: int | None, *, dry_run: bool, as_json: bool) -> int:
    passphrase = asking.file_passphrase(descriptor)
    with counting("looking through" if dry_run else "importing") as progress:
        report = vault.import_bundle(file, passphrase, dry_run=dry_run, progress=progress)
    if as_json:
        write_json(documents.of_bundle_report(report, dry_run=dry_run))
    else:
        _show_bundle(report)
    return exits.NOT_ALL if report.findings else exits.DONE


def _show_bundle(report: BundleReport) -> None:
    console = screen()
    console.print(f"{report.new_memories} new, {report.new_operations} changes in all", soft_wrap=True)
    for finding in report.findings:
        write_lines(console, Text(visible(f"lost: {finding.where}: {finding.detail} ({finding.code})")), 2)


@contextmanager
def progress_bar(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Show a bar on a terminal and nothing elsewhere; yields the function to call with the steps taken."""
    with _bar(what) as progress:
        task = progress.add_task(what, total=total)

        def advance(steps: int) -> None:
            progress.advance(task, steps)

        yield advance


@contextmanager
def counting(what: str) -> Generator[Callable[[int, int], None]]:
    """Show a bar as `progress_bar` does, where the total is only known on the way; yields what is told both."""
    with _bar(what) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _bar(what: str) -> Progress:
    console = notes()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


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
