"""The command that writes a repaired copy of a damaged vault."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memseal.surfaces.cli import asking, documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.giving_up import Yes
from memseal.surfaces.cli.output import notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import show_findings
from memseal.surfaces.cli.places import vault_place
from memseal.surfaces.cli.upkeep import byte_bar
from memseal.surfaces.display import visible
from memseal.vault.copies.surveying import FilePlan, RepairPlan
from memseal.vault.vault import Vault

_FATES = {
    "kept": "is copied as it is",
    "cut": "is copied up to the damage",
    "left out": "is left out",
    "made anew": "is made anew",
}


def repair(
    to: Annotated[Path, typer.Option("--to", metavar="NEW", help="Where the copy goes: nothing may be there.")],
    damaged: Annotated[
        Path | None, typer.Argument(metavar="VAULT", help="The damaged vault, in the place of --vault.")
    ] = None,
    yes: Yes = False,
    *,
    access: Access,
) -> int:
    """Write a copy of a damaged vault with all that can be read, and name what is lost; the vault itself stays.

    The plan is shown first, and nothing is written before you agree (or give --yes). Where the vault is on a server or
    in a folder too, `memseal sync` comes first: what is whole there heals without loss.
    """
    shown, showing = list[RepairPlan](), ExitStack()

    def agree(plan: RepairPlan) -> bool:
        showing.close()  # nothing moves on the screen while somebody is asked
        shown.append(plan)
        if not access.as_json:
            _show_plan(screen(), plan)
        agreed = (yes or not access.as_json) and asking.may_go_on(f"Write the copy to {visible(str(to))}?", yes=yes)
        if agreed:
            showing.enter_context(notes().status("writing the copy, and reading it"))
        return agreed

    place, passphrase = vault_place(damaged or access.vault), access.passphrase()
    with showing:
        progress = showing.enter_context(byte_bar("reading"))
        done = Vault.repair(place, passphrase, to, agree=agree, progress=progress)
    if access.as_json:
        plan = documents.of_plan(shown[0]) if shown else None
        write_json({"plan": plan, "repaired": None if done is None else documents.of_repair(done)})
    elif not shown:
        screen().print("Nothing is damaged that a copy would mend: none is needed.")
    elif done is None:
        raise exits.Interrupted("nothing was written")
    else:
        screen().print(f"{done.memories} memories are at {visible(done.path)}", soft_wrap=True)
        show_findings(screen(), done.findings)
        if not done.same_state:
            line = "Its state is another than the damaged vault shows: compare what `memseal list` says of both."
            write_lines(screen(), Text(line, "bold yellow"))
        line = "Go on with the copy alone: both are the same device. Keep the damaged one until you miss nothing."
        write_lines(screen(), Text(line))
    if not shown:
        return exits.DONE
    return exits.DONE if done is not None and done.same_state and not done.findings else exits.NOT_ALL


def _show_plan(console: Console, plan: RepairPlan) -> None:
    show_findings(console, plan.damage)
    for address in (plan.server, *plan.remotes):
        if address:
            line = f"First try `memseal sync {visible(address)}`: what is whole there heals, and nothing of it is lost."
            write_lines(console, Text(line, "bold yellow"))
    console.print("A copy would be written:", style="bold")
    for each in plan.files:
        write_lines(console, Text(_of_file(each)), 2)
    write_lines(console, Text("all other files are copied as they are"), 2)
    write_lines(console, Text(f"{plan.memories} memories can be read, and will all be in the copy", "bold"), 2)


def _of_file(plan: FilePlan) -> str:
    parts = [f"{plan.name} {_FATES[plan.fate]}"]
    if plan.kept:
        parts.append(f"{_records(plan.kept)} kept")
    if plan.saved:
        parts.append(f"{_records(plan.saved)} written again")
    if plan.lost is None:
        parts.append("what was in it is lost")
    elif plan.lost:
        parts.append(f"{_records(plan.lost)} lost")
    return ", ".join(parts)


def _records(count: int) -> str:
    return f"{count} {'record' if count == 1 else 'records'}"
