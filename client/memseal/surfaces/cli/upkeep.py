"""Commands that keep a vault in order: synchronise, say how it is, check it, fill in vectors."""

from typing import Annotated

import typer

from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.files import progress_bar
from memseal.surfaces.cli.options import AsJson, PassphraseFd, VaultPath, open_vault
from memseal.surfaces.cli.output import notes, screen, write_json
from memseal.surfaces.cli.pictures import show_findings, show_status, size
from memseal.surfaces.display import visible


def sync(
    remote: Annotated[
        str | None,
        typer.Argument(metavar="REMOTE", help="A server's address or a folder; the last server if not given."),
    ] = None,
    accept_rollback: Annotated[
        bool, typer.Option("--accept-rollback", help="Fill a server up again that shows less than it showed before.")
    ] = False,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Exchange what is new with a server or a folder, which learn nothing of what is in it."""
    with open_vault(vault, passphrase_fd) as opened, notes().status("synchronising"):
        report = opened.sync(remote, accept_rollback=accept_rollback)
    if as_json:
        write_json(documents.of_sync(report))
    else:
        console = screen()
        console.print(
            f"{visible(report.remote)}: {report.new_memories} new memories,"
            f" {size(report.pulled_bytes)} received, {size(report.pushed_bytes)} sent",
            soft_wrap=True,
        )
        show_findings(console, report.findings)
    return exits.NOT_ALL if report.findings else exits.DONE


def status(vault: VaultPath = None, passphrase_fd: PassphraseFd = None, as_json: AsJson = False) -> int:
    """Say what is here: counts, devices, findings, and what no server has yet."""
    with open_vault(vault, passphrase_fd, read_only=True) as opened:
        found = opened.status()
    if as_json:
        write_json(documents.of_status(found))
    else:
        show_status(screen(), found)
    return exits.DONE


def verify(vault: VaultPath = None, passphrase_fd: PassphraseFd = None, as_json: AsJson = False) -> int:
    """Read every file of the vault anew and list all that is wrong with it."""
    with open_vault(vault, passphrase_fd, read_only=True) as opened, notes().status("reading everything"):
        findings = opened.verify()
    if as_json:
        write_json({"ok": not findings, "findings": documents.of_findings(findings)})
    elif findings:
        show_findings(screen(), findings)
    else:
        screen().print("Everything is as it was written.")
    return exits.NOT_ALL if findings else exits.DONE


def reindex(vault: VaultPath = None, passphrase_fd: PassphraseFd = None, as_json: AsJson = False) -> int:
    """Give vectors to the memories that have none of the present model; broken off, it goes on next time."""
    with open_vault(vault, passphrase_fd) as opened:
        missing = opened.status().without_vector
        with progress_bar("embedding", missing) as advance:
            done = 0

            def step(so_far: int, total: int) -> None:
                nonlocal done
                advance(so_far - done)
                done = so_far

            count = opened.reindex(step)
    if as_json:
        write_json({"embedded": count})
    else:
        screen().print(f"{count} memories have a vector now", soft_wrap=True)
    return exits.DONE
