"""New epochs, kits and recovery codes: one keyring version each, and no data is touched. (Crashes: `test_crash.py`.)"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from memseal.errors import DiskError, KitOrPassphrase, PassphraseWrong, RecoveryCodeWrong, VaultReadOnly
from memseal.format.floor import Floor
from memseal.format.keyring import decode_version
from memseal.format.kit import parse_kit, parse_recovery_code
from memseal.vault.keys import passphrases, rekeying
from memseal.vault.keys.proving import KitOpener, RecoveryOpener, prove
from memseal.vault.keys.versions import Change, next_version
from memseal.vault.vault import Vault
from tests.vault.crash_disk import ALL_LOST, CrashDisk, Mishap
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, power_off, stretch_of

NEW_PASSPHRASE = "a new passphrase"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


@pytest.fixture
def disk(path: Path) -> CrashDisk:
    """A vault with one memory, closed."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        vault.remember("before", source="test")
    return disk


def new_kit(vault: Vault, passphrase: str = PASSPHRASE) -> str:
    with vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(passphrase), None)
    return vault.emergency_kit


def change_passphrase(vault: Vault) -> None:
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW_PASSPHRASE), NEW_PASSPHRASE, None)


def opens_with_kit(vault: Vault, kit: str, passphrase: str = PASSPHRASE) -> bool:
    versions, chain = vault._opened.keychain.keyring.versions, vault._opened.keychain
    try:
        return prove(KitOpener(parse_kit(kit), stretch_of(passphrase)), versions) == chain.vault_key
    except KitOrPassphrase:
        return False


def opens_with_code(vault: Vault, code: str) -> bool:
    versions, chain = vault._opened.keychain.keyring.versions, vault._opened.keychain
    try:
        return prove(RecoveryOpener(parse_recovery_code(code)), versions) == chain.vault_key
    except RecoveryCodeWrong:
        return False


RENEWALS: dict[str, Callable[[Vault], object]] = {
    "rekey": lambda vault: vault.rekey(),
    "new_kit": new_kit,
    "new_recovery_code": lambda vault: vault.new_recovery_code(),
    "change_passphrase": change_passphrase,
}
TOUCH_NO_DATA = ("rekey", "new_kit", "new_recovery_code")


@pytest.mark.parametrize("name", RENEWALS)
def test_each_is_one_version_and_one_epoch(name: str, path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        RENEWALS[name](vault)
        status = vault.status()
        assert (status.keyring_version, status.epoch, status.findings) == (2, 2, [])
        assert everything(vault).keys() == {"before"}
        vault.remember("after", source="test")
    with open_vault(path, disk, NEW_PASSPHRASE if name == "change_passphrase" else PASSPHRASE) as vault:
        assert everything(vault).keys() == {"before", "after"}
        assert [*vault.status().findings, *vault.verify()] == []


@pytest.mark.parametrize("name", TOUCH_NO_DATA)
def test_no_data_is_touched(name: str, path: Path, disk: CrashDisk) -> None:
    before = {file: content for file, content in disk.files().items() if file.parent.name == "logs"}
    with open_vault(path, disk) as vault:
        RENEWALS[name](vault)
        assert {file: disk.read(file) for file in before} == before
        assert {file for file in disk.files() if file.parent.name == "logs"} == set(before)


def test_what_is_written_afterwards_is_under_the_new_key(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        old = vault._opened.keychain.vault_key
        vault.rekey()
        vault.remember("after", source="test")
        assert vault._opened.keychain.vault_key != old
        assert sorted(log.stream.epoch for log in vault._opened.logbook.logs.values()) == [1, 2]


def test_older_version_loses_its_sealed_part(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        for number in (1, 2):
            vault.rekey()
            assert decode_version(disk.read(path / "keyring" / f"0000000{number}.mseal") or b"").boxes is None


def test_new_kit_opens_and_the_old_one_no_more(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        old = vault.emergency_kit
        new = new_kit(vault)
        assert (opens_with_kit(vault, old), opens_with_kit(vault, new)) == (False, True)
        assert parse_kit(new).generation == 2
        assert not opens_with_kit(vault, new, "another")


def test_new_kit_takes_the_vaults_passphrase_alone(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        kit = vault.emergency_kit
        with pytest.raises(PassphraseWrong):
            new_kit(vault, "another")
        assert (vault.status().keyring_version, vault.emergency_kit) == (1, kit)


def test_rekey_keeps_kit_and_recovery_code(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        code, kit = vault.new_recovery_code(), vault.emergency_kit
        vault.rekey()
        assert vault.emergency_kit == kit
        assert opens_with_kit(vault, kit)
        assert opens_with_code(vault, code)


@pytest.mark.parametrize("name", ["rekey", "new_kit", "change_passphrase"])
def test_recovery_code_stays_through_other_changes(name: str, path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        code = vault.new_recovery_code()
        RENEWALS[name](vault)
        assert opens_with_code(vault, code)


def test_new_recovery_code_opens_and_the_old_one_no_more(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        old, new = vault.new_recovery_code(), vault.new_recovery_code()
        assert (opens_with_code(vault, old), opens_with_code(vault, new)) == (False, True)
        assert (parse_recovery_code(old).generation, parse_recovery_code(new).generation) == (1, 2)


def test_reader_renews_nothing(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk, read_only=True) as vault:
        for name in TOUCH_NO_DATA:
            with pytest.raises(VaultReadOnly):
                RENEWALS[name](vault)


def test_version_with_a_floor_changes_the_floor_alone(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        vault.new_recovery_code()
        opened = vault._opened
        floor = Floor(bytes(16), bytes(32), (), {})
        made = next_version(opened, Change(floor=floor, epochs=()))
        chain = opened.keychain.followed_by(opened.keychain.keyring.followed_by(made.version), made.vault_key)
        assert (chain.keyring.public.floor, chain.keyring.public.epoch) == (floor, 2)
        assert (chain.vault_key, chain.secrets.history) == (opened.keychain.vault_key, {})
        assert made.version.slots == opened.keychain.keyring.newest.slots


def test_history_keeps_the_epochs_that_are_asked_for(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        for _ in range(3):
            vault.rekey()
        opened = vault._opened
        assert set(opened.keychain.secrets.history) == {1, 2, 3}
        made = next_version(opened, Change(epochs={2, 4}))
        chain = opened.keychain.followed_by(opened.keychain.keyring.followed_by(made.version), made.vault_key)
        assert set(chain.secrets.history) == {2, 4}
        # What the new version leaves out, the older one still gives.
        assert chain.epochs() == {1, 2, 3, 4, 5}
        assert chain.still_needed({1, 2, 5}) == {4}
        assert chain.still_needed({2, 5}) == set()


# ── the disk fails once ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("following", RENEWALS)
@pytest.mark.parametrize("failing", TOUCH_NO_DATA)
def test_change_that_failed_is_no_obstacle_to_the_next_in_the_same_session(
    failing: str, following: str, path: Path, disk: CrashDisk
) -> None:
    mishap = Mishap(-1)
    while mishap.happened or mishap.step < 0:
        copy = disk.copy()
        vault = open_vault(path, copy)
        mishap = copy.mishap = Mishap(copy.changed + mishap.step + 1, DiskError)
        with contextlib.suppress(DiskError):
            RENEWALS[failing](vault)
        copy.mishap = None
        RENEWALS[following](vault)
        vault.remember("after", source="test")
        power_off(vault)
        passphrase = NEW_PASSPHRASE if following == "change_passphrase" else PASSPHRASE
        with open_vault(path, copy.after_crash(ALL_LOST), passphrase) as vault:
            assert everything(vault).keys() == {"before", "after"}
            assert vault.status().findings == []
            assert opens_with_kit(vault, vault.emergency_kit, passphrase)
