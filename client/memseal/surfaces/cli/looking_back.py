"""Commands that tell what was given out, and answer SQL."""

from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memseal.format.trace import Trace
from memseal.memory.memory import from_microseconds
from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.options import Limit, Since, Until, content_of, given, id_shown_by
from memseal.surfaces.cli.output import advise, screen, write_json, write_lines, write_text
from memseal.surfaces.cli.pictures import moment
from memseal.surfaces.display import shortened, visible
from memseal.vault.answers.explaining import Considered, Explanation, method_of, reasons_of
from memseal.vault.answers.sql import Rows

_INDENT: Final = 4
_CELL_MOST: Final = 200


def trace(
    trace_id: Annotated[
        str | None,
        typer.Argument(
            parser=id_shown_by("memseal trace"),
            metavar="ID",
            help="The trace to explain; all are listed if not given.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            parser=id_shown_by("memseal list"),
            metavar="ID",
            help="Traces that name this memory: given out, or passed over.",
        ),
    ] = None,
    turn: Annotated[str | None, typer.Option(metavar="NAME", help="Traces of this turn, as the app named it.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    text: Annotated[bool, typer.Option("--text", help="Write only the exact text that was given out.")] = False,
    days: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=36_500, help="Keep traces for N days from now on; 0 for none.")
    ] = None,
    megabytes: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=1 << 20, help="Keep up to N MiB of traces from now on.")
    ] = None,
    *,
    access: Access,
) -> int:
    """Tell what this device gave out, and why: every search, recall, injection, capture and proposal.

    Traces are sealed, stay on this device, and are kept for 30 days and up to 64 MiB unless you set it otherwise.
    """
    if days is not None or megabytes is not None:
        return _keep(days, megabytes, access)
    if text and trace_id is None:
        raise exits.WrongUsage("--text is for one trace: name it")
    with access.open(read_only=True) as opened:
        if trace_id is not None:
            told = opened.explain(trace_id)
            return _tell(told, text_alone=text, as_json=access.as_json)
        found = opened.traces(limit=limit, **given(memory=memory, turn=turn, since=since, until=until))
    if access.as_json:
        write_json({"traces": [documents.of_trace(each) for each in found]})
        return exits.DONE
    for each in found:
        _show_trace(screen(), each)
    if not found:
        screen().print("There are no such traces.")
    return exits.DONE


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="SELECT …, or - to read it from standard input.")
    ],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="At most this many rows.")] = 1_000,
    seconds: Annotated[float, typer.Option(metavar="S", min=0.001, max=3600, help="At most this long.")] = 10.0,
    *,
    access: Access,
) -> int:
    """Ask the vault in SQL, which can only read: tables memories, versions, operations, traces, trace_memories.

    format-spec/sql.md says what their columns mean; `SELECT sql FROM sqlite_master` lists them.
    """
    asked = content_of(statement)
    with access.open(read_only=True) as opened:
        rows = opened.sql(asked, limit=limit, seconds=seconds)
    if access.as_json:
        write_json(documents.of_rows(rows))
    else:
        _show_rows(screen(), rows)
        if rows.truncated:
            advise(f"There are more than {limit} rows: --limit shows more.")
    return exits.DONE


def _keep(days: int | None, megabytes: int | None, access: Access) -> int:
    with access.open() as opened:
        kept = opened.traces_kept
        days = kept.days if days is None else days
        megabytes = kept.megabytes if megabytes is None else megabytes
        opened.keep_traces(days=days, megabytes=megabytes)
    if access.as_json:
        write_json({"kept": {"days": days, "megabytes": megabytes}})
    elif days and megabytes:
        screen().print(f"Traces are kept for {days} days, up to {megabytes} MiB.")
    else:
        screen().print("No traces are kept any more, and those that were are removed.")
    return exits.DONE


# ── for people ──────────────────────────────────────────────────────────────────────────────────────


def _show_trace(console: Console, each: Trace) -> None:
    line = Text().append(f"{visible(each.surface):<10}", "bold cyan")
    line.append(f" {moment(from_microseconds(each.at))}  ", "dim")
    line.append(_asked(each))
    write_lines(console, line)
    facts = [each.id, f"{len(each.served)} given out"]
    if each.turn is not None:
        facts.append(f"turn {shortened(each.turn)}")
    if each.erased:
        facts.append(f"{len(each.erased)} erased since")
    write_lines(console, Text(" · ".join(facts), "dim"), _INDENT)


def _asked(each: Trace) -> str:
    if each.query is not None:
        return shortened(each.query)
    return "(what was asked was erased)" if each.erased else ""


def _tell(told: Explanation, *, text_alone: bool, as_json: bool) -> int:
    if as_json:
        write_json({"trace": told.to_value()})
    elif text_alone:
        write_text(told.text or "")
    else:
        _show_explanation(screen(), told)
    return exits.DONE


def _show_explanation(console: Console, told: Explanation) -> None:
    each = told.trace
    _show_trace(console, each)
    if each.terms:
        write_lines(console, Text(f"words: {visible(', '.join(each.terms))}"), _INDENT)
    if each.time is not None:
        write_lines(console, Text(f"time: {visible(str(each.time.get('phrase')))}"), _INDENT)
    if each.considered:
        how = f"by {visible(method_of(each))}; {each.considered} memories scored, {len(told.served)} given out"
        write_lines(console, Text(how), _INDENT)
    for number, memory in enumerate(told.served, start=1):
        _show_memory(console, f"{number:>2}  ", memory)
    if told.passed_over:
        console.print(Text("Considered and not given out:", "bold"))
        for memory in told.passed_over:
            _show_memory(console, "-   ", memory)
    if told.text is not None:
        console.print(Text(f"The exact text, {len(told.text)} characters{_proof(told)}:", "bold"))
        for line in told.text.splitlines():
            write_lines(console, Text(visible(line)), _INDENT)
    if each.stages:
        spent = ", ".join(f"{visible(name)} {micros / 1000:.1f} ms" for name, micros in each.stages)
        write_lines(console, Text(f"took {spent}", "dim"))


def _proof(told: Explanation) -> str:
    if told.is_exact is None:
        return ""
    return " (as its receipt says)" if told.is_exact else " (not the text of its receipt)"


def _show_memory(console: Console, mark: str, each: Considered) -> None:
    content = each.missing if each.memory is None else visible(each.memory.content)
    write_lines(console, Text(content), _INDENT, Text(mark, "bold cyan"))
    write_lines(console, Text(" · ".join(reasons_of(each)), "green" if each.served else "dim"), _INDENT)
    write_lines(console, Text(each.id, "dim"), _INDENT)


def _show_rows(console: Console, rows: Rows) -> None:
    """Print rows: a table on a terminal, and lines of tab-separated cells for other programs."""
    if not console.is_terminal:
        write_text("\n".join("\t".join(map(_cell, cells)) for cells in (rows.columns, *rows.rows)))
        return
    table = Table(header_style="bold")
    for name in rows.columns:
        table.add_column(Text(visible(name)), overflow="fold")
    for row in rows.rows:
        table.add_row(*(Text(shortened(_cell(cell), _CELL_MOST)) for cell in row))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else visible(str(value))
