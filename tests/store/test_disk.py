"""What every `Disk` must do; a new one joins `DISKS`."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memseal.errors import DiskError
from memseal.store.disk import Disk, OsDisk
from tests.vault.crash_disk import CrashDisk

DISKS: dict[str, Callable[[Path], Disk]] = {"os": lambda root: OsDisk(), "crash": CrashDisk}


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return DISKS[request.param](tmp_path)


def test_written_bytes_are_read_back(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"0123456789")
    assert disk.read(tmp_path / "file") == b"0123456789"
    assert disk.read(tmp_path / "file", 3) == b"3456789"
    assert disk.read(tmp_path / "file", 3, 5) == b"34"
    assert disk.size(tmp_path / "file") == 10


@pytest.mark.parametrize(("start", "end"), [(0, 0), (5, 3), (10, 12), (12, 20), (20, None)])
def test_range_with_nothing_in_it_reads_as_no_bytes(disk: Disk, tmp_path: Path, start: int, end: int | None) -> None:
    disk.write(tmp_path / "file", 0, b"0123456789")
    assert disk.read(tmp_path / "file", start, end) == b""


def test_write_goes_on_at_its_offset_and_cuts_off_what_is_beyond(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"0123456789")
    disk.write(tmp_path / "file", 4, b"ab")
    assert disk.read(tmp_path / "file") == b"0123ab"
    disk.write(tmp_path / "file", 2, b"")
    assert disk.read(tmp_path / "file") == b"01"


def test_write_beyond_the_end_leaves_zeros_between(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 3, b"x")
    assert disk.read(tmp_path / "file") == b"\0\0\0x"


def test_write_of_nothing_makes_an_empty_file(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"")
    assert disk.read(tmp_path / "file") == b""
    assert disk.size(tmp_path / "file") == 0


def test_what_is_not_there_reads_as_none(disk: Disk, tmp_path: Path) -> None:
    assert disk.read(tmp_path / "file") is None
    assert disk.size(tmp_path / "file") is None
    assert disk.names(tmp_path / "folder") == []
    assert disk.read(tmp_path / "folder" / "file") is None


def test_nothing_is_beneath_a_file(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"x")
    assert disk.read(tmp_path / "file" / "inner") is None
    assert disk.size(tmp_path / "file" / "inner") is None
    assert disk.names(tmp_path / "file") == []


def test_names_are_sorted_and_of_both_kinds(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "b")
    for name in ("c", ".a", "B"):
        disk.write(tmp_path / name, 0, b"")
    assert disk.names(tmp_path) == [".a", "B", "b", "c"]


def test_rename_replaces_a_file(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "old", 0, b"old")
    disk.write(tmp_path / "new", 0, b"new")
    disk.rename(tmp_path / "new", tmp_path / "old")
    assert disk.read(tmp_path / "old") == b"new"
    assert disk.names(tmp_path) == ["old"]


def test_rename_takes_what_a_folder_holds_along(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "a")
    disk.write(tmp_path / "a" / "file", 0, b"x")
    disk.rename(tmp_path / "a", tmp_path / "b")
    assert disk.read(tmp_path / "b" / "file") == b"x"
    assert disk.names(tmp_path) == ["b"]


def test_sync_changes_nothing_that_is_seen(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"x")
    disk.sync(tmp_path / "file")
    disk.sync_folder(tmp_path)
    assert disk.read(tmp_path / "file") == b"x"
    assert disk.names(tmp_path) == ["file"]


def test_removing_what_is_not_there_is_no_error(disk: Disk, tmp_path: Path) -> None:
    disk.write(tmp_path / "file", 0, b"x")
    disk.remove(tmp_path / "file")
    disk.remove(tmp_path / "file")
    assert disk.names(tmp_path) == []


def test_folder_is_made_once_and_removed_empty(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "folder")
    disk.make_folder(tmp_path / "folder")
    disk.write(tmp_path / "folder" / "file", 0, b"")
    with pytest.raises(DiskError):
        disk.remove_folder(tmp_path / "folder")
    disk.remove(tmp_path / "folder" / "file")
    disk.remove_folder(tmp_path / "folder")
    assert disk.names(tmp_path) == []


def test_free_is_what_is_not_there_or_an_empty_folder(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "empty")
    disk.make_folder(tmp_path / "full")
    disk.write(tmp_path / "full" / "file", 0, b"")
    names = ("empty", "full", "nothing")
    assert [disk.is_free(tmp_path / name) for name in names] == [True, False, True]
    assert not disk.is_free(tmp_path / "full" / "file")


@pytest.mark.parametrize("there", ["nothing", "empty folder"])
def test_claim_of_a_free_path_moves_the_folder(disk: Disk, tmp_path: Path, there: str) -> None:
    disk.make_folder(tmp_path / "built")
    disk.write(tmp_path / "built" / "file", 0, b"x")
    if there == "empty folder":
        disk.make_folder(tmp_path / "wanted")
    assert disk.claim(tmp_path / "built", tmp_path / "wanted")
    assert disk.read(tmp_path / "wanted" / "file") == b"x"
    assert disk.names(tmp_path) == ["wanted"]


@pytest.mark.parametrize("there", ["file", "full folder"])
def test_claim_of_a_taken_path_changes_nothing(disk: Disk, tmp_path: Path, there: str) -> None:
    disk.make_folder(tmp_path / "built")
    disk.write(tmp_path / "built" / "file", 0, b"x")
    taken = tmp_path / "wanted"
    if there == "full folder":
        disk.make_folder(taken)
        taken = taken / "file"
    disk.write(taken, 0, b"theirs")
    assert not disk.claim(tmp_path / "built", tmp_path / "wanted")
    assert disk.read(tmp_path / "built" / "file") == b"x"
    assert disk.read(taken) == b"theirs"


@pytest.mark.parametrize(
    "act",
    [
        lambda disk, root: disk.write(root / "missing" / "file", 0, b"x"),
        lambda disk, root: disk.sync(root / "missing"),
        lambda disk, root: disk.sync_folder(root / "missing"),
        lambda disk, root: disk.rename(root / "missing", root / "other"),
        lambda disk, root: disk.claim(root / "missing", root / "other"),
        lambda disk, root: disk.make_folder(root / "missing" / "inner"),
        lambda disk, root: disk.remove_folder(root / "missing"),
        lambda disk, root: disk.read(root / "folder"),
        lambda disk, root: disk.write(root / "folder", 0, b"x"),
        lambda disk, root: disk.remove(root / "folder"),
        lambda disk, root: disk.make_folder(root / "file"),
    ],
    ids="write sync sync_folder rename claim make_folder remove_folder read-f write-f remove-f make-f".split(),
)
def test_what_cannot_be_done_is_a_disk_error_and_leaves_nothing(
    disk: Disk, tmp_path: Path, act: Callable[[Disk, Path], object]
) -> None:
    disk.make_folder(tmp_path / "folder")
    disk.write(tmp_path / "file", 0, b"x")
    with pytest.raises(DiskError) as caught:
        act(disk, tmp_path)
    assert caught.value.code == "disk"
    assert str(tmp_path) not in str(caught.value)
    assert disk.names(tmp_path) == ["file", "folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_only_the_owner_can_read_what_is_made(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        OsDisk().make_folder(tmp_path / "folder")
        OsDisk().write(tmp_path / "folder" / "file", 0, b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode) == 0o600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_full_disk_is_an_error_of_its_own() -> None:
    with pytest.raises(DiskError) as caught:
        OsDisk().write(Path("/dev/full"), 0, b"x")
    assert caught.value.code == "disk_full"
