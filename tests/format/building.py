"""Keyrings made from fixed keys, to be changed in one place by the tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memseal.format import primitives
from memseal.format.boxes import (
    Secrets,
    SlotContent,
    build_version,
    public_part_hash,
    seal_recovery_slot,
    seal_slot,
)
from memseal.format.derivation import epoch_signing_key, kit_request_key, kit_slot_key, recovery_request_key
from memseal.format.device_file import KeySet
from memseal.format.keyring import (
    DeviceEntry,
    Ended,
    KeyringVersion,
    KitEntry,
    PublicSection,
    Slot,
    Slots,
    decode_version,
    signed_message,
    version_preamble,
)
from memseal.format.keys import (
    KitSecret,
    LocalKey,
    RecoverySecret,
    SigningKey,
    StretchedPassphrase,
    VaultKey,
    WrappingKey,
)
from memseal.format.log import End
from memseal.format.preamble import vault_id_of
from memseal.format.primitives import STANDARD_COST, sha256
from memseal.format.records import frame
from memseal.format.values import decode_value, encode_value

Change = Callable[[dict[str, Any]], object]

STRETCHED = StretchedPassphrase(sha256(b"what Argon2id makes of the passphrase"))
SALT = sha256(b"salt")
STREAM = sha256(b"stream")[:16]
STREAM_END = End(64 + 3 * 1108, 3, sha256(b"chain"))


def seed(name: str, size: int = 32) -> bytes:
    """Bytes that belong to a name alone."""
    return sha256(name.encode())[:size]


@dataclass(frozen=True)
class Device:
    """A device with its private keys; a device that replaces its keys keeps its id."""

    name: str
    number: int = 1

    @property
    def id(self) -> bytes:
        return seed(f"device {self.name}", 16)

    @property
    def keys(self) -> KeySet:
        name = f"{self.name} {self.number}"
        return KeySet(
            SigningKey(seed(f"sign {name}")), WrappingKey(seed(f"wrap {name}")), LocalKey(seed(f"local {name}"))
        )

    @property
    def sign(self) -> SigningKey:
        return self.keys.sign

    def entry(self, since: int) -> DeviceEntry:
        sign, wrap = primitives.public_signing_key(self.keys.sign), primitives.public_wrapping_key(self.keys.wrap)
        return DeviceEntry(self.id, sign, wrap, since)

    def renewed(self) -> "Device":
        return Device(self.name, self.number + 1)


ANN, BEN, EVE = Device("Ann"), Device("Ben"), Device("Eve")
VAULT = vault_id_of(primitives.public_signing_key(ANN.sign))


def vault_key(epoch: int) -> VaultKey:
    return VaultKey(seed(f"vault key {epoch}"))


def epoch_key(epoch: int) -> SigningKey:
    return epoch_signing_key(vault_key(epoch), VAULT, epoch)


def kit_secret(generation: int) -> KitSecret:
    return KitSecret(seed(f"kit {generation}", 16))


def kit_seed(generation: int) -> WrappingKey:
    return WrappingKey(seed(f"kit seed {generation}"))


def kit_entry(generation: int, since: int) -> KitEntry:
    request = primitives.public_signing_key(kit_request_key(kit_secret(generation), VAULT, generation))
    return KitEntry(generation, since, primitives.public_wrapping_key(kit_seed(generation)), request, STANDARD_COST)


def recovery_secret(generation: int) -> RecoverySecret:
    return RecoverySecret(seed(f"recovery secret {generation}"))


def recovery_seed(generation: int) -> WrappingKey:
    return WrappingKey(seed(f"recovery {generation}"))


def recovery_entry(generation: int, since: int) -> KitEntry:
    wrap = primitives.public_wrapping_key(recovery_seed(generation))
    request = primitives.public_signing_key(recovery_request_key(recovery_secret(generation), VAULT, generation))
    return KitEntry(generation, since, wrap, request, None)


def recovery_slot(public: PublicSection, generation: int) -> Slot:
    """The slot of a recovery code that is made in this version."""
    content = SlotContent(recovery_seed(generation), public.version, public_part_hash(VAULT, public))
    return seal_recovery_slot(recovery_secret(generation), VAULT, generation, content)


def kit_slot(public: PublicSection) -> Slot:
    """The slot of a kit that is made in this version."""
    generation = public.kit.generation
    key = kit_slot_key(STRETCHED, kit_secret(generation), SALT, VAULT, generation, STANDARD_COST)
    content = SlotContent(kit_seed(generation), public.version, public_part_hash(VAULT, public))
    return seal_slot(key, VAULT, generation, SALT, content)


@dataclass(frozen=True)
class Step:
    """A version, what it holds for devices, and the slot that later ones carry on."""

    version: KeyringVersion
    secrets: Secrets
    slot: Slot

    @property
    def public(self) -> PublicSection:
        return self.version.public


def first(device: Device = ANN) -> Step:
    public = PublicSection(
        version=1,
        previous=bytes(32),
        epoch=1,
        epoch_since=1,
        epoch_key=primitives.public_signing_key(epoch_key(1)),
        devices=(device.entry(1),),
        kit=kit_entry(1, 1),
        passphrase_since=1,
    )
    secrets, slot = Secrets({}, {device.id: device.name}, kit_secret(1)), kit_slot(public)
    version = build_version(VAULT, public, vault_key(1), secrets, Slots(slot), [device.sign, epoch_key(1)])
    return Step(version, secrets, slot)


@dataclass(frozen=True)
class Plan:
    """What the next version changes."""

    add: Sequence[Device] = ()
    end: Sequence[Device] = ()
    new_epoch: bool = False
    new_kit: bool = False
    new_passphrase: bool = False
    recovery: int | None = None
    signers: Sequence[SigningKey] = ()
    streams: Mapping[bytes, End] = field(default_factory=dict)


def follow(before: Step, plan: Plan) -> Step:
    """The next version as a device or joiner makes it; the epoch keys sign, and whoever the plan names."""
    old, number = before.public, before.public.version + 1
    ended = {device.entry(1).sign for device in plan.end}
    devices = tuple(
        replace(entry, ended=Ended(number, plan.streams)) if entry.sign in ended else entry for entry in old.devices
    )
    epoch = old.epoch + plan.new_epoch
    public = replace(
        old,
        version=number,
        previous=before.version.digest,
        epoch=epoch,
        epoch_since=number if plan.new_epoch else old.epoch_since,
        epoch_key=primitives.public_signing_key(epoch_key(epoch)),
        devices=(*devices, *(device.entry(number) for device in plan.add)),
        passphrase_since=number if plan.new_passphrase else old.passphrase_since,
        recovery=old.recovery if plan.recovery is None else recovery_entry(plan.recovery, number),
    )
    secrets, slot = before.secrets, before.slot
    if plan.new_epoch:
        secrets = replace(secrets, history={**secrets.history, old.epoch: vault_key(old.epoch)})
    if plan.new_kit:
        public = replace(public, kit=kit_entry(old.kit.generation + 1, number))
        secrets, slot = replace(secrets, kit_secret=kit_secret(public.kit.generation)), kit_slot(public)
    signers = list(plan.signers) + [epoch_key(old.epoch)] + ([epoch_key(epoch)] if plan.new_epoch else [])
    slots = replace(before.version.slots, kit=slot)
    if plan.recovery is not None:
        slots = replace(slots, recovery=recovery_slot(public, plan.recovery))
    return Step(build_version(VAULT, public, vault_key(epoch), secrets, slots, signers), secrets, slot)


def joined(before: Step, device: Device) -> Step:
    return follow(before, Plan(add=[device], signers=[device.sign]))


def passphrase_changed(before: Step, device: Device) -> Step:
    new = device.renewed()
    return follow(
        before,
        Plan(
            add=[new],
            end=[device],
            new_epoch=True,
            new_kit=True,
            new_passphrase=True,
            signers=[device.sign, new.sign],
            streams={STREAM: STREAM_END},
        ),
    )


def keys_replaced(before: Step, device: Device) -> Step:
    """What another device does after a change of the passphrase: its keys, nothing else."""
    new = device.renewed()
    return follow(before, Plan(add=[new], end=[device], new_epoch=True, signers=[device.sign, new.sign]))


def revoked(before: Step, device: Device, by: Device) -> Step:
    return follow(before, Plan(end=[device], new_epoch=True, signers=[by.sign], streams={STREAM: STREAM_END}))


# ── versions from raw maps, to break one thing ──────────────────────────────────────────────────────


def map_of(version: KeyringVersion) -> dict[str, Any]:
    """The public section as the map that it is stored as."""
    value: dict[str, Any] = decode_value(version.content[64 + 12 : version.approval_offset])
    return value


@dataclass(frozen=True)
class Raw:
    """A version of raw maps; what is None follows from the rest."""

    public: dict[str, Any]
    sealed_part: bytes
    signers: Sequence[SigningKey]
    preamble: bytes | None = None
    sealed: bytes | None = None
    vault: bytes = VAULT

    def to_bytes(self) -> bytes:
        epoch, version = (_number(self.public.get(name)) for name in ("epoch", "version"))
        preamble = self.preamble or version_preamble(self.vault, epoch, version)
        open_part = preamble + frame(0, encode_value(self.public))
        sealed = sha256(self.sealed_part) if self.sealed is None else self.sealed
        message = signed_message(sha256(b"memseal/v1/keyring", open_part, sealed))
        rows = [[primitives.public_signing_key(key), primitives.sign(key, message)] for key in self.signers]
        return open_part + frame(1, encode_value({"sealed": sealed, "signatures": rows})) + self.sealed_part

    def decoded(self) -> KeyringVersion:
        return decode_version(self.to_bytes(), self.vault)


def _number(value: Any) -> int:
    """What a preamble can carry of a field that may be broken."""
    return value if type(value) is int and 0 <= value < 1 << 32 else 1


def raw_of(step: Step, signers: Sequence[SigningKey], change: Change | None = None) -> Raw:
    """A version again from its map, changed in one place and signed by all who must."""
    public = map_of(step.version)
    if change is not None:
        change(public)
    return Raw(public, step.version.sealed_part(), signers)
