"""What two devices make of the same memories, and what becomes of it when one of these is erased."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.sync.devices import Device, first_that_wrote, second_that_wrote
from tests.sync.memory_remote import MemoryRemote
from tests.vault.small_vault import everything

START = datetime(2024, 1, 1, 9, tzinfo=UTC)


@pytest.fixture
def remote() -> Iterator[MemoryRemote]:
    remote = MemoryRemote()
    with remote.connected():
        yield remote


@pytest.fixture
def laptop(tmp_path: Path, remote: MemoryRemote) -> Iterator[Device]:
    """Six memories of one habit."""
    with first_that_wrote(tmp_path / "laptop") as device:
        for number in range(6):
            moment = START + timedelta(days=5 * number)
            text = f"I had coffee with oat milk, cup {number} of it today"
            device.vault.remember(text, source="test", captured_at=moment)
        device.sync()
        yield device


@pytest.fixture
def phone(tmp_path: Path, remote: MemoryRemote, laptop: Device) -> Iterator[Device]:
    with second_that_wrote(tmp_path / "phone", remote, laptop, "of the phone") as device:
        yield device


def settle(*devices: Device) -> None:
    for _ in range(2):
        for device in devices:
            device.sync()


def cup(device: Device, number: int) -> str:
    return next(each.id for each in device.vault.list(tier="atom") if f"cup {number}" in each.content)


def test_two_devices_that_make_the_same_offline_have_it_once(laptop: Device, phone: Device) -> None:
    made = laptop.vault.consolidate().made
    assert len(phone.vault.consolidate().made) == len(made)
    settle(laptop, phone)
    assert everything(laptop.vault) == everything(phone.vault)
    for device in (laptop, phone):
        assert sorted(each.content for each in device.vault.list() if each.derived_from) == sorted(
            each.content for each in made
        )
        assert device.vault.consolidate().made == ()


def test_devices_together_make_the_run_of_a_week_once(laptop: Device, phone: Device) -> None:
    assert laptop.vault.consolidate(if_due=True).made
    settle(laptop, phone)
    for number in range(20, 26):
        phone.vault.remember(f"I fed the neighbour's tortoise, dandelion {number}", source="test")
    assert not phone.vault.consolidate(if_due=True).made
    assert phone.vault.consolidate().made


def test_what_was_made_elsewhere_of_an_erased_memory_is_erased_as_well(laptop: Device, phone: Device) -> None:
    assert phone.vault.consolidate().made
    laptop.vault.erase(cup(laptop, 5))
    settle(laptop, phone)
    for device in (laptop, phone):
        assert not any("cup 5" in content for content in everything(device.vault))
        assert all(erasure.done for erasure in device.vault.erasures())
        assert not device.vault._opened.logbook.view.state.erasures.orphans()
    assert laptop.vault.state_digest() == phone.vault.state_digest()


def test_what_a_person_worded_of_an_erased_memory_is_kept_and_listed(laptop: Device, phone: Device) -> None:
    note = phone.vault.remember("Ada drinks a lot of coffee", source="Ada", derived_from=[cup(phone, 5)])
    laptop.vault.erase(cup(laptop, 5))
    settle(laptop, phone)
    for device in (laptop, phone):
        (erasure,) = device.vault.erasures()
        assert erasure.survivors == (note.id,)
        assert device.vault.get(note.id).content == "Ada drinks a lot of coffee"
