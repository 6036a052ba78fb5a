"""Repairs a vault, and says each change of the disk before it makes it, until it is killed."""

import sys
from pathlib import Path

from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.copies.repairing import repair
from tests.vault.small_vault import PASSPHRASE, stretch_of


class TellingDisk(OsDisk):
    """The file system, and a line on standard output for each change."""

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        """Say it, and write."""
        self._say()
        super().write(path, offset, content)

    def rename(self, source: Path, target: Path) -> None:
        """Say it, and rename."""
        self._say()
        super().rename(source, target)

    def claim(self, folder: Path, path: Path) -> bool:
        """Say it, and claim."""
        self._say()
        return super().claim(folder, path)

    def _say(self) -> None:
        sys.stdout.write("change\n")
        sys.stdout.flush()


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    repair(VaultFolder(source, TellingDisk()), target, stretch_of(PASSPHRASE), lambda plan: True)
