"""The command that shows what would leave the device."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from memseal.errors import SanitizerMissing
from memseal.privacy.report import Report
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.export import target_file
from memseal.surfaces.cli.options import AsJson
from memseal.surfaces.cli.output import advise, json_text, notes, screen, write_json, write_lines
from memseal.surfaces.display import shortened, visible
from memseal.surfaces.sanitize_page import page

_HALF = 60


def sanitize(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text in UTF-8, or - for standard input.")],
    report: Annotated[bool, typer.Option("--report", help="Show each value beside its stand-in.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write text and stand-ins side by side as a page.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="PATH", help="Write what was replaced as JSON without any value, to be kept."),
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME", help="Always replace this name; repeat for several.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="TEXT", help="Never replace this; repeat for several.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> int:
    """Replace personal data in a text by stand-ins, and write what would go to a provider.

    The stand-ins are of this run alone: nothing is stored, nothing is sent. With --report the values are shown too.
    """
    for path in (html, trace):
        if path is not None and path.exists() and not overwrite:
            raise exits.WrongUsage(f"{path} is there already: choose another name, or --overwrite it")
    text = _text(file)
    clean, found = _sanitized(text, owner or [], allow or [])
    if html is not None:
        with target_file(html) as target:
            target.write(page(text, clean, found))
    if trace is not None:
        with target_file(trace) as target:
            target.write(json_text(found.trace(), indent=2) + "\n")
    if as_json:
        write_json({"text": clean, **found.trace()})
    elif report:
        _show(found)
    else:
        sys.stdout.write(clean)
        sys.stdout.flush()
    if not as_json:
        for note in found.missing:
            write_lines(notes(), Text(f"! {note}"))
    if html is not None:
        advise("The page shows the real values: keep it as private as the text.")
    return exits.DONE


def _sanitized(text: str, owner: list[str], allow: list[str]) -> tuple[str, Report]:
    try:
        # Imported here: it is an extra, and the other commands need none of it.
        from memseal.sanitize import Sanitizer
    except ModuleNotFoundError as error:
        raise SanitizerMissing(f"the sanitizer needs {error.name}: pip install 'memseal[sanitize]'") from error
    clean = Sanitizer(owner=owner, allow=allow).sanitize(text)
    return clean.text, clean.report


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_bytes().decode()
    except UnicodeDecodeError:
        raise exits.WrongUsage("the text is not UTF-8: encode it so") from None


def _show(found: Report) -> None:
    table = Table("type", "value", "stand-in", "found by", box=None, pad_edge=False)
    seen: set[tuple[str, str]] = set()
    for item in found.items:
        if (item.value, item.standin) not in seen:
            seen.add((item.value, item.standin))
            table.add_row(item.type, Text(shortened(item.value, _HALF)), Text(visible(item.standin)), item.source)
    screen().print(table)
    screen().print(
        ", ".join(f"{count} {kind}" for kind, count in found.counts.items()) or "nothing personal was found",
        soft_wrap=True,
    )
