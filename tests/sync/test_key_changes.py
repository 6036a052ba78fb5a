"""Keys are renewed on a remote: broken off at each exchange, after a lost race, with older keys still needed."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from memseal.errors import KitOrPassphrase, PassphraseWrong, RecoveryCodeWrong, RemoteUnreachable
from memseal.format.device_file import Stretch
from memseal.format.keyring import decode_version
from memseal.sync.messages import PutKeyring, Request
from memseal.vault.keys import passphrases, recovering, rekeying
from memseal.vault.keys.recovering import NewPassphrase
from memseal.vault.keys.versions import Change
from memseal.vault.vault import Vault
from tests.sync.devices import Device, first_device, joined_device, restored
from tests.sync.memory_remote import ADDRESS, Break, MemoryRemote
from tests.vault.crash_disk import ALL_LOST, CrashDisk
from tests.vault.small_vault import PASSPHRASE, open_vault, power_off, stretch_of

NEW_PASSPHRASE = "a new passphrase"
CONTENTS = {"from one", "from two", "not sent yet", "written afterwards"}


@dataclass
class World:
    """Two devices and their remote, before anything is renewed: both closed, `one` with a memory not sent yet."""

    folder: Path
    remote: MemoryRemote
    one: CrashDisk
    two: CrashDisk
    kit: str
    code: str

    def begin(self) -> tuple[MemoryRemote, Device]:
        """Return a remote of its own, and device one on a disk of its own."""
        return self.remote.copy(), restored(self.one, self.folder / "one")


@pytest.fixture
def world(tmp_path: Path) -> World:
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.vault.remember("from two", source="test")
        two.sync()
        code = one.vault.new_recovery_code()
        one.vault.remember("not sent yet", source="test")
        kit = one.vault.emergency_kit
        for device in (one, two):
            device.close()
    return World(tmp_path, remote, one.disk, two.disk, kit, code)


def contents(vault: Vault) -> set[str]:
    return {memory.content for memory in vault.list(state="all")}


def change_passphrase(vault: Vault) -> None:
    with vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW_PASSPHRASE), NEW_PASSPHRASE, None)


def new_kit(vault: Vault) -> None:
    with vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(PASSPHRASE), None)


RENEWALS: dict[str, Callable[[Vault], object]] = {
    "rekey": lambda vault: vault.rekey(),
    "new_kit": new_kit,
    "new_recovery_code": lambda vault: vault.new_recovery_code(),
    "change_passphrase": change_passphrase,
}


def recover(
    path: Path, disk: CrashDisk, code: str, server: str | None = ADDRESS, passphrase: str = NEW_PASSPHRASE
) -> Vault:
    """What `Vault.recover` does, on a disk of the test's, without Argon2id."""
    new = NewPassphrase(passphrase, stretch_of(passphrase))
    folder = recovering.enter(path, disk, code, new, server, path.name)
    vault = Vault._open(folder, new.stretch, False, None)
    try:
        with vault._writing() as opened:
            recovering.complete(opened, new, server)
    except BaseException:
        power_off(vault)
        raise
    return vault


def is_whole(remote: MemoryRemote, vault: Vault, folder: Path, two: CrashDisk, passphrase: str) -> None:
    """Check that a device that was there, and one that joins, hold the same as this one."""
    vault.remember("written afterwards", source="test")
    vault.sync()
    other = restored(two, folder / "two")
    other.sync()
    third = joined_device(folder / "third", remote, vault.emergency_kit, passphrase)
    third.sync()
    for each in (vault, other.vault, third.vault):
        assert contents(each) == CONTENTS
        assert each.status().findings == []
        each.close()


@pytest.mark.parametrize("moment", Break)
@pytest.mark.parametrize("name", RENEWALS)
def test_change_broken_off_at_any_exchange_is_done_when_tried_again(name: str, moment: Break, world: World) -> None:
    passphrase = NEW_PASSPHRASE if name == "change_passphrase" else PASSPHRASE
    for number in count():
        remote, one = world.begin()
        with remote.connected():
            remote.breaks = {number: moment}
            with contextlib.suppress(RemoteUnreachable):
                RENEWALS[name](one.vault)
            never_broke = bool(remote.breaks)
            remote.breaks.clear()
            power_off(one.vault)
            disk = one.disk.after_crash(ALL_LOST)
            with contextlib.suppress(PassphraseWrong), open_vault(one.folder, disk) as vault:
                # Until it was told that the change is done, the passphrase of before is the one that counts here.
                assert contents(vault) == CONTENTS - {"written afterwards"}
                assert "local_rollback" not in {finding.code for finding in vault.status().findings}
                RENEWALS[name](vault)
            vault = open_vault(one.folder, disk, passphrase)
            assert vault.status().epoch <= 4
            is_whole(remote, vault, world.folder, world.two, passphrase)
        if never_broke:
            return


@pytest.mark.parametrize("name", RENEWALS)
def test_lost_race_begins_again_on_the_winner(name: str, world: World) -> None:
    remote, one = world.begin()
    with remote.connected():
        two = restored(world.two, world.folder / "two")

        def win(request: Request) -> None:
            if isinstance(request, PutKeyring):
                remote.before = lambda _: None
                two.vault.rekey()

        remote.before = win
        RENEWALS[name](one.vault)
        assert one.vault.status().epoch == 4
        two.close()
        passphrase = NEW_PASSPHRASE if name == "change_passphrase" else PASSPHRASE
        is_whole(remote, one.vault, world.folder, two.disk, passphrase)


@pytest.mark.parametrize("heard", [True, False])
def test_new_kit_does_not_bring_an_old_passphrase_back(heard: bool, world: World) -> None:
    """A device that sits behind the passphrase of before still opens with it, and makes no kit for it."""
    remote, one = world.begin()
    with remote.connected():
        change_passphrase(one.vault)
        two = restored(world.two, world.folder / "two")
        if heard:
            two.sync()
        with pytest.raises(PassphraseWrong):
            new_kit(two.vault)
        with two.vault._writing() as opened:
            rekeying.new_kit(opened, stretch_of(NEW_PASSPHRASE), None)
        kit = two.vault.emergency_kit
        with pytest.raises(KitOrPassphrase):
            joined_device(world.folder / "third", remote, kit, PASSPHRASE)
        joined_device(world.folder / "third", remote, kit, NEW_PASSPHRASE).close()
        for device in (one, two):
            device.close()


# ── recovery ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("moment", Break)
@pytest.mark.parametrize("place", ["elsewhere", "one"])
def test_recovery_broken_off_at_any_exchange_is_done_when_tried_again(place: str, moment: Break, world: World) -> None:
    """On a new device, and in the folder of one whose passphrase was lost."""
    for number in count():
        remote, one = world.begin()
        path = world.folder / place
        with remote.connected():
            if place == "elsewhere":
                one.sync()  # what it has not sent cannot come back without it
            one.close()
            path.mkdir(exist_ok=True)
            disk = one.disk if place == "one" else CrashDisk(world.folder)
            remote.breaks = {number: moment}
            with contextlib.suppress(RemoteUnreachable):
                power_off(recover(path, disk, world.code))
            never_broke = bool(remote.breaks)
            remote.breaks.clear()
            disk = disk.after_crash(ALL_LOST)
            vault = recover(path, disk, world.code)
            assert not vault._opened.device.marks.replaces
            is_whole(remote, vault, world.folder, world.two, NEW_PASSPHRASE)
            with pytest.raises(KitOrPassphrase):
                joined_device(world.folder / "fourth", remote, world.kit, PASSPHRASE)
            with pytest.raises(PassphraseWrong):
                open_vault(path, disk, PASSPHRASE)
        if never_broke:
            return


def test_recovered_device_ends_the_one_whose_place_it_took(world: World) -> None:
    remote, one = world.begin()
    old_file = one.disk.read(one.folder / "device.mseal") or b""
    one.close()
    with remote.connected():
        recover(one.folder, one.disk, world.code).close()
        with open_vault(one.folder, one.disk, NEW_PASSPHRASE) as vault:
            # This device, and the other one, whose passphrase is still the one of before.
            assert [device.old_passphrase for device in vault.status().devices] == [True, False]
            vault.sync()
        one.disk.write(one.folder / "device.mseal", 0, old_file)
        with pytest.raises(PassphraseWrong):
            open_vault(one.folder, one.disk, NEW_PASSPHRASE)


def test_device_behind_an_older_passphrase_is_recovered_with_that_one(world: World) -> None:
    """The newer one, made on the other device, is what was lost."""
    remote, one = world.begin()
    with remote.connected():
        one.sync()
        change_passphrase(one.vault)
        one.close()
        two = restored(world.two, world.folder / "two")
        two.sync()
        two.close()
        with recover(two.folder, two.disk, world.code, ADDRESS, PASSPHRASE) as vault:
            assert contents(vault) == CONTENTS - {"written afterwards"}
            kit = vault.emergency_kit
        joined_device(world.folder / "third", remote, kit, PASSPHRASE).close()


def test_recovery_code_stays_when_a_device_joins(world: World) -> None:
    remote, one = world.begin()
    one.close()
    with remote.connected():
        joined_device(world.folder / "third", remote, world.kit).close()
        with recover(one.folder, one.disk, world.code) as vault:
            assert contents(vault) == CONTENTS - {"written afterwards"}


def test_replaced_recovery_code_opens_nothing_on_the_server(world: World) -> None:
    remote, one = world.begin()
    with remote.connected():
        one.vault.new_recovery_code()
        one.close()
        with pytest.raises(RecoveryCodeWrong):
            recover(world.folder / "elsewhere", CrashDisk(world.folder), world.code)
        with pytest.raises(RecoveryCodeWrong):
            recover(one.folder, one.disk, world.code)
        assert not (world.folder / "elsewhere").exists()
        open_vault(one.folder, one.disk).close()


# ── older keys ──────────────────────────────────────────────────────────────────────────────────────


def version_is_whole(device: Device, number: int) -> bool:
    content = device.disk.read(device.folder / "keyring" / f"{number:08d}.mseal")
    return decode_version(content or b"").boxes is not None


def forget_epochs(vault: Vault) -> None:
    """A new epoch whose version gives no older vault keys: what a device makes once a floor covers their logs."""
    with vault._writing() as opened:
        rekeying.renew(opened, lambda: Change(epochs=()), None)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[MemoryRemote, Device, Device]]:
    """Two devices: `two` has not sent what it wrote, and `one` began an epoch without old keys and wrote under it."""
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.vault.remember("from two", source="test")
        forget_epochs(one.vault)
        one.vault.remember("from one", source="test")
        one.sync()
        yield remote, one, two
        for device in (one, two):
            device.close()


def test_what_only_an_older_version_opens_is_kept_until_it_is_written_again(
    pair: tuple[MemoryRemote, Device, Device],
) -> None:
    remote, one, two = pair
    before = two.vault.status().keyring_version

    remote.breaks = {2: Break.BEFORE}  # the new version is here, and the log is asked for
    with pytest.raises(RemoteUnreachable):
        two.sync()
    power_off(two.vault)
    two.disk = two.disk.after_crash(ALL_LOST)
    two.vault = open_vault(two.folder, two.disk)
    assert two.vault.status().keyring_version == before + 1
    assert contents(two.vault) == {"from two"}
    assert two.vault.verify() == []
    assert version_is_whole(two, before)
    two.sync()
    assert contents(two.vault) == {"from one", "from two"}
    assert not version_is_whole(two, before)
    one.sync()
    assert contents(one.vault) == {"from one", "from two"}


@pytest.mark.parametrize("moment", Break)
def test_sync_to_newer_keys_broken_off_anywhere_loses_nothing(
    moment: Break, pair: tuple[MemoryRemote, Device, Device]
) -> None:
    remote, _, two = pair
    two.close()
    for number in count():
        there, device = remote.copy(), restored(two.disk, two.folder)
        with there.connected():
            there.breaks = {number: moment}
            with contextlib.suppress(RemoteUnreachable):
                device.sync()
            never_broke = bool(there.breaks)
            there.breaks.clear()
            power_off(device.vault)
            after = restored(device.disk.after_crash(ALL_LOST), two.folder)
            assert "from two" in contents(after.vault)
            assert after.vault.status().findings == []
            after.sync()
            assert contents(after.vault) == {"from one", "from two"}
            assert after.vault.status().findings == []
            after.close()
        if never_broke:
            return


def test_own_change_of_keys_carries_on_what_only_an_older_version_opened(
    pair: tuple[MemoryRemote, Device, Device],
) -> None:
    _, one, two = pair
    two.sync()
    with two.vault._writing() as opened:
        stretch: Stretch = stretch_of(NEW_PASSPHRASE)
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch, NEW_PASSPHRASE, None)
    two.passphrase = NEW_PASSPHRASE
    two.reopen(from_cache=False)
    one.sync()
    assert contents(one.vault) == contents(two.vault) == {"from one", "from two"}


def test_log_that_others_still_read_keeps_the_version_that_opens_it(tmp_path: Path) -> None:
    """Here nothing covers the log of the old epoch: as long as it is here, so is its key."""
    remote = MemoryRemote()
    with remote.connected():
        one = first_device(tmp_path / "one")
        one.vault.remember("sent", source="test")
        one.sync()
        two = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        two.sync()
        forget_epochs(one.vault)
        two.sync()
        assert version_is_whole(two, 2)
        two.reopen(from_cache=False)
        assert contents(two.vault) == {"sent"}
        # A version that gives the key again makes the older one needless.
        two.vault.rekey()
        assert not version_is_whole(two, 2)
        two.reopen(from_cache=False)
        assert contents(two.vault) == {"sent"}
        for device in (one, two):
            device.close()


# ── damage ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", ["header", "body"])
@pytest.mark.parametrize("name", RENEWALS)
def test_log_that_is_damaged_where_no_remote_has_it_does_not_stop_a_change(name: str, place: str, world: World) -> None:
    remote, one = world.begin()
    one.close()
    with open_vault(one.folder, one.disk) as vault:
        for number in range(3):
            vault.remember(f"number {number}", source="test")
        (log,) = [log for log in vault._opened.logbook.logs.values() if log.stream.epoch == 2]
    file = one.folder / "logs" / f"{log.stream.stream_id.hex()}.mseal"
    content = bytearray(one.disk.read(file) or b"")
    content[len(content) - {"header": 1108, "body": 500}[place]] ^= 1
    one.disk.write(file, 0, bytes(content))
    with remote.connected(), open_vault(one.folder, one.disk) as vault:
        RENEWALS[name](vault)
        vault.sync()
        expected = CONTENTS - {"written afterwards"} | {"number 0", "number 1"}
        assert contents(vault) == expected
        two = restored(world.two, world.folder / "two")
        two.sync()
        assert contents(two.vault) == expected
        two.close()
