"""Heads that are not of one moment, and processes with an older view: no false alarm, and nothing stays hidden."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from memseal.errors import RolledBack
from memseal.sync.messages import Absent, Answer, GetHeads, Heads, Refused, Request
from tests.sync.devices import Device, first_device, joined_device
from tests.sync.memory_remote import MemoryRemote

Mix = Callable[[Heads, Heads], Answer]


@dataclass
class World:
    """Three devices and their remote, after all have synchronised, and what its heads were then."""

    remote: MemoryRemote
    one: Device
    two: Device
    three: Device
    before: Heads


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    remote = MemoryRemote()
    with remote.connected(), ExitStack() as closing:
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.sync()
        two, three = (joined_device(tmp_path / name, remote, one.vault.emergency_kit) for name in ("two", "three"))
        for device in (two, three):
            device.vault.remember(f"from {device.folder.name}", source="test")
        for device in (two, three, one, two, three):
            device.sync()
        for device in (one, two, three):
            closing.callback(device.close)
        yield World(remote, one, two, three, heads_of(remote))


def heads_of(remote: MemoryRemote) -> Heads:
    return remote.copy()._heads()


def showing(world: World, mix: Mix, times: int) -> Callable[[Request, Answer], Answer]:
    """Give such heads so often, then true ones."""
    left = [mix] * times

    def lie(request: Request, answer: Answer) -> Answer:
        if isinstance(request, GetHeads) and isinstance(answer, Heads) and left:
            return left.pop()(world.before, answer)
        return answer

    return lie


def contents(device: Device) -> set[str]:
    return {memory.content for memory in device.vault.list(state="all")}


def without(heads: Heads, name: str) -> Heads:
    return replace(heads, logs={stream_id: log for stream_id, log in heads.logs.items() if stream_id.hex() != name})


def stream_of(device: Device) -> str:
    logbook = device.vault._opened.logbook
    epoch = logbook.keychain.keyring.public.epoch
    (name,) = [each.hex() for each, log in logbook.logs.items() if logbook.is_own(log) and log.stream.epoch == epoch]
    return name


VIEWS: dict[str, Mix] = {
    "all of an earlier moment": lambda before, now: before,
    "the keyring of an earlier moment": lambda before, now: replace(now, keyring=before.keyring),
    "the logs of an earlier moment": lambda before, now: replace(now, logs=before.logs),
    "every other log of an earlier moment": lambda before, now: replace(
        now, logs={**now.logs, **dict(sorted(before.logs.items())[::2])}
    ),
    "the rest of the logs of an earlier moment": lambda before, now: replace(
        now, logs={**now.logs, **dict(sorted(before.logs.items())[1::2])}
    ),
    "the vault not there yet": lambda before, now: Absent(),
    "a keyring without this device": lambda before, now: Refused("key_unknown", 401, "unknown"),
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", VIEWS)
def test_process_with_an_older_view_is_no_rollback_and_hides_nothing(world: World, name: str, times: int) -> None:
    for device in (world.one, world.two):
        device.vault.remember(f"new of {device.folder.name}", source="test")
        device.sync()
    world.three.sync()
    world.one.vault.rekey()
    world.one.vault.remember("of the new epoch", source="test")
    for device in (world.one, world.two, world.three):
        device.sync()
    world.two.vault.remember("newest", source="test")
    world.two.sync()
    world.remote.lie = showing(world, VIEWS[name], times)
    report = world.three.sync()
    assert report.findings == []
    expected = {"from one", "from two", "from three", "new of one", "new of two", "of the new epoch", "newest"}
    world.three.sync()
    assert contents(world.three) == expected
    assert world.three.vault.status().findings == []


@pytest.mark.parametrize("name", VIEWS)
def test_view_that_stays_older_is_a_rollback(world: World, name: str) -> None:
    for device in (world.one, world.two, world.three):
        device.vault.remember(f"new of {device.folder.name}", source="test")
        device.sync()
    world.one.vault.rekey()
    world.remote.lie = showing(world, VIEWS[name], 1_000)
    with pytest.raises(RolledBack):
        world.one.sync()
    assert contents(world.one) >= {"from one", "from two", "from three", "new of one", "new of two"}


def test_log_that_names_records_of_one_looked_at_earlier_withholds_nothing(world: World) -> None:
    """Two writes after it has read what one wrote; three is shown the log of two as it is, that of one as it was."""
    world.one.vault.remember("new of one", source="test")
    world.one.sync()
    world.two.sync()
    world.two.vault.remember("new of two", source="test")
    world.two.sync()
    name = bytes.fromhex(stream_of(world.one))
    world.remote.lie = showing(
        world, lambda before, now: replace(now, logs={**now.logs, name: before.logs[name]}), times=1
    )
    assert world.three.sync().findings == []
    assert contents(world.three) >= {"new of one", "new of two"}


def test_log_that_stays_hidden_is_withheld(world: World) -> None:
    world.one.vault.remember("new of one", source="test")
    world.one.sync()
    world.two.sync()
    world.two.vault.remember("new of two", source="test")
    world.two.sync()
    name = bytes.fromhex(stream_of(world.one))
    world.remote.lie = showing(
        world, lambda before, now: replace(now, logs={**now.logs, name: before.logs[name]}), times=1_000
    )
    assert [finding.code for finding in world.three.sync().findings] == ["withheld"]
    assert contents(world.three) >= {"new of two"}


def test_log_of_an_epoch_that_the_keyring_shown_does_not_have_yet_is_taken(world: World) -> None:
    world.one.vault.rekey()
    world.one.vault.remember("of the new epoch", source="test")
    world.one.sync()
    world.remote.lie = showing(world, lambda before, now: replace(now, keyring=before.keyring), times=1)
    assert world.two.sync().findings == []
    assert "of the new epoch" in contents(world.two)


def test_log_of_a_device_that_the_keyring_shown_does_not_have_yet_is_taken(world: World, tmp_path: Path) -> None:
    four = joined_device(tmp_path / "four", world.remote, world.one.vault.emergency_kit)
    four.vault.remember("from four", source="test")
    four.sync()
    four.close()
    world.remote.lie = showing(world, lambda before, now: replace(now, keyring=before.keyring), times=1)
    assert world.two.sync().findings == []
    assert "from four" in contents(world.two)


def test_device_that_changed_its_keys_fills_up_a_server_of_before(world: World) -> None:
    """Its new key is in no version that the server still has: it brings these first."""
    backup = world.remote.copy()
    world.one.change_passphrase("a new passphrase")
    world.one.vault.remember("behind the new passphrase", source="test")
    world.one.sync()
    world.remote.versions, world.remote.logs = backup.versions, backup.logs
    with pytest.raises(RolledBack):
        world.one.sync()
    world.one.sync(accept_rollback=True)
    assert world.two.sync().findings == []
    assert "behind the new passphrase" in contents(world.two)
