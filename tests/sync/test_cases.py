"""Faults that other synchronised stores had, one test each: nothing is skipped, hidden or lost for good."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memseal.errors import MemsealError, RolledBack
from memseal.sync.messages import Answer, Content, GetKeyring, GetLog, GetObject, PutKeyring, PutSegment, Request
from tests.sync.devices import Device, first_device, joined_device
from tests.sync.memory_remote import MemoryRemote, StoredLog

Change = Callable[[], object]


@dataclass
class World:
    """Three devices of a vault that have synchronised, and their remote."""

    folder: Path
    remote: MemoryRemote
    one: Device
    two: Device
    three: Device

    def joined(self) -> Device:
        """Return a device that joins now, with the name of nobody else."""
        path = self.folder / f"device {len(self.remote.versions)}"
        return joined_device(path, self.remote, self.one.vault.emergency_kit)

    def meanwhile(self, kind: type[Request], change: Change) -> None:
        """Let something happen, once, just before the next request of a kind arrives."""
        left = [change]

        def before(request: Request) -> None:
            if isinstance(request, kind) and left:
                left.pop()()

        self.remote.before = before


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    remote = MemoryRemote()
    with remote.connected(), ExitStack() as closing:
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.sync()
        two, three = (joined_device(tmp_path / name, remote, one.vault.emergency_kit) for name in ("two", "three"))
        for device in (two, three, one, two, three):
            device.sync()
        for device in (one, two, three):
            closing.callback(device.close)
        yield World(tmp_path, remote, one, two, three)


def write(device: Device, *contents: str) -> None:
    for content in contents:
        device.vault.remember(content, source="test")


def contents(device: Device) -> set[str]:
    return {memory.content for memory in device.vault.list(state="all", limit=20_000)}


def damaged(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


# ── pointers, cursors, compaction ───────────────────────────────────────────────────────────────────


def test_what_a_device_could_not_read_is_still_there_after_it_compacts(world: World) -> None:
    write(world.one, "not read by two")
    world.one.sync()
    world.remote.lie = lambda request, answer: (
        replace(answer, content=damaged(answer.content))
        if isinstance(request, GetLog) and isinstance(answer, Content)
        else answer
    )
    assert world.two.sync().findings
    assert "not read by two" not in contents(world.two)
    write(world.two, "from two")
    world.two.vault.compact()
    world.remote.lie = lambda request, answer: answer
    other = world.joined()
    other.sync()
    assert contents(other) == {"from one", "not read by two", "from two"}
    other.close()


def test_two_pushes_that_end_in_reversed_order_both_reach_who_polls(world: World) -> None:
    write(world.one, "begun first")
    write(world.two, "ended first")
    seen = list[set[str]]()

    def two_is_quicker() -> None:
        world.two.sync()
        world.three.sync()
        seen.append(contents(world.three))

    world.meanwhile(PutSegment, two_is_quicker)
    world.one.sync()
    assert seen == [{"from one", "ended first"}]
    world.three.sync()
    assert contents(world.three) == {"from one", "begun first", "ended first"}


def test_own_push_hides_nothing_that_another_pushed_just_before(world: World) -> None:
    write(world.one, "mine")
    write(world.two, "theirs")
    world.meanwhile(PutSegment, world.two.sync)
    world.one.sync()
    world.one.sync()
    assert contents(world.one) == {"from one", "mine", "theirs"}


def test_ten_thousand_memories_of_one_moment_come_whole_in_small_answers(world: World) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    items = [{"content": f"number {number}", "source": "test", "captured_at": moment} for number in range(10_000)]
    world.one.vault.remember_many(items)
    world.one.sync()
    world.remote.answer_limit = 4_000
    world.two.sync()
    assert contents(world.two) == {"from one", *(str(item["content"]) for item in items)}


@pytest.mark.parametrize("kind", [PutSegment, PutKeyring])
def test_writer_that_slept_over_a_compaction_goes_on_above_it(world: World, kind: type[Request]) -> None:
    write(world.one, "unsent", "unsent too")

    def compact() -> None:
        write(world.two, "from two")
        world.two.vault.compact()

    world.meanwhile(kind, compact)
    if kind is PutSegment:
        world.one.sync()
    else:
        world.one.vault.compact()
    write(world.one, "afterwards")
    for device in (world.one, world.two, world.three):
        device.sync()
    for device in (world.one, world.two, world.three):
        device.sync()
        assert contents(device) == {"from one", "unsent", "unsent too", "from two", "afterwards"}
        assert device.vault.status().findings == []


# ── conflicts, identity ─────────────────────────────────────────────────────────────────────────────


def id_of(device: Device, content: str) -> str:
    return next(memory.id for memory in device.vault.list(state="all") if memory.content == content)


def synchronised(world: World) -> None:
    for device in (world.one, world.two, world.three) * 2:
        device.sync()
    assert len({device.vault.state_digest() for device in (world.one, world.two, world.three)}) == 1


def test_different_fields_that_two_devices_change_offline_both_stay(world: World) -> None:
    target = id_of(world.one, "from one")
    world.one.vault.tag(target, add=["tagged by one"])
    world.two.vault.retract(target, reason="retracted by two")
    synchronised(world)
    [memory] = [each for each in world.three.vault.list(state="all") if each.id == target]
    assert list(memory.tags) == ["tagged by one"]
    assert memory.reason == "retracted by two"


def test_same_memory_that_two_devices_change_offline_is_kept_in_both_versions(world: World) -> None:
    target = id_of(world.one, "from one")
    world.one.vault.supersede(target, "as one says", source="test")
    world.two.vault.supersede(target, "as two says", source="test")
    synchronised(world)
    assert contents(world.three) == {"from one", "as one says", "as two says"}
    assert len([memory for memory in world.three.vault.list() if memory.content.startswith("as ")]) == 1


def test_thread_that_two_devices_begin_offline_has_what_both_wrote(world: World) -> None:
    for device in (world.one, world.two):
        device.vault.remember(f"in it by {device.folder.name}", source="test", thread="a diary", tags=["a list"])
    synchronised(world)
    assert {memory.content for memory in world.three.vault.list(thread="a diary")} == {"in it by one", "in it by two"}
    assert {memory.content for memory in world.three.vault.list(tags=["a list"])} == {"in it by one", "in it by two"}


# ── rollback, again ─────────────────────────────────────────────────────────────────────────────────


def test_rollback_that_was_accepted_once_is_an_alarm_again_the_next_time(world: World) -> None:
    backup = world.remote.copy()
    write(world.one, "after the backup")
    world.one.sync()
    for _ in range(2):
        there = backup.copy()
        world.remote.versions, world.remote.logs = there.versions, there.logs
        with pytest.raises(RolledBack, match="--accept-rollback"):
            world.one.sync()
        world.one.sync(accept_rollback=True)
        world.two.sync()
        assert "after the backup" in contents(world.two)


def test_fork_after_a_rollback_that_was_accepted_is_still_noticed(world: World) -> None:
    write(world.one, "after the backup")
    world.one.sync()
    backup = world.remote.copy()
    write(world.one, "longer")
    world.one.sync()
    world.remote.logs = backup.copy().logs
    world.one.sync(accept_rollback=True)
    stream = next(name for name, log in world.one.vault._opened.logbook.logs.items() if log.end.records > 2)
    log = world.remote.logs[stream]
    world.remote.logs[stream] = StoredLog(log.pieces, log.end._replace(chain=bytes(32)))
    assert [finding.code for finding in world.one.sync().findings] == ["forked"]


@pytest.mark.parametrize("half", [slice(0, None, 2), slice(1, None, 2)])
def test_half_of_a_listing_deletes_nothing_here(world: World, half: slice) -> None:
    for device in (world.two, world.three):
        write(device, f"from {device.folder.name}")
        device.sync()
    world.one.sync()
    before = world.one.disk.files()
    world.remote.logs = dict(sorted(world.remote.logs.items())[half])
    with pytest.raises(RolledBack):
        world.one.sync()
    logs = {path: content for path, content in before.items() if path.parent.name == "logs"}
    assert {path: world.one.disk.files().get(path) for path in logs} == logs
    assert contents(world.one) == {"from one", "from two", "from three"}


# ── bad objects ─────────────────────────────────────────────────────────────────────────────────────


Damage = Callable[[MemoryRemote], None]


def with_checkpoint_and_logs(world: World) -> MemoryRemote:
    """Return a remote that holds a checkpoint, and logs above its floor."""
    write(world.one, "in the checkpoint")
    world.one.sync()
    world.two.vault.compact()
    for device in (world.one, world.two, world.three):
        write(device, f"{device.folder.name} above the floor")
        device.sync()
    return world.remote.copy()


ALL = {"from one", "in the checkpoint", *(f"{name} above the floor" for name in ("one", "two", "three"))}


def damage_of_log(stream_id: bytes) -> Damage:
    def damage(remote: MemoryRemote) -> None:
        remote.logs[stream_id].pieces = [damaged(piece) for piece in remote.logs[stream_id].pieces]

    return damage


def damage_of_answer(kind: type[Request], number: int) -> Damage:
    """The answer to the request of a kind with this number is damaged, each time that it is asked for the same."""

    def damage(remote: MemoryRemote) -> None:
        asked = list[Request]()

        def lie(request: Request, answer: Answer) -> Answer:
            if not isinstance(request, kind) or not isinstance(answer, Content):
                return answer
            asked.extend([request] if request not in asked else [])
            return replace(answer, content=damaged(answer.content)) if asked.index(request) == number else answer

        remote.lie = lie

    return damage


def test_each_log_and_object_that_is_damaged_costs_itself_is_named_and_heals(world: World) -> None:
    true = with_checkpoint_and_logs(world)
    damages = [
        *(damage_of_log(stream_id) for stream_id, stored in true.logs.items() if stored.pieces),
        *(damage_of_answer(GetObject, number) for number in range(len(true.objects))),
    ]
    assert len(damages) >= 5
    for number, damage in enumerate(damages):
        there = true.copy()
        with there.connected():
            device = joined_device(world.folder / f"joined {number}", there, world.one.vault.emergency_kit)
            damage(there)
            assert device.sync().findings
            # At most what that object holds is missing: a log, or the checkpoint.
            assert 0 < len(ALL - contents(device)) <= 2
            there.lie, there.logs = (lambda request, answer: answer), true.copy().logs
            device.sync()
            assert contents(device) == ALL
            assert device.sync().findings == []
            device.close()


@pytest.mark.parametrize("number", range(4))
def test_each_keyring_version_that_is_damaged_lets_nobody_join_and_leaves_nothing(world: World, number: int) -> None:
    there = with_checkpoint_and_logs(world)
    damage_of_answer(GetKeyring, number)(there)
    with pytest.raises(MemsealError) as caught:
        joined_device(world.folder / "joined", there, world.one.vault.emergency_kit)
    assert caught.value.code
    assert list((world.folder / "joined").iterdir()) == []
