"""The plain parts of containers: preamble, record framing (vault-format §3 and §4)."""

import hashlib
import zlib

PREAMBLE_SIZE = 64
HEADER_SIZE = 12
# 1,024 bytes of padded plaintext and 72 of sealing (vault-format §4).
LEAST_BODY = 1_096

KEYRING, LOG, CHECKPOINT = 1, 2, 3

_MAGIC = bytes.fromhex("894D5345414C0D0A")


def preamble(
    kind: int,
    epoch: int,
    vault: bytes,
    stream: bytes,
    nonce: bytes,
    *,
    magic: bytes = _MAGIC,
    format_version: int = 1,
    suite: int = 1,
    reserved: int = 0,
) -> bytes:
    """Return the 64 bytes of a preamble, its CRC right whatever the fields say."""
    head = magic + bytes([format_version, suite, kind, reserved]) + epoch.to_bytes(4, "big") + vault + stream + nonce
    return head + zlib.crc32(head).to_bytes(4, "big")


def header(length: int, index: int) -> bytes:
    """Return a record's header, its CRC right whatever it says."""
    head = length.to_bytes(4, "big") + index.to_bytes(4, "big")
    return head + zlib.crc32(head).to_bytes(4, "big")


def record(index: int, body: bytes) -> bytes:
    """Return one record."""
    return header(len(body), index) + body


def sha256(*parts: bytes) -> bytes:
    """Return the SHA-256 of the parts, one after the other."""
    return hashlib.sha256(b"".join(parts)).digest()
