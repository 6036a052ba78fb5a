"""A server that dies while it stores a keyring version, and is started again: on a folder and on a bucket."""

import subprocess
import sys
from pathlib import Path

import pytest

from memseal.errors import RemoteUnreachable
from memseal.vault.vault import Vault
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.scenarios.hostile_world import joined
from tests.server.seaweed import seaweed, seaweed_bucket
from tests.vault.small_vault import new_folder, open_vault

__all__ = ["seaweed", "seaweed_bucket"]  # fixtures too

STEPS = ["put_sealed_part", "put_open_part", "is_whole"]
CASES = [*(("folder", step) for step in STEPS), ("bucket", "put_open_part")]


def start_dying(store: str, step: str, port: int) -> subprocess.Popen[str]:
    """Start a server that dies at a step of storing a version, as a kill there would end it."""
    program = (
        "import os, sys; from memseal_server import __main__; from memseal_server.objects import Objects\n"
        f"Objects.{step} = lambda *arguments: os._exit(9)\n"
        "sys.exit(__main__.main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "--store", store, "--listen", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on ")
    return process


def rekey_and_sync(vault: Vault) -> None:
    vault.rekey()
    vault.sync()  # where the version is there already, the server dies at the heads


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_version_that_a_crash_of_the_server_cuts_in_two_is_whole_or_not_there(
    tmp_path: Path, start_server: StartServer, request: pytest.FixtureRequest, kind: str, step: str
) -> None:
    store = str(tmp_path / "store") if kind == "folder" else request.getfixturevalue("seaweed_bucket")
    place = "store" if kind == "folder" else store
    server: ServerProcess = start_server(place)
    port = int(server.url.rpartition(":")[2])
    new_folder(tmp_path / "one")
    with open_vault(tmp_path / "one") as one:
        one.sync(server.url)
        joined(server, tmp_path / "two", one.emergency_kit).close()
    server.kill()

    with start_dying(store, step, port) as dying, open_vault(tmp_path / "one") as one:
        with pytest.raises(RemoteUnreachable):
            rekey_and_sync(one)
        assert dying.wait(60) == 9

    server = start_server(place, port=port)
    with open_vault(tmp_path / "one") as one, open_vault(tmp_path / "two") as two:
        two.remember("of two", source="test")
        two.sync(server.url)
        one.remember("of one", source="test")
        for vault in (one, two, one):
            vault.sync()
        assert one.status().findings == two.status().findings == []
        assert one.state_digest() == two.state_digest()
        assert one.count() == 2
        one.rekey()
        two.sync()
        assert two.status().findings == []
