"""A join that has begun: its keys, kept beside the folder-to-be, so that no entry is without its device."""

from pathlib import Path

from memseal.errors import DeviceFileDamaged, FormatError
from memseal.format.device_file import DeviceFile, Stretch, decode_device_file, open_key_set, open_marks
from memseal.store.disk import Disk
from memseal.store.folder import VaultFolder
from memseal.vault.folder.device import Device, decode_marks


class Begun:
    """The file of one join that has begun (sync-protocol, *Pairing*, "Cut short")."""

    def __init__(self, path: Path, disk: Disk) -> None:
        """Take where the vault's folder is going to be."""
        self._folder = VaultFolder(path.parent, disk)
        self._name = f".{path.name}.joining"

    def keep(self, device: Device) -> None:
        """Keep the device's keys durably, before any server lists them; its marks say where, and on which keyring."""
        device.save(self._folder, self._name)

    def open(self, vault_id: bytes | None, stretch: Stretch) -> Device | None:
        """Return the device that is about to join (this vault, where it is known); None where there is none.

        One that does not open was begun with another passphrase, or is damaged: it is passed over.
        """
        content = self._folder.read(self._name)
        if content is None:
            return None
        try:
            file = decode_device_file(content)
            if vault_id not in (None, file.vault_id):
                return None
            return _opened(file, stretch)
        except (DeviceFileDamaged, FormatError):
            return None

    def forget(self) -> None:
        """Remove what was kept, durably."""
        self._folder.remove(self._name)
        self._folder.settle("")


def _opened(file: DeviceFile, stretch: Stretch) -> Device | None:
    keys = open_key_set(file, file.slots[0], stretch)
    if keys is None:
        return None
    return Device(file.vault_id, file.device_id, keys, file.slots, decode_marks(open_marks(file, keys.local)))
