"""A server was put back, then its keyring was changed: both branches are joined, and nothing that ended comes back."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from memseal.errors import (
    FormatError,
    KeyringForked,
    KitOrPassphrase,
    MemsealError,
    PassphraseWrong,
    RecoveryCodeWrong,
    RemoteUnreachable,
)
from memseal.format.acceptance import accept as accepted
from memseal.format.boxes import build_version
from memseal.format.derivation import epoch_signing_key
from memseal.format.keys import VaultKey
from memseal.format.kit import parse_recovery_code
from memseal.format.primitives import public_signing_key
from memseal.sync.messages import GetHeads, Heads, PutKeyring, Request
from memseal.vault.copies import branching
from memseal.vault.folder.batch import Batch
from memseal.vault.keys import rekeying, revoking
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import RecoveryOpener
from memseal.vault.keys.versions import Change
from memseal.vault.remote.branches import joined_by
from memseal.vault.remote.syncing import SyncReport
from tests.sync.devices import Device, crashes_of, first_device, joined_device, restored
from tests.sync.memory_remote import ADDRESS, Break, MemoryRemote
from tests.vault.crash_disk import ALL_KEPT, ALL_LOST, Choice, CrashDisk
from tests.vault.small_vault import PASSPHRASE, stretch_of

NEW_PASSPHRASE = "a new passphrase"
BEFORE = {"from one", "from two", "from three"}


@dataclass
class World:
    """Three devices that have synchronised, and a backup of their server from then."""

    folder: Path
    remote: MemoryRemote
    one: Device
    two: Device
    three: Device
    backup: MemoryRemote = field(init=False)

    def __post_init__(self) -> None:
        self.backup = self.remote.copy()

    def put_back(self) -> None:
        """Restore the server from its backup."""
        there = self.backup.copy()
        self.remote.versions, self.remote.logs, self.remote.objects = there.versions, there.logs, there.objects

    def joined(self, kit: str, passphrase: str = PASSPHRASE) -> Device:
        """Return another device, that joins now."""
        return joined_device(self.folder / f"device {len(self.remote.versions)}", self.remote, kit, passphrase)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    remote = MemoryRemote()
    with remote.connected(), ExitStack() as closing:
        one = first_device(tmp_path / "one")
        one.vault.remember("from one", source="test")
        one.sync()
        two, three = (joined_device(tmp_path / name, remote, one.vault.emergency_kit) for name in ("two", "three"))
        two.vault.remember("from two", source="test")
        three.vault.remember("from three", source="test")
        for device in (two, three, one, two, three):
            device.sync()
        for device in (one, two, three):
            closing.callback(device.close)
        yield World(tmp_path, remote, one, two, three)


def contents(device: Device) -> set[str]:
    return {memory.content for memory in device.vault.list(state="all", limit=1_000)}


def accept(device: Device, passphrase: str = PASSPHRASE) -> SyncReport:
    """Synchronise with the user's consent and passphrase."""
    with device.vault._writing() as opened:
        return branching.synchronise(opened, ADDRESS, accept_rollback=True, passphrase=stretch_of(passphrase))


def revoke(device: Device, other: Device) -> None:
    with device.vault._writing() as opened:
        name = other.vault._opened.device.device_id.hex()
        revoking.revoke(opened, name, stretch_of(device.passphrase), None, None)


def new_kit(device: Device) -> None:
    with device.vault._writing() as opened:
        rekeying.new_kit(opened, stretch_of(device.passphrase), None)


def device_key(device: Device) -> bytes:
    return device.vault._opened.device.signing_public


def active(world: World) -> set[bytes]:
    return {entry.sign for entry in world.remote.versions[-1].public.active()}


def write_and_sync(*devices: Device) -> None:
    for number, device in enumerate(devices):
        device.vault.remember(f"later {number}", source="test")
        device.sync()


def assert_one_vault(world: World, expected: set[str], *devices: Device, named: str = "") -> None:
    """All of them, and one that joins now, hold the same, go on, and find nothing (or what is `named`) to be said."""
    for device in (*devices, *devices):
        device.sync()
    newest = devices[0].vault
    third = world.joined(newest.emergency_kit, devices[0].passphrase)
    third.sync()
    for device in (*devices, third):
        assert contents(device) == expected
        assert device.vault.state_digest() == newest.state_digest()
        assert {finding.code for finding in device.vault.status().findings} <= {named}
    write_and_sync(*devices, third)
    for device in (*devices, third):
        device.sync()
        assert contents(device) == expected | {f"later {number}" for number in range(len(devices) + 1)}
    for device in (*devices, third):
        device.reopen(from_cache=False)
        assert {finding.code for finding in device.vault.status().findings} <= {named}
        assert contents(device) == expected | {f"later {number}" for number in range(len(devices) + 1)}
    third.close()


def fork(world: World, here: Callable[[], object] | None = None, there: Callable[[], object] | None = None) -> None:
    """One changes the keyring; the server is put back; two changes it there, and knows nothing of the other change."""
    (here or world.one.vault.rekey)()
    world.one.vault.remember("one alone", source="test")
    world.one.sync()
    world.put_back()
    world.two.sync()
    (there or world.two.vault.rekey)()
    world.two.vault.remember("two alone", source="test")
    world.two.sync()


BOTH = {*BEFORE, "one alone", "two alone"}


# ── what is noticed ─────────────────────────────────────────────────────────────────────────────────


def test_other_branch_is_named_and_changes_nothing_without_consent(world: World) -> None:
    fork(world)
    before, there = world.one.disk.files(), list(world.remote.versions)
    with pytest.raises(KeyringForked, match="--accept-rollback"):
        world.one.sync()
    assert contents(world.one) == {*BEFORE, "one alone"}
    assert world.one.disk.files() == before
    assert world.remote.versions == there


def test_other_branch_that_is_only_claimed_is_not_joined(world: World) -> None:
    before, there = world.one.disk.files(), list(world.remote.versions)
    world.remote.lie = lambda request, answer: (
        replace(answer, keyring=(len(there), bytes(32))) if isinstance(answer, Heads) else answer
    )
    with pytest.raises(KeyringForked, match="do not trust it"):
        accept(world.one)
    assert world.one.disk.files() == before
    assert world.remote.versions == there


def times(count: int, change: Callable[[], object]) -> Callable[[], None]:
    def change_all() -> None:
        for _ in range(count):
            change()

    return change_all


@pytest.mark.parametrize(("here", "there"), [(1, 3), (2, 2), (3, 1)])
def test_branch_of_any_length_is_found_and_joined(world: World, here: int, there: int) -> None:
    fork(world, times(here, world.one.vault.rekey), times(there, world.two.vault.rekey))
    with pytest.raises(KeyringForked):
        world.one.sync()
    report = accept(world.one)
    assert report.joined is not None
    assert report.joined.emergency_kit is None
    assert_one_vault(world, BOTH, world.one, world.two, world.three)


def test_device_of_the_branch_that_was_given_up_follows_without_being_asked(world: World) -> None:
    def here() -> None:
        world.one.vault.rekey()
        world.three.sync()
        world.three.vault.remember("three alone", source="test")
        world.three.sync()

    fork(world, here)
    accept(world.one)
    world.three.sync()
    assert_one_vault(world, BOTH | {"three alone"}, world.three, world.one, world.two)


def test_device_that_was_further_on_the_branch_that_was_given_up_joins_what_it_has(world: World) -> None:
    def here() -> None:
        world.one.vault.rekey()
        ahead = world.remote.copy()
        world.three.sync()
        world.three.vault.rekey()
        world.three.vault.remember("three alone", source="test")
        world.three.sync()
        world.remote.versions, world.remote.logs = ahead.versions, ahead.logs

    fork(world, here)
    accept(world.one)
    with pytest.raises(KeyringForked):
        world.three.sync()
    accept(world.three)
    assert_one_vault(world, BOTH | {"three alone"}, world.one, world.two, world.three)


# ── what ended stays ended ──────────────────────────────────────────────────────────────────────────


def test_device_that_was_revoked_on_one_branch_stays_revoked(world: World) -> None:
    fork(world, lambda: revoke(world.one, world.three))
    world.three.vault.remember("three afterwards", source="test")
    world.three.sync()
    report = accept(world.one)
    assert device_key(world.three) not in active(world)
    with pytest.raises(MemsealError) as caught:
        world.three.sync()
    assert caught.value.code == "device_ended"
    assert report.joined is not None
    assert report.joined.emergency_kit == world.one.vault.emergency_kit
    assert_one_vault(world, BOTH, world.one, world.two, named="stream_ended")


def test_device_that_was_revoked_on_the_servers_branch_stays_revoked(world: World) -> None:
    fork(world, there=lambda: revoke(world.two, world.three))
    accept(world.one)
    assert device_key(world.three) not in active(world)
    assert_one_vault(world, BOTH, world.one, world.two)


def test_kit_that_was_replaced_on_one_branch_opens_nothing(world: World) -> None:
    old = world.one.vault.emergency_kit
    fork(world, lambda: new_kit(world.one))
    accept(world.one)
    with pytest.raises(KitOrPassphrase):
        world.joined(old)
    assert_one_vault(world, BOTH, world.one, world.two, world.three)


def test_who_came_in_by_a_kit_that_was_replaced_has_to_come_again(world: World) -> None:
    old = world.one.vault.emergency_kit
    fork(world, lambda: new_kit(world.one))
    thief = world.joined(old)
    thief.sync()
    thief.vault.remember("by who came in", source="test")
    thief.sync()
    accept(world.one)
    assert device_key(thief) not in active(world)
    with pytest.raises(MemsealError) as caught:
        thief.sync()
    assert caught.value.code == "device_ended"
    thief.close()
    assert_one_vault(world, BOTH | {"by who came in"}, world.one, world.two, world.three)


def test_join_that_takes_a_passphrase_says_so_and_changes_nothing_without_it(world: World) -> None:
    fork(world, lambda: new_kit(world.one))
    there = list(world.remote.versions)
    with pytest.raises(KeyringForked, match="passphrase"):
        world.one.sync(accept_rollback=True)
    with pytest.raises(PassphraseWrong):
        accept(world.one, "a wrong one")
    assert world.remote.versions == there


def test_passphrase_that_was_changed_on_one_branch_is_the_one_that_counts(world: World) -> None:
    """Three follows the change and still sits behind the old passphrase: so it is in both branches."""

    def here() -> None:
        world.one.change_passphrase(NEW_PASSPHRASE)
        world.three.sync()

    old = world.one.vault.emergency_kit
    fork(world, here)
    with pytest.raises(KeyringForked, match="Join again"):
        accept(world.one, NEW_PASSPHRASE)
    with pytest.raises(MemsealError) as caught:
        accept(world.three, PASSPHRASE)
    assert caught.value.code == "passphrase_wrong"
    accept(world.three, NEW_PASSPHRASE)
    with pytest.raises(KitOrPassphrase):
        world.joined(old)
    for device in (world.two, world.three):
        device.sync()
        device.change_passphrase(NEW_PASSPHRASE)
    assert_one_vault(world, {*BEFORE, "two alone"}, world.three, world.two)


def test_device_of_one_branch_alone_joins_again_and_brings_along_what_only_it_has(world: World) -> None:
    fork(world, lambda: revoke(world.one, world.three))
    world.three.vault.remember("three alone", source="test")
    world.three.sync()
    accept(world.one)
    world.three.vault.remember("three unsent", source="test")
    bundle = world.folder / "bundle"
    world.three.vault.export_bundle(bundle, "of the bundle")
    again = world.joined(world.one.vault.emergency_kit)
    again.sync()
    again.vault.import_bundle(bundle, "of the bundle")
    everything = BOTH | {"three alone", "three unsent"}
    assert_one_vault(world, everything, again, world.one, world.two, named="stream_ended")
    again.close()


def test_forged_name_of_the_branch_here_is_not_followed(world: World) -> None:
    """Three, revoked here, is still a device there, and says that it has joined both."""
    fork(world, lambda: revoke(world.one, world.three))
    with world.three.vault._writing() as opened:
        newest = world.one.vault._opened.keychain.keyring.newest.digest
        rekeying.renew(opened, lambda: Change(joins=[newest]), None)
    assert newest in joined_by(world.remote.versions[-1].public)
    with pytest.raises(KeyringForked):
        world.one.sync()
    accept(world.one)
    assert device_key(world.three) not in active(world)
    assert_one_vault(world, BOTH, world.one, world.two)


def test_who_joins_by_the_newest_kit_is_not_led_to_the_branch_of_a_removed_device(world: World) -> None:
    """Three, removed here, makes a version of its own there, with the kit's public keys and slot from here."""
    revoke(world.one, world.three)
    true, kit = world.remote.versions[-1], world.one.vault.emergency_kit
    world.put_back()
    with world.three.vault._writing() as opened:
        public, key = opened.keychain.keyring.public, VaultKey(bytes(range(32)))
        epoch_keys = [
            epoch_signing_key(opened.keychain.vault_key, true.vault_id, public.epoch),
            epoch_signing_key(key, true.vault_id, public.epoch + 1),
        ]
        number = public.version + 1
        changed = replace(
            public,
            version=number,
            previous=opened.keychain.keyring.newest.digest,
            epoch=public.epoch + 1,
            epoch_since=number,
            epoch_key=public_signing_key(epoch_keys[1]),
            kit=true.public.kit,
        )
        signers = [opened.device.keys.sign, *epoch_keys]
        forged = build_version(true.vault_id, changed, key, opened.keychain.secrets, true.slots, signers)
    accepted(world.remote.versions[-1], forged)
    world.remote.versions.append(forged)
    with pytest.raises(FormatError) as caught:
        world.joined(kit)
    assert caught.value.code == "slot_mismatch"


# ── what else was on one branch ─────────────────────────────────────────────────────────────────────


def erase(device: Device, content: str) -> None:
    (memory,) = [each for each in device.vault.list(state="all") if each.content == content]
    device.vault.erase(memory.id)


@pytest.mark.parametrize("side", ["here", "there"])
def test_memory_that_was_erased_on_one_branch_stays_erased(world: World, side: str) -> None:
    if side == "here":
        fork(world, lambda: erase(world.one, "from two"))
    else:
        fork(world, there=lambda: erase(world.two, "from two"))
    accept(world.one)
    assert_one_vault(world, BOTH - {"from two"}, world.one, world.two, world.three)


@pytest.mark.parametrize("side", ["here", "there", "both"])
def test_floor_of_one_branch_loses_nothing(world: World, side: str) -> None:
    here = world.one.vault.compact if side != "there" else None
    there = world.two.vault.compact if side != "here" else None
    fork(world, here, there)
    accept(world.one)
    assert_one_vault(world, BOTH, world.one, world.two, world.three)


def test_device_that_had_seen_more_than_the_backup_brings_that_back_too(world: World) -> None:
    """Two names records that the server lost: nobody may miss them for ever, though one has them in a checkpoint."""
    world.one.vault.remember("after the backup", source="test")
    world.one.sync()
    world.two.sync()
    world.two.vault.remember("naming it", source="test")
    world.two.sync()
    world.one.sync()
    world.one.vault.compact()
    world.one.vault.remember("one alone", source="test")
    world.one.sync()
    world.put_back()
    world.two.sync(accept_rollback=True)
    world.two.vault.rekey()
    world.two.vault.remember("two alone", source="test")
    world.two.sync()
    accept(world.one)
    expected = BOTH | {"after the backup", "naming it"}
    world.three.sync()
    assert_one_vault(world, expected, world.one, world.two, world.three)


def test_memory_keeps_its_id_and_first_stamp(world: World) -> None:
    fork(world, times(3, lambda: world.one.vault.remember("one alone", source="test")))
    before = stamps(world.one)
    accept(world.one)
    world.two.sync()
    after = stamps(world.two)
    assert {memory_id: after[memory_id] for memory_id in before} == before


def stamps(device: Device) -> dict[bytes, bytes]:
    return dict(device.vault._opened.logbook.view.state.connection.execute("SELECT id, stamp FROM memories"))


class History:
    """Things that devices do, drawn from a seed, and what the memories are afterwards."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.written = set(BEFORE)
        self.erased = set[str]()

    def goes_on(self, device: Device) -> None:
        """Do a few things on a device, and synchronise it now and then."""
        for _ in range(self.random.randrange(1, 6)):
            self.random.choice(
                [self.remember, self.remember, self.supersede, self.retract, self.erase, self.compact, self.rekey]
            )(device)
            if self.random.random() < 0.5:
                device.sync()

    def remember(self, device: Device) -> None:
        self.written.add(content := f"number {len(self.written)} of {device.folder.name}")
        device.vault.remember(content, source="test", tags=[device.folder.name])

    def one_of(self, device: Device) -> str | None:
        memories = [memory.id for memory in device.vault.list(limit=1_000)]
        return self.random.choice(sorted(memories)) if memories else None

    def supersede(self, device: Device) -> None:
        if (target := self.one_of(device)) is not None:
            self.written.add(content := f"number {len(self.written)} instead, of {device.folder.name}")
            device.vault.supersede(target, content, source="test")

    def retract(self, device: Device) -> None:
        if (target := self.one_of(device)) is not None:
            device.vault.retract(target, reason=device.folder.name)

    def erase(self, device: Device) -> None:
        if (target := self.one_of(device)) is not None:
            before = contents(device)
            device.vault.erase(target)
            self.erased |= before - contents(device)

    def compact(self, device: Device) -> None:
        device.vault.compact()

    def rekey(self, device: Device) -> None:
        device.vault.rekey()


@pytest.mark.parametrize("seed", range(8))
def test_any_histories_of_two_branches_come_together(world: World, seed: int) -> None:
    history, here, there = History(seed), (world.one, world.three), world.two
    for _ in range(3):
        history.goes_on(history.random.choice(here))
    for device in here:
        device.vault.rekey()
        device.sync()
    world.put_back()
    there.sync()
    there.vault.rekey()
    history.goes_on(there)
    there.sync()
    for device in history.random.sample(here, k=2):
        device.vault.remember(f"unsent {device.folder.name}", source="test")
        history.written.add(f"unsent {device.folder.name}")
        accept(device)
        history.goes_on(there)
    everybody = (*here, there)
    for device in everybody * 3:
        device.sync()
    for device in everybody:
        assert contents(device) == history.written - history.erased
        assert device.vault.state_digest() == there.vault.state_digest()
        assert device.vault.status().findings == []
        device.reopen(from_cache=False)
        assert contents(device) == history.written - history.erased


def test_operation_of_newer_software_is_not_given_up_with_its_log(world: World) -> None:
    def here() -> None:
        world.one.vault.rekey()
        with world.one.vault._writing() as opened:
            opened.logbook.write([Batch(values=[{"op": "newer", "id": bytes(16)}])], bytes(4))

    fork(world, here)
    world.one.reopen(from_cache=False)
    before, there = contents(world.one), list(world.remote.versions)
    with pytest.raises(FormatError, match="update memseal") as caught:
        accept(world.one)
    assert caught.value.code == "operation_unknown"
    assert (contents(world.one), world.remote.versions) == (before, there)
    [record] = world.one.vault.quarantine()
    world.one.vault.dismiss(record)
    accept(world.one)
    assert_one_vault(world, BOTH, world.one, world.two, world.three)


@pytest.mark.parametrize("breaks", [False, True])
def test_new_recovery_code_is_shown_once_also_where_the_connection_breaks_after_it_was_made(
    world: World, breaks: bool
) -> None:
    old = world.one.vault.new_recovery_code()
    for device in (world.two, world.three):
        device.sync()
    world.backup = world.remote.copy()
    fork(world, lambda: revoke(world.one, world.three))
    made = list[Request]()

    def before(request: Request) -> None:
        if made and isinstance(request, GetHeads):
            raise RemoteUnreachable("gone")
        made.extend([request] if breaks and isinstance(request, PutKeyring) else [])

    world.remote.before = before
    report = accept(world.one)
    assert [finding.code for finding in report.findings] == (["remote_unreachable"] if breaks else [])
    world.remote.before = lambda request: None
    assert report.joined is not None
    assert report.joined.recovery_code is not None
    for code, opens in ((old, False), (report.joined.recovery_code, True)):
        path = world.folder / f"recovered {opens}"
        path.mkdir()
        opener, stretch = RecoveryOpener(parse_recovery_code(code)), stretch_of(PASSPHRASE)
        with nullcontext() if opens else pytest.raises(RecoveryCodeWrong):
            join_with(path, CrashDisk(world.folder), opener, stretch, ADDRESS, path.name)
    assert_one_vault(world, BOTH, world.one, world.two)


# ── cut short ───────────────────────────────────────────────────────────────────────────────────────


def forked_twice(world: World) -> tuple[CrashDisk, MemoryRemote]:
    """Return the disk of device one and the remote, where one has more than one reason to lose something."""
    world.one.vault.compact()

    def here() -> None:
        world.one.vault.remember("in the checkpoint alone", source="test")
        world.one.vault.compact()
        revoke(world.one, world.three)

    fork(world, here)
    world.one.vault.remember("one unsent", source="test")
    world.one.close()
    return world.one.disk.copy(), world.remote.copy()


ALL = BOTH | {"in the checkpoint alone", "one unsent"}


def is_joined(world: World, device: Device) -> None:
    accept(device)
    device.reopen(from_cache=False)
    assert contents(device) == ALL
    assert device.vault.status().findings == []
    assert device_key(world.three) not in {
        entry.sign for entry in device.vault._opened.keychain.keyring.public.active()
    }


@pytest.mark.parametrize("fate", [ALL_KEPT, ALL_LOST])
def test_crash_at_any_step_of_a_join_loses_nothing(world: World, fate: Choice) -> None:
    before, remote = forked_twice(world)
    stops = list(crashes_of(before, world.one.folder, remote, accept, fate))
    assert len(stops) > 10
    for found, there in stops:
        with there.connected():
            device = restored(found, world.one.folder)
            # Offline, too, nothing is missed.
            assert contents(device) >= ALL - {"two alone"}
            is_joined(world, device)
            device.close()


@pytest.mark.parametrize("moment", Break)
def test_join_broken_off_at_any_exchange_is_done_by_the_next(world: World, moment: Break) -> None:
    before, remote = forked_twice(world)
    met, number = True, 0
    while met:
        there = remote.copy()
        with there.connected():
            device = restored(before, world.one.folder)
            there.breaks[number] = moment
            with suppress(RemoteUnreachable):
                accept(device)
            met = not there.breaks
            there.breaks.clear()
            assert contents(device) >= ALL - {"two alone"}
            is_joined(world, device)
            device.close()
        number += 1
    assert number > 15
