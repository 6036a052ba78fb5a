"""The command that makes memories of memories."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.options import id_shown_by
from memseal.surfaces.cli.output import advise, screen, write_json, write_lines
from memseal.surfaces.display import shortened
from memseal.vault.writes.consolidating import Planned

_SHOWN = 200


def consolidate(
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be made.")] = False,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only where it was not done this week, here or on another device.")
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option(
            parser=id_shown_by("memseal show ID"), metavar="ID", help="Take back all that the run with this id made."
        ),
    ] = None,
    *,
    access: Access,
) -> int:
    """Make summaries of weeks and topics, and patterns of what recurs, beside the memories that they are made of.

    Nothing is sent anywhere, and no memory is changed. What was made before is not made again. Nothing runs by itself:
    for a daily job of the system, there is --if-due.
    """
    if if_due and (plan or undo is not None):
        raise exits.WrongUsage("--if-due goes with neither --plan nor --undo")
    if undo is not None:
        return _undo(undo, plan, access)
    with access.open(read_only=plan) as opened:
        if plan:
            run, made = None, opened.plan_consolidation()
        else:
            done = opened.consolidate(if_due=if_due)
            run, made = done.run, list(done.made)
    if access.as_json:
        write_json({"plan": plan, "run": run, "made": [documents.of_planned(each) for each in made]})
    else:
        _show(made)
        if run is not None:
            advise(f"{len(made)} made; to take them back: memseal consolidate --undo {run}")
        elif not made:
            advise("There is nothing to make.")
    return exits.DONE


def _undo(run: str, plan: bool, access: Access) -> int:
    if plan:
        raise exits.WrongUsage("--plan and --undo do not go together")
    with access.open() as opened:
        taken_back = opened.undo_consolidation(run)
    if access.as_json:
        write_json({"run": run, "taken_back": taken_back})
    else:
        screen().print(f"{taken_back} taken back", soft_wrap=True)
    return exits.DONE


def _show(made: Iterable[Planned]) -> None:
    for each in made:
        head = Text(f"{each.tier}, {each.type}, {each.seen} memories: ", "cyan")
        write_lines(screen(), head.append(shortened(each.content, _SHOWN), "default"))
