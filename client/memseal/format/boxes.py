"""Boxes, secrets and slots of a keyring version (vault-format §7): make and open them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memseal.errors import BoxMissing, FormatError, KitOrPassphrase, RecoveryCodeWrong
from memseal.format import primitives
from memseal.format.derivation import epoch_signing_key, kit_slot_key, recovery_slot_key, secrets_key
from memseal.format.fields import Fields
from memseal.format.keyring import (
    KeyringVersion,
    PublicSection,
    Slot,
    Slots,
    decode_version,
    digest_of,
    encode_approval,
    encode_boxes,
    encode_open_part,
    signed_message,
)
from memseal.format.keys import (
    KitSecret,
    RecordKey,
    RecoverySecret,
    SigningKey,
    StretchedPassphrase,
    VaultKey,
    WrappingKey,
)
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.primitives import Cost, sha256
from memseal.format.records import open_record, seal_record
from memseal.format.values import decode_value, encode_value

_SECRETS_INDEX = 3
_NO_DEVICE = bytes(16)
_KIT_SLOT = b"memseal/v1/slot"
_RECOVERY_SLOT = b"memseal/v1/recovery-slot"
_NO_RECOVERY = "this vault has no recovery code: join with the emergency kit and the passphrase"


@dataclass(frozen=True)
class Secrets:
    """What only devices read in a version: older vault keys by epoch, device names by id, the kit secret."""

    history: Mapping[int, VaultKey]
    names: Mapping[bytes, str]
    kit_secret: KitSecret


@dataclass(frozen=True)
class SlotContent:
    """What a kit or recovery code opens: its wrapping key, the version that made the slot, its public part's hash."""

    seed: WrappingKey
    version: int
    public: bytes


# ── making ──────────────────────────────────────────────────────────────────────────────────────────


def build_version(
    vault_id: bytes,
    public: PublicSection,
    vault_key: VaultKey,
    secrets: Secrets,
    slots: Slots,
    signers: Sequence[SigningKey],
) -> KeyringVersion:
    """Return a whole, signed version."""
    open_part = encode_open_part(vault_id, public)
    record = seal_record(
        secrets_key(vault_key, vault_id, public.version),
        open_part[:PREAMBLE_SIZE],
        _SECRETS_INDEX,
        _encode(secrets),
    )
    sealed_part = encode_boxes(_wrap_all(vault_id, public, vault_key), slots) + record
    sealed_digest = sha256(sealed_part)
    message = signed_message(digest_of(open_part, sealed_digest))
    signatures = [(primitives.public_signing_key(key), primitives.sign(key, message)) for key in signers]
    return decode_version(open_part + encode_approval(sealed_digest, signatures) + sealed_part, vault_id)


def public_part_hash(vault_id: bytes, public: PublicSection) -> bytes:
    """Return what a slot made in this version pins."""
    return sha256(encode_open_part(vault_id, public))


def seal_slot(key: RecordKey, vault_id: bytes, generation: int, salt: bytes, content: SlotContent) -> Slot:
    """Return the kit's slot."""
    sealed = primitives.seal(key, _context(_KIT_SLOT, vault_id, generation), _encode_slot(content))
    return Slot(generation, salt, sealed)


def seal_recovery_slot(secret: RecoverySecret, vault_id: bytes, generation: int, content: SlotContent) -> Slot:
    """Return the recovery code's slot."""
    key = recovery_slot_key(secret, vault_id, generation)
    sealed = primitives.seal(key, _context(_RECOVERY_SLOT, vault_id, generation), _encode_slot(content))
    return Slot(generation, b"", sealed)


def _encode_slot(content: SlotContent) -> bytes:
    return encode_value({"seed": content.seed.reveal(), "version": content.version, "public": content.public})


def _wrap_all(vault_id: bytes, public: PublicSection, vault_key: VaultKey) -> dict[bytes, bytes]:
    owners = [(entry.id, entry.sign, entry.wrap) for entry in public.active()]
    owners += [(_NO_DEVICE, kit.request, kit.wrap) for kit in (public.kit, public.recovery) if kit is not None]
    try:
        return {
            wrap: primitives.wrap(wrap, _info(vault_id, public, owner, sign, wrap), vault_key.reveal())
            for owner, sign, wrap in owners
        }
    except primitives.NotAuthentic:
        raise FormatError("keyring_malformed", "a device's wrapping key is not one: end that device") from None


def _info(vault_id: bytes, public: PublicSection, owner: bytes, sign: bytes, wrap: bytes) -> bytes:
    numbers = public.version.to_bytes(8, "big") + public.epoch.to_bytes(4, "big")
    return b"memseal/v1/box" + vault_id + numbers + owner + sign + sha256(wrap)


def _encode(secrets: Secrets) -> bytes:
    return encode_value(
        {
            "history": [[epoch, key.reveal()] for epoch, key in secrets.history.items()],
            "names": [[device, name] for device, name in secrets.names.items()],
            "kit_secret": secrets.kit_secret.reveal(),
        }
    )


def _context(label: bytes, vault_id: bytes, generation: int) -> bytes:
    return label + vault_id + generation.to_bytes(4, "big")


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────


def open_device_box(version: KeyringVersion, wrapping_key: WrappingKey, signing_public: bytes) -> VaultKey:
    """Return the vault key of the version's epoch from this device's box."""
    entry = version.public.entry_of(signing_public)
    if entry is None or entry.ended is not None:
        raise BoxMissing("the newest keyring version does not list this device: join again with the emergency kit")
    return _open_box(version, wrapping_key, entry.id, entry.sign)


def open_kit_box(version: KeyringVersion, seed: WrappingKey) -> VaultKey:
    """Return the vault key of the version's epoch from the kit's box."""
    return _open_box(version, seed, _NO_DEVICE, version.public.kit.request)


def open_recovery_box(version: KeyringVersion, seed: WrappingKey) -> VaultKey:
    """Return the vault key of the version's epoch from the recovery code's box."""
    if version.public.recovery is None:
        raise RecoveryCodeWrong(_NO_RECOVERY)
    return _open_box(version, seed, _NO_DEVICE, version.public.recovery.request)


def _open_box(version: KeyringVersion, key: WrappingKey, owner: bytes, sign: bytes) -> VaultKey:
    public, wrap = version.public, primitives.public_wrapping_key(key)
    wrapped = (version.boxes or {}).get(wrap)
    if wrapped is None:
        raise BoxMissing("the keyring version has no box for these keys")
    try:
        vault_key = VaultKey(primitives.unwrap(key, _info(version.vault_id, public, owner, sign, wrap), wrapped))
    except primitives.NotAuthentic:
        raise FormatError(
            "box_sealed", "a box of the keyring does not open: the version is forged or damaged"
        ) from None
    epoch_key = epoch_signing_key(vault_key, version.vault_id, public.epoch)
    if primitives.public_signing_key(epoch_key) != public.epoch_key:
        raise FormatError("epoch_key_mismatch", "a box holds a key that is not the epoch's: the version is forged")
    return vault_key


def open_secrets(version: KeyringVersion, vault_key: VaultKey) -> Secrets:
    """Return a version's secrets; raises `FormatError`."""
    if version.secrets is None:
        raise FormatError("keyring_missing", "the newest keyring version is there only in part")
    key = secrets_key(vault_key, version.vault_id, version.public.version)
    content = open_record(key, version.content[:PREAMBLE_SIZE], _SECRETS_INDEX, memoryview(version.secrets))
    fields = Fields(decode_value(content), "keyring_malformed", "secrets")
    history = dict[int, VaultKey]()
    for epoch, vault in fields.tuples("history", 2):
        row = Fields({"epoch": epoch, "key": vault}, "keyring_malformed", "history")
        history[row.count("epoch", 1)] = VaultKey(row.size("key", 32))
    names = dict[bytes, str]()
    for device, name in fields.tuples("names", 2):
        row = Fields({"device": device, "name": name}, "keyring_malformed", "names")
        names[row.size("device", 16)] = row.text("name")
    return Secrets(history, names, KitSecret(fields.size("kit_secret", 16)))


def open_slot(version: KeyringVersion, stretched: StretchedPassphrase, secret: KitSecret) -> SlotContent:
    """Return what the kit slot holds; `KitOrPassphrase` where it does not open."""
    slot, cost = version.slots.kit, version.public.kit.cost
    if slot is None or cost is None:
        raise FormatError("keyring_missing", "the keyring version has no kit slot")
    key = kit_slot_key(stretched, secret, slot.salt, version.vault_id, slot.generation, cost)
    try:
        return _open_slot(key, _context(_KIT_SLOT, version.vault_id, slot.generation), slot)
    except primitives.NotAuthentic:
        raise KitOrPassphrase(
            "kit and passphrase do not open this vault: one is wrong, or the kit was replaced by a newer one"
        ) from None


def slot_cost(version: KeyringVersion) -> tuple[bytes, Cost]:
    """Return salt and cost to stretch the passphrase with, before `open_slot`."""
    if version.slots.kit is None or version.public.kit.cost is None:
        raise FormatError("keyring_missing", "the keyring version has no kit slot")
    return version.slots.kit.salt, version.public.kit.cost


def open_recovery_slot(version: KeyringVersion, secret: RecoverySecret) -> SlotContent:
    """Return what the recovery slot holds; `RecoveryCodeWrong` where it does not open."""
    if version.public.recovery is None:
        raise RecoveryCodeWrong(_NO_RECOVERY)
    slot = version.slots.recovery
    if slot is None:
        raise FormatError("keyring_missing", "the keyring version has no recovery slot")
    key = recovery_slot_key(secret, version.vault_id, slot.generation)
    try:
        return _open_slot(key, _context(_RECOVERY_SLOT, version.vault_id, slot.generation), slot)
    except primitives.NotAuthentic:
        raise RecoveryCodeWrong(
            "the recovery code does not open this vault: it was replaced by a newer one, or is another vault's"
        ) from None


def _open_slot(key: RecordKey, context: bytes, slot: Slot) -> SlotContent:
    content = primitives.open_sealed(key, context, slot.sealed)
    fields = Fields(decode_value(content), "keyring_malformed", "slot")
    return SlotContent(WrappingKey(fields.size("seed", 32)), fields.count("version", 1), fields.size("public", 32))
