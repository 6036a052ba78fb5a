"""Checkpoints and floors among devices (vault-format §8b): logs are cut, nothing is lost, erased content goes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memseal.errors import RemoteUnreachable
from memseal.sync.messages import Answer, Content, GetObject, PutObject, Refused, Request
from tests.sync.devices import Device, first_that_wrote, joined_device, restored, second_that_wrote
from tests.sync.memory_remote import Break, MemoryRemote
from tests.vault.small_vault import everything

SECRET = "the secret word is xylophone"


@pytest.fixture
def remote() -> Iterator[MemoryRemote]:
    remote = MemoryRemote()
    with remote.connected():
        yield remote


@pytest.fixture
def laptop(tmp_path: Path, remote: MemoryRemote) -> Iterator[Device]:
    with first_that_wrote(tmp_path / "laptop", "written on the laptop", SECRET) as device:
        yield device


@pytest.fixture
def phone(tmp_path: Path, remote: MemoryRemote, laptop: Device) -> Iterator[Device]:
    with second_that_wrote(tmp_path / "phone", remote, laptop, "written on the phone") as device:
        yield device


def secret_id(device: Device) -> str:
    return next(memory.id for memory in device.vault.list(state="all") if memory.content == SECRET)


def names(device: Device, folder: str) -> list[str]:
    return device.disk.names(device.folder / folder)


def sizes(device: Device, folder: str) -> int:
    return sum(device.disk.size(device.folder / folder / name) or 0 for name in names(device, folder))


def agree(*devices: Device) -> bool:
    return len({device.vault.state_digest() for device in devices}) == 1


# ── cutting ─────────────────────────────────────────────────────────────────────────────────────────


def test_compaction_leaves_no_record_in_the_logs_here_and_on_the_server(remote: MemoryRemote, laptop: Device) -> None:
    laptop.vault.compact()
    assert [log.content() for log in remote.logs.values()] == [b""]
    assert sizes(laptop, "logs") == 124


def test_compacted_vault_opens_with_what_it_held(laptop: Device) -> None:
    before = laptop.vault.state_digest()
    laptop.vault.compact()
    laptop.reopen(from_cache=False)
    assert laptop.vault.state_digest() == before
    assert laptop.vault.status().findings == []
    assert laptop.vault.verify() == []


def test_compacting_again_has_nothing_to_do(laptop: Device) -> None:
    laptop.vault.compact()
    assert laptop.vault.compact(thorough=False) is None


def test_other_device_takes_the_floor_over_and_cuts_its_logs(laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    report = phone.sync()
    assert report.findings == []
    assert sizes(phone, "logs") == 2 * 124
    assert agree(laptop, phone)


def test_device_that_took_a_floor_over_opens_with_what_it_held(laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    phone.sync()
    phone.reopen(from_cache=False)
    assert agree(laptop, phone)
    assert phone.vault.verify() == []


def test_both_go_on_after_a_floor(laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    phone.vault.remember("later on the phone", source="test")
    phone.sync()
    laptop.vault.remember("later on the laptop", source="test")
    assert laptop.sync().findings == []
    assert phone.sync().findings == []
    assert agree(laptop, phone)
    assert phone.vault.count() == 5


def test_joining_starts_from_the_checkpoint(tmp_path: Path, remote: MemoryRemote, laptop: Device) -> None:
    laptop.vault.compact()
    laptop.vault.remember("after the floor", source="test")
    laptop.sync()
    tablet = joined_device(tmp_path / "tablet", remote, laptop.vault.emergency_kit)
    assert tablet.sync().findings == []
    laptop.sync()
    assert agree(laptop, tablet)
    tablet.reopen(from_cache=False)
    assert tablet.vault.verify() == []
    tablet.close()


def test_device_that_was_offline_over_two_floors_catches_up(laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    laptop.vault.remember("between the floors", source="test")
    laptop.vault.compact()
    phone.vault.remember("written offline", source="test")
    assert phone.sync().findings == []
    assert laptop.sync().findings == []
    assert agree(laptop, phone)


def test_parts_that_are_large_enough_are_kept(
    remote: MemoryRemote, laptop: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memseal.vault.compaction.compacting._SMALL_PART", 1)
    laptop.vault.compact()
    before = {object_id for shelf, object_id in remote.objects if shelf == "parts"}
    laptop.vault.remember("one more", source="test")
    laptop.vault.compact()
    after = {object_id for shelf, object_id in remote.objects if shelf == "parts"}
    assert before < after


def test_two_devices_that_compact_at_once_agree(remote: MemoryRemote, laptop: Device, phone: Device) -> None:
    phone.vault.remember("on the phone meanwhile", source="test")

    def interrupt(request: Request) -> None:
        if isinstance(request, PutObject):
            remote.before = lambda request: None
            phone.vault.compact()

    remote.before = interrupt
    laptop.vault.compact()
    phone.sync()
    assert agree(laptop, phone)
    assert laptop.vault.count() == 4


# ── a checkpoint that cannot be had ─────────────────────────────────────────────────────────────────


def _withhold(request: Request, answer: Answer) -> Answer:
    return Refused("not_found", 404, "gone") if isinstance(request, GetObject) else answer


def _spoil(request: Request, answer: Answer) -> Answer:
    if isinstance(request, GetObject) and isinstance(answer, Content):
        return replace(answer, content=answer.content[:-1] + bytes((answer.content[-1] ^ 1,)))
    return answer


def test_withheld_checkpoint_is_named_and_nothing_is_cut(remote: MemoryRemote, laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    before = sizes(phone, "logs")
    remote.lie = _withhold
    assert [finding.code for finding in phone.sync().findings] == ["checkpoint_missing"]
    assert sizes(phone, "logs") == before
    assert phone.vault.count() == 3


def test_forged_checkpoint_is_named_and_nothing_is_cut(remote: MemoryRemote, laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    before = sizes(phone, "logs")
    remote.lie = _spoil
    assert [finding.code for finding in phone.sync().findings] == ["checkpoint_mismatch"]
    assert sizes(phone, "logs") == before


def test_checkpoint_that_was_withheld_is_taken_at_the_next_synchronisation(
    remote: MemoryRemote, laptop: Device, phone: Device
) -> None:
    laptop.vault.compact()
    remote.lie = _withhold
    phone.sync()
    remote.lie = lambda request, answer: answer
    assert phone.sync().findings == []
    assert sizes(phone, "logs") == 2 * 124


def test_part_that_is_damaged_here_is_fetched_again(laptop: Device, phone: Device) -> None:
    laptop.vault.compact()
    phone.sync()
    [name] = names(phone, "parts")
    path = phone.folder / "parts" / name
    phone.vault.close()
    phone.disk.write(path, 200, b"damage")
    phone.disk.sync(path)
    phone.disk.remove(phone.folder / "cache" / "view.mseal")
    phone.vault = restored(phone.disk, phone.folder).vault
    phone.disk = phone.vault._opened.folder._disk  # type: ignore[assignment]
    assert {finding.where for finding in phone.vault.status().findings} & {f"parts/{name}", f"parts/{name}#0"}
    phone.sync()
    assert phone.vault.status().findings == []
    assert agree(laptop, phone)


def test_server_that_lost_everything_gets_checkpoint_and_floor_back(
    remote: MemoryRemote, laptop: Device, phone: Device
) -> None:
    laptop.vault.compact()
    laptop.vault.remember("after the floor", source="test")
    laptop.sync()
    remote.versions.clear()
    remote.logs.clear()
    remote.objects.clear()
    laptop.sync(accept_rollback=True)
    phone.sync(accept_rollback=True)
    laptop.sync()
    assert agree(laptop, phone)
    assert phone.vault.status().findings == []


# ── what a checkpoint leaves out ────────────────────────────────────────────────────────────────────


def test_what_another_device_left_out_of_its_checkpoint_is_written_again(
    laptop: Device, phone: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memseal.vault.checkpoint.parts.log_values", lambda content, epoch: [])
    laptop.vault.compact()
    monkeypatch.undo()
    phone.sync()
    phone.reopen(from_cache=False)
    assert phone.vault.count() == 3


# ── erasing ─────────────────────────────────────────────────────────────────────────────────────────


def test_erased_memory_is_gone_from_every_file_and_from_the_server(
    remote: MemoryRemote, laptop: Device, phone: Device
) -> None:
    receipt = laptop.vault.erase(secret_id(laptop), reason="not for keeping")
    assert receipt.done
    assert [log.content() for log in remote.logs.values()] == [b"", b""]
    phone.sync()
    assert SECRET not in everything(phone.vault)
    assert sizes(phone, "logs") == 2 * 124
    assert agree(laptop, phone)


def test_erased_memory_stays_erased_when_opened_again(laptop: Device, phone: Device) -> None:
    laptop.vault.erase(secret_id(laptop))
    phone.sync()
    for device in (laptop, phone):
        device.reopen(from_cache=False)
        assert SECRET not in everything(device.vault)
        assert device.vault.status().findings == []


def test_erase_without_a_server_in_reach_is_pending_and_done_later(
    remote: MemoryRemote, laptop: Device, phone: Device
) -> None:
    remote.breaks = dict.fromkeys(range(50), Break.BEFORE)
    receipt = laptop.vault.erase(secret_id(laptop))
    assert not receipt.done
    assert SECRET not in everything(laptop.vault)
    remote.breaks = {}
    laptop.sync()
    assert laptop.vault.erasures()[0].done
    phone.sync()
    assert SECRET not in everything(phone.vault)


def test_old_keys_are_not_in_the_keyring_after_an_erase(laptop: Device) -> None:
    laptop.vault.erase(secret_id(laptop))
    assert laptop.vault._opened.keychain.epochs() == {2}


def test_what_supersedes_an_erased_memory_elsewhere_is_kept_and_listed(laptop: Device, phone: Device) -> None:
    newer = phone.vault.supersede(secret_id(phone), "the secret word is another", source="test")
    receipt = laptop.vault.erase(secret_id(laptop))
    assert receipt.survivors == ()
    phone.sync()
    laptop.sync()
    assert [each.survivors for each in laptop.vault.erasures()] == [(newer.id,)]
    assert "the secret word is another" in everything(laptop.vault)


def test_erased_memory_does_not_come_back_from_an_old_backup(laptop: Device, phone: Device, tmp_path: Path) -> None:
    phone.close()
    backup = phone.disk.copy()
    laptop.vault.erase(secret_id(laptop))
    old = restored(backup, tmp_path / "phone")
    old.sync()
    laptop.sync()
    assert SECRET not in everything(old.vault)
    assert SECRET not in everything(laptop.vault)
    assert agree(old, laptop)
    old.close()


@pytest.mark.parametrize("moment", list(Break))
@pytest.mark.parametrize("number", range(40))
def test_erase_broken_off_at_any_exchange_is_done_by_the_next_synchronisation(
    remote: MemoryRemote, laptop: Device, phone: Device, moment: Break, number: int
) -> None:
    remote.breaks = {number: moment}
    laptop.vault.erase(secret_id(laptop))
    remote.breaks = {}
    laptop.reopen(from_cache=False)
    laptop.sync()
    assert laptop.vault.erasures()[0].done
    phone.sync()
    assert SECRET not in everything(phone.vault)
    assert agree(laptop, phone)


@pytest.mark.parametrize("number", range(12))
def test_taking_a_floor_over_broken_off_anywhere_is_done_by_the_next(
    remote: MemoryRemote, laptop: Device, phone: Device, number: int
) -> None:
    laptop.vault.compact()
    remote.breaks = {number: Break.AFTER}
    try:
        phone.sync()
    except RemoteUnreachable:
        phone.reopen(from_cache=False)
    remote.breaks = {}
    phone.sync()
    assert agree(laptop, phone)
    assert sizes(phone, "logs") == 2 * 124
