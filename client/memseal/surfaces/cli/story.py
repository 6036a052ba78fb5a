"""The command that shows what memseal does, on this machine only."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memseal.surfaces.cli import exits
from memseal.surfaces.cli.options import AsJson
from memseal.surfaces.cli.output import advise, notes, screen, write_json
from memseal.surfaces.demo.diary import Diary, find_diary
from memseal.surfaces.demo.server import is_server_installed
from memseal.surfaces.demo.stage import Stage
from memseal.surfaces.demo.story import PASSPHRASE, Story


def demo(
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep everything in this folder, to look around in afterwards.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show it all on this machine: two devices, a server, and a search of what the server holds."""
    diary = _diary()
    with _place(folder) as place:
        stage = Stage(_console(as_json))
        stage.opening("memseal", "One diary, two devices, and a server that cannot read it.")
        story = Story(stage, diary, place)
        story.tell()
    totals = story.totals
    stage.closing(
        (
            f"{totals.memories} memories",
            "2 devices",
            f"{totals.synchronisations} synchronisations",
            f"{totals.found} of {totals.sentences} sentences found",
            f"{totals.seconds:.0f} s",
        )
    )
    if as_json:
        claims = [asdict(claim) for claim in stage.claims]
        write_json({"ok": stage.is_proven, "claims": claims, "totals": asdict(totals)})
    if folder is not None:
        advise(f"Look around: `memseal list --vault {folder / 'laptop'}`; the passphrase is: {PASSPHRASE}")
    return exits.DONE if stage.is_proven else exits.NOT_ALL


def _console(as_json: bool) -> Console:
    """Return where to tell the story: not where the one JSON document goes."""
    return notes() if as_json else screen()


def _diary() -> Diary:
    diary = find_diary()
    if diary is None:
        raise exits.WrongUsage("the demo's diary (examples/data) is only in the source tree: run it from a checkout")
    if not is_server_installed():
        raise exits.WrongUsage("the demo needs the server: pip install 'memseal[server,sync]'")
    return diary


@contextmanager
def _place(folder: Path | None) -> Generator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="memseal-demo-") as temporary:
            yield Path(temporary)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise exits.WrongUsage(f"{folder} is not empty: choose another folder for the demo")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield folder.absolute()
