"""The recovery code brings a person back where the passphrase is lost: in the vault's own folder, without a server."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from memseal.errors import (
    DeviceEnded,
    FormatError,
    KitMalformed,
    LocalRollback,
    MemsealError,
    PassphraseEmpty,
    PassphraseWrong,
    RecoveryCodeWrong,
    RemoteUnknown,
    VaultBusy,
)
from memseal.memory.memory import State
from memseal.vault.keys import passphrases, recovering
from memseal.vault.keys.recovering import NewPassphrase
from memseal.vault.vault import Vault
from tests.vault.crash_disk import ALL_LOST, Choice, CrashDisk
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, power_off, stretch_of
from tests.vault.test_crash import crashes_of

NEW_PASSPHRASE = "a new passphrase"
MEMORIES = {"it began": State.ACTIVE, "it was wrong": State.RETRACTED}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


@pytest.fixture
def disk(path: Path) -> CrashDisk:
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    return disk


@pytest.fixture
def code(path: Path, disk: CrashDisk) -> str:
    """The recovery code of a vault with two memories, closed."""
    with open_vault(path, disk) as vault:
        vault.remember("it began", source="test", embedding=[1, 0])
        vault.retract(vault.remember("it was wrong", source="test").id, reason="test")
        code = vault.new_recovery_code()
    disk.after_crash(ALL_LOST)
    return code


def recover(path: Path, disk: CrashDisk, code: str, passphrase: str = NEW_PASSPHRASE) -> Vault:
    """What `Vault.recover` does, on a disk of the test's, without Argon2id."""
    new = NewPassphrase(passphrase, stretch_of(passphrase))
    vault = Vault._open(recovering.enter(path, disk, code, new, None, "desk"), new.stretch, False, None)
    try:
        with vault._writing() as opened:
            recovering.complete(opened, new, None)
    except BaseException:
        power_off(vault)
        raise
    return vault


def test_code_alone_opens_everything_behind_a_new_passphrase(path: Path, disk: CrashDisk, code: str) -> None:
    with recover(path, disk, code) as vault:
        assert everything(vault) == MEMORIES
        assert vault.search(vector=[1, 0])[0].memory.content == "it began"
        vault.remember("afterwards", source="test")
    with pytest.raises(PassphraseWrong):
        open_vault(path, disk, PASSPHRASE)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert everything(vault) == {**MEMORIES, "afterwards": State.ACTIVE}
        assert [*vault.status().findings, *vault.verify()] == []
        assert [(device.name, device.old_passphrase) for device in vault.status().devices] == [("desk", False)]


def test_recovered_vault_is_changed_and_recovered_again(path: Path, disk: CrashDisk, code: str) -> None:
    with recover(path, disk, code) as vault, vault._writing() as opened:
        passphrases.change(opened, stretch_of(NEW_PASSPHRASE), stretch_of("a third"), "a third", None)
    with recover(path, disk, code, "a fourth") as vault:
        assert everything(vault) == MEMORIES
        next_code = vault.new_recovery_code()
    with pytest.raises(RecoveryCodeWrong):
        recover(path, disk, code, "a fifth")
    with recover(path, disk, next_code, "a fifth") as vault:
        assert everything(vault) == MEMORIES


def test_recovering_again_with_the_same_passphrase_changes_nothing(path: Path, disk: CrashDisk, code: str) -> None:
    with recover(path, disk, code) as vault:
        before = vault.status().keyring_version
    with recover(path, disk, code) as vault:
        assert vault.status().keyring_version == before


@pytest.mark.parametrize("damage", ["missing", "not one", "cut"])
def test_lost_device_file_is_no_obstacle(damage: str, path: Path, disk: CrashDisk, code: str) -> None:
    content = disk.read(path / "device.mseal") or b""
    disk.remove(path / "device.mseal")
    left = {"missing": None, "not one": b"x" * 500, "cut": content[:-10]}[damage]
    if left is not None:
        disk.write(path / "device.mseal", 0, left)
    with recover(path, disk, code) as vault:
        assert everything(vault) == MEMORIES


@pytest.mark.parametrize(
    ("wrong", "passphrase", "error"),
    [
        (lambda code: code[:-1] + ("0" if code[-1] != "0" else "1"), NEW_PASSPHRASE, KitMalformed),
        (lambda code: "MSEAL1-0000", NEW_PASSPHRASE, KitMalformed),
        (lambda code: code, " ", PassphraseEmpty),
    ],
    ids=["mistyped", "a kit", "empty passphrase"],
)
def test_what_is_wrong_changes_nothing(
    wrong: Callable[[str], str], passphrase: str, error: type[MemsealError], path: Path, disk: CrashDisk, code: str
) -> None:
    before = disk.files()
    with pytest.raises(error):
        recover(path, disk, wrong(code), passphrase)
    assert disk.files() == before


def test_code_of_another_vault_or_of_before_changes_nothing(path: Path, disk: CrashDisk, code: str) -> None:
    other = CrashDisk(path.parent)
    new_folder(path, other)
    with open_vault(path, other) as vault:
        foreign = vault.new_recovery_code()
    with open_vault(path, disk) as vault:
        vault.new_recovery_code()
    before = disk.files()
    with pytest.raises(FormatError) as caught:
        recover(path, disk, foreign)
    assert caught.value.code == "vault_mismatch"
    with pytest.raises(RecoveryCodeWrong):
        recover(path, disk, code)
    assert disk.files() == before


def test_vault_without_a_code_says_so(path: Path, disk: CrashDisk, code: str) -> None:
    """A folder from before the code was made: it knows nothing of it."""
    before = CrashDisk(path.parent)
    new_folder(path, before)
    with pytest.raises(FormatError):
        recover(path, before, code)


def test_open_vault_is_not_recovered(path: Path, disk: CrashDisk, code: str) -> None:
    with open_vault(path, disk), pytest.raises(VaultBusy):
        recover(path, disk, code)


def test_without_a_folder_a_server_is_needed(path: Path, code: str) -> None:
    with pytest.raises(RemoteUnknown):
        recover(path, CrashDisk(path.parent), code)


@pytest.mark.parametrize("choice", ["all-lost", "some"])
def test_crash_at_every_step_is_over_when_it_is_done_again(choice: str, path: Path, disk: CrashDisk, code: str) -> None:
    fate = {"all-lost": ALL_LOST, "some": Choice(None, 3)}[choice]
    for found, returned in crashes_of(disk, lambda each: power_off(recover(path, each, code)), fate):
        opened = set[str]()
        for passphrase in (PASSPHRASE, NEW_PASSPHRASE):
            with (
                contextlib.suppress(PassphraseWrong, LocalRollback),
                open_vault(path, found.copy(), passphrase) as vault,
            ):
                assert everything(vault) == MEMORIES
                opened.add(passphrase)
        assert len(opened) == 1
        assert opened == {NEW_PASSPHRASE} or not returned
        with recover(path, found, code) as vault:
            assert everything(vault) == MEMORIES
            vault.remember("written afterwards", source="test")
        with open_vault(path, found.after_crash(ALL_LOST), NEW_PASSPHRASE) as vault:
            assert everything(vault) == {**MEMORIES, "written afterwards": State.ACTIVE}
            assert vault.status().findings == []
            # A device that had joined before the crash, and whose keys were lost with it, stays listed.
            assert [each.old_passphrase for each in vault.status().devices if each.this_device] == [False]


def test_old_device_file_put_back_opens_nothing(path: Path, disk: CrashDisk, code: str) -> None:
    old = disk.read(path / "device.mseal") or b""
    recover(path, disk, code).close()
    newest = disk.read(path / "device.mseal") or b""
    disk.write(path / "device.mseal", 0, old)
    with pytest.raises(DeviceEnded):
        open_vault(path, disk, PASSPHRASE)
    with pytest.raises(PassphraseWrong):
        open_vault(path, disk, NEW_PASSPHRASE)
    disk.write(path / "device.mseal", 0, newest)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert everything(vault) == MEMORIES
