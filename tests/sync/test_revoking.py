"""A device is removed: one version, whatever breaks off, whoever is first; and devices are renamed and listed."""

import contextlib
import platform
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from memseal.errors import (
    BoxMissing,
    DeviceEnded,
    DeviceIsThis,
    DeviceName,
    DeviceUnknown,
    DeviceUnseen,
    FormatError,
    KitOrPassphrase,
    PassphraseWrong,
    RecoveryCodeWrong,
    RemoteUnreachable,
)
from memseal.format.boxes import open_secrets
from memseal.format.keyring import decode_version
from memseal.format.kit import parse_recovery_code
from memseal.sync.messages import PutKeyring, Request
from memseal.vault.folder.keychain import Keychain
from memseal.vault.keys import revoking
from memseal.vault.keys.naming import own_name
from memseal.vault.keys.proving import RecoveryOpener, prove
from memseal.vault.keys.revoking import CutOff, Revocation
from memseal.vault.vault import Vault
from tests.sync.devices import first_device, joined_device, restored
from tests.sync.memory_remote import Break, MemoryRemote
from tests.vault.crash_disk import ALL_LOST
from tests.vault.small_vault import PASSPHRASE, open_vault, power_off, stretch_of


class World:
    """Three devices and their remote; `three` is the one to go, with a memory that no remote has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = MemoryRemote()
        with self.remote.connected():
            self.one = first_device(folder / "one")
            self.one.vault.remember("from one", source="test")
            self.one.sync()
            self.code = self.one.vault.new_recovery_code()
            self.kit = self.one.vault.emergency_kit
            self.two = joined_device(folder / "two", self.remote, self.kit)
            self.three = joined_device(folder / "three", self.remote, self.kit)
            self.three.vault.remember("from three", source="test")
            for device in (self.two, self.three, self.one):
                device.sync()
            self.three.vault.remember("never sent", source="test")
            self.one.vault.remember("not sent yet", source="test")

    def close(self) -> None:
        for device in (self.one, self.two, self.three):
            device.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    with world.remote.connected():
        yield world
    world.close()


def revoke(
    vault: Vault, device: str = "three", passphrase: str = PASSPHRASE, seen: list[str] | None = None
) -> Revocation:
    """What `Vault.revoke` does, without Argon2id."""
    with vault._writing() as opened:
        return revoking.revoke(opened, device, stretch_of(passphrase), seen, None)


def contents(vault: Vault) -> set[str]:
    return {memory.content for memory in vault.list(state="all")}


def statuses(vault: Vault) -> dict[str, str]:
    return {device.name: device.status for device in vault.devices()}


def own_stream(vault: Vault) -> bytes:
    logbook = vault._opened.logbook
    return next(stream for stream, log in logbook.logs.items() if logbook.is_own(log))


def id_of(vault: Vault, name: str) -> str:
    return next(device.id for device in vault.devices() if device.name == name)


# ── what a revocation does ──────────────────────────────────────────────────────────────────────────


def test_revocation_is_one_version_with_a_new_epoch_kit_and_code(world: World) -> None:
    before = world.one.vault.status()
    done = revoke(world.one.vault)
    after = world.one.vault.status()
    assert (after.keyring_version, after.epoch) == (before.keyring_version + 1, before.epoch + 1)
    assert statuses(world.one.vault) == {"laptop": "this", "two": "active", "three": "ended"}
    assert done.name == "three"
    assert done.emergency_kit == world.one.vault.emergency_kit != world.kit
    assert done.recovery_code not in (None, world.code)
    for secret in (done.emergency_kit, done.recovery_code or ""):
        assert secret not in repr(done)


def test_revocation_names_where_the_streams_of_the_device_end(world: World) -> None:
    stream = own_stream(world.three.vault)
    there = world.remote.logs[stream].end
    (cut_off,) = revoke(world.one.vault).cut_offs
    assert cut_off == CutOff(stream.hex(), there.records, there.length)


def test_kit_and_code_of_before_open_nothing_and_the_new_ones_do(world: World) -> None:
    done = revoke(world.one.vault)
    with pytest.raises(KitOrPassphrase):
        joined_device(world.folder / "fourth", world.remote, world.kit)
    joined_device(world.folder / "fourth", world.remote, done.emergency_kit).close()
    keyring = world.one.vault._opened.keychain.keyring
    with pytest.raises(RecoveryCodeWrong):
        prove(RecoveryOpener(parse_recovery_code(world.code)), keyring.versions)
    opener = RecoveryOpener(parse_recovery_code(done.recovery_code or ""))
    assert prove(opener, keyring.versions) == world.one.vault._opened.keychain.vault_key


def test_vault_without_a_recovery_code_gets_none(tmp_path: Path) -> None:
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.sync()
        joined_device(tmp_path / "three", remote, one.vault.emergency_kit).close()
        one.sync()
        assert revoke(one.vault).recovery_code is None
        one.close()


def test_revocation_takes_the_vaults_passphrase_alone(world: World) -> None:
    before = len(world.remote.versions)
    with pytest.raises(PassphraseWrong):
        revoke(world.one.vault, passphrase="another")
    assert len(world.remote.versions) == before


# ── the removed device ──────────────────────────────────────────────────────────────────────────────


def test_removed_device_is_told_keeps_what_it_has_and_reaches_nobody(world: World) -> None:
    revoke(world.one.vault)
    three = world.three
    with pytest.raises(DeviceEnded, match="removed"):
        three.sync()
    assert contents(three.vault) == {"from one", "from three", "never sent"}
    three.reopen(from_cache=False)
    three.vault.remember("still written here", source="test")
    with pytest.raises(DeviceEnded):
        three.sync()
    for device in (world.one, world.two):
        device.sync()
        assert contents(device.vault) == {"from one", "from three", "not sent yet"}
        assert device.vault.status().findings == []


def test_full_state_of_the_removed_device_opens_nothing_that_was_written_after(world: World) -> None:
    revoke(world.one.vault)
    world.one.vault.remember("written afterwards", source="test")
    world.one.sync()
    newest = world.one.vault._opened.keychain.keyring
    chain, device = world.three.vault._opened.keychain, world.three.vault._opened.device
    with pytest.raises(BoxMissing):
        Keychain.open(newest, device.keys.wrap, device.signing_public)
    known = [chain.vault_key, *chain.secrets.history.values()]
    for key in known:
        with pytest.raises(FormatError):
            open_secrets(newest.newest, key)
    (log,) = [log for log in world.one.vault._opened.logbook.logs.values() if log.stream.epoch == newest.public.epoch]
    with pytest.raises(FormatError):
        chain.stream(log.stream.preamble, log.stream.stream_id)
    assert world.one.vault._opened.keychain.vault_key not in known


def test_what_it_wrote_beyond_the_cut_off_is_ignored_and_listed(world: World) -> None:
    """It was pushed between the revoker's look and its version, and another device had it already."""

    def push_meanwhile(request: Request) -> None:
        if isinstance(request, PutKeyring):
            world.remote.before = lambda _: None
            world.three.sync()
            world.two.sync()

    world.remote.before = push_meanwhile
    revoke(world.one.vault)
    assert "never sent" in contents(world.two.vault)
    for device in (world.two, world.one):
        device.sync()
        assert "never sent" not in contents(device.vault)
        assert {finding.code for finding in device.vault.status().findings} == {"stream_ended"}
        device.reopen(from_cache=False)
        assert "never sent" not in contents(device.vault)
    assert world.one.vault.state_digest() == world.two.vault.state_digest()


def test_cut_off_is_never_below_the_floor(world: World) -> None:
    world.three.sync()
    for device in (world.two, world.one):
        device.sync()
    world.two.vault.compact()
    revoke(world.one.vault)
    expected = {"from one", "from three", "never sent", "not sent yet"}
    for device in (world.one, world.two):
        device.sync()
        assert contents(device.vault) == expected
        device.reopen(from_cache=False)
        assert contents(device.vault) == expected
    fresh = joined_device(world.folder / "fourth", world.remote, world.one.vault.emergency_kit)
    fresh.sync()
    assert contents(fresh.vault) == expected
    fresh.close()


def test_damaged_end_of_its_log_costs_no_more_than_what_is_damaged(world: World) -> None:
    world.three.vault.remember("and another", source="test")
    world.three.sync()
    world.one.sync()
    stream_id = own_stream(world.three.vault)
    world.one.close()
    file = world.one.folder / "logs" / f"{stream_id.hex()}.mseal"
    damaged = bytearray(world.one.disk.read(file) or b"")
    damaged[-1108] ^= 1  # the last record's header
    world.one.disk.write(file, 0, bytes(damaged))
    # The remote's is damaged in the same place, so that it cannot heal.
    stored = world.remote.logs[stream_id]
    stored.pieces = [bytes(damaged[: -len(stored.pieces[-1])]), bytes(damaged[-len(stored.pieces[-1]) :])][-1:]
    world.one.vault = open_vault(world.one.folder, world.one.disk)
    done = revoke(world.one.vault)
    assert [each.records for each in done.cut_offs] == [2]
    assert {"from three", "never sent"} < contents(world.one.vault)


# ── broken off, and races ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("moment", Break)
def test_revocation_broken_off_at_any_exchange_is_done_when_tried_again(moment: Break, world: World) -> None:
    world.close()
    for number in count():
        remote, one = world.remote.copy(), restored(world.one.disk, world.one.folder)
        three = restored(world.three.disk, world.three.folder)
        with remote.connected():
            remote.breaks = {number: moment}
            with contextlib.suppress(RemoteUnreachable):
                revoke(one.vault)
            never_broke = bool(remote.breaks)
            remote.breaks.clear()
            power_off(one.vault)
            vault = open_vault(one.folder, one.disk.after_crash(ALL_LOST))
            with contextlib.suppress(DeviceUnknown):  # the version was stored: it is removed already
                revoke(vault)
            assert statuses(vault)["three"] == "ended"
            assert vault.status().epoch == 3
            vault.remember("written afterwards", source="test")
            vault.sync()
            assert vault.status().findings == []
            with pytest.raises(DeviceEnded):
                three.sync()
            assert "written afterwards" not in contents(three.vault)
            joined_device(world.folder / "fourth", remote, vault.emergency_kit).close()
            for each in (vault, three.vault):
                each.close()
        if never_broke:
            return


def test_two_that_remove_each_other_end_with_one_removed(world: World) -> None:
    world.two.sync()

    def be_first(request: Request) -> None:
        if isinstance(request, PutKeyring):
            world.remote.before = lambda _: None
            revoke(world.two.vault, "laptop")

    world.remote.before = be_first
    with pytest.raises(DeviceEnded):
        revoke(world.one.vault, "two")
    assert statuses(world.two.vault) == {"laptop": "ended", "two": "this", "three": "active"}
    world.three.sync()
    assert "never sent" in contents(world.three.vault)
    with pytest.raises(DeviceEnded):
        world.one.sync()


def test_two_that_remove_the_same_device_remove_it_once(world: World) -> None:
    world.two.sync()

    def be_first(request: Request) -> None:
        if isinstance(request, PutKeyring):
            world.remote.before = lambda _: None
            revoke(world.two.vault)

    world.remote.before = be_first
    with pytest.raises(DeviceUnknown, match="already"):
        revoke(world.one.vault)
    assert world.one.vault.status().epoch == world.two.vault.status().epoch == 3
    assert world.one.vault.emergency_kit == world.two.vault.emergency_kit


def test_after_a_lost_race_nothing_goes_to_a_device_that_was_not_seen(world: World) -> None:
    def join_meanwhile(request: Request) -> None:
        if isinstance(request, PutKeyring):
            world.remote.before = lambda _: None
            joined_device(world.folder / "stranger", world.remote, world.kit).close()

    world.remote.before = join_meanwhile
    with pytest.raises(DeviceUnseen, match="stranger") as caught:
        revoke(world.one.vault)
    assert statuses(world.one.vault)["three"] == "active"
    assert world.one.vault.status().epoch == 2
    assert caught.value.devices == (id_of(world.one.vault, "stranger"),)
    known = [device.id for device in world.one.vault.devices() if device.id not in caught.value.devices]
    with pytest.raises(DeviceUnseen):
        revoke(world.one.vault, seen=known)
    revoke(world.one.vault, seen=[*known, *caught.value.devices])
    assert statuses(world.one.vault)["stranger"] == "active"


def test_device_that_joined_before_the_first_look_is_not_seen_either(world: World) -> None:
    joined_device(world.folder / "stranger", world.remote, world.kit).close()
    with pytest.raises(DeviceUnseen):
        revoke(world.one.vault)


def test_device_does_not_remove_itself(world: World) -> None:
    with pytest.raises(DeviceIsThis):
        revoke(world.one.vault, "laptop")
    with pytest.raises(DeviceIsThis):
        revoke(world.one.vault, id_of(world.one.vault, "laptop"))


def test_only_device_of_a_vault_stays(tmp_path: Path) -> None:
    one = first_device(tmp_path / "one")
    with pytest.raises(DeviceIsThis):
        revoke(one.vault, "laptop")
    assert one.vault.status().keyring_version == 1
    one.close()


def test_unknown_and_removed_devices_are_told_apart(world: World) -> None:
    with pytest.raises(DeviceUnknown, match="list the devices"):
        revoke(world.one.vault, "nobody")
    revoke(world.one.vault)
    with pytest.raises(DeviceUnknown, match="removed already"):
        revoke(world.one.vault)


# ── names ───────────────────────────────────────────────────────────────────────────────────────────


def test_rename_is_a_version_without_a_new_epoch_and_reaches_the_others(world: World) -> None:
    before = world.one.vault.status()
    world.one.vault.rename_device("three", "  old phone ")
    after = world.one.vault.status()
    assert (after.keyring_version, after.epoch) == (before.keyring_version + 1, before.epoch)
    for device in (world.two, world.three):
        device.sync()
        assert [each.name for each in device.vault.devices()] == ["laptop", "two", "old phone"]
    world.one.vault.rename_device("old phone", "old phone")
    assert world.one.vault.status().keyring_version == after.keyring_version
    assert world.one.vault.emergency_kit == world.kit


def test_two_renames_at_once_both_count(world: World) -> None:
    world.two.sync()

    def be_first(request: Request) -> None:
        if isinstance(request, PutKeyring):
            world.remote.before = lambda _: None
            world.two.vault.rename_device("two", "tablet")

    world.remote.before = be_first
    world.one.vault.rename_device("laptop", "desk")
    assert [each.name for each in world.one.vault.devices()] == ["desk", "tablet", "three"]
    world.two.sync()
    assert [each.name for each in world.two.vault.devices()] == ["desk", "tablet", "three"]


@pytest.mark.parametrize(
    "name",
    ["", "  ", "x" * 65, "a\nb", "a\x1b[31mb", "a\u202eb", "a\u2028b", "a\x00", "\ud800", "\u200b", "\ue000", "two"],
    ids=[
        "empty",
        "blank",
        "long",
        "line",
        "escape",
        "bidi",
        "separator",
        "nul",
        "surrogate",
        "invisible",
        "own",
        "taken",
    ],
)
def test_name_that_cannot_be_shown_or_is_taken_is_refused(name: str, world: World) -> None:
    before = len(world.remote.versions)
    with pytest.raises(DeviceName):
        world.one.vault.rename_device("three", name)
    assert len(world.remote.versions) == before


def test_name_is_composed_so_that_it_is_found_however_it_is_typed(world: World) -> None:
    world.one.vault.rename_device("three", "Te\u0301le\u0301phone 📱")
    assert [each.name for each in world.one.vault.devices()][2] == "T\u00e9l\u00e9phone 📱"
    world.one.vault.rename_device("Te\u0301le\u0301phone 📱", "phone")


def test_two_devices_of_one_name_are_told_apart_by_id(world: World) -> None:
    (world.folder / "elsewhere").mkdir()
    joined_device(world.folder / "elsewhere" / "two", world.remote, world.kit).close()
    world.one.sync()
    with pytest.raises(DeviceUnknown, match="several"):
        revoke(world.one.vault, "two")
    second = world.one.vault.devices()[3].id
    assert revoke(world.one.vault, second).id == second


def test_rename_keeps_the_floor(world: World) -> None:
    world.one.vault.compact()
    floor = world.one.vault._opened.keychain.keyring.public.floor
    world.one.vault.rename_device("three", "phone")
    assert world.one.vault._opened.keychain.keyring.public.floor == floor is not None
    assert decode_version(world.remote.versions[-1].content).public.floor == floor


# ── list ────────────────────────────────────────────────────────────────────────────────────────────


def test_list_says_since_when_and_how_much_each_wrote_and_when_last(world: World) -> None:
    one, two, three = world.one.vault.devices()
    assert (one.status, two.status, three.status) == ("this", "active", "active")
    assert (one.since, two.since, three.since) == (1, 3, 4)
    assert (two.records, two.last_written_at, three.records) == (0, None, 1)
    newest = {memory.content: memory.written_at for memory in world.one.vault.list()}
    assert three.last_written_at == newest["from three"]
    assert one.last_written_at == newest["not sent yet"]


def test_device_behind_an_older_passphrase_waits(world: World) -> None:
    world.one.change_passphrase("a new passphrase")
    assert statuses(world.one.vault) == {"laptop": "this", "two": "waiting", "three": "waiting"}
    revoke(world.one.vault, passphrase="a new passphrase")
    assert statuses(world.one.vault) == {"laptop": "this", "two": "waiting", "three": "ended"}
    world.two.change_passphrase("a new passphrase")
    world.one.sync()
    assert statuses(world.one.vault) == {"laptop": "this", "two": "active", "three": "ended"}
    assert len(world.one.vault.devices()) == 3


@pytest.mark.parametrize(
    ("computer", "name"),
    [("a-computer", "a-computer"), ("", "a device"), ("bad\x1bname", "a device"), ("x" * 99, "x" * 64)],
    ids=["plain", "none", "escape", "long"],
)
def test_device_without_a_name_is_called_as_the_computer_is(
    computer: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: computer)
    assert own_name(None) == name


def test_device_is_called_as_its_user_says_if_it_can_be() -> None:
    assert own_name(" my phone ") == "my phone"
    with pytest.raises(DeviceName):
        own_name("a\nb")
