"""Commands that let go of something for good: of a memory, or of a record that cannot be read."""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memseal.surfaces.cli import asking, documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.options import Author, Source, Thread, given, id_shown_by
from memseal.surfaces.cli.output import advise, notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import moment
from memseal.surfaces.display import visible
from memseal.vault.compaction.erasing import Erasure

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

_MOST = 2**31
_PROGRESS_COLOURS = {"gone": "green", "pending": "yellow", "requested": "cyan"}
_PROGRESS_WIDTH = max(map(len, _PROGRESS_COLOURS))


def erase(
    memory_ids: Annotated[
        list[str] | None,
        typer.Argument(
            parser=id_shown_by("memseal list"), metavar="ID", help="Ids of memories or proposals, 32 hex digits each."
        ),
    ] = None,
    source: Source = None,
    author: Author = None,
    thread: Thread = None,
    everything: Annotated[bool, typer.Option("--all", help="All memories and proposals of the vault.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it is kept with the receipt.")] = None,
    yes: Yes = False,
    *,
    access: Access,
) -> int:
    """Remove memories for good, with their earlier and later versions, and say where they are gone.

    By ids, or all of a source, author or thread; `forget` shows the ids by words.
    `retract` takes a memory out of recall and can be undone; this cannot. What cannot be reached now is pending, and
    done by the next `sync`.
    """
    chosen = given(source=source, author=author, thread=thread)
    if bool(memory_ids) + bool(chosen) + everything != 1:
        raise exits.WrongUsage("give ids, or --source, --author, --thread, or --all: `memseal list` shows ids")
    with access.open() as opened:
        ids = memory_ids or [memory.id for memory in opened.to_erase(limit=_MOST, **chosen)]
        if not ids:
            raise exits.WrongUsage("there is nothing of that: `memseal list` shows what is there")
        opened.check_erasable(ids)  # before anybody is asked
        if not asking.may_go_on(_question(len(ids)), yes=yes):
            raise exits.Interrupted("nothing was erased")
        with notes().status("erasing"):
            erasure = opened.erase_all(ids, reason=reason)
    if access.as_json:
        write_json({"erasure": documents.of_erasure(erasure)})
    else:
        _show_erasure(screen(), erasure)
        if not erasure.done:
            advise("What is pending says what it waits for: `memseal erasures` shows how far it is.")
            advise("Other devices erase it at their next `memseal sync`; whether they have is not seen from here.")
    return exits.DONE


def _question(count: int) -> str:
    what = "this memory, with its" if count == 1 else f"these {count} memories, with their"
    return f"Erase {what} earlier and later versions, for good?"


def erasures(*, access: Access) -> int:
    """Show the receipts of all erasures as they stand now, the earliest first."""
    with access.open(read_only=True) as opened:
        found = opened.erasures()
    if access.as_json:
        write_json({"erasures": [documents.of_erasure(each) for each in found]})
        return exits.DONE
    console = screen()
    for erasure in found:
        _show_erasure(console, erasure)
    if not found:
        console.print("Nothing was erased.")
    return exits.DONE


def _show_erasure(console: Console, erasure: Erasure) -> None:
    count = len(erasure.erased)
    head = f"erased {count} {'memory' if count == 1 else 'memories'} on {moment(erasure.at)}"
    write_lines(console, Text(visible(head if erasure.reason is None else f"{head}: {erasure.reason}"), "bold"))
    for memory_id in erasure.erased:
        write_lines(console, Text(memory_id, "dim"), 2)
    width = max(len(visible(place.name)) for place in erasure.places)
    for place in erasure.places:
        line = Text(f"{visible(place.name):<{width}}  ")
        line.append(f"{place.progress:<{_PROGRESS_WIDTH}}  ", _PROGRESS_COLOURS[place.progress])
        write_lines(console, line.append(visible(place.detail)), 2)
    for memory_id in erasure.survivors:
        write_lines(console, Text(f"kept, because it was written elsewhere meanwhile: {memory_id}"), 2)


def quarantine(*, access: Access) -> int:
    """List the records that cannot be read or trusted, or were written by newer software."""
    with access.open(read_only=True) as opened:
        records = opened.quarantine()
    if access.as_json:
        write_json({"records": [documents.of_quarantined(each) for each in records]})
        return exits.DONE
    console = screen()
    for each in records:
        line = Text(each.name, "bold").append(f"  {each.finding.code}", "yellow")
        write_lines(console, line.append("  dismissed", "dim") if each.dismissed else line)
        write_lines(console, Text(visible(each.finding.detail)), 4)
    if not records:
        console.print("The quarantine is empty.")
    elif not all(each.dismissed for each in records):
        advise("`memseal sync` may bring them whole, `memseal repair` saves the rest, `memseal dismiss` gives one up.")
    return exits.DONE


def dismiss(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="The record's name, as `memseal quarantine` has it.")],
    yes: Yes = False,
    *,
    access: Access,
) -> int:
    """Give up a record of the quarantine, so that it holds no checkpoint back. One that heals is applied after all."""
    with access.open() as opened:
        found = next((each for each in opened.quarantine() if each.name == record), None)
        if found is None:
            raise exits.WrongUsage("the quarantine has no such record: `memseal quarantine` shows what it has")
        if not found.dismissed:
            if not asking.may_go_on("Give this record up? The next checkpoint leaves it out for good.", yes=yes):
                raise exits.Interrupted("nothing was dismissed")
            opened.dismiss(found)
    if access.as_json:
        write_json({"dismissed": record})
    else:
        screen().print(f"dismissed {record}", soft_wrap=True)
    return exits.DONE
