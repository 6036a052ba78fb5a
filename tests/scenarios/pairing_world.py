"""A device that shows codes, and new ones that take them, over a real server; no Argon2id."""

import shutil
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest

from memseal.errors import PairingExpired, PairingUnfinished
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.keys import pairing
from memseal.vault.keys.roster import DeviceInfo
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


class Laptop:
    """A device of a vault on a server, which can show codes."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.server = server
        new_folder(folder)
        shutil.copytree(folder, folder.with_name("copy"))
        self.vault = open_vault(folder)
        self.vault.remember("from the laptop", source="test")
        self.vault.sync(server)
        self._threads = ThreadPoolExecutor(4)
        # So that a clock that was moved is looked at soon.
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(pairing, "_WAIT_SECONDS", 1)

    def shows(self, *, scanned: bool = False) -> "Shown":
        """Show a code, and wait in a thread for who uses it."""
        codes, clock = Queue[str](), Clock()

        def run() -> DeviceInfo:
            try:
                return pairing.pair(self.vault._writing, codes.put, self.server, scanned=scanned, clock=clock)
            finally:
                codes.put("")  # so that nobody waits for a code that was never shown

        outcome = self._threads.submit(run)
        return Shown(codes.get(timeout=60), outcome, clock)

    def close(self) -> None:
        self._threads.shutdown()
        self._patch.undo()
        self.vault.close()


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Shown:
    """A code on a screen, and what becomes of it."""

    code: str
    outcome: Future[DeviceInfo]
    clock: Clock

    def device(self) -> DeviceInfo:
        return self.outcome.result(timeout=60)

    def is_given_up(self) -> None:
        """Let the time pass, and see that no device came of it."""
        while not wait([self.outcome], timeout=0.5).done:
            self.clock.now += 1000  # again: it may have gone on to another wait just now
        with pytest.raises((PairingExpired, PairingUnfinished)):
            self.device()


def join(path: Path, code: str, server: str | None, passphrase: str = PASSPHRASE, name: str = "phone") -> VaultFolder:
    """What `Vault.join_with_code` does, without Argon2id."""
    return pairing.join_with_code(path, OsDisk(), code, stretch_of(passphrase), server, name)


def names(vault: Vault) -> list[str]:
    vault.sync()
    return [device.name for device in vault.devices()]


def is_clean(folder: Path) -> bool:
    """Whether nothing of a join is left where it was to be."""
    return not folder.exists() and not folder.with_name(f".{folder.name}.joining").exists()
