"""Commands that keep a vault in order: synchronise, say how it is, check it, compact it, fill in vectors."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from memseal.surfaces.cli import asking, documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.files import progress_bar
from memseal.surfaces.cli.keys import Remote
from memseal.surfaces.cli.output import notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import show_findings, show_joined, show_status, size
from memseal.surfaces.cli.watching import watch
from memseal.surfaces.display import visible


def sync(
    remote: Annotated[
        str | None,
        typer.Argument(metavar="REMOTE", help="A server's address or a folder; the last server if not given."),
    ] = None,
    accept_rollback: Annotated[
        bool,
        typer.Option(
            "--accept-rollback",
            "--refill",
            help="Fill a server up again that shows less than it showed before; where its keys went another way since,"
            " join both (MEMSEAL_NEW_PASSPHRASE: the newest passphrase, if this device still has an older one).",
        ),
    ] = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Go on until Ctrl-C; with --json one line for each change of state.")
    ] = False,
    invited: Annotated[
        bool,
        typer.Option(
            "--invitation",
            help="Ask for the invitation that a server wants for a new vault (or set MEMSEAL_INVITATION).",
        ),
    ] = False,
    invitation_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read that invitation as one line from this file descriptor."),
    ] = None,
    *,
    access: Access,
) -> int:
    """Exchange what is new with a server or a folder, which learn nothing of what is in it.

    With --watch it follows: what another program writes to this vault cannot come in meanwhile, for one alone has it
    open; what other devices write does, and is here for the next command.
    """
    if watching:
        if accept_rollback:
            raise exits.WrongUsage("--accept-rollback is for one synchronisation: without --watch")
        with access.open(warn=False) as opened:
            return watch(opened, remote, as_json=access.as_json)
    access.place()  # before anything is asked
    passphrase = access.passphrase()
    invitation = asking.invitation(invitation_fd, wanted=invited)
    newest = (asking.newer_passphrase() or passphrase) if accept_rollback else None
    with (
        access.open(warn=False, passphrase=passphrase) as opened,
        notes().status("synchronising"),
    ):
        report = opened.sync(remote, accept_rollback=accept_rollback, passphrase=newest, invitation=invitation)
    if access.as_json:
        write_json(documents.of_sync(report))
    else:
        console = screen()
        console.print(
            f"{visible(report.remote)}: {report.new_memories} new memories,"
            f" {size(report.pulled_bytes)} received, {size(report.pushed_bytes)} sent",
            soft_wrap=True,
        )
        show_findings(console, report.findings)
        if report.joined is not None:
            show_joined(console, report.joined)
    return exits.NOT_ALL if report.findings else exits.DONE


def status(*, access: Access) -> int:
    """Say what is here: counts, devices, findings, and what no server has yet."""
    with access.open(read_only=True, warn=False) as opened:
        found = opened.status()
    if access.as_json:
        write_json(documents.of_status(found))
    else:
        show_status(screen(), found)
    return exits.DONE


def verify(
    read_data: Annotated[
        bool, typer.Option("--read-data", help="Open every record too: the whole vault is read.")
    ] = False,
    *,
    access: Access,
) -> int:
    """Look through the vault's files and list all that is wrong with them, with what to do.

    Keys, the frame of every log, the presence of the checkpoint's parts, and the frames of traces and kept sessions are
    always looked at; with --read-data every record, signature and part is opened, and every trace and session.
    """
    with access.open(read_only=True, warn=False) as opened, byte_bar("reading") as progress:
        findings = opened.verify(read_data=read_data, progress=progress)
    if access.as_json:
        write_json({"ok": not findings, "findings": documents.of_findings(findings)})
    elif findings:
        show_findings(screen(), findings)
    elif read_data:
        screen().print("Everything is as it was written.")
    else:
        screen().print("Every file is there and in shape. `memseal verify --read-data` opens each record too.")
    return exits.NOT_ALL if findings else exits.DONE


@contextmanager
def byte_bar(what: str) -> Generator[Callable[[int, int], None]]:
    """Show a bar of bytes on a terminal, and nothing elsewhere; yields what is told bytes done and bytes in all."""
    console = notes()
    columns = (TextColumn(what), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def compact(
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also take out of earlier checkpoints what has no effect any more.")
    ] = False,
    remote: Remote = None,
    *,
    access: Access,
) -> int:
    """Make a checkpoint of all that is here, and drop what it covers from the logs, here and on the server."""
    with access.open() as opened, notes().status("compacting"):
        done = opened.compact(remote=remote, thorough=thorough)
    if access.as_json:
        write_json({"compacted": None if done is None else asdict(done)})
    elif done is None:
        screen().print("There is nothing to compact.")
    else:
        screen().print(f"{size(done.size_before)} before, {size(done.size_after)} now", soft_wrap=True)
        for name in done.held_back:
            line = f"held back: {name} has records that cannot be read or are of newer software: `memseal quarantine`"
            write_lines(screen(), Text(line), 2)
    return exits.NOT_ALL if done is not None and done.held_back else exits.DONE


def reindex(*, access: Access) -> int:
    """Give vectors to the memories that have none of the present model; broken off, it goes on next time."""
    with access.open() as opened:
        missing = opened.status().without_vector
        with progress_bar("embedding", missing) as advance:
            done = 0

            def step(so_far: int, total: int) -> None:
                nonlocal done
                advance(so_far - done)
                done = so_far

            count = opened.reindex(step)
    if access.as_json:
        write_json({"embedded": count})
    else:
        screen().print(f"{count} memories have a vector now", soft_wrap=True)
    return exits.DONE
