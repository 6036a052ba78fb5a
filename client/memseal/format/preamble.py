"""The 64 readable bytes at the start of every container (vault-format §3)."""

import zlib
from dataclasses import dataclass
from enum import IntEnum

from memseal.errors import FormatError
from memseal.format.primitives import sha256

MAGIC = b"\x89MSEAL\r\n"
FORMAT_VERSION = 1
SUITE = 1
PREAMBLE_SIZE = 64
ID_SIZE = 16


class Kind(IntEnum):
    """What a container holds."""

    KEYRING = 1
    LOG = 2
    CHECKPOINT = 3
    MEDIA = 4
    TRACE = 5
    BUNDLE = 6
    DEVICE = 7
    CACHE = 8
    SESSION = 9


@dataclass(frozen=True)
class Preamble:
    """Kind, epoch (u32), vault id (16 bytes), stream id (16 bytes) and nonce (12 bytes) of a container."""

    kind: Kind
    epoch: int
    vault_id: bytes
    stream_id: bytes
    nonce: bytes

    def to_bytes(self) -> bytes:
        """Return the 64 bytes."""
        head = b"".join(
            (
                MAGIC,
                bytes((FORMAT_VERSION, SUITE, self.kind, 0)),
                self.epoch.to_bytes(4, "big"),
                self.vault_id,
                self.stream_id,
                self.nonce,
            )
        )
        return head + zlib.crc32(head).to_bytes(4, "big")


def decode_preamble(content: bytes | memoryview, kind: Kind, vault_id: bytes | None = None) -> Preamble:
    """Return the preamble at the start of a container of the expected kind; raises `FormatError`."""
    head = bytes(content[:PREAMBLE_SIZE])
    if len(head) < PREAMBLE_SIZE:
        raise FormatError("preamble_short", "the file ends before its preamble does")
    if head[:8] != MAGIC:
        raise FormatError("preamble_magic", "not a memseal file, or one damaged by a text-mode transfer")
    if zlib.crc32(head[:60]).to_bytes(4, "big") != head[60:]:
        raise FormatError("preamble_damaged", "the file's preamble is damaged")
    if head[8] != FORMAT_VERSION:
        raise FormatError("version_unknown", f"made with format version {head[8]}: update memseal to open it")
    if head[9] != SUITE:
        raise FormatError("suite_unknown", f"made with cipher suite {head[9]}: update memseal to open it")
    if head[10] != kind:
        raise FormatError("kind_mismatch", f"a container of kind {head[10]} stands where kind {int(kind)} belongs")
    if head[11] != 0:
        raise FormatError("preamble_reserved", "a reserved byte of the preamble is not zero")
    if vault_id is not None and head[16:32] != vault_id:
        raise FormatError("vault_mismatch", "the file belongs to another vault")
    epoch = int.from_bytes(head[12:16], "big")
    return Preamble(kind, epoch, head[16:32], head[32:48], head[48:60])


def vault_id_of(first_signing_key: bytes) -> bytes:
    """Return the id of the vault that this public key began."""
    return sha256(b"memseal/v1/vault", first_signing_key)[:ID_SIZE]


def stream_id_of(vault_id: bytes, owner: bytes, nonce: bytes) -> bytes:
    """Return the id of the stream that the owner's public signing key began with this nonce."""
    return sha256(b"memseal/v1/stream", vault_id, owner, nonce)[:ID_SIZE]


def log_preamble(vault_id: bytes, owner: bytes, epoch: int, epoch_digest: bytes, random: bytes) -> Preamble:
    """Return the preamble of a new stream: `epoch_digest` of the version that began the epoch, 4 random bytes."""
    nonce = epoch_digest[:8] + random
    return Preamble(Kind.LOG, epoch, vault_id, stream_id_of(vault_id, owner, nonce), nonce)
