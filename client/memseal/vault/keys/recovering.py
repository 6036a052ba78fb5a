"""Come back with the recovery code when the passphrase is lost (vault-format §7, *Recovery slot*)."""

from dataclasses import dataclass, replace
from pathlib import Path

from memseal.errors import (
    DeviceEnded,
    DeviceFileDamaged,
    KitOrPassphrase,
    LocalRollback,
    PassphraseWrong,
)
from memseal.format.boxes import open_slot, slot_cost
from memseal.format.device_file import Stretch
from memseal.format.kit import parse_recovery_code
from memseal.format.primitives import check_passphrase
from memseal.store.disk import Disk
from memseal.store.folder import LOCK, VaultFolder
from memseal.store.lock import VaultLock
from memseal.vault.folder.cache import VIEW
from memseal.vault.folder.device import open_device, read_device_file
from memseal.vault.folder.keychain import Keyring, load_keyring, save_version
from memseal.vault.folder.opening import Opened
from memseal.vault.keys import passphrases
from memseal.vault.keys.joining import Joiner, join_there, join_with
from memseal.vault.keys.proving import RecoveryOpener, prove


@dataclass(frozen=True)
class NewPassphrase:
    """What is from now on to open the vault."""

    text: str
    stretch: Stretch


def enter(path: Path, disk: Disk, code_text: str, new: NewPassphrase, server: str | None, name: str) -> VaultFolder:
    """Make this a device of the vault again, behind the new passphrase; what is left to do is `complete`.

    Where the vault's folder is at the path, all that is in it stays, and the new device takes the place of the one
    whose passphrase was lost. An empty `server` means none: then nothing but the folder is needed.
    """
    check_passphrase(new.text)
    code = parse_recovery_code(code_text)
    opener, address = RecoveryOpener(code), code.server if server is None else server
    folder = VaultFolder(path, disk)
    if not folder.exists():
        return join_with(path, disk, opener, new.stretch, address, name)
    lock = VaultLock(path / LOCK)
    try:
        folder.take_over()
        keyring = load_keyring(folder, code.vault_id)
        prove(opener, keyring.versions)
        if not _is_inside(folder, keyring, new.stretch):
            _take_place(folder, opener, keyring, new.stretch, address, name)
    finally:
        lock.release()
    return folder


def _is_inside(folder: VaultFolder, keyring: Keyring, stretch: Stretch) -> bool:
    """Return whether the new passphrase opens the device that is here: an earlier try had come this far.

    One that sits behind an older passphrase than the vault's is not, even if that is to be the new one.
    """
    try:
        device = open_device(read_device_file(folder), keyring.public, stretch)
    except (PassphraseWrong, LocalRollback, DeviceEnded, DeviceFileDamaged):
        return False
    entry = keyring.public.entry_of(device.signing_public)
    return entry is not None and entry.since >= keyring.public.passphrase_since


def _take_place(
    folder: VaultFolder, opener: RecoveryOpener, keyring: Keyring, stretch: Stretch, address: str, name: str
) -> None:
    """Join, and put the new device's file in the place of the one that nobody can open any more: that comes last."""
    joiner = Joiner.draw(name)
    if address:
        versions, address = join_there(opener, joiner, address, keyring.versions)
    else:
        versions = [*keyring.versions, joiner.version(keyring.newest, prove(opener, keyring.versions))[0]]
    for version in versions[len(keyring.versions) :]:
        keyring = keyring.followed_by(version)
        save_version(folder, version)
    device = joiner.device(keyring.newest, stretch)
    marks = replace(device.marks, server=address, replaces=_device_here(folder))
    folder.remove(VIEW)
    device.with_marks(marks).save(folder)


def _device_here(folder: VaultFolder) -> bytes:
    """Return the id of the device that is here, which its file says openly; empty where there is none."""
    try:
        return read_device_file(folder).device_id
    except DeviceFileDamaged:
        return b""


def complete(opened: Opened, new: NewPassphrase, server: str | None) -> None:
    """Make the new passphrase the vault's, with a new emergency kit; where it is that already, change nothing."""
    if opened.device.marks.replaces or not _opens_kit(opened, new.stretch):
        passphrases.change(opened, new.stretch, new.stretch, new.text, server or None)


def _opens_kit(opened: Opened, stretch: Stretch) -> bool:
    newest = opened.keychain.keyring.newest
    try:
        open_slot(newest, stretch(*slot_cost(newest)), opened.keychain.secrets.kit_secret)
    except KitOrPassphrase:
        return False
    return True
