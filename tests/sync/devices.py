"""Devices that share a vault and a remote in memory."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memseal.format.kit import parse_kit
from memseal.vault.keys import passphrases
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.remote.syncing import SyncReport
from memseal.vault.vault import Vault
from tests.sync.memory_remote import ADDRESS, MemoryRemote
from tests.vault.crash_disk import Choice, CrashDisk, NotingDisk
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, power_off, stretch_of


@dataclass
class Device:
    """A device: its disk, and its vault, which is open; `folder` is real, for the lock alone."""

    folder: Path
    disk: CrashDisk
    passphrase: str = PASSPHRASE
    vault: Vault = field(init=False)

    def __post_init__(self) -> None:
        self.vault = open_vault(self.folder, self.disk, self.passphrase)

    def sync(self, *, accept_rollback: bool = False) -> SyncReport:
        """Synchronise with the remote in memory."""
        return self.vault.sync(ADDRESS, accept_rollback=accept_rollback)

    def reopen(self, *, from_cache: bool) -> None:
        """Close and open again; without the cache, everything is read from the logs."""
        if from_cache:
            self.vault._opened.uncached = 1 << 30
        self.vault.close()
        if not from_cache:
            self.disk.remove(self.folder / "cache" / "view.mseal")
        self.vault = open_vault(self.folder, self.disk, self.passphrase)

    def change_passphrase(self, new: str) -> None:
        """Change the passphrase, or take on a change made elsewhere."""
        with self.vault._writing() as opened:
            passphrases.change(opened, stretch_of(self.passphrase), stretch_of(new), new, None)
        self.passphrase = new

    def close(self) -> None:
        """Close the vault, if it is open."""
        self.vault.close()


def restored(backup: CrashDisk, folder: Path, passphrase: str = PASSPHRASE) -> Device:
    """Return a device that goes on from a copy of a disk; `folder` may have another name than it had there."""
    folder.mkdir(exist_ok=True)
    disk = backup.copy()
    (name,) = disk.names(disk.root)
    if name != folder.name:
        disk.rename(disk.root / name, folder)
    return Device(folder, disk, passphrase)


class _NotingBoth(NotingDisk):
    """A disk that notes with itself how the remote was before each change."""

    def __init__(self, disk: CrashDisk, remote: MemoryRemote) -> None:
        super().__init__(disk)
        self.remotes = list[MemoryRemote]()
        self._remote = remote

    def _step(self, operation: str, path: Path) -> None:
        self.remotes.append(self._remote.copy())
        super()._step(operation, path)


def crashes_of(
    disk: CrashDisk, folder: Path, remote: MemoryRemote, do: Callable[[Device], object], fate: Choice
) -> Iterator[tuple[CrashDisk, MemoryRemote]]:
    """Yield the disk as a crash at each step of an act leaves it, and the remote of that moment: what is alike, once.

    The act is done once, by a device on a copy of the disk, with a copy of the remote.
    """
    there = remote.copy()
    noting = _NotingBoth(disk, there)
    with there.connected():
        device = Device(folder, noting)
        opened = len(noting.before)
        do(device)
        power_off(device.vault)
    stops = [*zip(noting.before, noting.remotes, strict=True), (noting, there)]
    seen = set[object]()
    for stopped, then in stops[opened:]:
        found = stopped.after_crash(fate)
        if (content := (found.all_there(), _all_there(then))) not in seen:
            seen.add(content)
            yield found, then


def _all_there(remote: MemoryRemote) -> object:
    logs = frozenset((stream_id, log.start, log.end) for stream_id, log in remote.logs.items())
    return len(remote.versions), logs, frozenset(remote.objects)


def first_device(path: Path) -> Device:
    """Make a vault on a device of its own."""
    path.mkdir(exist_ok=True)
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    return Device(path, disk)


def joined_device(path: Path, remote: MemoryRemote, kit_text: str, passphrase: str = PASSPHRASE) -> Device:
    """Join from a new device."""
    path.mkdir(exist_ok=True)
    disk, stretch = CrashDisk(path.parent), stretch_of(passphrase)
    with remote.connected():
        join_with(path, disk, KitOpener(parse_kit(kit_text), stretch), stretch, ADDRESS, path.name)
    return Device(path, disk, passphrase)


@contextmanager
def first_that_wrote(path: Path, *contents: str) -> Generator[Device]:
    """The first device of a vault that is on the remote, with memories of its own; closed at the end."""
    device = first_device(path)
    for content in contents:
        device.vault.remember(content, source="test")
    device.sync()
    yield device
    device.close()


@contextmanager
def second_that_wrote(path: Path, remote: MemoryRemote, first: Device, content: str) -> Generator[Device]:
    """A device that joined and wrote a memory; everybody has everything. Closed at the end."""
    device = joined_device(path, remote, first.vault.emergency_kit)
    device.sync()
    device.vault.remember(content, source="test")
    device.sync()
    first.sync()
    yield device
    device.close()
