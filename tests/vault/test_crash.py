"""The machine stops, the disk fails or is full: at every step, nothing acknowledged is lost and nothing half-counts."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest

from memseal.errors import DiskError, DiskFull, PassphraseWrong
from memseal.memory.memory import State
from memseal.store.folder import VaultFolder
from memseal.vault.folder import opening
from memseal.vault.keys import passphrases, rekeying
from memseal.vault.vault import Vault
from memseal.vault.writes import writing
from tests.profile import THOROUGH
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice, CrashDisk, Fate, LazyDisk, Mishap, NotingDisk
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, power_off, stretch_of

NEW_PASSPHRASE = "a new passphrase"
KILLS, FRESH_KILLS = (200, 30) if THOROUGH else (60, 10)
FATES = {"all-lost": (Fate.LOST, 0), "all-kept": (Fate.KEPT, 0), "seed-1": (None, 1), "seed-2": (None, 2)}

States = dict[str, State]
FIRST: States = {"it began": State.ACTIVE, "it went on": State.ACTIVE, "it was wrong": State.RETRACTED}
MANY = {f"one of many, the {n}th": State.ACTIVE for n in range(9)}


@dataclass(frozen=True)
class Story:
    """Something done with an open vault, and what the memories are once it has returned."""

    do: Callable[[Vault], object]
    after: States


def _many(vault: Vault) -> object:
    items = [{"content": content, "source": "test"} for content in MANY]
    return vault.remember_many(items, embeddings=[[1.0, n, 0, 0] for n in range(len(items))])


def _id_of(vault: Vault, content: str) -> str:
    return next(memory.id for memory in vault.list(state="all") if memory.content == content)


def _change(vault: Vault) -> None:
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW_PASSPHRASE), NEW_PASSPHRASE, None)


def _new_kit(vault: Vault) -> None:
    with vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(PASSPHRASE), None)


STORIES = {
    "remember": Story(lambda vault: vault.remember("a", source="test"), {**FIRST, "a": State.ACTIVE}),
    "remember_many": Story(_many, {**FIRST, **MANY}),
    "supersede": Story(
        lambda vault: vault.supersede(_id_of(vault, "it began"), "it began late", source="test"),
        {**FIRST, "it began": State.SUPERSEDED, "it began late": State.ACTIVE},
    ),
    "retract": Story(
        lambda vault: vault.retract(_id_of(vault, "it went on"), reason="test"),
        {**FIRST, "it went on": State.RETRACTED},
    ),
    "close": Story(lambda vault: vault.close(), FIRST),
    "change_passphrase": Story(_change, FIRST),
    "new_kit": Story(_new_kit, FIRST),
    "new_recovery_code": Story(lambda vault: vault.new_recovery_code(), FIRST),
    "rekey": Story(lambda vault: vault.rekey(), FIRST),
    "compact": Story(lambda vault: vault.compact(), FIRST),
    "compact again": Story(
        lambda vault: (vault.compact(), vault.remember("a", source="test"), vault.compact()),
        {**FIRST, "a": State.ACTIVE},
    ),
    "erase": Story(
        lambda vault: vault.erase(_id_of(vault, "it began")),
        {"it went on": State.ACTIVE, "it was wrong": State.RETRACTED},
    ),
}


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few memories fill several records, and any log be worth a cache."""
    monkeypatch.setattr(writing, "_RECORD_BYTES", 600)
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The vault's path; a real folder for the lock, the files are on the crash disk."""
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


@pytest.fixture
def disk(path: Path) -> CrashDisk:
    """A disk with a vault that was closed in order."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        for content, state in FIRST.items():
            memory = vault.remember(content, source="test", embedding=[1, 0, 0, 1])
            if state is State.RETRACTED:
                vault.retract(memory.id, reason="test")
    return disk.after_crash(ALL_LOST)


# ── the machine stops ───────────────────────────────────────────────────────────────────────────────


def steps_of(disk: CrashDisk, do: Callable[[CrashDisk], object]) -> Iterable[tuple[CrashDisk, bool]]:
    """Yield the disk as each step of an act finds it, and as the last one leaves it; and whether the act had returned.

    The act is done once. What a machine that stopped had is not what an exception leaves: no handler ran there.
    """
    noting = NotingDisk(disk)
    do(noting)
    yield from ((stopped, False) for stopped in noting.before)
    yield noting, True


def crashes_of(disk: CrashDisk, do: Callable[[CrashDisk], object], choice: Choice) -> Iterable[tuple[CrashDisk, bool]]:
    """Yield the disk as a crash at each step of an act leaves it, each once; and whether the act had returned."""
    seen = set[object]()
    for stopped, returned in steps_of(disk, do):
        found = stopped.after_crash(choice)
        if (content := (found.all_there(), returned)) not in seen:
            seen.add(content)
            yield found, returned


def killed_at(disk: CrashDisk, do: Callable[[CrashDisk], object]) -> Iterable[CrashDisk]:
    """Yield the disk as a process that is killed at a step leaves it, once for what is seen and is durable of it."""
    seen = set[object]()
    for stopped, _ in steps_of(disk, do):
        if (content := (stopped.all_there(), stopped.after_crash(ALL_LOST).all_there())) not in seen:
            seen.add(content)
            yield stopped


def _acted(path: Path, story: Story) -> Callable[[CrashDisk], None]:
    def act(disk: CrashDisk) -> None:
        vault = open_vault(path, disk)
        try:
            story.do(vault)
        finally:
            power_off(vault)

    return act


def _passphrase_of(path: Path, disk: CrashDisk) -> tuple[str, States]:
    """Return the only passphrase that opens the vault, and what is seen by who only reads."""
    good = dict[str, States]()
    for each in (PASSPHRASE, NEW_PASSPHRASE):
        with contextlib.suppress(PassphraseWrong), open_vault(path, disk, each, read_only=True) as vault:
            good[each] = everything(vault)
    ((passphrase, seen),) = good.items()
    return passphrase, seen


def _is_well(path: Path, disk: CrashDisk, *allowed: States) -> None:
    """Check what is there, that it can be written to, and that this outlives the next crash."""
    passphrase, found = _passphrase_of(path, disk)
    assert found in allowed
    vault = open_vault(path, disk, passphrase)
    assert everything(vault) == found
    vault.remember("written afterwards", source="test")
    power_off(vault)
    disk = disk.after_crash(ALL_LOST)
    with open_vault(path, disk, passphrase) as vault:
        assert everything(vault) == {**found, "written afterwards": State.ACTIVE}
    with open_vault(path, disk.after_crash(ALL_LOST), passphrase) as vault:
        assert everything(vault) == {**found, "written afterwards": State.ACTIVE}
        assert "local_rollback" not in {finding.code for finding in vault.status().findings}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("story", STORIES)
def test_crash_at_every_step_leaves_the_state_before_or_after(
    story: str, fate: str, disk: CrashDisk, path: Path
) -> None:
    told = STORIES[story]
    for found, returned in crashes_of(disk, _acted(path, told), Choice(*FATES[fate])):
        _is_well(path, found, *([told.after] if returned else [FIRST, told.after]))


@pytest.mark.parametrize("torn", ["cut", "zeros", "first half of many"])
def test_crash_while_a_torn_write_is_cleared_away_loses_nothing(torn: str, disk: CrashDisk, path: Path) -> None:
    log = next(name for name in disk.files() if name.parent.name == "logs")
    end = disk.size(log) or 0
    many = disk.copy()
    vault = open_vault(path, many)
    _many(vault)
    power_off(vault)
    written = (many.read(log) or b"")[end:]
    left = {"cut": written[:700], "zeros": bytes(1500), "first half of many": written[: len(written) // 2]}[torn]
    disk.write(log, end, left)
    disk = disk.copy()
    with open_vault(path, disk.copy()) as vault:
        assert {finding.code for finding in vault.status().findings} <= {"record_torn", "record_header"}
    story = STORIES["remember"]
    for choice in (ALL_LOST, ALL_KEPT, Choice(None, 7)):
        for found, returned in crashes_of(disk, _acted(path, story), choice):
            _is_well(path, found, *([story.after] if returned else [FIRST, story.after]))


@pytest.mark.parametrize("fate", FATES)
def test_crash_while_a_vault_is_made_leaves_a_whole_one_or_none(fate: str, path: Path) -> None:
    there = set[bool]()
    make = partial(new_folder, path)
    for found, returned in crashes_of(CrashDisk(path.parent), make, Choice(*FATES[fate])):
        there.add(VaultFolder(path, found).exists())
        assert VaultFolder(path, found).exists() or not returned
        if not VaultFolder(path, found).exists():
            assert found.is_free(path)
            new_folder(path, found)
        _is_well(path, found, {})
    assert there == {True, False}


def test_acknowledged_memory_is_lost_where_the_disk_does_not_sync(disk: CrashDisk, path: Path) -> None:
    """The crash disk bites: without its fsync, the same write is lost."""
    lazy = LazyDisk(disk)
    vault = open_vault(path, lazy)
    vault.remember("a", source="test")
    power_off(vault)
    assert "a" not in _passphrase_of(path, lazy.after_crash(ALL_LOST))[1]


def test_new_log_is_lost_where_the_disk_does_not_sync_names(path: Path) -> None:
    """The crash disk bites: without the fsync of the folder, a synced file has no name."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    lazy = LazyDisk(disk, content=True)
    vault = open_vault(path, lazy)
    vault.remember("a", source="test")
    power_off(vault)
    assert _passphrase_of(path, lazy.after_crash(ALL_LOST))[1] == {}


# ── the disk fails once ─────────────────────────────────────────────────────────────────────────────


ERRORS: dict[str, type[DiskError]] = {"EIO": DiskError, "ENOSPC": DiskFull}
MORE_FAILURES = [("EIO", 1), ("ENOSPC", 0)] if THOROUGH else []


def _next_failure(disk: CrashDisk, last: Mishap, error: str) -> Mishap:
    """Let the disk fail at the change after the one where it failed last; it has no room for writes alone."""
    step = max(disk.changed, last.step + 1)
    disk.mishap = Mishap(step, ERRORS[error], of_writes=error == "ENOSPC")
    return disk.mishap


# At every other step the vault is closed afterwards, or the power is cut at once; of a write with each error once.
@pytest.mark.parametrize(("error", "first"), [("EIO", 0), ("ENOSPC", 1), *MORE_FAILURES])
@pytest.mark.parametrize("story", STORIES)
def test_one_failure_of_the_disk_is_over_after_the_next_good_write(
    story: str, error: str, first: int, disk: CrashDisk, path: Path
) -> None:
    told, mishap = STORIES[story], Mishap(-1)
    while mishap.happened or mishap.step < 0:
        failing = disk.copy()
        vault = open_vault(path, failing)
        mishap = _next_failure(failing, mishap, error)
        allowed = [told.after]
        try:
            told.do(vault)
        except ERRORS[error]:
            allowed = [FIRST, told.after]
        if not vault._closed:
            failing.mishap = None
            vault.remember("a good write", source="test")
            allowed = [{**states, "a good write": State.ACTIVE} for states in allowed]
            assert everything(vault) in allowed
            if (mishap.step + first) % 2:
                vault.close()
        power_off(vault)
        _is_well(path, failing.after_crash(ALL_LOST), *allowed)


@pytest.mark.parametrize("error", ERRORS)
def test_passphrase_change_that_failed_can_be_tried_again_at_once(error: str, disk: CrashDisk, path: Path) -> None:
    mishap = Mishap(-1)
    while mishap.happened or mishap.step < 0:
        failing = disk.copy()
        vault = open_vault(path, failing)
        mishap = _next_failure(failing, mishap, error)
        with contextlib.suppress(ERRORS[error]):
            _change(vault)
        # Once the device file is behind the new passphrase, the old one is wrong: the change is done.
        with contextlib.suppress(PassphraseWrong):
            _change(vault)
        power_off(vault)
        found = failing.after_crash(ALL_LOST)
        with pytest.raises(PassphraseWrong):
            open_vault(path, found, PASSPHRASE)
        _is_well(path, found, FIRST)


@pytest.mark.parametrize("seed", range(12))
def test_write_of_several_records_torn_by_sectors_counts_whole_or_not_at_all(
    seed: int, disk: CrashDisk, path: Path
) -> None:
    story = STORIES["remember_many"]
    for found, returned in crashes_of(disk, _acted(path, story), Choice(Fate.SCATTERED, seed)):
        assert _passphrase_of(path, found)[1] in ([story.after] if returned else [FIRST, story.after])


def test_unfinished_write_of_several_records_does_not_come_back_with_new_keys(disk: CrashDisk, path: Path) -> None:
    log = next(name for name in disk.files() if name.parent.name == "logs")
    end, torn = disk.size(log) or 0, disk.copy()
    vault = open_vault(path, torn)
    _many(vault)
    power_off(vault)
    written = (torn.read(log) or b"")[end:]
    disk.write(log, end, written[: len(written) // 2])
    with open_vault(path, disk) as vault:
        _change(vault)
        assert everything(vault) == FIRST
    with open_vault(path, disk, NEW_PASSPHRASE) as vault:
        assert everything(vault) == FIRST


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("fate", FATES)
def test_first_write_of_a_vault_that_failed_is_durable_when_tried_again(error: str, fate: str, path: Path) -> None:
    choice = Choice(*FATES[fate])
    empty = CrashDisk(path.parent)
    new_folder(path, empty)
    mishap = Mishap(-1)
    while mishap.happened or mishap.step < 0:
        disk = empty.copy()
        vault = open_vault(path, disk)
        mishap = _next_failure(disk, mishap, error)
        with contextlib.suppress(ERRORS[error]):
            vault.remember("a", source="test")
        disk.mishap = None
        vault.remember("b", source="test")
        power_off(vault)
        assert "b" in _passphrase_of(path, disk.after_crash(choice))[1]


@pytest.mark.parametrize("story", STORIES)
def test_power_cut_after_a_killed_process_and_the_next_one_loses_nothing(
    story: str, disk: CrashDisk, path: Path
) -> None:
    """What the killed process had not synced, the next one sees, builds on, and must not lose."""
    for stopped in killed_at(disk, _acted(path, STORIES[story])):
        passphrase, seen = _passphrase_of(path, stopped)
        vault = open_vault(path, stopped, passphrase)
        vault.remember("by the next process", source="test")
        power_off(vault)
        found = stopped.after_crash(ALL_LOST)
        assert _passphrase_of(path, found) == (passphrase, {**seen, "by the next process": State.ACTIVE})


# ── a real process is killed ────────────────────────────────────────────────────────────────────────


@dataclass
class Writers:
    """A real process that begets writing processes, and what one of them acknowledged before it was killed."""

    process: subprocess.Popen[str]
    random: Random
    writing: int | None = None
    """The one that writes now."""

    def begin(self, path: Path, number: int, at_once: int) -> int:
        """Let one begin to write, and return its process id."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{at_once} {number} {path}\n")
        self.process.stdin.flush()
        (child,) = self.said()
        self.writing = child
        return child

    def said(self) -> list[int]:
        """Return the numbers of the next line: a write that was acknowledged, or none where the process has ended."""
        assert self.process.stdout is not None
        return [int(word) for word in self.process.stdout.readline().split()]

    def kill(self, child: int) -> list[int]:
        """Kill one, and return what it had acknowledged since it was last listened to."""
        os.kill(child, signal.SIGKILL)
        self.writing = None
        acknowledged = list[int]()
        while numbers := self.said():
            acknowledged += numbers
        return acknowledged

    def kill_one(self, path: Path, number: int, at_once: int) -> list[int]:
        """Let one write for a random time, kill it, and return the numbers that it had acknowledged."""
        child = self.begin(path, number, at_once)
        acknowledged = self.said() if self.random.randrange(2) else []
        select.select([], [], [], self.random.uniform(0, 0.02))
        return acknowledged + self.kill(child)


@pytest.fixture
def writers() -> Iterator[Writers]:
    command = [sys.executable, "-m", "tests.vault.writing_process"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        writers = Writers(process, Random(20))
        yield writers
        if writers.writing is not None:  # the test failed
            os.kill(writers.writing, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0


def _numbers(path: Path) -> list[int]:
    """Return the numbers of the memories that are there, each once."""
    with open_vault(path, read_only=True) as vault:
        assert {finding.code for finding in vault.status().findings} <= {"record_torn"}
        return sorted(int(content.removeprefix("number ")) for content in everything(vault))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_killed_writer_loses_nothing_acknowledged(writers: Writers, tmp_path: Path) -> None:
    new_folder(tmp_path / "v")
    there, at_once = list[int](), 1
    for _ in range(KILLS):
        acknowledged = writers.kill_one(tmp_path / "v", len(there), at_once)
        found = _numbers(tmp_path / "v")
        # Of the write that was under way, all may be there or nothing.
        assert found == list(range(len(found)))
        assert len(found) - len(there) - len(acknowledged) in (0, at_once)
        assert set(acknowledged) <= set(found)
        there, at_once = found, writers.random.choice((1, 3))
    with open_vault(tmp_path / "v") as vault:
        vault.remember("afterwards", source="test")
        assert vault.verify() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_reader_beside_a_writing_process_sees_all_that_was_acknowledged(writers: Writers, tmp_path: Path) -> None:
    new_folder(tmp_path / "v")
    child = writers.begin(tmp_path / "v", 0, 3)
    for _ in range(20):
        acknowledged = writers.said()
        found = _numbers(tmp_path / "v")
        assert found == list(range(len(found)))
        assert acknowledged[-1] in found
        assert len(found) % 3 == 0
    writers.kill(child)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_writer_killed_in_a_new_vault_loses_nothing_acknowledged(writers: Writers, tmp_path: Path) -> None:
    for number in range(FRESH_KILLS):
        path = tmp_path / f"v{number}"
        new_folder(path)
        at_once = writers.random.choice((1, 3))
        acknowledged = writers.kill_one(path, 0, at_once)
        found = _numbers(path)
        assert found == list(range(len(found)))
        assert len(found) - len(acknowledged) in (0, at_once)
