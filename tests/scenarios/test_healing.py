"""Servers that lost something, and devices that were away for long: all is there again, from whoever has it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memseal.errors import RemoteRefused, RolledBack
from memseal.format.kit import parse_kit
from memseal.memory.memory import Draft
from memseal.memory.operations import Remember
from memseal.store.disk import OsDisk
from memseal.vault.folder.batch import Batch
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.vault import Vault
from memseal.vault.writes.writing import new_id
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.scenarios.hostile_server import Asked, HostileServer, Reply, hostile_server
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

YEAR_SECONDS = 365 * 86_400
PENDING = 10_000
# Of what is pushed a few segments are held, of what is pulled a few answers: not the log, which is five times as long.
GROWTH_MOST = 48 << 20
STATE_MOST = 80 << 20  # who gets it all has it in memory afterwards, as texts and as words


def noise(seed: int, size: int) -> str:
    """A text that begins with a number, and that nothing compresses to less than a size."""
    return f"{seed:05} {Random(seed).randbytes(size).hex()}"


def joined(folder: Path, server: str, kit: str) -> Vault:
    stretch = stretch_of(PASSPHRASE)
    join_with(folder, OsDisk(), KitOpener(parse_kit(kit), stretch), stretch, server, folder.name)
    return open_vault(folder)


def contents(vault: Vault) -> set[str]:
    return {memory.content for memory in vault.list(state="all", limit=1_000)}


def port_of(server: ServerProcess) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
def devices(server: ServerProcess, tmp_path: Path) -> Iterator[list[Vault]]:
    """Three devices of one vault that have synchronised, the owner first; they stay open."""
    with ExitStack() as stack:
        new_folder(tmp_path / "owner")
        owner = stack.enter_context(open_vault(tmp_path / "owner"))
        owner.remember("from the owner", source="test")
        owner.sync(server.url)
        others = [joined(tmp_path / name, server.url, owner.emergency_kit) for name in ("second", "third")]
        vaults = [owner, *map(stack.enter_context, others)]
        for vault in (*vaults, *vaults):
            vault.sync()
        yield vaults


def a_week_passes(devices: list[Vault]) -> set[str]:
    """Everybody writes, a checkpoint and a new epoch are made; return what there is afterwards."""
    owner, second, third = devices
    for number, vault in enumerate((*devices, *devices)):
        vault.remember(f"in that week, number {number}", source="test")
        vault.sync()
    second.compact()
    third.rekey()
    owner.remember("at the end of the week", source="test")
    for vault in (*devices, *devices):
        vault.sync()
    return contents(owner)


@pytest.mark.parametrize("healer", [0, 2])
def test_week_that_a_restored_server_lost_comes_back_from_any_device(
    server: ServerProcess, devices: list[Vault], start_server: StartServer, tmp_path: Path, healer: int
) -> None:
    server.stop()
    backup = shutil.copytree(server.store, tmp_path / "backup")
    server = start_server("store", port=port_of(server))
    everything = a_week_passes(devices)
    server.kill()
    shutil.rmtree(server.store)
    shutil.copytree(backup, server.store)
    server = start_server("store", port=port_of(server))
    for vault in devices:
        with pytest.raises(RolledBack, match="--accept-rollback"):
            vault.sync()
        assert contents(vault) == everything
    devices[healer].sync(accept_rollback=True)
    for vault in devices:
        assert vault.sync().findings == []
    with joined(tmp_path / "new", server.url, devices[0].emergency_kit) as new:
        new.sync()
        assert contents(new) == everything
        assert new.state_digest() == devices[0].state_digest()


def test_server_that_is_wiped_under_open_vaults_acknowledges_nothing_until_it_has_it(
    server: ServerProcess, devices: list[Vault], start_server: StartServer, tmp_path: Path
) -> None:
    everything = a_week_passes(devices)
    server.kill()
    shutil.rmtree(server.store)
    server = start_server("store", port=port_of(server))
    third = devices[2]
    third.remember("after the wiping", source="test")
    with pytest.raises(RolledBack):
        third.sync()
    assert third.status().unsent_bytes > 0
    third.sync(accept_rollback=True)
    assert third.status().unsent_bytes == 0
    server.kill()  # what it acknowledged, it has
    server = start_server("store", port=port_of(server))
    with joined(tmp_path / "new", server.url, third.emergency_kit) as new:
        new.sync()
        assert contents(new) == everything | {"after the wiping"}


def test_what_a_full_server_refused_arrives_when_it_has_room_without_a_restart(
    server: ServerProcess, devices: list[Vault], start_server: StartServer
) -> None:
    owner, second, _ = devices
    server.stop()
    server = start_server("store", "--max-vault-bytes", "60000", port=port_of(server))
    second.remember("small", source="test")
    second.sync()
    owner.remember(noise(0, 50_000), source="test", thread="the refused one")
    with pytest.raises(RemoteRefused) as caught:
        owner.sync()
    assert caught.value.code == "limit"
    assert "small" in contents(owner)  # reading goes on
    server.stop()
    start_server("store", port=port_of(server))
    owner.remember("later", source="test")
    owner.sync()
    second.sync()
    assert second.count(thread="the refused one") == 1
    assert "later" in contents(second)


# ── away for long ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    """A real server, and an honest relay before it that counts what is asked."""
    with hostile_server(tmp_path_factory.mktemp("front")) as running:
        yield running


def absent(folder: Path, server: str, off_seconds: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.scenarios.absent_process", str(folder), server, str(off_seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said_by(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    said: dict[str, Any] = json.loads(out)
    return said


def write_pending(vault: Vault) -> None:
    """Ten thousand writes that nobody has, each a record of its own."""
    with vault._writing() as opened:
        for start in range(0, PENDING, 500):
            batches = [
                Batch([Remember(new_id(), Draft(noise(number, 2_000), "test"), number)])
                for number in range(start, start + 500)
            ]
            opened.logbook.write(batches, bytes(4))


def test_ten_thousand_pending_records_and_clocks_a_year_off_catch_up_where_it_broke_off(
    front: HostileServer, tmp_path: Path
) -> None:
    new_folder(tmp_path / "ahead")
    with open_vault(tmp_path / "ahead") as vault:
        vault.remember("before", source="test")
        vault.sync(front.url)
        joined(tmp_path / "behind", front.url, vault.emergency_kit).close()
        write_pending(vault)
    pushed = list[Asked]()

    def killing(asked: Asked, reply: Reply) -> Reply:
        if asked.is_("PUT", "/logs/") and reply.status == 201:
            pushed.append(asked)
            if len(pushed) == 2:
                process.kill()  # it is stored, and the device never learns of it
        return reply

    with front.lying(killing):
        process = absent(tmp_path / "ahead", front.url, YEAR_SECONDS)
        process.communicate(timeout=300)
        assert process.returncode != 0
        assert len(pushed) in (2, 3)  # the next may have been on its way already
        ahead = said_by(absent(tmp_path / "ahead", front.url, YEAR_SECONDS))
    paths = [asked.path for asked in pushed]
    assert len(paths) == len(set(paths)) > 4
    behind = said_by(absent(tmp_path / "behind", front.url, -YEAR_SECONDS))
    last = said_by(absent(tmp_path / "ahead", front.url, YEAR_SECONDS))
    assert ahead["findings"] == behind["findings"] == last["findings"] == []
    assert behind["memories"] == ahead["memories"] + 1
    assert ahead["grown_bytes"] <= GROWTH_MOST
    assert behind["grown_bytes"] <= GROWTH_MOST + STATE_MOST
    with open_vault(tmp_path / "behind") as vault:
        vault.sync()
        assert vault.state_digest().hex() == last["digest"]
        assert {memory.content[:5] for memory in vault.list(limit=20_000)} >= {f"{each:05}" for each in range(PENDING)}
