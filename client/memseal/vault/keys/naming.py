"""The names of a vault's devices: find one by it, give one another (vault-format §7, *Names*)."""

import platform
import unicodedata

from memseal.errors import DeviceName, DeviceUnknown
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.rekeying import follow_stored, renew
from memseal.vault.keys.versions import Change

NAME_MOST = 64
# Controls, formats (bidi overrides, invisible letters), surrogates, line and paragraph separators, unassigned ones.
_WITHOUT_SHAPE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co"))
# These two join letters of Persian, of Indic scripts and of emoji.
_JOINERS = "\u200c\u200d"


def check_name(name: str) -> str:
    """Return a name as it is stored, in NFC and without white space around it; raises `DeviceName`."""
    text = unicodedata.normalize("NFC", name).strip()
    if not text:
        raise DeviceName("a device's name is empty: choose one")
    if len(text) > NAME_MOST:
        raise DeviceName(f"a device's name has at most {NAME_MOST} characters: choose a shorter one")
    if any(unicodedata.category(each) in _WITHOUT_SHAPE and each not in _JOINERS for each in text):
        raise DeviceName("a device's name has a character without a shape: choose another name")
    return text


def own_name(wanted: str | None) -> str:
    """Return what to call this device: what its user says, or else the computer's name, if it can be one."""
    if wanted:
        return check_name(wanted)
    try:
        return check_name(platform.node()[:NAME_MOST])
    except DeviceName:
        return "a device"


def find_device(opened: Opened, wanted: str) -> bytes:
    """Return the id of the active device with this id (32 hex digits) or name; raises `DeviceUnknown`."""
    names, active = opened.keychain.secrets.names, [entry.id for entry in opened.keychain.keyring.public.active()]
    found = [each for each in active if each.hex() == wanted] or [
        each for each in active if names.get(each) == unicodedata.normalize("NFC", wanted).strip()
    ]
    if len(found) > 1:
        raise DeviceUnknown("several devices have this name: give the id of one")
    if not found:
        raise DeviceUnknown(_not_found(opened, wanted))
    return found[0]


def _not_found(opened: Opened, wanted: str) -> str:
    names = opened.keychain.secrets.names
    if any(wanted in (entry.id.hex(), names.get(entry.id)) for entry in opened.keychain.keyring.public.devices):
        return (
            "this device is removed already: `kit` shows the kit that counts now;"
            " a recovery code of then that was not shown is lost: make another"
        )
    return "no device of this vault has this id or name: list the devices"


def rename(opened: Opened, wanted: str, name: str, remote: str | None) -> None:
    """Give a device another name, by a version without a new epoch; where it has that name, change nothing."""
    text = check_name(name)
    follow_stored(opened)
    device = find_device(opened, wanted)
    renew(opened, lambda: _change(opened, device, text), remote)


def _change(opened: Opened, device: bytes, name: str) -> Change | None:
    names = opened.keychain.secrets.names
    # Found anew: another device may have removed it, or taken the name, since.
    active = {entry.id for entry in opened.keychain.keyring.public.active()}
    if device not in active:
        raise DeviceUnknown(_not_found(opened, device.hex()))
    if any(names.get(each) == name for each in active - {device}):
        raise DeviceName("another device has this name: choose another")
    return None if names.get(device) == name else Change(names={device: name})
