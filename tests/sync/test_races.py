"""Two devices compact, erase, renew keys or change the passphrase at once: one wins, the other goes on from there."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import MemsealError, PassphraseWrong, RemoteUnreachable
from memseal.sync.messages import PutKeyring, Request
from tests.sync.devices import Device, first_device, joined_device, restored
from tests.sync.memory_remote import Break, MemoryRemote
from tests.vault.crash_disk import ALL_LOST, CrashDisk
from tests.vault.small_vault import PASSPHRASE, power_off

NEW_PASSPHRASE = "a new passphrase"
Act = Callable[[Device], object]


def erase(content: str) -> Act:
    def act(device: Device) -> None:
        for memory in device.vault.list(state="all"):
            if memory.content == content:
                device.vault.erase(memory.id)
        device.sync()  # what could not be reached before is done now

    return act


def change_passphrase(device: Device) -> None:
    if device.passphrase != NEW_PASSPHRASE:
        device.change_passphrase(NEW_PASSPHRASE)


ACTS: dict[str, Act] = {
    "compact": lambda device: device.vault.compact(),
    "erase": erase("to be erased"),
    "erase the same": erase("to be erased"),
    "rekey": lambda device: device.vault.rekey(),
    "passphrase": change_passphrase,
}
PAIRS = [
    ("compact", "compact"),
    ("compact", "erase"),
    ("erase", "erase the same"),
    ("erase", "passphrase"),
    ("rekey", "compact"),
    ("rekey", "rekey"),
    ("passphrase", "rekey"),
    ("passphrase", "passphrase"),
]


@dataclass
class World:
    """Two devices that are closed, each with something that no remote has, and their remote."""

    remote: MemoryRemote
    one: CrashDisk
    two: CrashDisk
    folder: Path

    def opened(self) -> tuple[MemoryRemote, Device, Device]:
        return self.remote.copy(), restored(self.one, self.folder / "one"), restored(self.two, self.folder / "two")


@pytest.fixture
def world(tmp_path: Path) -> World:
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.vault.remember("to be erased", source="test")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.sync()
        for device in (one, two):
            device.vault.remember(f"unsent of {device.folder.name}", source="test")
            device.close()
    return World(remote, one.disk, two.disk, tmp_path)


def after_the_end(device: Device) -> Device:
    """The device, after its process was killed and the power failed."""
    power_off(device.vault)
    disk = device.disk.after_crash(ALL_LOST)
    with suppress(PassphraseWrong):
        return Device(device.folder, disk, PASSPHRASE)
    return Device(device.folder, disk, NEW_PASSPHRASE)


def at_once(there: MemoryRemote, one: Device, two: Device, first: str, second: str) -> None:
    """One acts, and while its version is on its way, two acts as well."""
    left = [second]

    def before(request: Request) -> None:
        if isinstance(request, PutKeyring) and left:
            ACTS[left.pop()](two)

    there.before = before
    ACTS[first](one)
    there.before = lambda request: None


def assert_both_are_done(there: MemoryRemote, one: Device, two: Device, first: str, second: str) -> None:
    for device, name in ((one, first), (two, second)):
        with suppress(PassphraseWrong, RemoteUnreachable):
            ACTS[name](device)
    if "passphrase" in (first, second):
        for device in (one, two):
            device.sync()
            change_passphrase(device)
    for device in (one, two) * 2:
        device.sync()
    gone = {"to be erased"} if "erase" in first + second else set[str]()
    expected = {"from one", "to be erased", "unsent of one", "unsent of two"} - gone
    digests = set[bytes]()
    for device in (one, two):
        device.reopen(from_cache=False)
        assert {memory.content for memory in device.vault.list(state="all")} == expected
        assert device.vault.status().findings == []
        assert all(erasure.done for erasure in device.vault.erasures())
        digests.add(device.vault.state_digest())
        device.close()
    assert len(digests) == 1


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_one_of_two_wins_and_the_other_goes_on_from_there(world: World, first: str, second: str) -> None:
    there, one, two = world.opened()
    with there.connected():
        at_once(there, one, two, first, second)
        assert_both_are_done(there, one, two, first, second)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_both_killed_at_any_exchange_lose_nothing(world: World, first: str, second: str) -> None:
    met, number = True, 0
    while met:
        there, one, two = world.opened()
        with there.connected():
            there.breaks[number] = Break.AFTER
            with suppress(MemsealError):
                at_once(there, one, two, first, second)
            met = not there.breaks
            there.breaks.clear()
            there.before = lambda request: None
            one, two = after_the_end(one), after_the_end(two)
            assert_both_are_done(there, one, two, first, second)
        number += 1
    assert number > 5
