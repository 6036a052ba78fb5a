"""Renew a vault's keys: make a version, store it where the keyring lives, go over to it (vault-format §7)."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from memseal.errors import BoxMissing, KitOrPassphrase, PassphraseWrong, RemoteRefused
from memseal.format.boxes import open_device_box, open_slot, slot_cost
from memseal.format.device_file import KeySet, Stretch, seal_key_set
from memseal.format.keyring import KeyringVersion
from memseal.format.keys import RecoverySecret, VaultKey
from memseal.format.kit import Kit, RecoveryCode
from memseal.format.primitives import Cost
from memseal.vault.folder.cache import VIEW
from memseal.vault.folder.device import Device, with_former
from memseal.vault.folder.keychain import load_keyring, save_version
from memseal.vault.folder.opening import Opened, finish_key_change
from memseal.vault.keys.creation import SALT_SIZE, kit_cost
from memseal.vault.keys.joining import put_version
from memseal.vault.keys.versions import Change, Made, next_version, recovery_generation
from memseal.vault.remote import syncing
from memseal.vault.remote.replica import use_keychain

_TRIES = 8  # another device can make a version between our look and our put


def rekey(opened: Opened, remote: str | None) -> None:
    """Begin a new epoch, and nothing else."""
    follow_stored(opened)
    renew(opened, Change, remote)


def end_handed_over(opened: Opened, remote: str | None) -> None:
    """Begin a new epoch where the key of the present one was handed over in a pairing of which no device came."""
    if opened.device.marks.handed_over == opened.keychain.keyring.public.epoch and not opened.pairing:
        rekey(opened, remote)


def new_kit(opened: Opened, passphrase: Stretch, remote: str | None) -> None:
    """Replace the emergency kit by a new one behind the same passphrase; raises `PassphraseWrong`."""

    def change() -> Change:
        prove_passphrase(opened, passphrase)
        return Change(kit=passphrase)

    follow_stored(opened)
    prove_passphrase(opened, passphrase)
    renew(opened, change, remote)


def emergency_kit(opened: Opened) -> str:
    """Return the kit that counts now."""
    chain = opened.keychain
    generation = chain.keyring.public.kit.generation
    return Kit(chain.vault_id, chain.secrets.kit_secret, generation, opened.device.marks.server).to_text()


def new_recovery_code(opened: Opened, remote: str | None) -> str:
    """Make a recovery code, in the place of the one before, and return it: it is kept nowhere."""
    secret = RecoverySecret(secrets.token_bytes(32))
    follow_stored(opened)
    renew(opened, lambda: Change(recovery=secret), remote)
    generation = recovery_generation(opened.keychain.keyring.public)
    return RecoveryCode(opened.device.vault_id, secret, generation, opened.device.marks.server).to_text()


def prove_passphrase(opened: Opened, passphrase: Stretch) -> None:
    """Check a passphrase on the kit slot: this device itself may still sit behind an older one."""
    newest = opened.keychain.keyring.newest
    try:
        open_slot(newest, passphrase(*slot_cost(newest)), opened.keychain.secrets.kit_secret)
    except KitOrPassphrase:
        raise PassphraseWrong("this is not the vault's passphrase: nothing was changed") from None


# ── every change of keys ────────────────────────────────────────────────────────────────────────────


def renew(
    opened: Opened, change: Callable[[], Change | None], remote: str | None, stretch: Stretch | None = None
) -> None:
    """Make a version and go over to it; each step is safe to be the last.

    `change` says what it changes, anew after each lost race (None: nothing, after all); `stretch` is the passphrase
    for new keys of this device.
    A vault that lives on a server changes there first.
    """
    if not opened.device.marks.server:
        wanted = change()
        if wanted is None:
            return
        made = next_version(opened, wanted)
        _announce(opened, made, stretch)
        adopt(opened, [made.version], made.keys, made.vault_key, stretch)
        return
    address = remote or opened.device.marks.server
    for _ in range(_TRIES):
        # Everything of the old epoch is on the server before it ends, and the newest keyring is here.
        full = _sync(opened, address)
        wanted = change()
        if wanted is None:
            return
        if full is not None and not (wanted.same_epoch or wanted.removes):
            raise full  # a floor makes room, a name ends nothing, and a lost device cannot wait
        before, made = opened.device, next_version(opened, wanted)
        _announce(opened, made, stretch)
        if _put(opened.device, made, address):
            adopt(opened, [made.version], made.keys, made.vault_key, stretch)
            return
        opened.device = before
        before.save(opened.folder)  # pending keys go: they are listed nowhere
    raise RemoteRefused("keyring_conflict", 409, "other devices kept changing the keyring: try again")


def _sync(opened: Opened, address: str) -> RemoteRefused | None:
    """Synchronise; returns the refusal where the vault is full, after what the server has was taken in."""
    try:
        syncing.sync(opened, address, accept_rollback=False)
    except RemoteRefused as error:
        if error.code != "limit":
            raise
        return error
    return None


def _announce(opened: Opened, made: Made, stretch: Stretch | None) -> None:
    """Note durably what is about to be stored: new keys as pending, and the version, so that it is known for ours."""
    # What was made before is here by now, and must not seem strange when only the newer one is noted as ours.
    newest = opened.keychain.keyring.newest
    noted = replace(opened.device.marks, keyring=newest.public.version, digest=newest.digest)
    device = opened.device.with_marks(replace(noted, making=made.version.digest))
    if stretch is not None:
        salt = secrets.token_bytes(SALT_SIZE)
        cost = kit_cost(made.version.public.kit)
        slot = seal_key_set(device.file_id, "pending", salt, cost, made.keys, stretch)
        device = replace(device, slots=(device.slots[0], slot))
    device.save(opened.folder)
    # Also in memory: should a later step fail, closing must not drop keys that the keyring may list by then.
    opened.device = device


def _put(device: Device, made: Made, address: str) -> bool:
    """Store the version with the key that it may end, and read it back with the one that it may begin."""
    writer = syncing.open_transport(address, device.vault_id, device.keys.sign)
    reader = syncing.open_transport(address, device.vault_id, made.keys.sign)
    try:
        return put_version(writer, made.version, reader)
    except RemoteRefused as error:
        if error.code != "key_ended":
            raise
        raise syncing.removed() from error  # another device was first
    finally:
        writer.close()
        reader.close()


def adopt(
    opened: Opened, versions: Sequence[KeyringVersion], keys: KeySet, vault_key: VaultKey, stretch: Stretch | None
) -> None:
    """Go over to newer versions: keyring, then device file, then what must be written anew.

    `stretch` is the passphrase that this device's keys are from now on behind, where they are new.
    """
    folder, keyring = opened.folder, opened.keychain.keyring
    for version in versions:
        keyring = keyring.followed_by(version)
        save_version(folder, version)
    device = opened.device
    if stretch is not None:
        device = _with_keys(device, keys, stretch, kit_cost(keyring.public.kit))
    active = {entry.id for entry in keyring.public.active()}
    replaces = device.marks.replaces if device.marks.replaces in active else b""
    marks = replace(device.marks, keyring=keyring.public.version, digest=keyring.newest.digest, replaces=replaces)
    shown = marks.remotes.get(marks.server)
    if shown is not None:
        # The server has it: that it shows less later is noticed.
        marks = replace(marks, remotes={**marks.remotes, marks.server: replace(shown, keyring=marks.keyring)})
    opened.device = device.with_marks(marks)
    opened.device.save(folder)
    if stretch is not None:
        # The cache was sealed under the local key that the old passphrase opens.
        folder.remove(VIEW)
    opened.uncached = sum(log.end.length for log in opened.logbook.logs.values())
    use_keychain(opened, opened.keychain.followed_by(keyring, vault_key))
    finish_key_change(opened)


def _with_keys(device: Device, keys: KeySet, stretch: Stretch, cost: Cost) -> Device:
    keys = replace(keys, local_before=None)
    salt = secrets.token_bytes(SALT_SIZE)
    device = device.with_marks(with_former(device.marks, device.keys.local))
    return replace(device, keys=keys, slots=(seal_key_set(device.file_id, "current", salt, cost, keys, stretch),))


def follow_stored(opened: Opened) -> None:
    """Take in a version that was stored in the folder before an earlier change failed."""
    stored, known = load_keyring(opened.folder, opened.device.vault_id), opened.keychain.keyring.public.version
    if stored.public.version == known:
        return
    device = opened.device
    try:
        vault_key = open_device_box(stored.newest, device.keys.wrap, device.signing_public)
    except BoxMissing:
        raise PassphraseWrong("a change of the passphrase was not completed: change it again, to the same") from None
    adopt(opened, stored.versions[known:], device.keys, vault_key, None)
