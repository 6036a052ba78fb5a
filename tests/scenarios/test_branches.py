"""A server that was restored from a backup and then changed: what people see of it, with real servers and processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from memseal import Vault
from tests.scenarios.conftest import ServerProcess, StartServer

PASSPHRASE = "a passphrase"
ENVIRONMENT = {**os.environ, "MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none", "PYTHONUTF8": "1"}


def run(vault: Path, *words: str, **more: str) -> tuple[int, dict[str, Any]]:
    """Run the command line in a process of its own, and return its exit code and what it says as JSON."""
    environment = {**ENVIRONMENT, "MEMSEAL_VAULT": str(vault), **more}
    command = [sys.executable, "-m", "memseal", *words, "--json"]
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


def restored(start_server: StartServer, server: ServerProcess, backup: Path) -> ServerProcess:
    """The same server, at the same address, with what its backup holds."""
    server.stop()
    shutil.rmtree(server.store)
    shutil.copytree(backup, server.store)
    return start_server(server.store.name, port=int(server.url.rpartition(":")[2]))


def contents(vault: Path) -> set[str]:
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
    start_server: StartServer, tmp_path: Path
) -> None:
    one, two, three = forked(start_server, tmp_path)
    code, said = run(one, "sync")
    assert (code != 0, said["error"]["code"]) == (True, "keyring_forked")
    assert "--accept-rollback" in said["error"]["message"]
    _, said = run(one, "sync", "--accept-rollback")
    assert said["joined"]["emergency_kit"] == run(one, "kit")[1]["emergency_kit"]
    assert run(two, "sync")[1]["joined"] is None
    assert contents(one) == contents(two) == {"from one", "from two", "from three", "one alone", "two alone"}
    _, said = run(three, "sync")
    assert said["error"]["code"] == "device_ended"
    assert run(one, "status")[1]["findings"] == []
