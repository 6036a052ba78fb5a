"""Commands about what was believed when, and about what two devices disagree on."""

from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memseal.memory.memory import Memory
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.documents import of_memory
from memseal.surfaces.cli.life_documents import of_difference, of_history, of_versions
from memseal.surfaces.cli.options import Limit, MemoryId, Reason, moment_of
from memseal.surfaces.cli.output import advise, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import moment, show_list
from memseal.surfaces.display import visible
from memseal.vault.writes.histories import Difference, History, Version

Moment = Annotated[
    datetime, typer.Argument(parser=moment_of, metavar="TIME", help="ISO 8601; UTC if it names no offset.")
]


def believed(
    about: Annotated[str, typer.Argument(metavar="QUERY|ID", help="A question, or a memory's id.")],
    at: Moment,
    limit: Limit = 10,
    *,
    access: Access,
) -> int:
    """Show what was believed at a time, since when and until when. What was never true is left out."""
    with access.open(read_only=True) as opened:
        versions = opened.believed(about, at=at, limit=limit)
    if access.as_json:
        write_json({"at": at.isoformat(), "versions": of_versions(versions)})
        return exits.DONE
    _show_versions(screen(), versions)
    if not versions:
        screen().print("Nothing here was believed about that then.")
    return exits.DONE


def history(memory_id: MemoryId, *, access: Access) -> int:
    """Show all versions of a memory, since when and until when each was believed, and every change with its reason."""
    with access.open(read_only=True) as opened:
        found = opened.history(memory_id)
    if access.as_json:
        write_json(of_history(found))
    else:
        _show_history(screen(), found)
    return exits.DONE


def diff(since: Moment, until: Moment, *, access: Access) -> int:
    """Show what was written, superseded, retracted, restored and erased from a time on, up to another."""
    if until < since:
        raise exits.WrongUsage("the second time lies before the first: give the earlier one first")
    with access.open(read_only=True) as opened:
        found = opened.diff(since, until)
    if access.as_json:
        write_json(of_difference(found))
    else:
        _show_difference(screen(), found)
    return exits.DONE


def revert(
    memory_id: MemoryId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept.")],
    *,
    access: Access,
) -> int:
    """Undo a supersede: the text that this memory replaced becomes the newest version again."""
    with access.open() as opened:
        memory = opened.revert(memory_id, reason=reason)
    return _stands(memory, as_json=access.as_json)


def conflicts(*, access: Access) -> int:
    """List memories that several devices superseded at once, the current one first."""
    with access.open(read_only=True) as opened:
        found = opened.conflicts()
    if access.as_json:
        write_json({"conflicts": [[of_memory(memory) for memory in rivals] for rivals in found]})
        return exits.DONE
    for rivals in found:
        write_lines(screen(), Text(f"{len(rivals)} versions in place of {rivals[0].supersedes}", "bold"))
        show_list(screen(), rivals)
    if found:
        advise("The first of each counts. `memseal resolve ID` settles it in favour of the one that you name.")
    else:
        screen().print("There are no conflicts.")
    return exits.DONE


def resolve(memory_id: MemoryId, reason: Reason = None, *, access: Access) -> int:
    """Settle a conflict in favour of one of its memories; all sides stay in the history."""
    with access.open() as opened:
        memory = opened.resolve(memory_id, reason=reason)
    return _stands(memory, as_json=access.as_json)


def _stands(memory: Memory, *, as_json: bool) -> int:
    if as_json:
        write_json({"memory": of_memory(memory)})
    else:
        screen().print(f"now counts {memory.id}", soft_wrap=True)
    return exits.DONE


def _show_history(console: Console, history: History) -> None:
    _show_versions(console, history.versions)
    for change in history.changes:
        line = Text(f"{moment(change.at)}  ", "dim").append(f"{change.what} {change.memory_id}")
        if change.by is not None:
            line.append(f" by {change.by}")
        if change.reason is not None:
            line.append(f": {visible(change.reason)}", "green")
        write_lines(console, line)


def _show_versions(console: Console, versions: tuple[Version, ...] | list[Version]) -> None:
    for version in versions:
        write_lines(console, Text(_window(version), "bold cyan"))
        show_list(console, [version.memory])


def _window(version: Version) -> str:
    if version.valid_from is None:
        return "beside the line: it lost a conflict"
    until = "now" if version.valid_until is None else moment(version.valid_until)
    return f"from {moment(version.valid_from)} to {until}"


def _show_difference(console: Console, found: Difference) -> None:
    rows = [("written", memory_id) for memory_id in found.written]
    rows += [("superseded", f"{old} by {new}") for old, new in found.superseded]
    rows += [("retracted", memory_id) for memory_id in found.retracted]
    rows += [("restored", memory_id) for memory_id in found.restored]
    rows += [("erased", memory_id) for memory_id in found.erased]
    for what, memory_ids in rows:
        write_lines(console, Text(f"{what:<11}", "bold").append(memory_ids, "not bold"))
    if not rows:
        console.print("Nothing was done in that time.")
