"""Keys, passphrases and enrolment on several devices: what went wrong in other systems does not here."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import (
    DeviceEnded,
    FormatError,
    KitOrPassphrase,
    PairingCodeWrong,
    PairingInvalid,
    PassphraseWrong,
    RemoteUnreachable,
)
from memseal.format.kit import parse_kit
from memseal.store.disk import OsDisk
from memseal.vault.keys import passphrases, rekeying, revoking
from memseal.vault.keys.creation import new_key_set
from memseal.vault.keys.joining import Joiner, enter, join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.vault import Vault
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.scenarios.pairing_world import Laptop
from tests.scenarios.pairing_world import join as join_by_code
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

SECOND, THIRD = "a second passphrase", "a third passphrase"


@dataclass
class Devices:
    """Three open devices of one vault, which have synchronised."""

    folder: Path
    server: ServerProcess
    one: Vault
    two: Vault
    three: Vault

    def join(self, name: str, kit: str, passphrase: str = PASSPHRASE) -> Vault:
        stretch = stretch_of(passphrase)
        join_with(self.folder / name, OsDisk(), KitOpener(parse_kit(kit), stretch), stretch, self.server.url, name)
        vault = open_vault(self.folder / name, passphrase=passphrase)
        vault.sync()
        return vault


@pytest.fixture
def devices(tmp_path: Path, start_server: StartServer) -> Iterator[Devices]:
    server = start_server()
    new_folder(tmp_path / "one")
    one = open_vault(tmp_path / "one")
    one.remember("from one", source="test")
    one.sync(server.url)
    made = Devices(tmp_path, server, one, one, one)
    made.two, made.three = made.join("two", one.emergency_kit), made.join("three", one.emergency_kit)
    for vault in (made.one, made.two):
        vault.sync()
    yield made
    for vault in (made.one, made.two, made.three):
        vault.close()


def change(vault: Vault, old: str, new: str) -> None:
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(old), stretch_of(new), new, None)


def new_kit(vault: Vault, passphrase: str) -> str:
    with vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(passphrase), None)
    return vault.emergency_kit


def revoke(vault: Vault, name: str) -> None:
    with vault._writing() as opened:
        revoking.revoke(opened, name, stretch_of(PASSPHRASE), None, None)


def contents(vault: Vault) -> set[str]:
    return {memory.content for memory in vault.list(state="all")}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.mseal")}


def test_with_sync_blocked_no_key_is_rotated_and_afterwards_everything_decrypts(
    devices: Devices, start_server: StartServer
) -> None:
    port = int(devices.server.url.rsplit(":", 1)[1])
    devices.server.stop()
    devices.one.remember("written while the server was away", source="test")
    before = devices.one.status()
    for rotate in (
        lambda: devices.one.rekey(),
        lambda: devices.one.new_recovery_code(),
        lambda: change(devices.one, PASSPHRASE, SECOND),
        lambda: new_kit(devices.one, PASSPHRASE),
        lambda: revoke(devices.one, "two"),
        lambda: devices.one.rename_device("two", "phone"),
    ):
        with pytest.raises(RemoteUnreachable):
            rotate()
        after = devices.one.status()
        assert (after.epoch, after.keyring_version) == (before.epoch, before.keyring_version)
    start_server(port=port)
    devices.one.rekey()
    devices.two.sync()
    assert contents(devices.two) == contents(devices.one) == {"from one", "written while the server was away"}
    assert devices.one.status().findings == devices.two.status().findings == []


def test_device_that_has_not_heard_of_a_new_passphrase_can_write_no_key_slot(devices: Devices) -> None:
    change(devices.one, PASSPHRASE, SECOND)
    kit = devices.one.emergency_kit
    with pytest.raises(PassphraseWrong):
        new_kit(devices.two, PASSPHRASE)
    with pytest.raises(KitOrPassphrase):
        change(devices.two, PASSPHRASE, THIRD)
    # It may begin an epoch, since its keys count: the slot stays as it was.
    devices.two.rekey()
    devices.one.sync()
    assert devices.one.emergency_kit == kit
    devices.one.close()
    devices.one = open_vault(devices.folder / "one", passphrase=SECOND)
    devices.join("fourth", kit, SECOND).close()
    with pytest.raises(KitOrPassphrase):
        devices.join("fifth", kit, PASSPHRASE)


def test_fresh_device_needs_only_the_newest_of_two_passphrases_changed_in_a_race_with_writes(devices: Devices) -> None:
    devices.three.remember("written offline, before it heard of any change", source="test")
    change(devices.one, PASSPHRASE, SECOND)
    with pytest.raises(KitOrPassphrase):
        change(devices.two, PASSPHRASE, THIRD)
    change(devices.two, PASSPHRASE, SECOND)
    change(devices.two, SECOND, THIRD)
    devices.three.remember("written offline, after both", source="test")
    devices.three.sync()
    devices.one.sync()
    fresh = devices.join("fresh", devices.two.emergency_kit, THIRD)
    assert contents(fresh) == contents(devices.three)
    assert len(contents(fresh)) == 3
    assert fresh.verify() == []
    fresh.close()


def test_after_the_new_passphrase_is_taken_on_nothing_is_fetched_again(devices: Devices) -> None:
    devices.one.remember_many({"content": f"number {number} " + "x" * 1_000, "source": "test"} for number in range(200))
    devices.one.sync()
    devices.two.sync()
    change(devices.one, PASSPHRASE, SECOND)
    devices.one.remember("under the new keys", source="test")
    devices.one.sync()
    report = devices.two.sync()
    assert report.new_memories == 1
    assert report.pulled_bytes < 5_000
    change(devices.two, PASSPHRASE, SECOND)
    assert devices.two.sync().pulled_bytes == 0
    assert contents(devices.two) == contents(devices.one)


def test_device_with_an_old_epoch_key_writes_again_and_deletes_nothing(devices: Devices) -> None:
    devices.two.remember("written under the old epoch", source="test")
    devices.one.rekey()
    devices.two.sync()
    devices.one.sync()
    assert contents(devices.one) == contents(devices.two) == {"from one", "written under the old epoch"}
    assert devices.two.status().epoch == 2


def test_device_whose_keys_ended_is_told_and_changes_nothing(devices: Devices) -> None:
    devices.two.remember("never sent", source="test")
    revoke(devices.one, "two")
    before = files(devices.folder / "two")
    for _ in range(2):
        with pytest.raises(DeviceEnded, match="removed"):
            devices.two.sync()
    after = files(devices.folder / "two")
    # The marks alone are sealed anew.
    assert {name: after[name] for name in before if name != "device.mseal"} == {
        name: before[name] for name in before if name != "device.mseal"
    }
    assert contents(devices.two) == {"from one", "never sent"}


def test_two_enrolments_with_one_device_id_make_one_device_and_replace_no_key(devices: Devices) -> None:
    stretch, known = stretch_of(PASSPHRASE), bytes.fromhex(devices.two.devices()[1].id)
    before = devices.one._opened.keychain.keyring.public.devices
    opener = KitOpener(parse_kit(devices.one.emergency_kit), stretch)
    twin = Joiner(new_key_set(), known, "twin")
    with pytest.raises(FormatError) as caught:
        enter(devices.folder / "twin", OsDisk(), opener, twin, stretch, devices.server.url)
    assert caught.value.code == "keyring_malformed"
    devices.one.sync()
    assert devices.one._opened.keychain.keyring.public.devices == before
    assert not (devices.folder / "twin").exists()


def test_joiner_that_says_it_is_a_known_device_is_not_let_in(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = Laptop(tmp_path / "laptop", start_server().url)
    entry = laptop.vault._opened.keychain.keyring.public.devices[0]
    monkeypatch.setattr(Joiner, "draw", lambda name: Joiner(new_key_set(), entry.id, name))
    shown = laptop.shows()
    with pytest.raises(PairingCodeWrong):
        join_by_code(tmp_path / "phone", shown.code, laptop.server)
    with pytest.raises(PairingInvalid):
        shown.device()
    assert [device.status for device in laptop.vault.devices()] == ["this"]
    laptop.close()


def test_two_devices_let_new_ones_in_at_once(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server().url
    laptop = Laptop(tmp_path / "laptop", server)
    first = laptop.shows()
    join_by_code(tmp_path / "phone", first.code, server, name="phone")
    first.device()
    laptop.vault.sync()
    second = laptop.shows()
    with open_vault(tmp_path / "phone") as phone:
        kit = KitOpener(parse_kit(phone.emergency_kit), stretch_of(PASSPHRASE))
        join_with(tmp_path / "tablet", OsDisk(), kit, stretch_of(PASSPHRASE), server, "tablet")
        join_by_code(tmp_path / "watch", second.code, server, name="watch")
        second.device()
        phone.sync()
        assert [device.name for device in phone.devices()] == ["laptop", "phone", "tablet", "watch"]
    laptop.close()


def test_unlocking_takes_hardly_more_memory_than_the_derivation(tmp_path: Path) -> None:
    """The 64 MiB of Argon2id and at most 8 more: what comes on top are the libraries."""
    pytest.importorskip("resource", reason="the peak of a process's memory is told on Unix alone")
    path = tmp_path / "vault"
    Vault.create(path, PASSPHRASE, embedder=None).close()
    program = (
        "import resource, sys\nfrom memseal import Vault\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nbefore = peak()\n"
        "Vault.open(sys.argv[1], sys.stdin.read(), embedder=None).close()\nprint(before, peak())"
    )
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, input=PASSPHRASE, capture_output=True, text=True, check=True)
    before, after = (int(number) // (1024 if sys.platform == "darwin" else 1) for number in done.stdout.split())
    assert after - before < 72 * 1024
