"""A cache opens with a secret of its own, which an erase forgets: a copy kept from before opens no more."""

import contextlib
from pathlib import Path

import pytest

from memseal.format.device_file import decode_device_file, open_marks
from memseal.vault.folder import opening
from memseal.vault.folder.cache import load_cache
from memseal.vault.folder.device import CacheMark, decode_marks
from memseal.vault.vault import Vault
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice, Crash, CrashDisk, Mishap
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
    """A closed vault with two memories, a checkpoint and a cache."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        vault.remember("to be erased", source="test")
        vault.remember("to be kept", source="test")
        vault.compact()
    return disk


def marks_of(vault: Vault, disk: CrashDisk) -> tuple[CacheMark, ...]:
    """The caches that the device file on the disk has the secrets of."""
    file = decode_device_file(disk.read(vault._opened.folder.path / "device.mseal") or b"")
    return decode_marks(open_marks(file, vault._opened.device.keys.local)).caches


def erase(vault: Vault) -> None:
    (target,) = (memory.id for memory in vault.list() if memory.content == "to be erased")
    vault.erase(target)


def test_each_cache_has_a_secret_of_its_own_and_only_the_newest_is_kept(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        (first,) = marks_of(vault, disk)
        vault.remember("more", source="test")
    with open_vault(path, disk) as vault:
        (second,) = marks_of(vault, disk)
        assert first.nonce != second.nonce
        assert first.secret != second.secret


def test_erase_forgets_the_secret_before_it_returns(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        assert marks_of(vault, disk)
        erase(vault)
        assert marks_of(vault, disk) == ()


def test_cache_without_its_secret_is_no_damage(path: Path, disk: CrashDisk) -> None:
    cache = path / "cache" / "view.mseal"
    old = disk.read(cache) or b""
    with open_vault(path, disk) as vault:
        erase(vault)
        disk.write(cache, 0, old)
        opened = vault._opened
        assert load_cache(opened.folder, opened.device, opened.keychain) is None
        assert vault.verify() == []


@pytest.mark.parametrize("fate", [ALL_KEPT, ALL_LOST])
def test_crash_at_any_step_of_an_erase_leaves_no_cache_of_before_that_opens(
    path: Path, disk: CrashDisk, fate: Choice
) -> None:
    happened, step = True, 0
    while happened:
        trial = disk.copy()
        vault = open_vault(path, trial)
        before = {mark.nonce for mark in marks_of(vault, trial)}
        trial.mishap = Mishap(trial.changed + step)
        with contextlib.suppress(Crash):
            erase(vault)
        happened = trial.mishap.happened
        power_off(vault)
        after = trial.after_crash(fate)
        with open_vault(path, after) as again:
            erased = "to be erased" not in everything(again)
            if erased:
                assert before.isdisjoint({mark.nonce for mark in marks_of(again, after)})
                assert after.size(path / "cache" / "view.mseal") is None
            assert again.verify() == []
            assert again.status().findings == []
        step += 1
    assert step > 10


def test_vault_whose_memories_all_lie_in_a_checkpoint_has_a_cache_after_an_erase(path: Path, disk: CrashDisk) -> None:
    with open_vault(path, disk) as vault:
        erase(vault)
    with open_vault(path, disk) as vault:
        opened = vault._opened
        cached = load_cache(opened.folder, opened.device, opened.keychain)
        assert cached is not None
        assert [memory.content for memory in vault.list()] == ["to be kept"]
        cached[0].view.close()
