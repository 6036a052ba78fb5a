"""A device is lost and removed, over a real server; the process that removes it is killed at each step."""

import contextlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import DeviceEnded, DeviceUnknown, KitOrPassphrase, RemoteRefused
from memseal.format.kit import parse_kit
from memseal.store.disk import OsDisk
from memseal.vault.keys import revoking
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.vault import Vault
from tests.scenarios.conftest import StartServer
from tests.scenarios.opened_files import plaintexts, vault_keys
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

LATER = "written after the phone was removed"


@dataclass
class Vaults:
    """A laptop and a phone that share a vault; both closed."""

    laptop: Path
    phone: Path
    server: str


@pytest.fixture
def vaults(tmp_path: Path, start_server: StartServer) -> Vaults:
    server = start_server()
    laptop, phone = tmp_path / "laptop", tmp_path / "phone"
    new_folder(laptop)
    with open_vault(laptop) as vault:
        vault.remember("from the laptop", source="test")
        vault.sync(server.url)
        join(phone, vault.emergency_kit)
    with open_vault(phone) as vault:
        vault.remember("from the phone", source="test")
        vault.sync()
    with open_vault(laptop) as vault:
        vault.sync()
    return Vaults(laptop, phone, server.url)


def join(path: Path, kit: str) -> None:
    stretch = stretch_of(PASSPHRASE)
    join_with(path, OsDisk(), KitOpener(parse_kit(kit), stretch), stretch, parse_kit(kit).server, path.name)


def revoke(vault: Vault) -> None:
    with vault._writing() as opened:
        revoking.revoke(opened, "phone", stretch_of(PASSPHRASE), None, None)


def opens_with_the_state_of(thief: Path, folder: Path, text: str) -> bool:
    """Whether the removed device, given all files of another one, reads a text in them."""
    keys = vault_keys(thief) + vault_keys(thief, PASSPHRASE, folder / "keyring")
    return any(text.encode() in content for content in plaintexts(folder, keys, "not the passphrase of this folder"))


def kill_at(moment: str, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.scenarios.revoking_process", str(folder), "phone", moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "halted\n"
        process.kill()


def is_done(vaults: Vaults) -> None:
    """Check that the phone is out for good, and everyone else goes on."""
    with open_vault(vaults.phone) as phone:
        with pytest.raises(DeviceEnded):
            phone.sync()
        assert {memory.content for memory in phone.list()} == {"from the laptop", "from the phone"}
    with open_vault(vaults.laptop) as laptop:
        assert {memory.content for memory in laptop.list()} == {"from the laptop", "from the phone", LATER}
        assert [*laptop.status().findings, *laptop.verify()] == []
        join(vaults.laptop.parent / "tablet", laptop.emergency_kit)
        digest = laptop.state_digest()
    with open_vault(vaults.laptop.parent / "tablet") as tablet:
        tablet.sync()
        assert tablet.state_digest() == digest
    for folder in (vaults.laptop, vaults.laptop.parent / "tablet"):
        assert opens_with_the_state_of(vaults.phone, folder, "from the laptop")
        assert not opens_with_the_state_of(vaults.phone, folder, LATER)


def test_after_revocation_nothing_written_later_decrypts_with_the_devices_full_state(vaults: Vaults) -> None:
    with open_vault(vaults.laptop) as laptop:
        kit = laptop.emergency_kit
        revoke(laptop)
        laptop.remember(LATER, source="test")
        laptop.sync()
    with pytest.raises(KitOrPassphrase):
        join(vaults.laptop.parent / "stranger", kit)
    assert not (vaults.laptop.parent / "stranger").exists()
    is_done(vaults)


@pytest.mark.parametrize("moment", ["announce", "put"])
def test_revoker_that_is_killed_before_its_version_is_stored_begins_again(moment: str, vaults: Vaults) -> None:
    kill_at(moment, vaults.laptop)
    with open_vault(vaults.phone) as phone:
        phone.sync()
    with open_vault(vaults.laptop) as laptop:
        assert laptop.status().findings == []
        revoke(laptop)
        laptop.remember(LATER, source="test")
        laptop.sync()
    is_done(vaults)


@pytest.mark.parametrize("moment", ["answer", "save", "adopt", "settle"])
def test_revoker_that_is_killed_after_its_version_is_stored_is_done(moment: str, vaults: Vaults) -> None:
    """What it then writes before it has heard of its own version never reaches the removed device either."""
    kill_at(moment, vaults.laptop)
    with open_vault(vaults.laptop) as laptop:
        laptop.remember(LATER, source="test")
        with contextlib.suppress(DeviceUnknown):
            revoke(laptop)
        assert [device.status for device in laptop.devices()] == ["this", "ended"]
        assert laptop.status().epoch == 2
        laptop.sync()
    is_done(vaults)


def test_copy_of_the_removed_devices_folder_is_out_as_well(vaults: Vaults) -> None:
    shutil.copytree(vaults.phone, vaults.phone.parent / "copy")
    with open_vault(vaults.laptop) as laptop:
        revoke(laptop)
    with open_vault(vaults.phone.parent / "copy") as copy:
        copy.remember("of the thief", source="test")
        with pytest.raises(DeviceEnded, match="removed"):
            copy.sync()
    with open_vault(vaults.laptop) as laptop:
        laptop.sync()
        assert laptop.count() == 2


def test_device_is_removed_though_the_vault_is_full(tmp_path: Path, start_server: StartServer) -> None:
    """What could not be sent goes on, sealed anew, when there is room."""
    server = start_server("store", "--max-vault-bytes", "60000")
    laptop, phone = tmp_path / "laptop", tmp_path / "phone"
    new_folder(laptop)
    with open_vault(laptop) as vault:
        vault.sync(server.url)
        join(phone, vault.emergency_kit)
        for number in range(40):
            vault.remember(f"number {number} " + "x" * 2_000, source="test")
        with pytest.raises(RemoteRefused) as caught:
            vault.sync()
        assert caught.value.code == "limit"
        revoke(vault)
        assert [device.status for device in vault.devices()] == ["this", "ended"]
        port = int(server.url.rpartition(":")[2])
        server.stop()
        start_server("store", port=port)
        vault.sync()
        assert vault.status().unsent_bytes == 0
        join(tmp_path / "tablet", vault.emergency_kit)
        with open_vault(tmp_path / "tablet") as tablet:
            tablet.sync()
            assert tablet.state_digest() == vault.state_digest()
            assert tablet.count() == 40
    with open_vault(phone) as lost, pytest.raises(DeviceEnded):
        lost.sync()
