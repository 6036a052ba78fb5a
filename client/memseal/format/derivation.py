"""Which key is derived from which (vault-format §6)."""

from memseal.format.keys import (
    CacheSecret,
    KitSecret,
    LocalKey,
    ReceiptKey,
    RecordKey,
    RecoverySecret,
    SessionSecret,
    SigningKey,
    StretchedPassphrase,
    VaultKey,
)
from memseal.format.primitives import Cost, derive


def epoch_signing_key(vault_key: VaultKey, vault_id: bytes, epoch: int) -> SigningKey:
    """Return the private epoch key."""
    return SigningKey(derive(vault_key.reveal(), b"", "memseal/v1/epoch", vault_id, epoch.to_bytes(4, "big")))


def log_key(vault_key: VaultKey, vault_id: bytes, stream_id: bytes) -> RecordKey:
    """Return what seals the records of one log."""
    return RecordKey(derive(vault_key.reveal(), b"", "memseal/v1/log", vault_id, stream_id))


def secrets_key(vault_key: VaultKey, vault_id: bytes, version: int) -> RecordKey:
    """Return what seals a keyring version's secrets."""
    return RecordKey(
        derive(vault_key.reveal(), b"", "memseal/v1/keyring-secrets", vault_id, version.to_bytes(8, "big"))
    )


def device_slot_key(
    stretched: StretchedPassphrase, salt: bytes, vault_id: bytes, device_id: bytes, cost: Cost
) -> RecordKey:
    """Return what seals a key set in the device file."""
    return RecordKey(derive(stretched.reveal(), salt, "memseal/v1/device", vault_id, device_id, cost.to_bytes()))


def marks_key(local_key: LocalKey, vault_id: bytes, device_id: bytes) -> RecordKey:
    """Return what seals the device file's marks."""
    return RecordKey(derive(local_key.reveal(), b"", "memseal/v1/marks", vault_id, device_id))


def cache_key(local_key: LocalKey, secret: CacheSecret, vault_id: bytes, device_id: bytes, nonce: bytes) -> RecordKey:
    """Return what seals one cache file."""
    ikm = local_key.reveal() + secret.reveal()
    return RecordKey(derive(ikm, b"", "memseal/v1/cache", vault_id, device_id, nonce))


def carried_key(local_key: LocalKey, salt: bytes, vault_id: bytes) -> StretchedPassphrase:
    """Return what stands for the passphrase of a bundle that never leaves the device."""
    return StretchedPassphrase(derive(local_key.reveal(), salt, "memseal/v1/carried", vault_id))


def trace_key(local_key: LocalKey, vault_id: bytes, device_id: bytes, nonce: bytes) -> RecordKey:
    """Return what seals one file of traces."""
    return RecordKey(derive(local_key.reveal(), b"", "memseal/v1/trace", vault_id, device_id, nonce))


def session_id(secret: SessionSecret, vault_id: bytes, device_id: bytes, name: str) -> bytes:
    """Return the id (16 bytes) of the kept session with this name, which tells nobody the name."""
    derived = derive(secret.reveal(), b"", "memseal/v1/session-id", vault_id, device_id, name.encode())
    return derived[:16]


def session_key(secret: SessionSecret, vault_id: bytes, device_id: bytes, own: bytes) -> RecordKey:
    """Return what seals one kept session."""
    return RecordKey(derive(secret.reveal(), b"", "memseal/v1/session", vault_id, device_id, own))


def receipt_key(local_key: LocalKey, vault_id: bytes, device_id: bytes) -> ReceiptKey:
    """Return what seals the receipts of this device."""
    return ReceiptKey(derive(local_key.reveal(), b"", "memseal/v1/receipt", vault_id, device_id))


def kit_slot_key(
    stretched: StretchedPassphrase,
    secret: KitSecret,
    salt: bytes,
    vault_id: bytes,
    generation: int,
    cost: Cost,
) -> RecordKey:
    """Return what seals the kit's slot: it takes the passphrase and the kit."""
    ikm = stretched.reveal() + secret.reveal()
    return RecordKey(derive(ikm, salt, "memseal/v1/kit-slot", vault_id, generation.to_bytes(4, "big"), cost.to_bytes()))


def kit_request_key(secret: KitSecret, vault_id: bytes, generation: int) -> SigningKey:
    """Return the key that may read the keyring from a server."""
    return SigningKey(derive(secret.reveal(), b"", "memseal/v1/kit-request", vault_id, generation.to_bytes(4, "big")))


def checkpoint_key(vault_key: VaultKey, vault_id: bytes, checkpoint_id: bytes) -> RecordKey:
    """Return what seals a checkpoint's manifest."""
    return RecordKey(derive(vault_key.reveal(), b"", "memseal/v1/checkpoint", vault_id, checkpoint_id))


def bundle_slot_key(
    stretched: StretchedPassphrase, salt: bytes, vault_id: bytes, bundle_id: bytes, cost: Cost
) -> RecordKey:
    """Return what seals a bundle's key."""
    return RecordKey(derive(stretched.reveal(), salt, "memseal/v1/bundle", vault_id, bundle_id, cost.to_bytes()))


def recovery_slot_key(secret: RecoverySecret, vault_id: bytes, generation: int) -> RecordKey:
    """Return what seals the recovery code's slot."""
    return RecordKey(derive(secret.reveal(), b"", "memseal/v1/recovery-slot", vault_id, generation.to_bytes(4, "big")))


def recovery_request_key(secret: RecoverySecret, vault_id: bytes, generation: int) -> SigningKey:
    """Return the key that may read the keyring from a server."""
    return SigningKey(
        derive(secret.reveal(), b"", "memseal/v1/recovery-request", vault_id, generation.to_bytes(4, "big"))
    )
