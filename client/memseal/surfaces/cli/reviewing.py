"""Commands about what waits for a decision, about capture, and about secrets that were stored."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from memseal.memory.memory import Memory
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.documents import of_memory
from memseal.surfaces.cli.life_documents import of_captured, of_exposed, of_proposal
from memseal.surfaces.cli.options import Limit, Reason, Thread, content_of, id_shown_by, moment_of
from memseal.surfaces.cli.output import advise, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import show_list
from memseal.surfaces.display import visible
from memseal.vault.writes.proposing import Proposal

_MOST_BYTES: Final = 64 << 20
ProposalId = Annotated[
    str,
    typer.Argument(
        parser=id_shown_by("memseal proposals"), metavar="ID", help="The proposal's id, as `memseal proposals` has it."
    ),
]


def proposals(limit: Limit = 100, *, access: Access) -> int:
    """List what waits for `accept` or `reject`: captured and held texts, and memories that say nearly the same."""
    with access.open(read_only=True) as opened:
        found = opened.proposals(limit=limit)
        about = {memory_id: opened.get(memory_id) for each in found for memory_id in each.about}
    if access.as_json:
        write_json({"proposals": [of_proposal(each) for each in found]})
        return exits.DONE
    for each in found:
        _show_proposal(screen(), each, [about[memory_id] for memory_id in each.about])
    if not found:
        screen().print("Nothing waits for a decision.")
    return exits.DONE


def _show_proposal(console: Console, proposal: Proposal, about: list[Memory]) -> None:
    write_lines(console, Text(f"{proposal.kind} {proposal.id}", "bold").append(f"  {visible(proposal.why)}", "dim"))
    show_list(console, about if proposal.memory is None else [*about, proposal.memory])


def accept(proposal_id: ProposalId, reason: Reason = None, *, access: Access) -> int:
    """Do what a proposal says. `retract`, `restore` and `revert` undo it."""
    with access.open() as opened:
        memory = opened.accept(proposal_id, reason=reason)
    if access.as_json:
        write_json({"memory": of_memory(memory)})
    else:
        screen().print(f"accepted: now counts {memory.id}", soft_wrap=True)
    return exits.DONE


def reject(proposal_id: ProposalId, reason: Reason = None, *, access: Access) -> int:
    """Decide against a proposal, for good."""
    with access.open() as opened:
        opened.reject(proposal_id, reason=reason)
    if access.as_json:
        write_json({"rejected": proposal_id})
    else:
        screen().print(f"rejected {proposal_id}", soft_wrap=True)
    return exits.DONE


def hold(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="`*` at the end stands for any ending.")
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="Hold nothing any more.")] = False,
    *,
    access: Access,
) -> int:
    """Hold what these sources write for review, instead of those before; without any, show which are held."""
    if sources and nothing:
        raise exits.WrongUsage("give sources, or --nothing")
    with access.open(read_only=not (sources or nothing)) as opened:
        if sources or nothing:
            opened.hold_sources(sources or [])
        held = opened.held_sources()
    if access.as_json:
        write_json({"held_sources": list(held)})
    else:
        screen().print("\n".join(map(visible, held)) or "No source is held for review.", soft_wrap=True)
    return exits.DONE


def capture(
    path: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Messages as a JSON array or JSON Lines, or - for standard input."),
    ] = None,
    on: Annotated[
        bool | None, typer.Option("--on/--off", help="Switch capture on or off in this vault, on all devices.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="CATEGORY", help="With --on: financial or medical; repeat for both.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="The source becomes capture:NAME.")] = "chat",
    thread: Thread = None,
    *,
    access: Access,
) -> int:
    """Propose what the user of a conversation says about themselves. It is off until `--on`.

    Messages have `role` and `content`, maybe `at` (ISO 8601). Only the user's are read; secrets are never taken.
    """
    if (path is None) == (on is None):
        raise exits.WrongUsage("give a file of messages, or --on or --off")
    if path is None:
        return _switch(on is True, allow or [], access)
    messages = list(_messages(_read(path)))
    with access.open() as opened:
        captured = opened.capture(messages, name=name, thread=thread)
    if access.as_json:
        write_json(of_captured(captured))
        return exits.DONE
    screen().print(f"{len(captured.proposed)} proposed, {captured.known} known already", soft_wrap=True)
    for category, count in sorted(captured.refused.items()):
        screen().print(f"{count} refused: {category}", soft_wrap=True)
    if captured.proposed:
        advise("`memseal proposals` shows them; `memseal accept ID` makes one a memory.")
    return exits.DONE


def _switch(on: bool, allow: list[str], access: Access) -> int:
    with access.open() as opened:
        try:
            opened.set_capture(on, allow=allow)
        except ValueError as error:
            raise exits.WrongUsage(str(error)) from None
    if access.as_json:
        write_json({"capture": {"on": on, "allow": sorted(set(allow))}})
    else:
        screen().print(f"capture is {'on' if on else 'off'}", soft_wrap=True)
    return exits.DONE


def _read(path: str) -> str:
    if path == "-":
        return content_of(path)
    file = Path(path)
    if file.stat().st_size > _MOST_BYTES:
        raise exits.WrongUsage("the file is over 64 MiB: give it in parts")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise exits.WrongUsage("the file is not UTF-8: encode it so") from None


def _messages(text: str) -> Iterator[Mapping[str, Any]]:
    rows = _parsed(text)
    for number, row in enumerate(rows):
        message: dict[str, Any] = row
        if type(message) is not dict or type(message.get("role")) is not str:
            raise exits.WrongUsage(f"message {number} is no object with role and content")
        at = message.get("at")
        yield {**message, "at": None if at is None else _time(number, at)}


def _parsed(text: str) -> Iterable[Any]:
    # Errors are dealt with here: they hold the text, and another one would carry it as its context.
    try:
        if text.lstrip().startswith("["):
            rows: list[Any] = json.loads(text)
            return rows
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        pass
    raise exits.WrongUsage("the messages are not JSON: give an array of objects, or one object a line")


def _time(number: int, value: object) -> datetime:
    if isinstance(value, str):
        try:
            return moment_of(value)
        except typer.BadParameter:
            pass
    raise exits.WrongUsage(f"message {number}: at is no ISO 8601 time")


def audit(*, access: Access) -> int:
    """Look for keys, tokens and passwords in what is stored; shows ids and counts, never a value."""
    with access.open(read_only=True) as opened:
        found = opened.audit()
    if access.as_json:
        write_json({"exposed": of_exposed(found)})
    else:
        console = screen()
        for each in found:
            line = Text(f"{each.id}  ", "bold" if each.sure else "dim")
            rows = [f"{name}: {count}" for name, count in (*each.sure.items(), *each.possible.items())]
            write_lines(console, line.append(", ".join(rows), "not bold not dim"))
        if not found:
            console.print("No secret was found.")
        elif any(each.sure for each in found):
            advise("`memseal erase ID` removes one for good; change the secret where it is used, too.")
    return exits.NOT_ALL if any(each.sure for each in found) else exits.DONE


def forget(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words of what is to go.")],
    limit: Limit = 10,
    *,
    access: Access,
) -> int:
    """Show what a query would forget, and change nothing: `erase` and `retract` take ids."""
    with access.open(read_only=True) as opened:
        found = opened.to_erase(query, limit=limit)
    if access.as_json:
        write_json({"memories": [of_memory(memory) for memory in found]})
        return exits.DONE
    show_list(screen(), found)
    if found:
        advise("Nothing was changed. `memseal erase ID…` removes those that you name for good.")
    else:
        screen().print("Nothing here is related to that.")
    return exits.DONE
