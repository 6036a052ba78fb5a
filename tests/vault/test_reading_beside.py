"""A vault that is opened to be read while another process writes: what changes meanwhile is no damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memseal.store.folder import DEVICE
from memseal.vault.folder import opening
from memseal.vault.vault import Vault
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import everything, new_folder, open_vault


class MovingDisk(CrashDisk):
    """A disk on which another process comes one state further whenever the device file was read."""

    def __init__(self, states: list[CrashDisk]) -> None:
        super().__init__(states[0].root)
        self._states = states

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        content = self._states[0].read(path, start, end)
        if path.name == DEVICE and len(self._states) > 1:
            self._states.pop(0)
        return content

    def size(self, path: Path) -> int | None:
        return self._states[0].size(path)

    def names(self, folder: Path) -> list[str]:
        return self._states[0].names(folder)


class SwitchingDisk(CrashDisk):
    """A disk that a reader sees as it was before another process's act, and from some look on as it is after."""

    def __init__(self, before: CrashDisk, after: CrashDisk, looks: int) -> None:
        super().__init__(before.root)
        self._before, self._after, self.left = before, after, looks

    def _now(self) -> CrashDisk:
        self.left -= 1
        return self._before if self.left >= 0 else self._after

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        return self._now().read(path, start, end)

    def size(self, path: Path) -> int | None:
        return self._now().size(path)

    def names(self, folder: Path) -> list[str]:
        return self._now().names(folder)


def erase_one(vault: Vault) -> object:
    return vault.erase(next(memory.id for memory in vault.list() if memory.content == "to be erased"))


def rekey_and_write(vault: Vault) -> object:
    vault.rekey()
    return vault.remember("more", source="test")


ACTS: dict[str, Callable[[Vault], object]] = {
    "write": lambda vault: vault.remember("more", source="test"),
    "compact": Vault.compact,
    "rekey": rekey_and_write,
    "erase": erase_one,
}


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("act", ACTS)
def test_reader_sees_everything_whenever_another_process_changes_keys_or_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str, cached: bool
) -> None:
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1 if cached else 1 << 30)
    path, disk = tmp_path / "vault", CrashDisk(tmp_path)
    path.mkdir()
    new_folder(path, disk)
    kept = {f"memory {number}" for number in range(3)}
    with open_vault(path, disk) as vault:
        vault.remember_many({"content": content, "source": "test"} for content in (*sorted(kept), "to be erased"))
        vault.compact()
    with open_vault(path, disk) as vault:
        vault.remember("above the floor", source="test")
    before = disk.copy()
    with open_vault(path, disk) as vault:
        ACTS[act](vault)
    looks, is_before_the_act = 0, False
    while not is_before_the_act:
        seen = SwitchingDisk(before, disk, looks)
        with open_vault(path, seen, read_only=True) as vault:
            assert vault.status().findings == [], looks
            assert everything(vault).keys() >= kept | {"above the floor"}
        looks, is_before_the_act = looks + 1, seen.left >= 0
    assert looks > 15


@pytest.mark.parametrize("closings", [1, 2, 3, 5])
def test_cache_that_is_made_anew_between_two_looks_was_not_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closings: int
) -> None:
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)
    path, disk, states = tmp_path / "vault", CrashDisk(tmp_path), list[CrashDisk]()
    path.mkdir()
    new_folder(path, disk)
    for number in range(closings):
        with open_vault(path, disk) as vault:
            vault.remember(f"memory {number}", source="test")
        states.append(disk.copy())
    with open_vault(path, MovingDisk(states), read_only=True) as vault:
        assert vault.status().findings == []
        assert "memory 0" in everything(vault)


def test_cache_of_before_that_was_put_back_is_named_also_to_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)
    path, disk, caches = tmp_path / "vault", CrashDisk(tmp_path), list[bytes]()
    path.mkdir()
    new_folder(path, disk)
    for number in range(2):
        with open_vault(path, disk) as vault:
            vault.remember(f"memory {number}", source="test")
        caches.append(disk.read(path / "cache" / "view.mseal") or b"")
    disk.write(path / "cache" / "view.mseal", 0, caches[0])
    with open_vault(path, disk, read_only=True) as vault:
        assert [each.code for each in vault.status().findings] == ["local_rollback"]
