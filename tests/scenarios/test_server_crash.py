"""A server that dies while it stores a keyring version or sweeps for a floor, and is started again."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.errors import RemoteUnreachable
from memseal.vault.vault import Vault
from memseal_server.blobs.opening import open_store
from memseal_server.checking import Finding, check_store
from tests.scenarios.conftest import StartServer
from tests.scenarios.hostile_world import contents, joined
from tests.vault.small_vault import new_folder, open_vault

STORING = [
    *(("folder", step) for step in ("put_sealed_part", "put_open_part", "is_whole")),
    ("bucket", "put_open_part"),
]
COMPACTING = [
    ("folder", "put_checkpoint"),
    ("folder", "put_open_part"),
    *((kind, step) for kind in ("folder", "bucket") for step in ("delete_segments_below", "delete_checkpoints")),
    ("folder", "listed_checkpoints"),
]


def start_dying(store: str, step: str, port: int) -> subprocess.Popen[str]:
    """Start a server that dies at a step of what it does with objects, as a kill there would end it."""
    program = (
        "import os, sys; from memseal_server import __main__; from memseal_server.objects import Objects\n"
        f"Objects.{step} = lambda *arguments, **named: os._exit(9)\n"
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


def place_and_store(folder: Path, request: pytest.FixtureRequest, kind: str) -> tuple[str, str]:
    """What `start_server` takes, and what the program does."""
    if kind == "folder":
        return "store", str(folder / "store")
    address = str(request.getfixturevalue("seaweed_bucket"))
    return address, address


def rekey_and_sync(vault: Vault) -> None:
    vault.rekey()
    vault.sync()  # where the version is there already, the server dies at the heads


@pytest.mark.parametrize(("kind", "step"), STORING)
def test_version_that_a_crash_of_the_server_cuts_in_two_is_whole_or_not_there(
    tmp_path: Path, start_server: StartServer, request: pytest.FixtureRequest, kind: str, step: str
) -> None:
    place, store = place_and_store(tmp_path, request, kind)
    server = start_server(place)
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


@pytest.mark.parametrize(("kind", "step"), COMPACTING)
def test_compaction_that_a_crash_of_the_server_cuts_off_loses_no_record(
    tmp_path: Path, start_server: StartServer, request: pytest.FixtureRequest, kind: str, step: str
) -> None:
    place, store = place_and_store(tmp_path, request, kind)
    server = start_server(place)
    port = int(server.url.rpartition(":")[2])
    new_folder(tmp_path / "one")
    with open_vault(tmp_path / "one") as one:
        one.remember("before the first floor", source="test")
        one.sync(server.url)
        one.compact()
        one.remember("before the second floor", source="test")
        one.sync()
        one.compact()
        one.remember("above the floors", source="test")
        one.sync()
        kit = one.emergency_kit
        server.kill()

        with start_dying(store, step, port) as dying:
            with pytest.raises(RemoteUnreachable):
                one.compact()
            assert dying.wait(60) == 9

        server = start_server(place, port=port)
        everything = ["above the floors", "before the first floor", "before the second floor"]
        with joined(server, tmp_path / "two", kit) as two:
            two.sync(server.url)
            assert contents(two) == everything
        assert one.sync().findings == []
        one.compact()
        assert one.sync().findings == []
        with joined(server, tmp_path / "three", kit) as three:
            three.sync(server.url)
            assert contents(three) == contents(one) == everything
    assert [finding for finding in findings_of(store) if finding.serious] == []


def findings_of(address: str) -> list[Finding]:
    async def look() -> list[Finding]:
        opened = await open_store(address)
        found = [finding async for finding in check_store(opened)]
        await opened.close()
        return found

    return asyncio.run(look())
