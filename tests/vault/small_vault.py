"""Small vaults for tests that open and lose many: no Argon2id, no model."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from memseal.format.device_file import Stretch
from memseal.format.keys import StretchedPassphrase
from memseal.format.primitives import Cost
from memseal.memory.memory import Memory, State
from memseal.store.disk import Disk, OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.keys.creation import create_folder
from memseal.vault.vault import Vault

PASSPHRASE = "an old passphrase"


def stretch_of(passphrase: str) -> Stretch:
    """Return a function that stands for Argon2id over this passphrase: a different key for each, at no cost."""

    def stretch(salt: bytes, cost: Cost) -> StretchedPassphrase:
        return StretchedPassphrase(sha256(passphrase.encode() + salt + cost.to_bytes()).digest())

    return stretch


def cheap_stretch(passphrase: str, salt: bytes, cost: Cost) -> StretchedPassphrase:
    """Stand in the place of Argon2id in a process whose vaults no other program opens."""
    return stretch_of(passphrase)(salt, cost)


def new_folder(path: Path, disk: Disk | None = None, passphrase: str = PASSPHRASE) -> VaultFolder:
    """Make a vault on a disk, and return its folder."""
    return create_folder(path, disk or OsDisk(), passphrase, "laptop", stretch_of(passphrase))[0]


def open_vault(path: Path, disk: Disk | None = None, passphrase: str = PASSPHRASE, *, read_only: bool = False) -> Vault:
    """Open a vault on a disk. Its lock is a real file in either case, so the folder must really be there."""
    return Vault._open(VaultFolder(path, disk or OsDisk()), stretch_of(passphrase), read_only, None)


def power_off(vault: Vault) -> None:
    """Let go of a vault as the end of its process does: nothing more is written."""
    if vault._lock is not None:
        vault._lock.release()
    vault._opened.logbook.view.close()
    vault._closed = True


def everything(vault: Vault) -> dict[str, State]:
    """Return the state of every memory by its content."""
    memories: Iterable[Memory] = vault.list(limit=10_000, state="all")
    return {memory.content: memory.state for memory in memories}
