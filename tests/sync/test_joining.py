"""Joins that are cut short, whatever they were begun with: no entry is left without its device."""

import contextlib
from itertools import count
from pathlib import Path

import pytest

from memseal.errors import RemoteUnreachable
from memseal.format.kit import parse_kit, parse_recovery_code
from memseal.vault.keys import revoking
from memseal.vault.keys.joining import join_with, resume
from memseal.vault.keys.proving import KitOpener, Opener, RecoveryOpener
from tests.sync.devices import Device, first_device
from tests.sync.memory_remote import ADDRESS, Break, MemoryRemote
from tests.vault.crash_disk import ALL_LOST, CrashDisk
from tests.vault.small_vault import PASSPHRASE, open_vault, stretch_of

NEW = ".phone.joining"


@pytest.fixture
def remote() -> MemoryRemote:
    return MemoryRemote()


@pytest.fixture
def one(tmp_path: Path, remote: MemoryRemote) -> Device:
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.vault.remember("a memory", source="test")
        one.sync()
    return one


def opener_of(one: Device, kind: str) -> Opener:
    if kind == "kit":
        return KitOpener(parse_kit(one.vault.emergency_kit), stretch_of(PASSPHRASE))
    return RecoveryOpener(parse_recovery_code(one.vault.new_recovery_code()))


@pytest.mark.parametrize("moment", Break)
@pytest.mark.parametrize("kind", ["kit", "code"])
def test_join_broken_off_at_any_exchange_is_one_device_when_tried_again(
    kind: str, moment: Break, tmp_path: Path, remote: MemoryRemote, one: Device
) -> None:
    with remote.connected():
        opener = opener_of(one, kind)
        one.close()
    path = tmp_path / "phone"
    path.mkdir()
    for number in count():
        there, disk = remote.copy(), CrashDisk(tmp_path)
        with there.connected():
            there.breaks = {number: moment}
            with contextlib.suppress(RemoteUnreachable):
                join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
            never_broke = bool(there.breaks)
            there.breaks.clear()
            disk = disk.after_crash(ALL_LOST)
            if disk.is_free(path):
                join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
            with open_vault(path, disk) as phone:
                phone.sync(ADDRESS)
                assert [memory.content for memory in phone.list()] == ["a memory"]
                assert [device.name for device in phone.devices()] == ["laptop", "phone"]
            assert disk.read(tmp_path / NEW) is None
        if never_broke:
            return


def test_join_that_was_done_is_finished_with_the_passphrase_alone(
    tmp_path: Path, remote: MemoryRemote, one: Device
) -> None:
    path, disk = tmp_path / "phone", CrashDisk(tmp_path)
    path.mkdir()
    with remote.connected():
        opener = opener_of(one, "kit")
        assert resume(path, disk, stretch_of(PASSPHRASE)) is None
        remote.breaks = {1: Break.AFTER}  # the version is there, and nobody heard
        with pytest.raises(RemoteUnreachable):
            join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
        assert len(remote.versions) == 2
        assert resume(path, disk, stretch_of("another passphrase")) is None
        one.vault.sync(ADDRESS)
        one.vault.new_recovery_code()
        folder = resume(path, disk, stretch_of(PASSPHRASE))
        assert folder is not None
        with open_vault(path, disk) as phone:
            phone.sync(ADDRESS)
            assert [device.status for device in phone.devices()] == ["active", "this"]
    one.close()


def test_join_that_never_reached_the_server_leaves_keys_that_count_nowhere(
    tmp_path: Path, remote: MemoryRemote, one: Device
) -> None:
    path, disk = tmp_path / "phone", CrashDisk(tmp_path)
    path.mkdir()
    with remote.connected():
        opener = opener_of(one, "kit")
        remote.breaks = {1: Break.BEFORE}
        with pytest.raises(RemoteUnreachable):
            join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
        assert disk.read(tmp_path / NEW) is not None
        assert resume(path, disk, stretch_of(PASSPHRASE)) is None
        assert len(remote.versions) == 1
        # A damaged file of a join is as none.
        disk.write(tmp_path / NEW, 0, b"x")
        join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
        assert len(remote.versions) == 2
    one.close()


def test_join_that_was_cut_short_and_whose_device_was_removed_is_begun_anew(
    tmp_path: Path, remote: MemoryRemote, one: Device
) -> None:
    path, disk = tmp_path / "phone", CrashDisk(tmp_path)
    path.mkdir()
    with remote.connected():
        opener = opener_of(one, "kit")
        remote.breaks = {1: Break.AFTER}
        with pytest.raises(RemoteUnreachable):
            join_with(path, disk, opener, stretch_of(PASSPHRASE), ADDRESS, "phone")
        one.sync()
        with one.vault._writing() as opened:
            revoking.revoke(opened, "phone", stretch_of(PASSPHRASE), None, None)
        join_with(path, disk, opener_of(one, "kit"), stretch_of(PASSPHRASE), ADDRESS, "phone")
        one.sync()
        assert [device.status for device in one.vault.devices()] == ["this", "ended", "active"]
        assert disk.read(tmp_path / NEW) is None
    one.close()
