"""A server that was restored from a backup and then changed: what people see of it, on a real server."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from memseal import Vault
from memseal.format.kit import parse_kit
from memseal.store.disk import OsDisk
from memseal.surfaces.cli import main
from memseal.vault.copies import branching
from memseal.vault.folder import opening
from memseal.vault.keys import revoking
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.vault.small_vault import PASSPHRASE as PASSPHRASE_HERE
from tests.vault.small_vault import cheap_stretch, new_folder, open_vault, stretch_of

PASSPHRASE = "a passphrase"
Run: TypeAlias = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line, and return its exit code and what it says as JSON."""
    monkeypatch.setattr(opening, "stretch", cheap_stretch)
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


# ── killed ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cheaply_forked(start_server: StartServer, tmp_path: Path) -> tuple[Path, Path]:
    """Two devices: `one` has removed a third and made a checkpoint, `two` began an epoch on the restored server."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    server = start_server()
    new_folder(one)
    with open_vault(one) as vault:
        vault.remember("from one", source="test")
        vault.sync(server.url)
        kit, stretch = parse_kit(vault.emergency_kit), stretch_of(PASSPHRASE_HERE)
    for folder in (two, three):
        join_with(folder, OsDisk(), KitOpener(kit, stretch), stretch, server.url, folder.name)
        with open_vault(folder) as vault:
            vault.remember(f"from {folder.name}", source="test")
            vault.sync()
    server.stop()
    backup = shutil.copytree(server.store, tmp_path / "backup")
    server = start_server(server.store.name, port=int(server.url.rpartition(":")[2]))
    with open_vault(one) as vault:
        vault.sync()
    with open_vault(one) as vault, vault._writing() as opened:
        revoking.revoke(opened, "three", stretch, None, None)
    with open_vault(one) as vault:
        vault.compact()
        vault.remember("one alone", source="test")
        vault.sync()
        vault.remember("one unsent", source="test")
    restored(start_server, server, backup)
    with open_vault(two) as vault:
        vault.rekey()
        vault.remember("two alone", source="test")
        vault.sync()
    return one, two


@pytest.mark.parametrize("moment", ["answer", "switch", "files", "write"])
def test_process_that_is_killed_while_it_joins_loses_nothing(cheaply_forked: tuple[Path, Path], moment: str) -> None:
    one, two = cheaply_forked
    command = [sys.executable, "-m", "tests.scenarios.joining_process", str(one), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "halted\n"
        process.kill()
    mine = {"from one", "from two", "from three", "one alone", "one unsent"}
    with open_vault(one) as vault:
        assert {memory.content for memory in vault.list()} >= mine  # offline, too
        with vault._writing() as opened:
            branching.synchronise(opened, None, accept_rollback=True, passphrase=stretch_of(PASSPHRASE_HERE))
        assert {memory.content for memory in vault.list()} == mine | {"two alone"}
        assert [*vault.status().findings, *vault.verify()] == []
        digest = vault.state_digest()
        assert [device.status for device in vault.devices()] == ["this", "active", "ended"]
    with open_vault(two) as vault:
        vault.sync()
        assert vault.state_digest() == digest
