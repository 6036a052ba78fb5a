"""Commands for a vault's keys: make one, join one, show its kit, change its passphrase."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.options import (
    AsJson,
    PassphraseFd,
    VaultPath,
    default_vault,
    embedder_choice,
    open_vault,
)
from memseal.surfaces.cli.output import advise, notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import show_kit
from memseal.surfaces.display import visible
from memseal.vault.vault import Vault

DeviceName = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call this device; the computer's name if not given.")
]


def init(
    vault: VaultPath = None,
    device_name: DeviceName = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Make a new vault and show its emergency kit (in the JSON too: a secret)."""
    path = _place(vault)
    passphrase = asking.first_passphrase(passphrase_fd)
    with Vault.create(path, passphrase, device_name=device_name, embedder=embedder_choice()) as made:
        kit, status = made.emergency_kit, made.status()
    if as_json:
        write_json({"vault": {"path": status.path, "id": status.vault_id}, "emergency_kit": kit})
        return exits.DONE
    console = screen()
    console.print(f"A new vault is at {status.path}", soft_wrap=True)
    show_kit(console, kit)
    advise("Next: `memseal remember TEXT`, `memseal recall QUERY`, or `memseal import FILE`.")
    return exits.DONE


def join(
    remote: Annotated[
        str | None, typer.Argument(metavar="REMOTE", help="Address of the server, unless the kit names it.")
    ] = None,
    vault: VaultPath = None,
    device_name: DeviceName = None,
    kit_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read the emergency kit as one line from this file descriptor."),
    ] = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Make this device one of a vault's devices, and fetch the memories.

    It asks for the emergency kit (or takes MEMSEAL_KIT) and the passphrase; the kit may name the server.
    """
    path = _place(vault)
    kit, passphrase = asking.emergency_kit(kit_fd), asking.passphrase(passphrase_fd)
    embedder = embedder_choice()
    with (
        notes().status("joining, and fetching the memories"),
        Vault.join(path, kit, passphrase, remote, device_name=device_name, embedder=embedder) as joined,
    ):
        status = joined.status()
    if as_json:
        vault_document = {"path": status.path, "id": status.vault_id}
        write_json({"vault": vault_document, "server": status.server or None, "memories": status.active})
    else:
        screen().print(f"Joined: {status.active} memories are at {status.path}", soft_wrap=True)
    return exits.DONE


def kit(vault: VaultPath = None, passphrase_fd: PassphraseFd = None, as_json: AsJson = False) -> int:
    """Show the emergency kit again (in the JSON too: a secret)."""
    with open_vault(vault, passphrase_fd, read_only=True) as opened:
        text = opened.emergency_kit
    if as_json:
        write_json({"emergency_kit": text})
    else:
        show_kit(screen(), text)
    return exits.DONE


def passwd(
    vault: VaultPath = None,
    remote: Annotated[
        str | None, typer.Option(metavar="REMOTE", help="The server, if it has another address now.")
    ] = None,
    passphrase_fd: PassphraseFd = None,
    new_passphrase_fd: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Read the new passphrase as one line from this file descriptor."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Change the passphrase and show the new emergency kit (in the JSON too: a secret).

    The new passphrase comes from --new-passphrase-fd, MEMSEAL_NEW_PASSPHRASE, or a prompt. The old kit ends.
    """
    path, old = vault or default_vault(), asking.passphrase(passphrase_fd)
    with Vault.open(path, old, embedder=None) as opened:
        opened.change_passphrase(old, asking.next_passphrase(new_passphrase_fd), remote=remote)
        text, devices = opened.emergency_kit, opened.status().devices
    waiting = [device.name or device.id for device in devices if device.old_passphrase]
    if as_json:
        write_json({"emergency_kit": text, "devices_with_old_passphrase": waiting})
        return exits.DONE
    console = screen()
    console.print("The passphrase was changed. The emergency kit of before opens nothing any more.", soft_wrap=True)
    show_kit(console, text)
    if waiting:
        devices_line = f"Run `memseal passwd` with the same new passphrase on: {', '.join(waiting)}"
        write_lines(console, Text(visible(devices_line)))
    return exits.DONE


def _place(vault: Path | None) -> Path:
    """Return where a vault is to be made; the folders above it are made only where the place was not chosen."""
    if vault is not None:
        return vault
    path = default_vault()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
