"""Two devices of one vault on a real server, reached through one that can lie; no Argon2id, no model."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memseal.format.kit import parse_kit
from memseal.format.log import End
from memseal.store.disk import OsDisk
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.remote.syncing import SyncReport
from memseal.vault.vault import Vault
from tests.scenarios.conftest import ServerProcess
from tests.scenarios.hostile_server import HostileServer
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

EVERYTHING = sorted(("first of one", "first of two", "new of one", *(f"new {number} of two" for number in range(3))))


@dataclass
class World:
    """`one` and `two` have synchronised; since then both wrote, and what `two` wrote is on the server."""

    server: HostileServer
    folder: Path
    one: Vault
    two: Vault

    @classmethod
    def begin(cls, server: HostileServer, folder: Path) -> "World":
        new_folder(folder / "one")
        one = open_vault(folder / "one")
        one.remember("first of one", source="test")
        one.sync(server.url)
        two = joined(server, folder / "two", one.emergency_kit)
        two.remember("first of two", source="test")
        two.sync(server.url)
        one.sync()
        two.sync()
        one.remember("new of one", source="test")
        for number in range(3):
            two.remember(f"new {number} of two", source="test")
        two.sync()
        return cls(server, folder, one, two)

    def files(self) -> dict[str, bytes]:
        """The logs and keyring of `one`, as they are on its disk."""
        root = self.folder / "one"
        folders = (root / "logs", root / "keyring")
        return {str(path.relative_to(root)): path.read_bytes() for each in folders for path in each.iterdir()}

    def copy_of(self, name: str) -> Path:
        """A copy of a device's folder, as a thief would make it."""
        target = self.folder / f"copy of {name}"
        shutil.copytree(self.folder / name, target)
        return target

    def close(self) -> None:
        self.one.close()
        self.two.close()


def joined(server: HostileServer | ServerProcess, folder: Path, kit_text: str) -> Vault:
    """Join from a new device."""
    stretch = stretch_of(PASSPHRASE)
    join_with(folder, OsDisk(), KitOpener(parse_kit(kit_text), stretch), stretch, server.url, folder.name)
    return open_vault(folder)


def contents(vault: Vault) -> list[str]:
    return sorted(memory.content for memory in vault.list(state="all"))


def stream_of(vault: Vault) -> bytes:
    """The stream that a device writes now."""
    logbook = vault._opened.logbook
    epoch = vault._opened.keychain.keyring.public.epoch
    (stream_id,) = [name for name, log in logbook.logs.items() if logbook.is_own(log) and log.stream.epoch == epoch]
    return stream_id


def end_of(vault: Vault, stream_id: bytes) -> End:
    return vault._opened.logbook.logs[stream_id].end


def codes(report: SyncReport) -> Sequence[str]:
    return sorted({finding.code for finding in report.findings})
