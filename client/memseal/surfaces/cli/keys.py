"""Commands for a vault's keys: make one, join one, show or renew its kit, change its passphrase, rekey."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memseal.errors import MemoryInvalid
from memseal.memory.data_class import DATA_CLASSES, GENERAL, checked_class
from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.access import Access, embedder_choice
from memseal.surfaces.cli.output import advise, notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import show_kit
from memseal.surfaces.cli.places import free_place
from memseal.surfaces.cli.sheets import AsHtml, AsPng, AsText, Force, SheetFiles, show_text
from memseal.surfaces.display import visible
from memseal.surfaces.kit_sheet import kit_sheet
from memseal.vault.remote.status import Status
from memseal.vault.vault import Vault

DeviceName = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call this device; the computer's name if not given.")
]


Remote = Annotated[str | None, typer.Option(metavar="REMOTE", help="The server, if it has another address now.")]
NewPassphraseFd = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Read the new passphrase as one line from this file descriptor."),
]


def new_only(value: str) -> str:
    """Take the one word that an action is."""
    if value != "new":
        raise typer.BadParameter("the only action is `new`")
    return value


def _data_class(value: str) -> str:
    try:
        return checked_class(value)
    except MemoryInvalid as error:
        raise typer.BadParameter(str(error)) from None


def init(
    device_name: DeviceName = None,
    data_class: Annotated[
        str, typer.Option(parser=_data_class, metavar="CLASS", help=f"One of {', '.join(DATA_CLASSES)}; it stays.")
    ] = GENERAL,
    *,
    access: Access,
) -> int:
    """Make a new vault and show its emergency kit (in the JSON too: a secret)."""
    path = free_place(access.vault)
    passphrase = asking.first_passphrase(access.passphrase_fd)
    embedder = embedder_choice()
    with Vault.create(path, passphrase, device_name=device_name, embedder=embedder, data_class=data_class) as made:
        kit, status = made.emergency_kit, made.status()
    if access.as_json:
        write_json({"vault": {"path": status.path, "id": status.vault_id}, "emergency_kit": kit})
        return exits.DONE
    console = screen()
    console.print(f"A new vault is at {status.path}", soft_wrap=True)
    show_kit(console, kit)
    advise("Next: `memseal remember TEXT`, `memseal recall QUERY`, or `memseal import FILE`.")
    advise("For the day the passphrase is forgotten: `memseal recovery-code new`.")
    return exits.DONE


def join(
    remote: Annotated[
        str | None, typer.Argument(metavar="REMOTE", help="Address of the server, unless the kit names it.")
    ] = None,
    device_name: DeviceName = None,
    kit_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read the emergency kit as one line from this file descriptor."),
    ] = None,
    by_code: Annotated[
        bool, typer.Option("--code", help="Join by the code that `memseal pair` shows on another device.")
    ] = False,
    code_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read that code as one line from this file descriptor."),
    ] = None,
    *,
    access: Access,
) -> int:
    """Make this device one of a vault's devices, and fetch the memories.

    It asks for the emergency kit (or takes MEMSEAL_KIT), or with --code for the code that another device shows (or
    takes MEMSEAL_PAIRING_CODE), and for the vault's passphrase. The kit, or the code of a QR code, may name the server.
    """
    path = free_place(access.vault)
    paired = by_code or code_fd is not None
    opener = asking.pairing_code(code_fd) if paired else asking.emergency_kit(kit_fd)
    passphrase, embedder = access.passphrase(), embedder_choice()
    join_by = Vault.join_with_code if paired else Vault.join
    with (
        notes().status("joining, and fetching the memories"),
        join_by(path, opener, passphrase, remote, device_name=device_name, embedder=embedder) as joined,
    ):
        status = joined.status()
    if access.as_json:
        vault_document = {"path": status.path, "id": status.vault_id}
        write_json({"vault": vault_document, "server": status.server or None, "memories": status.active})
    else:
        screen().print(f"Joined: {status.active} memories are at {status.path}", soft_wrap=True)
    return exits.DONE


def kit(
    action: Annotated[
        str | None, typer.Argument(parser=new_only, metavar="new", help="With `new`: make another; the old one ends.")
    ] = None,
    png: AsPng = None,
    html: AsHtml = None,
    text: AsText = False,
    force: Force = False,
    remote: Remote = None,
    *,
    access: Access,
) -> int:
    """Show the emergency kit (in the JSON too: a secret), write it to a sheet, or make a new one."""
    files = SheetFiles(png, html, force)
    path, passphrase = access.place(), access.passphrase()
    with Vault.open(path, passphrase, read_only=action is None, embedder=None) as opened:
        shown = opened.emergency_kit if action is None else opened.new_kit(passphrase, remote=remote)
    sheet = kit_sheet(shown, datetime.now(UTC).date())
    if access.as_json:
        write_json({"emergency_kit": shown, "files": files.names()})
        files.write(sheet)
        return exits.DONE
    console = screen()
    if action is not None:
        console.print("A new kit was made. The emergency kit of before opens nothing any more.", soft_wrap=True)
    if text:
        show_text(sheet)
    elif action is not None or not files.names():
        show_kit(console, shown)
    files.write(sheet)
    files.show()
    return exits.DONE


def rekey(remote: Remote = None, *, access: Access) -> int:
    """Begin a new epoch: what is written from now on is sealed under a new key. Kit and passphrase stay."""
    with access.open() as opened:
        opened.rekey(remote=remote)
        status = opened.status()
    if access.as_json:
        write_json({"epoch": status.epoch, "keyring_version": status.keyring_version})
    else:
        screen().print(f"Epoch {status.epoch} has begun. Kit and passphrase are as before.", soft_wrap=True)
    return exits.DONE


def passwd(remote: Remote = None, new_passphrase_fd: NewPassphraseFd = None, *, access: Access) -> int:
    """Change the passphrase and show the new emergency kit (in the JSON too: a secret).

    The new passphrase comes from --new-passphrase-fd, MEMSEAL_NEW_PASSPHRASE, or a prompt. The old kit ends. Where
    another device changed it before, this one takes the new passphrase on, and the kit stays.
    """
    path, old = access.place(), access.passphrase()
    with Vault.open(path, old, embedder=None) as opened:
        before = opened.emergency_kit
        if any(device.this_device and device.old_passphrase for device in opened.status().devices):
            write_lines(notes(), Text("Another device changed the passphrase: give the new one that was chosen there."))
        opened.change_passphrase(old, asking.next_passphrase(new_passphrase_fd), remote=remote)
        text, waiting = opened.emergency_kit, behind_old_passphrase(opened.status())
    if access.as_json:
        write_json({"emergency_kit": text, "devices_with_old_passphrase": waiting})
        return exits.DONE
    console = screen()
    if text == before:
        line = "This device has the new passphrase now. The kit that was shown with the change is the one that counts."
        console.print(line, soft_wrap=True)
    else:
        console.print("The passphrase was changed. The emergency kit of before opens nothing any more.", soft_wrap=True)
        show_kit(console, text)
    show_waiting(console, waiting)
    return exits.DONE


def behind_old_passphrase(status: Status) -> list[str]:
    """Return the names of devices that are still to take on a new passphrase."""
    return [device.name or device.id for device in status.devices if device.old_passphrase]


def show_waiting(console: Console, devices: Sequence[str]) -> None:
    """Say where the new passphrase is still to be taken on."""
    if devices:
        line = f"Run `memseal passwd` with the same new passphrase on: {', '.join(devices)}"
        write_lines(console, Text(visible(line)))
