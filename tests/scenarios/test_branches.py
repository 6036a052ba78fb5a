"""A server that was restored from a backup and then changed: what people see of it, on a real server."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from memseal import Vault
from memseal.format.keys import StretchedPassphrase
from memseal.format.primitives import Cost
from memseal.surfaces.cli import main
from memseal.vault import opening
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.vault.small_vault import stretch_of

PASSPHRASE = "a passphrase"
Run: TypeAlias = Callable[..., tuple[int, dict[str, Any]]]


def cheap(passphrase: str, salt: bytes, cost: Cost) -> StretchedPassphrase:
    return stretch_of(passphrase)(salt, cost)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line, and return its exit code and what it says as JSON."""
    monkeypatch.setattr(opening, "stretch", cheap)
    monkeypatch.setenv("MEMSEAL_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("MEMSEAL_MODEL", "none")

    def run_on(vault: Path, *words: str) -> tuple[int, dict[str, Any]]:
        code = main([*words, "--vault", str(vault), "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out or err)

    return run_on


def restored(start_server: StartServer, server: ServerProcess, backup: Path) -> ServerProcess:
    """The same server, at the same address, with what its backup holds."""
    server.stop()
    shutil.rmtree(server.store)
    shutil.copytree(backup, server.store)
    return start_server(server.store.name, port=int(server.url.rpartition(":")[2]))


def contents(run: Run, vault: Path) -> set[str]:
    return {memory["content"] for memory in run(vault, "list", "--state", "all")[1]["memories"]}


def forked(start_server: StartServer, tmp_path: Path) -> tuple[Path, Path, Path]:
    """Three devices: one removed `three` after the server's backup; `two` made a new epoch on the restored server."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    server = start_server()
    with Vault.create(one, PASSPHRASE, device_name="one", embedder=None) as vault:
        vault.remember("from one", source="test")
        vault.sync(server.url)
        kit = vault.emergency_kit
    for folder in (two, three):
        with Vault.join(folder, kit, PASSPHRASE, device_name=folder.name, embedder=None) as vault:
            vault.remember(f"from {folder.name}", source="test")
            vault.sync()
    server.stop()
    backup = shutil.copytree(server.store, tmp_path / "backup")
    server = start_server(server.store.name, port=int(server.url.rpartition(":")[2]))
    with Vault.open(one, PASSPHRASE, embedder=None) as vault:
        vault.sync()
        vault.revoke("three", PASSPHRASE)
        vault.remember("one alone", source="test")
        vault.sync()
    restored(start_server, server, backup)
    with Vault.open(two, PASSPHRASE, embedder=None) as vault:
        vault.rekey()
        vault.remember("two alone", source="test")
        vault.sync()
    return one, two, three


def test_person_is_told_of_the_other_branch_and_joins_it_with_the_command_that_is_named(
    start_server: StartServer, tmp_path: Path, run: Run
) -> None:
    one, two, three = forked(start_server, tmp_path)
    code, said = run(one, "sync")
    assert (code != 0, said["error"]["code"]) == (True, "keyring_forked")
    assert "--accept-rollback" in said["error"]["message"]
    _, said = run(one, "sync", "--accept-rollback")
    assert said["joined"]["emergency_kit"] == run(one, "kit")[1]["emergency_kit"]
    assert run(two, "sync")[1]["joined"] is None
    assert contents(run, one) == contents(run, two) == {"from one", "from two", "from three", "one alone", "two alone"}
    _, said = run(three, "sync")
    assert said["error"]["code"] == "device_ended"
    assert run(one, "status")[1]["findings"] == []
