"""What the story of a vault (test_machine.py) found, told shortly."""

from pathlib import Path

import pytest

from memseal.format.preamble import PREAMBLE_SIZE
from memseal.vault.folder import opening
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Crash, CrashDisk, Mishap
from tests.vault.small_vault import everything, new_folder, open_vault, power_off


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
    """A vault with one memory in its checkpoint and one in its log."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        vault.remember("in the checkpoint", source="test")
        vault.compact()
        vault.remember("in the log", source="test")
    return disk.copy()


def damaged(disk: CrashDisk, folder: str, offset: int) -> None:
    [file] = [name for name in disk.files() if name.parent.name == folder]
    content = bytearray(disk.read(file) or b"")
    content[offset] ^= 1
    disk.write(file, 0, bytes(content))


def test_damaged_base_of_one_log_is_named_and_the_rest_is_served(path: Path, disk: CrashDisk) -> None:
    damaged(disk, "logs", PREAMBLE_SIZE + 20)
    for _ in range(2):
        with open_vault(path, disk) as vault:
            assert "in the checkpoint" in everything(vault)
            assert "base_damaged" in {finding.code for finding in vault.status().findings}


def test_checkpoint_that_was_replaced_is_not_back_after_a_power_cut(path: Path, disk: CrashDisk) -> None:
    vault = open_vault(path, disk)
    vault.compact()
    power_off(vault)
    with open_vault(path, disk.after_crash(ALL_LOST)) as vault:
        assert vault.status().findings == []
        assert everything(vault).keys() == {"in the checkpoint", "in the log"}


def test_erase_waits_where_the_checkpoint_is_damaged_and_the_vault_still_opens(path: Path, disk: CrashDisk) -> None:
    damaged(disk, "parts", 3)
    for cached in (True, False):
        spoiled = disk.copy()
        if not cached:
            spoiled.remove(path / "cache" / "view.mseal")
        with open_vault(path, spoiled) as vault:
            [memory] = [each for each in vault.list(state="all") if each.content == "in the log"]
            assert not vault.erase(memory.id).done
            epoch = vault.status().epoch
        for _ in range(2):
            with open_vault(path, spoiled) as vault:
                assert "in the log" not in everything(vault)
                assert vault.status().findings
                assert vault.status().epoch <= epoch


@pytest.mark.parametrize("first", range(7, 10))
@pytest.mark.parametrize("second", range(7, 10))
def test_two_key_changes_cut_short_do_not_make_the_device_file_look_put_back(
    first: int, second: int, path: Path, disk: CrashDisk
) -> None:
    for step in (first, second):
        vault = open_vault(path, disk)
        disk.mishap = Mishap(disk.changed + step)
        with pytest.raises(Crash):
            vault.rekey()
        power_off(vault)
        disk = disk.after_crash(ALL_KEPT)
    with open_vault(path, disk) as vault:
        assert vault.status().findings == []
