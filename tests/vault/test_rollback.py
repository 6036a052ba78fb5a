"""An older file put back: it is noticed and named, nothing newer is lost, and the file is never written to again."""

from pathlib import Path

import pytest

from memseal.errors import FormatError, LocalRollback, MemsealError, PassphraseWrong
from memseal.vault.folder import opening
from memseal.vault.keys import passphrases
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, stretch_of

NEW_PASSPHRASE = "a new passphrase"


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any log be worth a cache."""
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


@pytest.fixture
def disk(path: Path) -> CrashDisk:
    """A vault with one memory, closed."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    remember(path, disk, "old")
    return disk


def remember(path: Path, disk: CrashDisk, content: str, passphrase: str = PASSPHRASE) -> None:
    with open_vault(path, disk, passphrase) as vault:
        vault.remember(content, source="test")


def change_passphrase(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault, vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW_PASSPHRASE), NEW_PASSPHRASE, None)


def logs_of(disk: CrashDisk) -> dict[Path, bytes]:
    return {name: content for name, content in disk.files().items() if name.parent.name == "logs"}


def codes(path: Path, disk: CrashDisk) -> set[str]:
    with open_vault(path, disk, read_only=True) as vault:
        return {finding.code for finding in [*vault.status().findings, *vault.verify()]}


# ── a log ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cached", [True, False])
def test_log_put_back_is_named_and_never_written_to_again(path: Path, disk: CrashDisk, cached: bool) -> None:
    ((log, old),) = logs_of(disk).items()
    remember(path, disk, "newer")
    newer = logs_of(disk)[log]
    disk.write(log, 0, old)
    if not cached:
        disk.remove(path / "cache" / "view.mseal")
    with open_vault(path, disk) as vault:
        found = vault.status().findings
        assert [finding.code for finding in found] == ["local_rollback"]
        assert found[0].where == f"logs/{log.name}"
        vault.remember("afterwards", source="test")
    assert logs_of(disk)[log] == old
    assert len(logs_of(disk)) == 2
    assert "local_rollback" in codes(path, disk)
    disk.write(log, 0, newer)
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", "newer", "afterwards"}
        assert not vault.status().findings


def test_log_put_back_stays_named_through_sessions_that_write(path: Path, disk: CrashDisk) -> None:
    ((log, old),) = logs_of(disk).items()
    remember(path, disk, "newer")
    disk.write(log, 0, old)
    for number in range(3):
        remember(path, disk, f"afterwards {number}")
        assert "local_rollback" in codes(path, disk)
        assert logs_of(disk)[log] == old
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", *(f"afterwards {number}" for number in range(3))}


def test_log_put_back_between_two_crashes_is_not_written_to(path: Path, disk: CrashDisk) -> None:
    """No session is closed after the rollback: what was noticed is noticed anew each time."""
    ((log, old),) = logs_of(disk).items()
    remember(path, disk, "newer")
    disk.write(log, 0, old)
    for _ in range(2):
        vault = open_vault(path, disk)
        vault.remember("afterwards", source="test")
        assert vault._lock is not None
        vault._lock.release()
    assert logs_of(disk)[log] == old


def test_missing_log_is_named(path: Path, disk: CrashDisk) -> None:
    (log,) = logs_of(disk)
    disk.remove(log)
    with open_vault(path, disk) as vault:
        assert [finding.code for finding in vault.status().findings] == ["local_rollback"]
        vault.remember("afterwards", source="test")
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"afterwards"}
        assert [finding.code for finding in vault.status().findings] == ["local_rollback"]


# ── the cache ───────────────────────────────────────────────────────────────────────────────────────


def test_cache_put_back_changes_nothing(path: Path, disk: CrashDisk) -> None:
    cache = path / "cache" / "view.mseal"
    old = disk.read(cache)
    assert old is not None
    remember(path, disk, "newer")
    disk.write(cache, 0, old)
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", "newer"}
        assert [finding.where for finding in vault.status().findings] == ["cache/view.mseal"]


def test_cache_of_before_a_log_was_put_back_does_not_vouch_for_it(path: Path, disk: CrashDisk) -> None:
    ((log, old),) = logs_of(disk).items()
    remember(path, disk, "newer")
    disk.write(log, 0, old)
    with open_vault(path, disk, read_only=True) as vault:
        assert set(everything(vault)) == {"old"}


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────


def test_device_file_put_back_without_a_key_change_loses_nothing(path: Path, disk: CrashDisk) -> None:
    old = disk.read(path / "device.mseal") or b""
    remember(path, disk, "newer")
    disk.write(path / "device.mseal", 0, old)
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", "newer"}
        vault.remember("afterwards", source="test")
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", "newer", "afterwards"}
        assert not vault.status().findings


def test_old_device_file_and_passphrase_open_nothing_after_a_change(path: Path, disk: CrashDisk) -> None:
    old = disk.read(path / "device.mseal") or b""
    change_passphrase(path, disk)
    newest = disk.read(path / "device.mseal") or b""
    disk.write(path / "device.mseal", 0, old)
    for _ in range(2):
        with pytest.raises(LocalRollback):
            open_vault(path, disk, PASSPHRASE)
        with pytest.raises(PassphraseWrong):
            open_vault(path, disk, NEW_PASSPHRASE)
    disk.write(path / "device.mseal", 0, newest)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert set(everything(vault)) == {"old"}


def test_old_keyring_file_does_not_bring_the_old_passphrase_back(path: Path, disk: CrashDisk) -> None:
    """The first version whole again, and the old device file: the second version still counts."""
    before = {name: content for name, content in disk.files().items() if name.parent.name != "logs"}
    change_passphrase(path, disk)
    for name in (path / "keyring" / "00000001.mseal", path / "device.mseal"):
        disk.write(name, 0, before[name])
    with pytest.raises(LocalRollback):
        open_vault(path, disk, PASSPHRASE)


def test_old_keys_together_serve_nothing_that_was_written_under_newer_ones(path: Path, disk: CrashDisk) -> None:
    """Device file, keyring and passphrase of before the change: they do not have the keys of the logs."""
    before = {name: content for name, content in disk.files().items() if name.parent.name != "logs"}
    change_passphrase(path, disk)
    disk.remove(path / "keyring" / "00000002.mseal")
    for name, content in before.items():
        disk.write(name, 0, content)
    with open_vault(path, disk, PASSPHRASE) as vault:
        assert everything(vault) == {}
        assert {"keyring_behind", "local_rollback"} <= {finding.code for finding in vault.status().findings}


@pytest.mark.parametrize("restored", ["newest missing", "newest replaced by the first"])
def test_keyring_put_back_is_refused(path: Path, disk: CrashDisk, restored: str) -> None:
    first = disk.read(path / "keyring" / "00000001.mseal") or b""
    change_passphrase(path, disk)
    second = disk.read(path / "keyring" / "00000002.mseal") or b""
    if restored == "newest missing":
        disk.remove(path / "keyring" / "00000002.mseal")
        disk.write(path / "keyring" / "00000001.mseal", 0, first)
    else:
        disk.write(path / "keyring" / "00000002.mseal", 0, first)
    refused: dict[str, tuple[type[MemsealError], ...]] = {
        "newest missing": (LocalRollback, PassphraseWrong),
        "newest replaced by the first": (FormatError,),
    }
    for passphrase in (PASSPHRASE, NEW_PASSPHRASE):
        with pytest.raises(refused[restored]):
            open_vault(path, disk, passphrase)
    disk.write(path / "keyring" / "00000002.mseal", 0, second)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert set(everything(vault)) == {"old"}


def test_whole_first_version_beside_the_second_changes_nothing(path: Path, disk: CrashDisk) -> None:
    first = disk.read(path / "keyring" / "00000001.mseal") or b""
    change_passphrase(path, disk)
    disk.write(path / "keyring" / "00000001.mseal", 0, first)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert set(everything(vault)) == {"old"}
    with pytest.raises(PassphraseWrong):
        open_vault(path, disk, PASSPHRASE)


@pytest.mark.parametrize(
    "name", ["keyring/notes.mseal", "keyring/00000001.mseal.bak", "logs/notes.mseal", "notes.mseal"]
)
def test_file_with_another_name_is_ignored_and_kept(path: Path, disk: CrashDisk, name: str) -> None:
    disk.write(path / name, 0, b"not ours")
    remember(path, disk, "newer")
    with open_vault(path, disk) as vault:
        assert set(everything(vault)) == {"old", "newer"}
        assert not vault.status().findings
    assert disk.read(path / name) == b"not ours"


def test_log_written_with_ended_keys_and_put_back_is_not_believed(path: Path, disk: CrashDisk) -> None:
    """A thief with an old device file and its passphrase writes into a log that the passphrase change had ended."""
    stolen = disk.copy()
    change_passphrase(path, disk)
    remember(path, stolen, "forged")
    ((log, forged),) = logs_of(stolen).items()
    disk.write(log, 0, forged)
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert set(everything(vault)) == {"old"}
