"""The vault's folder on a disk that loses what was not made durable."""

import contextlib
from pathlib import Path

import pytest

from memseal.errors import DiskError, DiskFull, VaultExists
from memseal.store.folder import VaultFolder
from memseal.store.lock import VaultLock
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice, Crash, CrashDisk, LazyDisk, Mishap


@pytest.fixture
def disk(tmp_path: Path) -> CrashDisk:
    disk = CrashDisk(tmp_path)
    VaultFolder.create(tmp_path / "vault", disk, "token", lambda folder: folder.replace("device.mseal", b"device"))
    return disk.after_crash(ALL_LOST)


@pytest.fixture
def folder(disk: CrashDisk, tmp_path: Path) -> VaultFolder:
    return VaultFolder(tmp_path / "vault", disk)


def test_what_was_replaced_and_appended_outlives_a_crash(folder: VaultFolder, disk: CrashDisk) -> None:
    folder.replace("device.mseal", [b"new ", b"device"])
    folder.append("logs/a.mseal", 0, b"one")
    folder.append("logs/a.mseal", 3, b"two")
    after = VaultFolder(folder.path, disk.after_crash(ALL_LOST))
    assert after.read("device.mseal") == b"new device"
    assert after.read("logs/a.mseal") == b"onetwo"


def test_same_is_lost_without_the_syncs(folder: VaultFolder, disk: CrashDisk) -> None:
    lazy = LazyDisk(disk)
    VaultFolder(folder.path, lazy).replace("device.mseal", b"new")
    VaultFolder(folder.path, lazy).append("logs/a.mseal", 0, b"one")
    after = VaultFolder(folder.path, lazy.after_crash(ALL_LOST))
    assert after.read("device.mseal") == b"device"
    assert after.read("logs/a.mseal") is None
    kept = {VaultFolder(folder.path, lazy.after_crash(Choice(None, seed))).read("device.mseal") for seed in range(20)}
    assert kept > {b"device", b"new", b""}


@pytest.mark.parametrize("choice", [ALL_LOST, ALL_KEPT, *(Choice(None, seed) for seed in range(8))])
def test_replaced_file_is_old_or_new_at_every_crash(disk: CrashDisk, tmp_path: Path, choice: Choice) -> None:
    contents, mishap = set[bytes | None](), Mishap(-1)
    while mishap.happened or mishap.step < 0:
        stopped = disk.copy()
        mishap = stopped.mishap = Mishap(mishap.step + 1)
        try:
            VaultFolder(tmp_path / "vault", stopped).replace("device.mseal", b"new device")
        except Crash:
            assert mishap.happened
        contents.add(VaultFolder(tmp_path / "vault", stopped.after_crash(choice)).read("device.mseal"))
    assert contents == {b"device", b"new device"}


def test_name_made_by_a_killed_process_is_made_durable_by_the_next(folder: VaultFolder, disk: CrashDisk) -> None:
    disk.mishap = Mishap(3)
    with pytest.raises(Crash, match="sync_folder"):
        folder.append("logs/a.mseal", 0, b"one")
    disk.mishap = None
    VaultFolder(folder.path, disk).append("logs/a.mseal", 3, b"two")
    assert VaultFolder(folder.path, disk.after_crash(ALL_LOST)).read("logs/a.mseal") == b"onetwo"


@pytest.mark.parametrize("step", range(4))
def test_append_that_failed_is_durable_when_it_is_tried_again(folder: VaultFolder, disk: CrashDisk, step: int) -> None:
    disk.mishap = Mishap(step, DiskError)
    with pytest.raises(DiskError):
        folder.append("logs/a.mseal", 0, b"one, and longer")
    folder.append("logs/a.mseal", 0, b"two")
    assert VaultFolder(folder.path, disk.after_crash(ALL_LOST)).read("logs/a.mseal") == b"two"


def test_append_to_what_a_failed_replacement_left_makes_its_name_durable(folder: VaultFolder, disk: CrashDisk) -> None:
    folder.append("logs/a.mseal", 0, b"old")
    disk.mishap = Mishap(disk.changed + 3, DiskError)
    with pytest.raises(DiskError, match="sync_folder"):
        folder.replace("logs/a.mseal", b"new")
    folder.append("logs/a.mseal", 3, b" and more")
    assert VaultFolder(folder.path, disk.after_crash(ALL_LOST)).read("logs/a.mseal") == b"new and more"


@pytest.mark.parametrize("seed", range(8))
def test_end_of_an_append_is_there_only_if_its_beginning_is(folder: VaultFolder, disk: CrashDisk, seed: int) -> None:
    folder.append("logs/a.mseal", 0, b"zero")
    mishap = Mishap(-1)
    while mishap.happened or mishap.step < 0:
        stopped = disk.copy()
        mishap = stopped.mishap = Mishap(mishap.step + 1)
        with contextlib.suppress(Crash):
            VaultFolder(folder.path, stopped).append("logs/a.mseal", 4, bytes([1]) * 2000, b"end")
        found = VaultFolder(folder.path, stopped.after_crash(Choice(None, seed))).read("logs/a.mseal") or b""
        assert not found.endswith(b"end") or found[4:2004] == bytes([1]) * 2000


@pytest.mark.parametrize("step", range(2))
def test_replacement_that_found_the_disk_full_gives_its_room_back(
    folder: VaultFolder, disk: CrashDisk, step: int
) -> None:
    before = disk.files()
    disk.mishap = Mishap(step, DiskFull)
    with pytest.raises(DiskFull):
        folder.replace("cache/view.mseal", b"large")
    assert disk.files() == before


def test_what_a_crash_left_unfinished_is_swept_away_and_nothing_else(folder: VaultFolder, disk: CrashDisk) -> None:
    disk.mishap = Mishap(1)
    with pytest.raises(Crash):
        folder.replace("logs/a.mseal", b"half")
    disk.mishap = None
    for name in ("logs/b.mseal", "logs/notes.new", "logs/.hidden"):
        disk.write(folder.path / name, 0, b"kept")
    folder.take_over()
    assert disk.names(folder.path / "logs") == [".hidden", "b.mseal", "notes.new"]


def test_names_that_a_killed_process_left_are_made_durable(folder: VaultFolder, disk: CrashDisk) -> None:
    disk.mishap = Mishap(3)
    with pytest.raises(Crash, match="sync_folder"):
        folder.replace("keyring/2.mseal", b"new")
    disk.mishap = None
    VaultFolder(folder.path, disk).take_over()
    assert VaultFolder(folder.path, disk.after_crash(ALL_LOST)).read("keyring/2.mseal") == b"new"


def test_folder_that_was_deleted_is_made_anew(folder: VaultFolder, disk: CrashDisk) -> None:
    disk.remove_folder(folder.path / "cache")
    folder.take_over()
    assert VaultFolder(folder.path, disk.after_crash(ALL_LOST)).stems("cache") == []
    assert "cache" in disk.after_crash(ALL_LOST).names(folder.path)


def test_stems_are_the_names_of_sealed_files_alone(folder: VaultFolder, disk: CrashDisk) -> None:
    for name in ("b.mseal", "a.mseal", "a.mseal.bak", ".a.mseal.new", "mseal"):
        disk.write(folder.path / "logs" / name, 0, b"")
    assert folder.stems("logs") == ["a", "b"]


def test_creation_that_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    mishap = Mishap(-1)
    while mishap.happened or mishap.step < 0:
        disk = CrashDisk(tmp_path)
        mishap = disk.mishap = Mishap(mishap.step + 1, DiskError)
        try:
            VaultFolder.create(tmp_path / "v", disk, "t", lambda folder: folder.replace("device.mseal", b"x"))
            left = ["v"]
        except DiskError:
            left = []
        assert disk.names(tmp_path) == left


def test_creation_over_anything_is_refused_and_leaves_it(disk: CrashDisk, folder: VaultFolder) -> None:
    before = disk.files()
    with pytest.raises(VaultExists):
        VaultFolder.create(folder.path, disk, "token", lambda folder: None)
    assert disk.files() == before


def test_lock_without_its_folder_is_a_disk_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="cannot be locked"):
        VaultLock(tmp_path / "file" / "lock")
