"""A crash at any step leaves kept sessions as they were or as they were to be, and what an erase ended stays ended."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memseal.vault.vault import Vault
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice, Crash, CrashDisk, Mishap
from tests.vault.small_vault import everything, new_folder, open_vault, power_off

FATES = pytest.mark.parametrize("fate", [ALL_KEPT, ALL_LOST], ids=["all kept", "all lost"])
Do = Callable[[Vault], object]
Kept = dict[str, int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


def disk_of(path: Path, *sessions: str) -> CrashDisk:
    """A closed vault with one memory and these sessions."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        vault.remember("to be erased", source="test")
        for name in sessions:
            keep(name, 1)(vault)
    return disk


def keep(name: str, turn: int) -> Do:
    return lambda vault: vault.keep_session(name, {"turn": turn}, vault.session_fence())


def erase(vault: Vault) -> None:
    vault.erase(vault.list()[0].id)


def crashes(path: Path, disk: CrashDisk, do: Do, fate: Choice) -> Iterator[CrashDisk]:
    """Yield the disk as each crash within a change leaves it."""
    step = 0
    while True:
        broken = disk.copy()
        vault = open_vault(path, broken)
        broken.mishap = Mishap(broken.changed + step)
        try:
            do(vault)
        except Crash:
            power_off(vault)
            yield broken.after_crash(fate)
            step += 1
            continue
        power_off(vault)
        assert step
        return


def kept(vault: Vault) -> Kept:
    sessions = {name: vault.kept_session(name) or {} for name in vault.kept_sessions()}
    return {name: session["turn"] for name, session in sessions.items()}


def left(path: Path, disk: CrashDisk) -> Kept:
    """The sessions after a crash, in a vault that is whole and keeps another one."""
    with open_vault(path, disk, read_only=True) as reader:
        seen = kept(reader)
    with open_vault(path, disk) as vault:
        assert vault.verify() == []
        assert kept(vault) == seen
        keep("later", 9)(vault)
        assert kept(vault) == {**seen, "later": 9}
    return seen


@FATES
def test_session_is_there_or_not_after_a_crash(path: Path, fate: Choice) -> None:
    for disk in crashes(path, disk_of(path), keep("chat", 1), fate):
        assert left(path, disk) in ({}, {"chat": 1})


@FATES
def test_session_that_is_replaced_is_the_old_or_the_new_one_after_a_crash(path: Path, fate: Choice) -> None:
    for disk in crashes(path, disk_of(path, "chat", "other"), keep("chat", 2), fate):
        assert left(path, disk) in ({"chat": 1, "other": 1}, {"chat": 2, "other": 1})


@FATES
def test_forgotten_session_is_there_or_not_after_a_crash(path: Path, fate: Choice) -> None:
    for disk in crashes(path, disk_of(path, "chat"), lambda vault: vault.forget_session("chat"), fate):
        assert left(path, disk) in ({}, {"chat": 1})


@FATES
def test_no_session_outlives_an_erase_that_a_crash_cut_short(path: Path, fate: Choice) -> None:
    before = disk_of(path, "chat")
    files = {name: content for name, content in before.files().items() if name.parent.name == "sessions"}
    for disk in crashes(path, before, erase, fate):
        with open_vault(path, disk) as vault:
            is_erased = not everything(vault)
            assert kept(vault) == ({} if is_erased else {"chat": 1})
            if not is_erased:
                continue
            for name, content in files.items():  # a copy from before
                disk.write(name, 0, content)
            keep("later", 9)(vault)
            assert kept(vault) == {"later": 9}
