"""A repaired copy of a vault that is on a server too serves what it can, and heals with the next synchronisation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.store.folder import VaultFolder
from memseal.vault.copies.repairing import Repair, repair
from memseal.vault.copies.surveying import RepairPlan
from tests.sync.devices import Device, first_device, joined_device
from tests.sync.memory_remote import ADDRESS, MemoryRemote
from tests.vault.small_vault import everything, stretch_of


@dataclass
class World:
    """Two devices of a vault, the first of them closed and damaged, and what was seen of it."""

    laptop: Device
    phone: Device


@pytest.fixture
def remote() -> Iterator[MemoryRemote]:
    remote = MemoryRemote()
    with remote.connected():
        yield remote


@pytest.fixture
def world(tmp_path: Path, remote: MemoryRemote) -> Iterator[World]:
    laptop = first_device(tmp_path / "laptop")
    for number in range(4):
        laptop.vault.remember(f"number {number}", source="test")
    laptop.sync()
    phone = joined_device(tmp_path / "phone", remote, laptop.vault.emergency_kit)
    phone.vault.remember("written on the phone", source="test")
    phone.sync()
    laptop.sync()
    laptop.vault.remember("not sent yet", source="test")
    laptop.close()
    yield World(laptop, phone)
    phone.close()


def flip_in_log(device: Device, name: str, position: int) -> None:
    path = device.folder / "logs" / name
    content = bytearray(device.disk.read(path) or b"")
    content[position] ^= 1
    device.disk.write(path, 0, bytes(content))


def repaired(device: Device, copy: Path) -> tuple[Repair, Device]:
    plans = list[RepairPlan]()

    def agree(plan: RepairPlan) -> bool:
        plans.append(plan)
        return True

    done = repair(VaultFolder(device.folder, device.disk), copy, stretch_of(device.passphrase), agree)
    assert done is not None
    copy.mkdir()  # for the lock alone
    return done, Device(copy, device.disk)


def longest_log(device: Device) -> str:
    names = device.disk.names(device.folder / "logs")
    return max(names, key=lambda name: device.disk.size(device.folder / "logs" / name) or 0)


def test_plan_says_that_the_server_may_have_it_whole(world: World, tmp_path: Path) -> None:
    flip_in_log(world.laptop, longest_log(world.laptop), 1500)
    done, copy = repaired(world.laptop, tmp_path / "copy")
    assert done.plan.server == ADDRESS
    copy.close()


def test_copy_serves_what_the_damaged_vault_served_and_says_what_the_server_is_asked_for(
    world: World, tmp_path: Path
) -> None:
    flip_in_log(world.laptop, longest_log(world.laptop), 1500)
    done, copy = repaired(world.laptop, tmp_path / "copy")
    assert done.same_state
    assert {finding.code for finding in done.findings} <= {"local_rollback", "withheld"}
    assert "number 1" not in everything(copy.vault)
    assert "not sent yet" in everything(copy.vault)
    copy.close()


def test_copy_heals_with_the_next_synchronisation(world: World, tmp_path: Path) -> None:
    flip_in_log(world.laptop, longest_log(world.laptop), 1500)
    _, copy = repaired(world.laptop, tmp_path / "copy")
    copy.sync()
    world.phone.sync()
    copy.sync()
    assert len(everything(copy.vault)) == 6
    assert copy.vault.state_digest() == world.phone.vault.state_digest()
    copy.reopen(from_cache=False)
    assert [*copy.vault.status().findings, *copy.vault.verify()] == []
    copy.close()


def test_keys_of_a_vault_on_a_server_are_left_to_it(world: World, tmp_path: Path) -> None:
    flip_in_log(world.laptop, longest_log(world.laptop), 1500)
    before = world.laptop.disk.names(world.laptop.folder / "keyring")
    _, copy = repaired(world.laptop, tmp_path / "copy")
    assert copy.disk.names(copy.folder / "keyring") == before
    copy.close()
