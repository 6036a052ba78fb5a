"""Change the passphrase, or take on a change made on another device (vault-format §7 and §8)."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memseal.errors import PassphraseWrong, RemoteRefused
from memseal.format.boxes import build_version, open_device_box, open_slot, slot_cost
from memseal.format.derivation import epoch_signing_key
from memseal.format.device_file import DeviceFile, KeySet, Stretch, open_key_set, seal_key_set
from memseal.format.keyring import Ended, KeyringVersion, Slot, decode_version
from memseal.format.keys import VaultKey
from memseal.format.log import End
from memseal.format.primitives import STANDARD_COST, check_passphrase, public_signing_key
from memseal.transport import Transport
from memseal.vault.cache import VIEW
from memseal.vault.creation import SALT_SIZE, NewKit, entry_for, new_key_set
from memseal.vault.device import Device, read_device_file
from memseal.vault.joining import fetch, put_version
from memseal.vault.keychain import Keychain, load_keyring, save_version
from memseal.vault.opening import Opened, finish_key_change
from memseal.vault.replica import use_keychain
from memseal.vault.syncing import open_transport, sync

_TRIES = 8  # another device can make a version between our look and our put


def change(opened: Opened, old: Stretch, new: Stretch, new_passphrase: str, remote: str | None) -> None:
    """Replace this device's keys by ones behind the new passphrase; each step is safe to be the last."""
    check_passphrase(new_passphrase)
    file = read_device_file(opened.folder)
    if open_key_set(file, file.slots[0], old) is None:
        raise PassphraseWrong("the old passphrase is wrong: nothing was changed")
    if not opened.device.marks.server:
        if not _finish_here(opened, file, new):
            _change(opened, new, None)
        return
    address = remote or opened.device.marks.server
    if _finish_earlier(opened, file, new, address):
        return
    for _ in range(_TRIES):
        # Everything of the old epoch is on the server before it ends, and the newest keyring is here.
        sync(opened, address, accept_rollback=False)
        if _change(opened, new, address):
            return
    raise RemoteRefused("keyring_conflict", 409, "other devices kept changing the keyring: try again")


def _change(opened: Opened, new: Stretch, address: str | None) -> bool:
    """Make the version; False where another device's came first, and nothing was changed."""
    device = opened.device
    made = _new_version(opened, new, _kept_ends(opened, address is not None))
    pending = _with_pending(device, made.keys, new)
    pending.save(opened.folder)
    # Also in memory: should a later step fail, closing must not drop keys that the keyring may list by then.
    opened.device = pending
    if address is not None and not _put(device, made, address):
        opened.device = device
        device.save(opened.folder)  # the pending keys go: they are listed nowhere
        return False
    _adopt(opened, [made.version], made.keys, made.vault_key, new)
    return True


def _put(device: Device, made: "_Made", address: str) -> bool:
    """Store the version with the key that it ends, and read it back with the one that it begins."""
    writer = open_transport(address, device.vault_id, device.keys.sign)
    reader = open_transport(address, device.vault_id, made.keys.sign)
    try:
        return put_version(writer, made.version, reader)
    finally:
        writer.close()
        reader.close()


def _adopt(opened: Opened, versions: Sequence[KeyringVersion], keys: KeySet, vault_key: VaultKey, new: Stretch) -> None:
    """Go over to new keys that the keyring lists: keyring, then device file, then what must be written anew."""
    folder, device, keyring = opened.folder, opened.device, opened.keychain.keyring
    for version in versions:
        keyring = keyring.followed_by(version)
        save_version(folder, version)
    keys = replace(keys, local_before=None)
    salt = secrets.token_bytes(SALT_SIZE)
    slot = seal_key_set(device.file_id, "current", salt, STANDARD_COST, keys, new)
    marks = replace(device.marks, keyring=keyring.public.version, digest=keyring.newest.digest)
    opened.device = replace(device, keys=keys, slots=(slot,), marks=marks)
    opened.device.save(folder)
    # The cache was sealed under the local key that the old passphrase opens.
    folder.remove(VIEW)
    opened.uncached = sum(log.end.length for log in opened.logbook.logs.values())
    use_keychain(opened, Keychain.of(keyring, vault_key))
    finish_key_change(opened)


def _finish_here(opened: Opened, file: DeviceFile, new: Stretch) -> bool:
    """Complete a change that failed after its version was stored in the folder."""
    stored, known = load_keyring(opened.folder, opened.device.vault_id), opened.keychain.keyring.public.version
    if stored.public.version == known:
        return False
    pending = [open_key_set(file, slot, new) for slot in file.slots if slot.state == "pending"]
    keys = pending[0] if pending else None
    if keys is None:
        raise PassphraseWrong("an earlier change was not completed: give its new passphrase first")
    vault_key = open_device_box(stored.newest, keys.wrap, public_signing_key(keys.sign))
    _adopt(opened, stored.versions[known:], keys, vault_key, new)
    return True


def _finish_earlier(opened: Opened, file: DeviceFile, new: Stretch, address: str) -> bool:
    """Complete a change whose answer was lost: the server may have the version that lists the pending keys."""
    pending = [open_key_set(file, slot, new) for slot in file.slots if slot.state == "pending"]
    keys = pending[0] if pending else None
    if keys is None:
        return False
    reader = open_transport(address, opened.device.vault_id, keys.sign)
    try:
        versions = _newer_versions(opened, reader)
    except RemoteRefused as error:
        if error.code not in ("key_unknown", "key_ended"):
            raise
        return False  # the server never took it
    finally:
        reader.close()
    vault_key = open_device_box(versions[-1], keys.wrap, public_signing_key(keys.sign))
    _adopt(opened, versions, keys, vault_key, new)
    return True


def _newer_versions(opened: Opened, reader: Transport) -> list[KeyringVersion]:
    first = opened.keychain.keyring.public.version + 1
    newest = decode_version(fetch(reader, None), opened.device.vault_id)
    between = [
        decode_version(fetch(reader, number), opened.device.vault_id) for number in range(first, newest.public.version)
    ]
    return [*between, newest]


@dataclass(frozen=True)
class _Made:
    version: KeyringVersion
    vault_key: VaultKey
    keys: KeySet


def _kept_ends(opened: Opened, on_server: bool) -> Mapping[bytes, End]:
    """Return where this device's streams end: what the server has of them; without one, everything is written anew."""
    own = {stream_id: log.end for stream_id, log in opened.logbook.logs.items() if opened.logbook.is_own(log)}
    return own if on_server else {}


def _new_version(opened: Opened, new: Stretch, ends: Mapping[bytes, End]) -> _Made:
    device, keyring = opened.device, opened.keychain.keyring
    before, vault_id, number = keyring.public, opened.device.vault_id, keyring.public.version + 1
    keys = replace(new_key_set(), local_before=device.keys.local)
    vault_key = VaultKey(secrets.token_bytes(32))
    epoch_key = epoch_signing_key(vault_key, vault_id, before.epoch + 1)
    entries = tuple(
        replace(entry, ended=Ended(number, ends)) if entry.sign == device.signing_public else entry
        for entry in before.devices
    )
    public = replace(
        before,
        version=number,
        previous=keyring.newest.digest,
        epoch=before.epoch + 1,
        epoch_since=number,
        epoch_key=public_signing_key(epoch_key),
        devices=(*entries, entry_for(keys, device.device_id, number)),
    )
    hidden = opened.keychain.secrets
    hidden = replace(hidden, history={**hidden.history, before.epoch: opened.keychain.vault_key})
    slot = _proven_slot(opened, new)
    if slot is None:
        kit = NewKit.draw(vault_id, before.kit.generation + 1, number)
        public = replace(public, kit=kit.entry, passphrase_since=number)
        hidden = replace(hidden, kit_secret=kit.secret)
        slot = kit.slot(vault_id, public, new)
    old_epoch_key = epoch_signing_key(opened.keychain.vault_key, vault_id, before.epoch)
    signers = [device.keys.sign, keys.sign, old_epoch_key, epoch_key]
    return _Made(build_version(vault_id, public, vault_key, hidden, slot, signers), vault_key, keys)


def _proven_slot(opened: Opened, new: Stretch) -> Slot | None:
    """Return the kit slot, if another device changed the passphrase and `new` opens it; None for our own change."""
    newest = opened.keychain.keyring.newest
    entry = newest.public.entry_of(opened.device.signing_public)
    if entry is None or entry.since >= newest.public.passphrase_since:
        return None
    open_slot(newest, new(*slot_cost(newest)), opened.keychain.secrets.kit_secret)
    return newest.slot


def _with_pending(device: Device, keys: KeySet, new: Stretch) -> Device:
    salt = secrets.token_bytes(SALT_SIZE)
    slot = seal_key_set(device.file_id, "pending", salt, STANDARD_COST, keys, new)
    return replace(device, slots=(device.slots[0], slot))
