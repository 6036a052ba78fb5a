"""The vault that apps hold."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from secrets import token_bytes
from typing import Literal, Self

from memseal.errors import (
    VaultMissing,
)
from memseal.format.device_file import Stretch
from memseal.memory.data_class import GENERAL, SETTING, checked_class
from memseal.memory.operations import Setting
from memseal.store.disk import OsDisk
from memseal.store.folder import LOCK, VaultFolder
from memseal.store.lock import VaultLock
from memseal.vault.checkpoint.doubling import keep_doubles
from memseal.vault.checkpoint.settling import settle_floor
from memseal.vault.compaction import erasing
from memseal.vault.copies import branching, repairing, surveying
from memseal.vault.deriving import Deriving
from memseal.vault.extras import extra
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.locking import lock_keys
from memseal.vault.folder.opening import (
    Opened,
    clean_traces,
    drop_stale_cache,
    open_folder,
    save_marks,
    stretcher,
)
from memseal.vault.held import EmbedderChoice
from memseal.vault.keys import creation, joining, naming, recovering
from memseal.vault.keys.creation import create_folder
from memseal.vault.keys_and_devices import KeysAndDevices
from memseal.vault.lifecycle import Lifecycle
from memseal.vault.looking_back import LookingBack
from memseal.vault.remotes import Remotes
from memseal.vault.sessions import Sessions
from memseal.vault.upkeep import Upkeep
from memseal.vault.writes.writing import new_id, present


class Vault(Lifecycle, Deriving, LookingBack, Sessions, Upkeep, KeysAndDevices, Remotes):
    """One person's memories, open: every method is safe under threads, every write durable when it returns.

    Use `Vault.create`, `Vault.open` or `Vault.join`, and `close` it, or use it as a context manager.
    """

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
        data_class: str = GENERAL,
    ) -> Self:
        """Make a new vault in a folder that is not there or empty, and open it.

        `data_class` is general, medical (the passphrase costs twice as much memory to guess, keys are kept out of swap,
        memories fade more slowly) or archival (they fade the most slowly); it stays. Raises `VaultExists` where
        anything is at the path, `PassphraseEmpty`, `MemoryInvalid`, or a `DiskError`; then nothing was made.
        """
        chosen = checked_class(data_class)
        name, stretch = naming.own_name(device_name), stretcher(passphrase)
        write = None if chosen == GENERAL else _class_writer(chosen, stretch)
        folder, _ = create_folder(_path(path), OsDisk(), passphrase, name, stretch, creation.COSTS[chosen], write)
        return cls.open(folder.path, passphrase, embedder=embedder)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        *,
        read_only: bool = False,
        embedder: EmbedderChoice = "default",
        traces: Literal["on", "off"] = "on",
    ) -> Self:
        """Open a vault, for writing unless `read_only`; with `traces="off"` this opening leaves none (`keep_traces`).

        Raises `VaultMissing`, `PassphraseWrong`, `VaultBusy` (open for writing elsewhere), `LocalRollback`,
        `DeviceEnded`, `DeviceFileDamaged` or `FormatError`. Damage to single records does not raise:
        `status().findings` lists it.
        """
        if traces not in ("on", "off"):
            raise ValueError("traces is on or off")
        vault = cls._open(VaultFolder(_path(path), OsDisk()), stretcher(passphrase), read_only, embedder)
        if traces == "off":
            vault._opened.traces.stop()
        return vault

    @classmethod
    def _open(cls, folder: VaultFolder, stretch: Stretch, read_only: bool, embedder: EmbedderChoice) -> Self:
        if not folder.exists():
            raise VaultMissing(f"no vault is at {folder.path}: create one, or join with the emergency kit")
        lock = None if read_only else VaultLock(folder.path / LOCK)
        try:
            opened = open_folder(folder, stretch, read_only)
            if not read_only:
                _resume(opened)
            lock_keys(opened)
            return cls(opened, lock, embedder)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def join(
        cls,
        path: str | PathLike[str],
        kit: str,
        passphrase: str,
        remote: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Make this device one of a vault's devices, by its emergency kit and passphrase, and fetch the memories.

        `remote` is the server's address; the kit names it where it is known. Raises `KitMalformed`, `KitOrPassphrase`,
        `VaultExists`, `RemoteUnreachable`, `RemoteRefused` or `FolderKeys`; until it has joined, nothing is left.
        """
        folder = joining.join(_path(path), OsDisk(), kit, passphrase, remote, naming.own_name(device_name))
        return cls._fetched(folder, stretcher(passphrase), remote, embedder)

    @classmethod
    def join_with_code(
        cls,
        path: str | PathLike[str],
        code: str,
        passphrase: str,
        remote: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Make this device one of a vault's devices, by a code that another one shows (`pair`), and fetch the memories.

        `remote` is the server's address; a code for a camera names it. `passphrase` is the vault's. Broken off, it is
        called again at the same path. Raises `PairingCodeMalformed` (nothing was sent), `PairingCodeWrong`,
        `PairingExpired`, `PairingGone`, `PairingTaken`, `PassphraseWrong`, or as `join` does.
        """
        with extra("sync"):
            from memseal.vault.keys import pairing

        stretch, name = stretcher(passphrase), naming.own_name(device_name)
        folder = pairing.join_with_code(_path(path), OsDisk(), code, stretch, remote, name)
        return cls._fetched(folder, stretch, remote, embedder)

    @classmethod
    def _fetched(cls, folder: VaultFolder, stretch: Stretch, remote: str | None, embedder: EmbedderChoice) -> Self:
        vault = cls._open(folder, stretch, False, embedder)
        try:
            vault.sync(remote)
        except BaseException:
            vault.close()
            raise
        return vault

    @classmethod
    def recover(
        cls,
        path: str | PathLike[str],
        recovery_code: str,
        new_passphrase: str,
        server: str | None = None,
        *,
        device_name: str | None = None,
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """Come back without the passphrase: join by the recovery code alone, and make the new passphrase the vault's.

        Where the vault's folder is at `path`, what is in it stays; `server` is needed where the vault lives on one, or
        two keyrings could come to be. It is the one that the code names, if not given; an empty one means none.
        Broken off, it is called again with the same new passphrase. Raises `KitMalformed`, `RecoveryCodeWrong`,
        `PassphraseEmpty`, or as `join` does.
        """
        new = recovering.NewPassphrase(new_passphrase, stretcher(new_passphrase))
        name = naming.own_name(device_name)
        folder = recovering.enter(_path(path), OsDisk(), recovery_code, new, server, name)
        vault = cls._open(folder, new.stretch, False, embedder)
        try:
            with vault._writing() as opened:
                recovering.complete(opened, new, server)
        except BaseException:
            vault.close()
            raise
        return vault

    @classmethod
    def repair(
        cls,
        path: str | PathLike[str],
        passphrase: str,
        to: str | PathLike[str],
        *,
        agree: Callable[[surveying.RepairPlan], bool],
        progress: Callable[[int, int], None] | None = None,
    ) -> repairing.Repair | None:
        """Write a repaired copy of a damaged vault to a folder that is not there or empty; the vault itself stays.

        `agree` is shown the plan, and says whether to go on. None where nothing is damaged, or it was not agreed to.
        Traces and kept sessions that are sound are copied too; damage of them alone needs no copy.
        Go on with the copy alone: both are the same device. Raises as `open` does (a damaged keyring or device file
        heals by no copy: the error says what to do), or `VaultExists`.
        """
        source = VaultFolder(_path(path), OsDisk())
        return repairing.repair(source, _path(to), stretcher(passphrase), agree, progress)


def _class_writer(data_class: str, stretch: Stretch) -> Callable[[VaultFolder], None]:
    """Return what writes the class into a folder that is being made: there is no moment in which it lacks its own."""

    def write(folder: VaultFolder) -> None:
        opened = open_folder(folder, stretch, read_only=False)
        try:
            opened.logbook.write([Batch([Setting(new_id(), SETTING, data_class, present())])], token_bytes(4))
            save_marks(opened)
        finally:
            opened.logbook.view.close()

    return write


def _resume(opened: Opened) -> None:
    """Go on with a compaction, an erase or a join of branches that was broken off."""
    branching.bring_in(opened)
    drop_stale_cache(opened)
    clean_traces(opened)
    opened.traces.sweep(opened.device)
    keep_doubles(opened)
    erasing.erase_orphans(opened)
    settle_floor(opened)
    if not opened.device.marks.server:
        erasing.finish(opened, None)
    erasing.note_floors(opened)


def _path(path: str | PathLike[str]) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise VaultMissing("no user has this name: give the path without ~") from None
