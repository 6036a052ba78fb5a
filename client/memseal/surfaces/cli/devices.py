"""Commands for a vault's devices: list, rename and remove them."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.giving_up import Yes
from memseal.surfaces.cli.keys import Remote
from memseal.surfaces.cli.output import advise, notes, screen, write_json, write_lines
from memseal.surfaces.cli.pictures import moment, show_kit, show_secret
from memseal.surfaces.display import visible
from memseal.vault.keys.revoking import Revocation
from memseal.vault.keys.roster import DeviceInfo
from memseal.vault.vault import Vault

Device = Annotated[str, typer.Argument(metavar="DEVICE", help="The device's name or id.")]
_STATUS = {
    "this": "this device",
    "active": "",
    "waiting": "still behind the old passphrase: run `memseal passwd` there",
    "ended": "removed",
}


def list_devices(context: typer.Context, *, access: Access) -> int:
    """List the devices of the vault; rename one, or remove one that is lost.

    What is shown is what this device knows: `memseal sync` first shows what the others did.
    """
    if context.invoked_subcommand is not None:
        _refuse_misplaced(context)
        return exits.DONE
    with access.open(read_only=True) as opened:
        found = opened.devices()
    if access.as_json:
        write_json({"devices": [of_device(each) for each in found]})
        return exits.DONE
    for each in found:
        show_device(screen(), each)
    return exits.DONE


def _refuse_misplaced(context: typer.Context) -> None:
    """Refuse options before the word that says what to do: they would go unheard, and another vault be meant."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise exits.WrongUsage(f"give options after {context.invoked_subcommand}, not before it")


def rename(
    device: Device,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it from now on.")],
    remote: Remote = None,
    *,
    access: Access,
) -> int:
    """Give a device another name, on all devices."""
    with access.open() as opened:
        opened.rename_device(device, name, remote=remote)
        found = opened.devices()
    if access.as_json:
        write_json({"devices": [of_device(each) for each in found]})
        return exits.DONE
    for each in found:
        show_device(screen(), each)
    return exits.DONE


def revoke(device: Device, yes: Yes = False, remote: Remote = None, *, access: Access) -> int:
    """Remove a device that is lost or not trusted any more: it reads and writes nothing from then on.

    All keys that it knew are renewed. The emergency kit and the recovery code of before open nothing any more, and the
    new ones are shown (in the JSON too: secrets); the recovery code this once. What it had, it keeps.
    """
    path, passphrase = access.place(), access.passphrase()
    with Vault.open(path, passphrase, embedder=None) as opened:
        known = [each for each in opened.devices() if each.status != "ended"]
        staying = [each for each in known if device not in (each.id, each.name)]
        if not yes and not access.as_json:
            _show_staying(notes(), staying)
        if not asking.may_go_on(f"Remove {visible(device)} for good?", yes=yes):
            raise exits.Interrupted("nothing was changed")
        with notes().status("renewing the keys"):
            done = opened.revoke(device, passphrase, seen=[each.id for each in known], remote=remote)
    if access.as_json:
        write_json({"removed": _of_revocation(done)})
    else:
        _show_revocation(screen(), done)
    return exits.DONE


def of_device(device: DeviceInfo) -> dict[str, Any]:
    """Return a device as a document has it."""
    at = device.last_written_at
    return {**asdict(device), "last_written_at": None if at is None else at.isoformat()}


def show_device(console: Console, device: DeviceInfo) -> None:
    """Print one device on two lines."""
    line = Text(visible(device.name or "without a name"), "strike dim" if device.status == "ended" else "bold")
    if remark := _STATUS[device.status]:
        line.append(f"  {remark}", "yellow" if device.status == "waiting" else "dim not bold not strike")
    write_lines(console, line)
    last = "" if device.last_written_at is None else f", last wrote {moment(device.last_written_at)} by its own clock"
    write_lines(console, Text(f"{device.id}  since version {device.since}{last}", "dim"), 4)


def _show_staying(console: Console, staying: list[DeviceInfo]) -> None:
    write_lines(console, Text("These devices stay, and get the new keys:"))
    for each in staying:
        show_device(console, each)


def _of_revocation(done: Revocation) -> dict[str, Any]:
    return {
        "id": done.id,
        "name": done.name,
        "cut_offs": [asdict(each) for each in done.cut_offs],
        "emergency_kit": done.emergency_kit,
        "recovery_code": done.recovery_code,
    }


def _show_revocation(console: Console, done: Revocation) -> None:
    write_lines(console, Text(visible(f"{done.name or done.id} was removed. What it had, it keeps; nothing else.")))
    for cut_off in done.cut_offs:
        line = f"its log {cut_off.stream} ends after {cut_off.records} records; what comes later does not count"
        write_lines(console, Text(line, "dim"), 2)
    show_kit(console, done.emergency_kit)
    if done.recovery_code is not None:
        show_secret(
            console,
            "recovery code",
            done.recovery_code,
            "This code alone opens the vault. It is shown this once, and kept nowhere.",
            "The recovery code of before opens nothing any more.",
        )
    advise("The kit of before opens nothing any more: `memseal kit --html FILE` writes a sheet to print.")
