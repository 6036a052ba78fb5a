"""The crypto recipes of vault-format §2, and the only importer of the crypto libraries.

Salts and nonces are drawn inside the sealing and wrapping recipes, so that no caller can repeat one.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import argon2.low_level
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memseal.errors import FormatError, PassphraseEmpty
from memseal.format.keys import Key, SigningKey, StretchedPassphrase, WrappingKey

CHUNK = 16384  # c2sp.org/chunked-encryption: plaintext bytes a chunk
CHUNK_TAG = 16
SEAL_HEADER = 56  # 24 bytes salt ‖ 32 bytes key commitment
SIGNATURE_SIZE = 64
WRAPPED_SIZE = 1120 + 32 + 16  # HPKE enc ‖ a 32-byte key ‖ AES-GCM tag
PUBLIC_WRAP_SIZE = 1216

Buffer: TypeAlias = bytes | bytearray | memoryview


class NotAuthentic(Exception):
    """Sealed, wrapped or signed bytes are not what the key and place say."""


# ── sealing ─────────────────────────────────────────────────────────────────────────────────────────


def sealed_size(plaintext_size: int) -> int:
    """Return how many bytes sealing makes of `plaintext_size` bytes."""
    return plaintext_size + SEAL_HEADER + CHUNK_TAG * (plaintext_size // CHUNK + 1)


def seal(key: Key, context: bytes, plaintext: Buffer) -> bytes:
    """Return the plaintext sealed under the key and bound to the context (Cobblestone-256)."""
    encryptor = Cobblestone256Encryptor(key.reveal(), context)
    return encryptor.update(plaintext) + encryptor.finalize()


def seal_into(key: Key, context: bytes, pieces: Iterable[Buffer], target: memoryview) -> int:
    """Seal the plaintext that the pieces are together into a buffer of at least its sealed size; return that size."""
    encryptor, size = Cobblestone256Encryptor(key.reveal(), context), 0
    for piece in pieces:
        size += encryptor.update_into(piece, target[size:])
    rest = encryptor.finalize()
    target[size : size + len(rest)] = rest
    return size + len(rest)


def open_sealed(key: Key, context: bytes, sealed: Buffer) -> bytes:
    """Return the plaintext; `NotAuthentic` if key, context or any byte differs."""
    decryptor = Cobblestone256Decryptor(key.reveal(), context)
    try:
        # Chunks come out verified one by one, but only finalize() knows that none was cut off.
        plaintext = decryptor.update(sealed)
        rest = decryptor.finalize()
        return plaintext + rest if rest else plaintext
    except (InvalidTag, ValueError) as error:
        raise NotAuthentic from error


def open_sealed_into(key: Key, context: bytes, sealed: Buffer, target: memoryview) -> int:
    """Open into a buffer of at least the sealed size and return the plaintext's size."""
    decryptor = Cobblestone256Decryptor(key.reveal(), context)
    try:
        size = decryptor.update_into(sealed, target)
        rest = decryptor.finalize()
    except (InvalidTag, ValueError) as error:
        raise NotAuthentic from error
    target[size : size + len(rest)] = rest
    return size + len(rest)


def open_aes_gcm(key: Key, nonce: bytes, sealed: Buffer, context: bytes) -> bytes:
    """Return what another program sealed with AES-256-GCM, to read its files once; nothing of ours is sealed so."""
    try:
        return AESGCM(key.reveal()).decrypt(nonce, sealed, context)
    except (InvalidTag, ValueError) as error:
        raise NotAuthentic from error


# ── derivation ──────────────────────────────────────────────────────────────────────────────────────


def derive(ikm: bytes, salt: bytes, label: str, *parts: bytes) -> bytes:
    """Return 32 bytes of HKDF-SHA-512; label and parts are bound with their lengths."""
    info = b"".join(len(part).to_bytes(4, "big") + part for part in (label.encode(), *parts))
    return HKDF(algorithm=hashes.SHA512(), length=32, salt=salt, info=info).derive(ikm)


@dataclass(frozen=True)
class Cost:
    """What one Argon2id derivation costs: memory in KiB, passes, lanes."""

    memory: int
    passes: int
    lanes: int

    def to_bytes(self) -> bytes:
        """Return the cost as bound into what is derived."""
        return b"".join(value.to_bytes(4, "big") for value in (self.memory, self.passes, self.lanes))


STANDARD_COST = Cost(memory=65536, passes=3, lanes=4)
CEILING_COST = Cost(memory=1048576, passes=10, lanes=16)


def check_cost(cost: Cost) -> None:
    """Refuse a cost under the floor or over the ceiling, before anything is derived."""
    if cost.memory < STANDARD_COST.memory or cost.passes < STANDARD_COST.passes or cost.lanes < 1:
        raise FormatError(
            "kdf_floor", "the passphrase protection is cheaper than the format allows: do not trust this file"
        )
    if cost.memory > CEILING_COST.memory or cost.passes > CEILING_COST.passes or cost.lanes > CEILING_COST.lanes:
        raise FormatError("kdf_ceiling", "the passphrase protection costs more than the format allows")


# Unicode's White_Space and the separators U+001C to U+001F, written out (vault-format §2): what a library calls white
# space differs from one language to the next.
WHITE_SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def check_passphrase(passphrase: str) -> None:
    """Refuse a passphrase that nobody should set."""
    if not passphrase.strip(WHITE_SPACE):
        raise PassphraseEmpty("the passphrase is empty: choose one that only you know")


def stretch(passphrase: str, salt: bytes, cost: Cost) -> StretchedPassphrase:
    """Return what Argon2id makes of a passphrase; refuses costs outside the format's bounds."""
    check_cost(cost)
    secret = _encoded(passphrase)
    if secret is None:
        raise ValueError("the passphrase is not valid Unicode text")
    return StretchedPassphrase(
        argon2.low_level.hash_secret_raw(
            secret,
            salt,
            time_cost=cost.passes,
            memory_cost=cost.memory,
            parallelism=cost.lanes,
            hash_len=32,
            type=argon2.low_level.Type.ID,
            version=0x13,
        )
    )


def _encoded(passphrase: str) -> bytes | None:
    # The error is dealt with here, so that no other one carries it, and the passphrase in it, as its context.
    try:
        return unicodedata.normalize("NFC", passphrase).encode()
    except UnicodeEncodeError:
        return None


# ── hashing ─────────────────────────────────────────────────────────────────────────────────────────


def sha256(*pieces: Buffer) -> bytes:
    """Return the SHA-256 of the pieces, joined."""
    return sha256_of(pieces)


def sha256_of(pieces: Iterable[Buffer]) -> bytes:
    """Return the SHA-256 of the pieces, joined; no more than one of them is held."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def keyed_hash(key: Key, message: bytes) -> bytes:
    """Return the HMAC-SHA-256 of a message, 32 bytes."""
    mac = HMAC(key.reveal(), hashes.SHA256())
    mac.update(message)
    return mac.finalize()


def is_keyed_hash(key: Key, message: bytes, expected: bytes) -> bool:
    """Whether these bytes are the keyed hash of a message, compared in constant time."""
    mac = HMAC(key.reveal(), hashes.SHA256())
    mac.update(message)
    try:
        mac.verify(expected)
    except InvalidSignature:
        return False
    return True


# ── signing ─────────────────────────────────────────────────────────────────────────────────────────


def public_signing_key(key: SigningKey) -> bytes:
    """Return the public half, 32 bytes."""
    return _private(key).public_key().public_bytes_raw()


def sign(key: SigningKey, message: bytes) -> bytes:
    """Return the Ed25519 signature, 64 bytes."""
    return _private(key).sign(message)


def _private(key: SigningKey) -> Ed25519PrivateKey:
    if not isinstance(key.loaded, Ed25519PrivateKey):
        key.loaded = Ed25519PrivateKey.from_private_bytes(key.reveal())
    return key.loaded


def verify(public_key: bytes, signature: bytes, message: bytes) -> None:
    """Raise `NotAuthentic` unless the signature is the key owner's over the message."""
    try:
        _public_key(public_key).verify(signature, message)
    except (InvalidSignature, ValueError) as error:
        raise NotAuthentic from error


_FIELD = (1 << 255) - 19
# The y coordinates of the eight points whose order divides 8 (vault-format §2).
_SMALL_ORDER = frozenset(
    {
        0,
        1,
        _FIELD - 1,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    }
)


def is_sound_signing_key(public_key: bytes) -> bool:
    """Return whether 32 bytes are canonical and no point of small order, for which anyone could make signatures."""
    y = int.from_bytes(public_key, "little") & ((1 << 255) - 1)
    return y < _FIELD and y not in _SMALL_ORDER


@lru_cache(maxsize=64)
def _public_key(public_key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public_key)


# ── wrapping ────────────────────────────────────────────────────────────────────────────────────────

_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def public_wrapping_key(key: WrappingKey) -> bytes:
    """Return the public half, 1,216 bytes: ML-KEM-768 ‖ X25519."""
    mlkem_key, x25519_key = _expand(key)
    return mlkem_key.public_key().public_bytes_raw() + x25519_key.public_key().public_bytes_raw()


def wrap(public_key: bytes, info: bytes, content: bytes) -> bytes:
    """Return `enc ‖ ciphertext` of an HPKE base-mode message to the key's owner."""
    try:
        recipient = MLKEM768X25519PublicKey(
            mlkem.MLKEM768PublicKey.from_public_bytes(public_key[:1184]),
            x25519.X25519PublicKey.from_public_bytes(public_key[1184:]),
        )
        return _SUITE.encrypt(content, recipient, info)
    except ValueError as error:
        raise NotAuthentic from error


def unwrap(key: WrappingKey, info: bytes, wrapped: bytes) -> bytes:
    """Return the content; `NotAuthentic` if key, info or any byte differs."""
    try:
        return _SUITE.decrypt(wrapped, MLKEM768X25519PrivateKey(*_expand(key)), info)
    except (InvalidTag, ValueError) as error:
        raise NotAuthentic from error


def _expand(key: WrappingKey) -> tuple[mlkem.MLKEM768PrivateKey, x25519.X25519PrivateKey]:
    # X-Wing's expandDecapsulationKey (draft-connolly-cfrg-xwing-kem, section 5.2).
    expanded = hashlib.shake_256(key.reveal()).digest(96)
    return (
        mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64]),
        x25519.X25519PrivateKey.from_private_bytes(expanded[64:]),
    )
