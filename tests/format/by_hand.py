"""HKDF, chunked encryption, X-Wing and HPKE written from their papers, to hold the library's against.

They share nothing with `memseal.format.primitives` but ML-KEM, X25519 and the AEADs.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

X_WING = 0x647A
X_WING_ENC_SIZE = 1120
HKDF_SHA256, HKDF_SHA384, HKDF_SHA512 = 1, 2, 3
AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305 = 1, 2, 3

_Cipher: TypeAlias = type[AESGCM] | type[ChaCha20Poly1305]

_HASHES: Mapping[int, str] = {HKDF_SHA256: "sha256", HKDF_SHA384: "sha384", HKDF_SHA512: "sha512"}
_AEADS: Mapping[int, tuple[_Cipher, int]] = {
    AES_128_GCM: (AESGCM, 16),
    AES_256_GCM: (AESGCM, 32),
    CHACHA20_POLY1305: (ChaCha20Poly1305, 32),
}
_NONCE_SIZE = 12


def hkdf_extract(algorithm: str, salt: bytes, ikm: bytes) -> bytes:
    """RFC 5869, section 2.2."""
    return hmac.digest(salt, ikm, algorithm)


def hkdf_expand(algorithm: str, prk: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869, section 2.3."""
    output, block, number = b"", b"", 0
    while len(output) < size:
        number += 1
        block = hmac.digest(prk, block + info + bytes([number]), algorithm)
        output += block
    return output[:size]


def hkdf(algorithm: str, ikm: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869, both steps."""
    return hkdf_expand(algorithm, hkdf_extract(algorithm, salt, ikm), info, size)


# c2sp.org/chunked-encryption: the AEAD's name, and with it the size of its key.
_CHUNKED: Mapping[str, tuple[_Cipher, int]] = {
    "AEAD_AES_128_GCM": (AESGCM, 16),
    "AEAD_AES_256_GCM": (AESGCM, 32),
    "AEAD_CHACHA20_POLY1305": (ChaCha20Poly1305, 32),
}
_CHUNK, _TAG, _SALT, _COMMITMENT = 16384, 16, 24, 32


@dataclass(frozen=True)
class Chunked:
    """One message of chunked encryption: what its key, salt and context make."""

    aead: str
    salt: bytes
    key: bytes
    base_nonce: bytes
    commitment: bytes

    @classmethod
    def derive(cls, algorithm: str, aead: str, key: bytes, salt: bytes, context: bytes) -> "Chunked":
        size = _CHUNKED[aead][1]
        if len(key) != size:
            raise ValueError("a key of the wrong size")
        info = b"c2sp.org/chunked-encryption@v1+" + aead.encode() + b"\x00" + salt + context
        output = hkdf_expand(algorithm, key, info, size + _NONCE_SIZE + _COMMITMENT)
        nonce_end = size + _NONCE_SIZE
        return cls(aead, salt, output[:size], output[size:nonce_end], output[nonce_end:])

    def seal(self, plaintext: bytes) -> bytes:
        cipher = _CHUNKED[self.aead][0](self.key)
        # One chunk more than is full: the last is always shorter, if need be empty.
        chunks = [plaintext[start : start + _CHUNK] for start in range(0, len(plaintext) + 1, _CHUNK)]
        sealed = [cipher.encrypt(_nonce(self.base_nonce, n), chunk, b"") for n, chunk in enumerate(chunks)]
        return self.salt + self.commitment + b"".join(sealed)

    def open(self, sealed: bytes) -> bytes:
        cipher, stored = _CHUNKED[self.aead][0](self.key), _CHUNK + _TAG
        chunks = [sealed[start : start + stored] for start in range(_SALT + _COMMITMENT, len(sealed), stored)]
        if sealed[_SALT : _SALT + _COMMITMENT] != self.commitment or not chunks or len(chunks[-1]) == stored:
            raise InvalidTag
        return b"".join(cipher.decrypt(_nonce(self.base_nonce, n), chunk, b"") for n, chunk in enumerate(chunks))


def chunked_open(algorithm: str, aead: str, key: bytes, context: bytes, sealed: bytes) -> bytes:
    """Cobblestone-256 is this with sha512 and AEAD_AES_256_GCM."""
    return Chunked.derive(algorithm, aead, key, sealed[:_SALT], context).open(sealed)


def x_wing_open(seed: bytes, enc: bytes) -> bytes:
    """draft-connolly-cfrg-xwing-kem: the shared secret that `enc` carries to the seed's owner."""
    expanded = hashlib.shake_256(seed).digest(96)
    mlkem_key = MLKEM768PrivateKey.from_seed_bytes(expanded[:64])
    x25519_key = X25519PrivateKey.from_private_bytes(expanded[64:])
    mlkem_enc, x25519_enc = enc[:1088], enc[1088:]
    mlkem_secret = mlkem_key.decapsulate(mlkem_enc)
    x25519_secret = x25519_key.exchange(X25519PublicKey.from_public_bytes(x25519_enc))
    x25519_public = x25519_key.public_key().public_bytes_raw()
    label = rb"\./" + rb"/^" + b"\\"
    return hashlib.sha3_256(mlkem_secret + x25519_secret + x25519_enc + x25519_public + label).digest()


@dataclass(frozen=True)
class Hpke:
    """What the key schedule of RFC 9180, section 5.1, makes in base mode."""

    suite_id: bytes
    kdf: int
    aead: int
    key: bytes
    base_nonce: bytes
    exporter_secret: bytes

    @classmethod
    def schedule(cls, kem: int, kdf: int, aead: int, shared_secret: bytes, info: bytes) -> "Hpke":
        suite_id = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (kem, kdf, aead))
        algorithm = _HASHES[kdf]
        psk_id_hash = _labeled_extract(algorithm, suite_id, b"", b"psk_id_hash", b"")
        info_hash = _labeled_extract(algorithm, suite_id, b"", b"info_hash", info)
        context = b"\x00" + psk_id_hash + info_hash
        secret = _labeled_extract(algorithm, suite_id, shared_secret, b"secret", b"")
        sizes = {
            b"key": _AEADS[aead][1],
            b"base_nonce": _NONCE_SIZE,
            b"exp": hashlib.new(algorithm).digest_size,
        }
        parts = [_labeled_expand(algorithm, suite_id, secret, label, context, size) for label, size in sizes.items()]
        return cls(suite_id, kdf, aead, *parts)

    def nonce(self, sequence: int) -> bytes:
        return _nonce(self.base_nonce, sequence)

    def open(self, sequence: int, aad: bytes, ciphertext: bytes) -> bytes:
        return _AEADS[self.aead][0](self.key).decrypt(self.nonce(sequence), ciphertext, aad)

    def export(self, context: bytes, size: int) -> bytes:
        return _labeled_expand(_HASHES[self.kdf], self.suite_id, self.exporter_secret, b"sec", context, size)


def unwrap(seed: bytes, info: bytes, wrapped: bytes, kdf: int = HKDF_SHA256, aead: int = AES_256_GCM) -> bytes:
    """One HPKE message with X-Wing; as it stands, suite 1 of vault-format §2."""
    enc, ciphertext = wrapped[:X_WING_ENC_SIZE], wrapped[X_WING_ENC_SIZE:]
    shared_secret = x_wing_open(seed, enc)
    return Hpke.schedule(X_WING, kdf, aead, shared_secret, info).open(0, b"", ciphertext)


def _nonce(base: bytes, number: int) -> bytes:
    return bytes(a ^ b for a, b in zip(base, number.to_bytes(_NONCE_SIZE, "big"), strict=True))


def _labeled_extract(algorithm: str, suite_id: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hkdf_extract(algorithm, salt, b"HPKE-v1" + suite_id + label + ikm)


def _labeled_expand(algorithm: str, suite_id: bytes, prk: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return hkdf_expand(algorithm, prk, size.to_bytes(2, "big") + b"HPKE-v1" + suite_id + label + info, size)
