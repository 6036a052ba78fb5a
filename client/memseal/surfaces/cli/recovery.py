"""Commands for when the passphrase is lost: make a recovery code, and come back with it."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.access import Access, embedder_choice
from memseal.surfaces.cli.keys import (
    DeviceName,
    NewPassphraseFd,
    Remote,
    behind_old_passphrase,
    new_only,
    show_waiting,
)
from memseal.surfaces.cli.options import AsJson, VaultPath
from memseal.surfaces.cli.output import notes, screen, write_json
from memseal.surfaces.cli.pictures import show_kit, show_secret
from memseal.surfaces.cli.places import new_place
from memseal.surfaces.cli.sheets import AsHtml, AsPng, AsText, Force, SheetFiles, show_text
from memseal.surfaces.kit_sheet import recovery_sheet
from memseal.vault.vault import Vault


def recovery_code(
    action: Annotated[str, typer.Argument(parser=new_only, metavar="new", help="Make a new one; the old one ends.")],
    png: AsPng = None,
    html: AsHtml = None,
    text: AsText = False,
    force: Force = False,
    remote: Remote = None,
    *,
    access: Access,
) -> int:
    """Make a code that opens the vault without the passphrase, and show it once (in the JSON too: a secret).

    It is kept nowhere. If this is broken off, the code of before may have ended: make another.
    """
    files = SheetFiles(png, html, force)
    with access.open() as opened:
        code = opened.new_recovery_code(remote=remote)
    sheet = recovery_sheet(code, datetime.now(UTC).date())
    # Shown before the files are written: whatever becomes of them, it is not lost.
    if access.as_json:
        write_json({"recovery_code": code, "files": files.names()})
        files.write(sheet)
        return exits.DONE
    if text:
        show_text(sheet)
    else:
        show_secret(screen(), "recovery code", code, sheet.purpose, sheet.warning)
    files.write(sheet)
    files.show()
    return exits.DONE


def recover(
    remote: Annotated[
        str | None, typer.Argument(metavar="REMOTE", help="Address of the server, unless the code names it.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Ask no server: for a vault that lies here and lives on none.")
    ] = False,
    device_name: DeviceName = None,
    code_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read the recovery code as one line from this file descriptor."),
    ] = None,
    new_passphrase_fd: NewPassphraseFd = None,
    vault: VaultPath = None,
    as_json: AsJson = False,
) -> int:
    """Come back with the recovery code when the passphrase is lost, and choose a new one.

    It asks for the code (or takes MEMSEAL_RECOVERY_CODE) and the new passphrase (MEMSEAL_NEW_PASSPHRASE). A vault that
    is there stays, with all that is in it; otherwise the memories are fetched. Broken off, run it again.
    """
    if local and remote is not None:
        raise exits.WrongUsage("--local asks no server: leave one of the two out")
    path = new_place(vault)
    code, passphrase = asking.recovery_code(code_fd), asking.next_passphrase(new_passphrase_fd)
    server, embedder = "" if local else remote, embedder_choice()
    with (
        notes().status("recovering"),
        Vault.recover(path, code, passphrase, server, device_name=device_name, embedder=embedder) as recovered,
    ):
        status, kit = recovered.status(), recovered.emergency_kit
    waiting = behind_old_passphrase(status)
    if as_json:
        vault_document = {"path": status.path, "id": status.vault_id}
        rest = {"server": status.server or None, "memories": status.active, "emergency_kit": kit}
        write_json({"vault": vault_document, **rest, "devices_with_old_passphrase": waiting})
        return exits.DONE
    console = screen()
    console.print(f"Recovered: {status.active} memories are at {status.path}", soft_wrap=True)
    console.print(
        "The recovery code still works: keep it. The emergency kit of before opens nothing any more.", soft_wrap=True
    )
    show_kit(console, kit)
    show_waiting(console, waiting)
    return exits.DONE
