"""A single old file of the keyring, or device file, put back after a change of keys: named, and nothing is lost."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import DeviceEnded, FormatError, LocalRollback, PassphraseWrong
from memseal.vault.keys import passphrases, rekeying
from memseal.vault.vault import Vault
from tests.vault.crash_disk import ALL_LOST, Choice, CrashDisk
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, power_off, stretch_of
from tests.vault.test_crash import crashes_of
from tests.vault.test_recovery import NEW_PASSPHRASE, recover

CONTENTS = {"before", "after"}


@dataclass
class Scene:
    """A closed vault with one memory at keyring version 2, which began with its recovery code."""

    path: Path
    disk: CrashDisk
    first: bytes
    """Version 1, whole."""
    code: str

    def file(self, name: str) -> bytes:
        return self.disk.read(self.path / name) or b""

    def put(self, name: str, content: bytes) -> None:
        self.disk.write(self.path / name, 0, content)

    def opened(self, name: str, *, read_only: bool = False) -> Vault:
        """Open with the passphrase that counts after a change."""
        return open_vault(self.path, self.disk, passphrase_after(name), read_only=read_only)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    path = tmp_path / "a vault"
    path.mkdir()
    disk = CrashDisk(tmp_path)
    new_folder(path, disk)
    first = disk.read(path / "keyring" / "00000001.mseal") or b""
    with open_vault(path, disk) as vault:
        vault.remember("before", source="test")
        code = vault.new_recovery_code()
    return Scene(path, disk, first, code)


def change_passphrase(scene: Scene, disk: CrashDisk) -> Vault:
    vault = open_vault(scene.path, disk)
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW_PASSPHRASE), NEW_PASSPHRASE, None)
    return vault


def new_kit(scene: Scene, disk: CrashDisk) -> Vault:
    vault = open_vault(scene.path, disk)
    with vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(PASSPHRASE), None)
    return vault


def new_recovery_code(scene: Scene, disk: CrashDisk) -> Vault:
    vault = open_vault(scene.path, disk)
    vault.new_recovery_code()
    return vault


def rekey(scene: Scene, disk: CrashDisk) -> Vault:
    vault = open_vault(scene.path, disk)
    vault.rekey()
    return vault


def recovered(scene: Scene, disk: CrashDisk) -> Vault:
    return recover(scene.path, disk, scene.code)


Act = Callable[[Scene, CrashDisk], Vault]
SAME_KEYS: dict[str, Act] = {"new_kit": new_kit, "new_recovery_code": new_recovery_code, "rekey": rekey}
NEW_KEYS: dict[str, Act] = {"change_passphrase": change_passphrase, "recover": recovered}
ALL = {**SAME_KEYS, **NEW_KEYS}


def passphrase_after(name: str) -> str:
    return NEW_PASSPHRASE if name in NEW_KEYS else PASSPHRASE


def done(scene: Scene, name: str) -> None:
    """Do it, and write a memory under the new keys."""
    with ALL[name](scene, scene.disk) as vault:
        vault.remember("after", source="test")


def named(vault: Vault) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in vault.status().findings]


@pytest.mark.parametrize("file", ["keyring/00000001.mseal", "keyring/00000002.mseal"])
@pytest.mark.parametrize("name", ALL)
def test_older_version_put_back_whole_is_named_and_stripped_again(name: str, file: str, scene: Scene) -> None:
    whole = {"keyring/00000001.mseal": scene.first, "keyring/00000002.mseal": scene.file("keyring/00000002.mseal")}
    done(scene, name)
    stripped = scene.file(file)
    scene.put(file, whole[file])
    for read_only in (True, False):
        with scene.opened(name, read_only=read_only) as vault:
            assert named(vault) == [("local_rollback", file)]
            assert everything(vault).keys() == CONTENTS
    assert len(scene.file(file)) == len(stripped) < len(whole[file])
    with scene.opened(name) as vault:
        assert named(vault) == []


@pytest.mark.parametrize("name", ALL)
def test_missing_newest_version_stops_the_vault_until_it_is_back(name: str, scene: Scene) -> None:
    done(scene, name)
    newest = max(path for path in scene.disk.files() if path.parent.name == "keyring")
    content = scene.disk.read(newest) or b""
    scene.disk.remove(newest)
    for passphrase in (PASSPHRASE, NEW_PASSPHRASE):
        with pytest.raises(FormatError, match="missing"):
            open_vault(scene.path, scene.disk, passphrase)
    scene.disk.write(newest, 0, content)
    with scene.opened(name) as vault:
        assert everything(vault).keys() == CONTENTS


@pytest.mark.parametrize("name", ALL)
def test_older_version_whole_in_the_place_of_a_missing_newest_one_is_no_vault(name: str, scene: Scene) -> None:
    """Two files put back at once, for good measure: the marks know of the newest."""
    second = scene.file("keyring/00000002.mseal")
    done(scene, name)
    for path in [path for path in scene.disk.files() if path.parent.name == "keyring" and path.stem > "00000002"]:
        scene.disk.remove(path)
    scene.put("keyring/00000002.mseal", second)
    for passphrase in (PASSPHRASE, NEW_PASSPHRASE):
        with pytest.raises((LocalRollback, PassphraseWrong, DeviceEnded)):
            open_vault(scene.path, scene.disk, passphrase)


@pytest.mark.parametrize("name", SAME_KEYS)
def test_old_device_file_with_the_same_keys_is_named_and_loses_nothing(name: str, scene: Scene) -> None:
    old = scene.file("device.mseal")
    done(scene, name)
    scene.put("device.mseal", old)
    for read_only in (True, False):
        with scene.opened(name, read_only=read_only) as vault:
            assert named(vault) == [("local_rollback", "device.mseal")]
            assert everything(vault).keys() == CONTENTS
    with scene.opened(name) as vault:
        assert named(vault) == []
        assert vault.status().epoch == 3


@pytest.mark.parametrize("name", NEW_KEYS)
def test_old_device_file_with_ended_keys_opens_nothing(name: str, scene: Scene) -> None:
    old = scene.file("device.mseal")
    done(scene, name)
    newest = scene.file("device.mseal")
    scene.put("device.mseal", old)
    with pytest.raises((LocalRollback, DeviceEnded)):
        open_vault(scene.path, scene.disk, PASSPHRASE)
    with pytest.raises(PassphraseWrong):
        open_vault(scene.path, scene.disk, NEW_PASSPHRASE)
    scene.put("device.mseal", newest)
    with scene.opened(name) as vault:
        assert everything(vault).keys() == CONTENTS
        assert named(vault) == []


@pytest.mark.parametrize("choice", ["all-lost", "some"])
@pytest.mark.parametrize("name", ALL)
def test_crash_at_any_step_is_not_taken_for_a_rollback(name: str, choice: str, scene: Scene) -> None:
    fate = {"all-lost": ALL_LOST, "some": Choice(None, 5)}[choice]
    for found, _ in crashes_of(scene.disk, lambda disk: power_off(ALL[name](scene, disk)), fate):
        for passphrase in dict.fromkeys((passphrase_after(name), PASSPHRASE)):
            try:
                vault = open_vault(scene.path, found, passphrase)
            except (PassphraseWrong, LocalRollback):
                continue
            with vault:
                assert "local_rollback" not in {code for code, _ in named(vault)}
                assert everything(vault).keys() == {"before"}
            break
