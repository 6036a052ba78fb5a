"""Two devices and a server that runs as a process."""

import functools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memseal import SyncState, Vault
from memseal.format import primitives
from memseal.surfaces.demo.server import running_server
from memseal.vault.folder import opening
from tests.scenarios.conftest import StartServer, start_server

__all__ = ["start_server"]

PASSPHRASE = "correct horse battery staple"
PATIENCE_SECONDS = 60


class States:
    """What a synchronisation in the background has told, and who waits for it."""

    def __init__(self) -> None:
        self.all: list[SyncState] = []
        self._told = threading.Condition()

    def __call__(self, state: SyncState) -> None:
        with self._told:
            self.all.append(state)
            self._told.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looked at whenever a state is told."""
        with self._told:
            assert self._told.wait_for(holds, PATIENCE_SECONDS), self.all

    def until_phase(self, phase: str) -> SyncState:
        self.until(lambda: bool(self.all) and self.all[-1].phase == phase)
        return self.all[-1]

    @property
    def phases(self) -> list[str]:
        return [state.phase for state in self.all]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two devices of one vault and the store of their server, made once: Argon2id takes its time."""
    folder = tmp_path_factory.mktemp("template")
    with (
        running_server(folder / "store", folder / "log") as url,
        Vault.create(folder / "one", PASSPHRASE, device_name="one", embedder=None) as one,
    ):
        one.sync(url)
        Vault.join(folder / "two", one.emergency_kit, PASSPHRASE, device_name="two", embedder=None).close()
        one.sync()
    return folder


# Argon2id's answers, kept: every test's vault is a copy of one, with the same salt.
remembered_stretch = functools.cache(primitives.stretch)


@pytest.fixture
def world(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with copies of both devices (`one`, `two`) and of the server's store (`store`)."""
    monkeypatch.setattr(opening, "stretch", remembered_stretch)
    for name in ("one", "two", "store"):
        shutil.copytree(template / name, tmp_path / name)
    return tmp_path


def opened(path: Path) -> Vault:
    return Vault.open(path, PASSPHRASE, embedder=None)


@pytest.fixture
def pair(world: Path, start_server: StartServer) -> Iterator[tuple[Vault, Vault]]:
    """Two devices of one vault, in step through a server."""
    url = start_server().url
    with opened(world / "one") as one, opened(world / "two") as two:
        one.sync(url)
        two.sync(url)
        yield one, two
