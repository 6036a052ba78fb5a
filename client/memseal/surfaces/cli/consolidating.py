"""The command that makes memories of memories."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from memseal.memory.texts import parse_id
from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.options import AsJson, PassphraseFd, VaultPath, open_vault
from memseal.surfaces.cli.output import advise, screen, write_json, write_lines
from memseal.surfaces.display import shortened
from memseal.vault.consolidating import Planned

_SHOWN = 200


def consolidate(
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be made.")] = False,
    undo: Annotated[
        str | None, typer.Option(metavar="ID", help="Take back all that the run with this id made.")
    ] = None,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Make summaries of weeks and topics, and patterns of what recurs, beside the memories that they are made of.

    Nothing is sent anywhere, and no memory is changed. What was made before is not made again.
    """
    if undo is not None:
        return _undo(undo, plan, vault, passphrase_fd, as_json)
    with open_vault(vault, passphrase_fd, read_only=plan) as opened:
        if plan:
            run, made = None, opened.plan_consolidation()
        else:
            done = opened.consolidate()
            run, made = done.run, list(done.made)
    if as_json:
        write_json({"plan": plan, "run": run, "made": [documents.of_planned(each) for each in made]})
    else:
        _show(made)
        if run is not None:
            advise(f"{len(made)} made; to take them back: memseal consolidate --undo {run}")
        elif not made:
            advise("There is nothing to make.")
    return exits.DONE


def _undo(run: str, plan: bool, vault: VaultPath, passphrase_fd: PassphraseFd, as_json: bool) -> int:
    if plan:
        raise exits.WrongUsage("--plan and --undo do not go together")
    try:
        parse_id(run)
    except ValueError:
        raise exits.WrongUsage(
            "the id of a run has 32 hex digits: `memseal show ID` of what it made names it"
        ) from None
    with open_vault(vault, passphrase_fd) as opened:
        taken_back = opened.undo_consolidation(run)
    if as_json:
        write_json({"run": run, "taken_back": taken_back})
    else:
        screen().print(f"{taken_back} taken back", soft_wrap=True)
    return exits.DONE


def _show(made: Iterable[Planned]) -> None:
    for each in made:
        head = Text(f"{each.tier}, {each.type}, {each.seen} memories: ", "cyan")
        write_lines(screen(), head.append(shortened(each.content, _SHOWN), "default"))
