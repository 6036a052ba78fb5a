"""Begin a vault: first keys, first keyring version, first device file; draw what later versions renew."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memseal.format.boxes import (
    Secrets,
    SlotContent,
    build_version,
    public_part_hash,
    seal_recovery_slot,
    seal_slot,
)
from memseal.format.derivation import epoch_signing_key, kit_request_key, kit_slot_key, recovery_request_key
from memseal.format.device_file import KeySet, Stretch, seal_key_set
from memseal.format.keyring import DeviceEntry, KeyringVersion, KitEntry, PublicSection, Slot, Slots
from memseal.format.keys import KitSecret, LocalKey, RecoverySecret, SigningKey, VaultKey, WrappingKey
from memseal.format.preamble import vault_id_of
from memseal.format.primitives import (
    STANDARD_COST,
    Cost,
    check_passphrase,
    public_signing_key,
    public_wrapping_key,
)
from memseal.memory.data_class import ARCHIVAL, GENERAL, MEDICAL
from memseal.store.disk import Disk
from memseal.store.folder import VaultFolder
from memseal.vault.folder.device import Device, Marks
from memseal.vault.folder.keychain import save_version

SALT_SIZE = 32
MEDICAL_COST = Cost(memory=131072, passes=3, lanes=4)
COSTS: Mapping[str, Cost] = {GENERAL: STANDARD_COST, MEDICAL: MEDICAL_COST, ARCHIVAL: STANDARD_COST}
"""What stretching the passphrase costs in a new vault of each data class; every later slot keeps to it."""


def new_key_set() -> KeySet:
    """Return fresh private keys for a device."""
    return KeySet(
        SigningKey(secrets.token_bytes(32)), WrappingKey(secrets.token_bytes(32)), LocalKey(secrets.token_bytes(32))
    )


def entry_for(keys: KeySet, device_id: bytes, version: int) -> DeviceEntry:
    """Return the keyring entry that lists a key set from a version on."""
    return DeviceEntry(device_id, public_signing_key(keys.sign), public_wrapping_key(keys.wrap), version)


@dataclass(frozen=True)
class NewKit:
    """A new kit before its version is made: its secret, wrapping seed, and what the keyring lists of it."""

    secret: KitSecret
    seed: WrappingKey
    entry: KitEntry

    @classmethod
    def draw(cls, vault_id: bytes, generation: int, version: int, cost: Cost) -> "NewKit":
        """Draw the secrets of a new kit, behind a passphrase that is stretched at this cost."""
        secret, seed = KitSecret(secrets.token_bytes(16)), WrappingKey(secrets.token_bytes(32))
        request = public_signing_key(kit_request_key(secret, vault_id, generation))
        return cls(secret, seed, KitEntry(generation, version, public_wrapping_key(seed), request, cost))

    def slot(self, vault_id: bytes, public: PublicSection, stretch: Stretch) -> Slot:
        """Return the slot that passphrase and kit secret open, pinned to the version with this public section."""
        salt, generation = secrets.token_bytes(SALT_SIZE), self.entry.generation
        cost = kit_cost(self.entry)
        key = kit_slot_key(stretch(salt, cost), self.secret, salt, vault_id, generation, cost)
        content = SlotContent(self.seed, public.version, public_part_hash(vault_id, public))
        return seal_slot(key, vault_id, generation, salt, content)


def kit_cost(entry: KitEntry) -> Cost:
    """Return what stretching the passphrase costs in a vault with this kit: the same for every slot of its devices."""
    return entry.cost or STANDARD_COST


@dataclass(frozen=True)
class NewRecovery:
    """A new recovery code before its version is made: its secret, wrapping seed, and what the keyring lists of it."""

    secret: RecoverySecret
    seed: WrappingKey
    entry: KitEntry

    @classmethod
    def draw(cls, secret: RecoverySecret, vault_id: bytes, generation: int, version: int) -> "NewRecovery":
        """Draw what belongs to the secret of a new recovery code."""
        seed = WrappingKey(secrets.token_bytes(32))
        request = public_signing_key(recovery_request_key(secret, vault_id, generation))
        return cls(secret, seed, KitEntry(generation, version, public_wrapping_key(seed), request, None))

    def slot(self, vault_id: bytes, public: PublicSection) -> Slot:
        """Return the slot that the code alone opens, pinned to the version with this public section."""
        content = SlotContent(self.seed, public.version, public_part_hash(vault_id, public))
        return seal_recovery_slot(self.secret, vault_id, self.entry.generation, content)


def first_version(
    keys: KeySet, device_id: bytes, name: str, stretch: Stretch, cost: Cost = STANDARD_COST
) -> tuple[KeyringVersion, VaultKey]:
    """Return version 1 of a new vault, and its vault key."""
    vault_id, vault_key = vault_id_of(public_signing_key(keys.sign)), VaultKey(secrets.token_bytes(32))
    epoch_key = epoch_signing_key(vault_key, vault_id, 1)
    kit = NewKit.draw(vault_id, 1, 1, cost)
    public = PublicSection(
        version=1,
        previous=bytes(32),
        epoch=1,
        epoch_since=1,
        epoch_key=public_signing_key(epoch_key),
        devices=(entry_for(keys, device_id, 1),),
        kit=kit.entry,
        passphrase_since=1,
    )
    hidden = Secrets({}, {device_id: name}, kit.secret)
    slots = Slots(kit.slot(vault_id, public, stretch))
    return build_version(vault_id, public, vault_key, hidden, slots, [keys.sign, epoch_key]), vault_key


def create_folder(
    path: Path,
    disk: Disk,
    passphrase: str,
    name: str,
    stretch: Stretch,
    cost: Cost = STANDARD_COST,
    write: Callable[[VaultFolder], None] | None = None,
) -> tuple[VaultFolder, Device]:
    """Make a new vault's folder, whole or not at all; raises `VaultExists` or `PassphraseEmpty`.

    `write` writes what belongs to it from the beginning, before it is there.
    """
    check_passphrase(passphrase)
    keys, device_id = new_key_set(), secrets.token_bytes(16)
    version, _ = first_version(keys, device_id, name, stretch, cost)
    device = new_device(version, keys, device_id, stretch)

    def fill(folder: VaultFolder) -> None:
        save_version(folder, version)
        device.save(folder)
        if write is not None:
            write(folder)

    return VaultFolder.create(path, disk, secrets.token_hex(8), fill), device


def new_device(version: KeyringVersion, keys: KeySet, device_id: bytes, stretch: Stretch) -> Device:
    """Return a device that the version lists, its keys sealed under the passphrase behind `stretch`."""
    salt = secrets.token_bytes(SALT_SIZE)
    cost = kit_cost(version.public.kit)
    slot = seal_key_set((version.vault_id, device_id), "current", salt, cost, keys, stretch)
    number = version.public.version
    marks = Marks(keyring=number, digest=version.digest, rewritten=number)
    return Device(version.vault_id, device_id, keys, (slot,), marks)
