"""What the receipt of an erase says of the other devices: asked, until what they write shows that it is gone there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sync.devices import Device, first_that_wrote, joined_device, second_that_wrote
from tests.sync.memory_remote import MemoryRemote


@pytest.fixture
def remote() -> Iterator[MemoryRemote]:
    remote = MemoryRemote()
    with remote.connected():
        yield remote


@pytest.fixture
def laptop(tmp_path: Path, remote: MemoryRemote) -> Iterator[Device]:
    with first_that_wrote(tmp_path / "laptop", "to be erased", "to be kept") as device:
        yield device


@pytest.fixture
def phone(tmp_path: Path, remote: MemoryRemote, laptop: Device) -> Iterator[Device]:
    with second_that_wrote(tmp_path / "phone", remote, laptop, "of the phone") as device:
        yield device


def erase(device: Device) -> None:
    (target,) = (memory.id for memory in device.vault.list() if memory.content == "to be erased")
    assert device.vault.erase(target).done


def said_of(device: Device, other: str) -> str:
    (erasure,) = device.vault.erasures()
    (place,) = (place for place in erasure.places if place.name == f"device {other}")
    return place.progress


def test_device_that_was_away_is_only_asked(laptop: Device, phone: Device) -> None:
    erase(laptop)
    laptop.sync()
    assert said_of(laptop, "phone") == "requested"


def test_device_that_wrote_before_it_heard_of_the_erase_is_only_asked(laptop: Device, phone: Device) -> None:
    phone.vault.remember("written before", source="test")
    erase(laptop)
    phone.vault.remember("written meanwhile", source="test")
    laptop.sync()
    assert said_of(laptop, "phone") == "requested"


def test_device_that_wrote_under_the_old_epoch_what_comes_later_is_only_asked(
    remote: MemoryRemote, laptop: Device, phone: Device
) -> None:
    phone.vault.remember("pushed before the erase", source="test")
    phone.sync()
    erase(laptop)
    laptop.sync()
    assert said_of(laptop, "phone") == "requested"


def test_device_that_has_taken_the_floor_over_and_written_since_is_named_as_gone(laptop: Device, phone: Device) -> None:
    erase(laptop)
    phone.sync()
    laptop.sync()
    assert said_of(laptop, "phone") == "requested"  # it has shown nothing yet
    phone.vault.remember("written afterwards", source="test")
    phone.sync()
    laptop.sync()
    assert said_of(laptop, "phone") == "gone"
    assert said_of(phone, "laptop") == "requested"
    laptop.vault.remember("written by the laptop", source="test")
    laptop.sync()
    phone.sync()
    assert said_of(phone, "laptop") == "gone"


@pytest.mark.parametrize("compacted", [False, True])
def test_receipt_stays_as_it_is_when_the_vault_is_opened_again(laptop: Device, phone: Device, compacted: bool) -> None:
    erase(laptop)
    phone.sync()
    phone.vault.remember("written afterwards", source="test")
    phone.sync()
    laptop.sync()
    if compacted:
        laptop.vault.compact()
        laptop.vault.rekey()
    laptop.reopen(from_cache=False)
    assert said_of(laptop, "phone") == "gone"


def test_device_that_joined_after_the_erase_never_had_it(tmp_path: Path, remote: MemoryRemote, laptop: Device) -> None:
    erase(laptop)
    tablet = joined_device(tmp_path / "tablet", remote, laptop.vault.emergency_kit)
    tablet.sync()
    laptop.sync()
    assert said_of(laptop, "tablet") == "gone"
    tablet.close()
