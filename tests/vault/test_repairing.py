"""A damaged vault is copied: a plan first, all that can be read is in the copy, the rest is named, the source stays."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import DeviceFileDamaged, DiskError, DiskFull, FormatError, VaultBusy, VaultExists
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, places
from memseal.memory.memory import State
from memseal.store.folder import VaultFolder
from memseal.vault.checkpoint import parts
from memseal.vault.copies import repairing
from memseal.vault.copies.repairing import Repair, repair
from memseal.vault.copies.surveying import FilePlan, RepairPlan
from memseal.vault.folder import logbook, opening
from memseal.vault.writes import writing
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Crash, CrashDisk, Mishap
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault, stretch_of

ROOT = Path(__file__).parent.parent.parent
BEGUN = 8  # records of the first log that the checkpoint holds
Damage = Callable[[CrashDisk], None]


@dataclass(frozen=True)
class World:
    """A closed vault that has a checkpoint of several parts and two logs after it, and where its copy goes."""

    path: Path
    copy: Path
    disk: CrashDisk
    first: Path
    second: Path

    def files(self, disk: CrashDisk) -> dict[Path, bytes]:
        return {name: content for name, content in disk.files().items() if name.is_relative_to(self.path)}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> World:
    path = tmp_path_factory.mktemp("repairing") / "vault"
    path.mkdir()
    copy = path.with_name("copy")
    copy.mkdir()
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_RECORD_BYTES", 600)
        patch.setattr(opening, "_CACHE_WORTH", 1)
        patch.setattr(parts, "_RECORD_BYTES", 600)
        patch.setattr(parts, "_ROOM", 3000)
        with open_vault(path, disk) as vault:
            for number in range(8):
                vault.remember(f"covered {number}", source="test", embedding=[1, number, 0])
            vault.compact()
            book = vault._opened.logbook
            (first,) = book.logs.values()
            kept = vault.remember("first before", source="test", tags=["a"])
            many = [{"content": f"first {n} of many", "source": "test"} for n in range(6)]
            vault.remember_many(many, embeddings=[[1, 1, n] for n in range(6)])
            vault.remember("first after", source="test", embedding=[0, 0, 1])
            first.appendable = False
            vault.retract(kept.id, reason="for the test")
            vault.supersede(vault.remember("second before", source="test").id, "second after", source="test")
            (second,) = (log for log in book.logs.values() if log is not first)
            names = path / first.name, path / second.name
    disk.remove(path / "lock")
    return World(path, copy, disk.copy(), *names)


def flip(disk: CrashDisk, name: Path, position: int) -> None:
    content = bytearray(disk.read(name) or b"")
    content[position] ^= 1
    disk.write(name, 0, bytes(content))


def body(disk: CrashDisk, name: Path, number: int) -> int:
    """Return an offset within a record's body, by its number in the file."""
    content, begin = memoryview(disk.read(name) or b""), PREAMBLE_SIZE
    if bytes(content[begin : begin + 4]) == b"\xff\xff\xff\xff":
        begin += 60
    index = int.from_bytes(content[begin + 4 : begin + 8], "big")
    return places(content, begin, index)[number].offset + HEADER_SIZE + 40


def repaired(world: World, disk: CrashDisk, plans: list[RepairPlan] | None = None) -> Repair | None:
    plans = [] if plans is None else plans

    def agree(plan: RepairPlan) -> bool:
        plans.append(plan)
        return True

    return repair(VaultFolder(world.path, disk), world.copy, stretch_of(PASSPHRASE), agree)


def digest_of(path: Path, disk: CrashDisk) -> bytes:
    with open_vault(path, disk, read_only=True) as vault:
        return vault.state_digest()


def damage_to(world: World, name: str) -> Damage:
    """Return one kind of damage by its name."""
    first, second = world.first, world.second
    part = sorted(each for each in world.disk.files() if each.parent.name == "parts")[0]
    [manifest] = [each for each in world.disk.files() if each.parent.name == "checkpoints"]
    device, cache = world.path / "device.mseal", world.path / "cache" / "view.mseal"
    length = world.disk.size(first) or 0

    def several(disk: CrashDisk) -> None:
        flip(disk, first, body(disk, first, 2))
        flip(disk, second, body(disk, second, 1))
        flip(disk, part, body(disk, part, 0))

    kinds: dict[str, Damage] = {
        "first record of a log": lambda disk: flip(disk, first, body(disk, first, 0)),
        "record within a write of several": lambda disk: flip(disk, first, body(disk, first, 2)),
        "header of a record": lambda disk: flip(disk, first, body(disk, first, 1) - 40 - HEADER_SIZE),
        "last record of a log": lambda disk: flip(disk, first, length - 30),
        "last record of the newest log": lambda disk: flip(disk, second, body(disk, second, 2)),
        "log cut short": lambda disk: disk.write(first, length - 1500, b""),
        "bytes cut out of a log": lambda disk: disk.write(first, 900, (disk.read(first) or b"")[1000:]),
        "preamble of a log": lambda disk: flip(disk, second, 50),
        "base of a log": lambda disk: flip(disk, first, PREAMBLE_SIZE + 20),
        "log missing": lambda disk: disk.remove(second),
        "log with a base missing": lambda disk: disk.remove(first),
        "record of a part": lambda disk: flip(disk, part, body(disk, part, 0)),
        "preamble of a part": lambda disk: flip(disk, part, 20),
        "part missing": lambda disk: disk.remove(part),
        "manifest": lambda disk: flip(disk, manifest, 200),
        "manifest missing": lambda disk: disk.remove(manifest),
        "marks in the device file": lambda disk: flip(disk, device, (disk.size(device) or 0) - 30),
        "cache": lambda disk: flip(disk, cache, 500),
        "several at once": several,
    }
    return kinds[name]


KINDS = [
    "first record of a log", "record within a write of several", "header of a record", "last record of a log",
    "last record of the newest log", "log cut short", "bytes cut out of a log", "preamble of a log", "base of a log",
    "log missing", "log with a base missing", "record of a part", "preamble of a part", "part missing", "manifest",
    "manifest missing", "marks in the device file", "cache", "several at once",
]  # fmt: skip


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_copy_holds_what_the_damaged_vault_served_and_nothing_is_wrong_with_it(
    lived: World, kind: str, cached: bool
) -> None:
    disk = lived.disk.copy()
    damage_to(lived, kind)(disk)
    if not cached and kind != "cache":
        disk.remove(lived.path / "cache" / "view.mseal")
    before, served = lived.files(disk), digest_of(lived.path, disk)
    done = repaired(lived, disk)
    assert lived.files(disk) == before
    assert done is not None
    assert done.plan.damage
    assert done.findings == ()
    assert done.same_state
    with open_vault(lived.copy, disk) as copy:
        assert copy.state_digest() == served
        assert [*copy.status().findings, *copy.verify()] == []
        assert copy.count(state="all") == done.memories == done.plan.memories


# ── the plan ────────────────────────────────────────────────────────────────────────────────────────


def planned(world: World, disk: CrashDisk) -> RepairPlan:
    plans = list[RepairPlan]()

    def refuse(plan: RepairPlan) -> bool:
        plans.append(plan)
        return False

    assert repair(VaultFolder(world.path, disk), world.copy, stretch_of(PASSPHRASE), refuse) is None
    [plan] = plans
    return plan


def test_plan_names_file_and_record_and_counts_what_is_kept_saved_and_lost(lived: World) -> None:
    disk = lived.disk.copy()
    flip(disk, lived.first, body(disk, lived.first, 2))
    plan = planned(lived, disk)
    name = str(lived.first.relative_to(lived.path))
    [finding] = plan.damage
    assert (finding.code, finding.where) == ("record_sealed", f"{name}#{BEGUN + 2}")
    # Record 1 begins the write that is damaged: the copy ends before it.
    assert plan.files == (FilePlan(name, "cut", 1, 3, 1),)
    assert (plan.memories, plan.server, plan.remotes) == (16, "", ())


def test_nothing_is_written_without_agreement(lived: World) -> None:
    disk = lived.disk.copy()
    flip(disk, lived.first, body(disk, lived.first, 2))
    before = disk.files()
    planned(lived, disk)
    assert disk.files() == before


def test_plan_counts_the_records_of_a_part_that_are_lost_without_a_cache(lived: World) -> None:
    disk = lived.disk.copy()
    damage_to(lived, "record of a part")(disk)
    assert [each.lost for each in planned(lived, disk).files] == [0]
    disk.remove(lived.path / "cache" / "view.mseal")
    assert [each.lost for each in planned(lived, disk).files] == [1]


def test_sound_vault_needs_no_copy(lived: World) -> None:
    plans = list[RepairPlan]()
    assert repaired(lived, lived.disk.copy(), plans) is None
    assert plans == []


def test_write_that_was_not_finished_is_no_damage(lived: World) -> None:
    disk = lived.disk.copy()
    disk.write(lived.second, disk.size(lived.second) or 0, bytes(5))
    assert repaired(lived, disk) is None


def test_log_that_the_checkpoint_covers_whole_loses_nothing(lived: World) -> None:
    disk = lived.disk.copy()
    with open_vault(lived.path, disk) as vault:
        vault.compact()
    flip(disk, lived.first, 20)
    assert planned(lived, disk).files == (FilePlan(f"logs/{lived.first.name}", "left out", 0, 0, 0),)


def test_vault_that_is_open_for_writing_is_busy(lived: World) -> None:
    disk = lived.disk.copy()
    with open_vault(lived.path, disk), pytest.raises(VaultBusy):
        repaired(lived, disk)


# ── what a copy cannot heal ─────────────────────────────────────────────────────────────────────────


def test_damaged_keyring_is_an_error_that_says_what_to_do(lived: World) -> None:
    disk = lived.disk.copy()
    newest = max(each for each in disk.files() if each.parent.name == "keyring")
    flip(disk, newest, 400)
    with pytest.raises(FormatError, match="join again with the kit") as caught:
        repaired(lived, disk)
    assert caught.value.code.startswith(("keyring", "record"))


def test_missing_newest_keyring_version_is_an_error_that_says_what_to_do(lived: World) -> None:
    disk = lived.disk.copy()
    disk.remove(max(each for each in disk.files() if each.parent.name == "keyring"))
    with pytest.raises(FormatError, match="join again with the kit") as caught:
        repaired(lived, disk)
    assert caught.value.code == "keyring_missing"


def test_damaged_device_file_is_an_error_that_says_what_to_do(lived: World) -> None:
    disk = lived.disk.copy()
    flip(disk, lived.path / "device.mseal", 30)
    with pytest.raises(DeviceFileDamaged, match="join again"):
        repaired(lived, disk)


def test_copy_goes_nowhere_where_something_is(lived: World) -> None:
    disk = lived.disk.copy()
    damage_to(lived, "preamble of a log")(disk)
    disk.make_folder(lived.copy)
    disk.write(lived.copy / "note.txt", 0, b"mine")
    before = disk.files()
    with pytest.raises(VaultExists):
        repaired(lived, disk)
    assert disk.files() == before


def test_copy_does_not_go_into_the_vault_itself(lived: World) -> None:
    folder = VaultFolder(lived.path, lived.disk.copy())
    with pytest.raises(DiskError, match="outside"):
        repair(folder, lived.path / "copy", stretch_of(PASSPHRASE), lambda plan: True)


# ── life after it ───────────────────────────────────────────────────────────────────────────────────


def test_copy_goes_on_where_the_damaged_vault_ended(lived: World) -> None:
    disk = lived.disk.copy()
    damage_to(lived, "several at once")(disk)
    repaired(lived, disk)
    with open_vault(lived.copy, disk) as copy:
        copy.remember("after the repair", source="test")
        copy.compact()
    with open_vault(lived.copy, disk) as copy:
        assert "after the repair" in everything(copy)
        assert copy.verify() == []


def test_what_is_written_into_the_copy_comes_after_all_that_was_saved(lived: World) -> None:
    disk = lived.disk.copy()
    disk.remove(lived.path / "cache" / "view.mseal")
    flip(disk, lived.second, body(disk, lived.second, 1))
    repaired(lived, disk)
    with open_vault(lived.copy, disk) as copy:
        [retracted] = copy.list(state="retracted")
        copy.restore(retracted.id)
        assert everything(copy)["first before"] is State.ACTIVE


def test_copy_of_a_vault_with_several_writes_behind_the_damage_is_written_in_pieces(
    lived: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "_WRITE_RECORDS", 1)
    monkeypatch.setattr(repairing, "_COPIED", 700)
    monkeypatch.setattr(logbook, "_PIECE", 1500)
    disk = lived.disk.copy()
    damage_to(lived, "several at once")(disk)
    served = digest_of(lived.path, disk)
    done = repaired(lived, disk)
    assert done is not None
    assert (done.same_state, done.findings) == (True, ())
    assert digest_of(lived.copy, disk) == served


def test_copy_finishes_an_erase_that_the_damage_held_back(lived: World) -> None:
    disk = lived.disk.copy()
    flip(disk, lived.first, body(disk, lived.first, 0))
    with open_vault(lived.path, disk) as vault:
        [secret] = [each for each in vault.list(limit=100) if each.content == "first after"]
        assert not vault.erase(secret.id).done  # the damaged record holds it back
    done = repaired(lived, disk)
    assert done is not None
    assert (done.same_state, done.findings) == (True, ())
    with open_vault(lived.copy, disk) as copy:
        assert [erasure.done for erasure in copy.erasures()] == [True]
        assert "first after" not in everything(copy)


# ── stopped ─────────────────────────────────────────────────────────────────────────────────────────


def test_crash_at_any_step_leaves_the_vault_as_it_was_and_no_half_copy(lived: World) -> None:
    damaged = lived.disk.copy()
    damage_to(lived, "several at once")(damaged)
    before, whole = lived.files(damaged), damaged.copy()
    repaired(lived, whole)
    for step in range(0, whole.changed, 5):
        disk = damaged.copy()
        disk.mishap = Mishap(step)
        with pytest.raises(Crash):
            repaired(lived, disk)
        for fate in (ALL_KEPT, ALL_LOST):
            found = disk.after_crash(fate)
            assert lived.files(found) == before
            assert not found.names(lived.copy) or digest_of(lived.copy, found)


def test_full_disk_leaves_the_vault_as_it_was_and_nothing_else(lived: World) -> None:
    damaged = lived.disk.copy()
    damage_to(lived, "several at once")(damaged)
    before, whole = damaged.files(), damaged.copy()
    repaired(lived, whole)
    for step in range(0, whole.changed - 2, 11):
        disk = damaged.copy()
        disk.mishap = Mishap(step, DiskFull)
        with pytest.raises(DiskFull):
            repaired(lived, disk)
        assert disk.files() == before


@pytest.mark.skipif(os.name == "nt", reason="no process is killed there as -9 kills one")
@pytest.mark.parametrize("steps", [1, 12, 30, 60])
def test_killed_repair_leaves_the_vault_as_it_was_and_no_half_copy(lived: World, tmp_path: Path, steps: int) -> None:
    damaged = lived.disk.copy()
    damage_to(lived, "several at once")(damaged)
    source, target = tmp_path / "vault", tmp_path / "copy"
    for name, content in lived.files(damaged).items():
        place = source / name.relative_to(lived.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    before = {name: name.read_bytes() for name in source.rglob("*") if name.is_file()}
    command = [sys.executable, "-m", "tests.vault.repairing_process", str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(steps)]
        process.kill()
    assert said[-1].startswith(b"change")
    assert {name: name.read_bytes() for name in source.rglob("*") if name.is_file()} == before
    assert not target.exists() or open_vault(target, read_only=True).verify() == []
