"""Read a container's plain parts: preamble, record framing, chain (vault-format §3 to §5)."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PREAMBLE_SIZE = 64
NONCE_SIZE = 12
RECORD_HEADER_SIZE = 12
MAX_RECORD_BODY = 67_108_864
# 1,024 bytes of padded plaintext and 72 of sealing: "the smallest record takes 1,108 bytes" (vault-format §4).
MIN_SEALED_BODY = 1_096
KIND_KEYRING = 1
KIND_LOG = 2
KIND_CHECKPOINT = 3  # manifests and their parts

_MAGIC = bytes.fromhex("894D5345414C0D0A")
_FORMAT_VERSION = 1
_SUITE = 1


class Broken(Exception):
    """Bytes that break the container format; `code` is the word of errors.md for how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Preamble:
    """The readable beginning of a container; ids and nonce are raw bytes."""

    epoch: int
    vault: bytes
    stream: bytes
    nonce: bytes


@dataclass(frozen=True)
class Record:
    """Where a record stands in the bytes it was found in: header at `start`, body from there + 12 to `stop`."""

    index: int
    start: int
    stop: int


def read_preamble(data: bytes, *, kind: int, vault: bytes) -> Preamble:
    """Return the preamble at the start of `data`; `Broken` where a check of vault-format §3 fails, in its order.

    Stream id, nonce and epoch depend on more than the preamble, and are left to the caller.
    """
    if len(data) < PREAMBLE_SIZE:
        raise Broken("preamble_short")
    checks = (
        ("preamble_magic", data[:8] == _MAGIC),
        ("preamble_damaged", zlib.crc32(data[:60]) == int.from_bytes(data[60:64], "big")),
        ("version_unknown", data[8] == _FORMAT_VERSION),
        ("suite_unknown", data[9] == _SUITE),
        ("kind_mismatch", data[10] == kind),
        ("preamble_reserved", data[11] == 0),
        ("vault_mismatch", data[16:32] == vault),
    )
    for code, holds in checks:
        if not holds:
            raise Broken(code)
    return Preamble(epoch=int.from_bytes(data[12:16], "big"), vault=data[16:32], stream=data[32:48], nonce=data[48:60])


def walk(data: bytes, *, start: int, first_index: int, min_body: int = 0) -> Iterator[Record]:
    """Yield the records that fill `data` from `start` to its end; `Broken` where one is not well formed."""
    index = first_index
    while start < len(data):
        header = data[start : start + RECORD_HEADER_SIZE]
        if len(header) < RECORD_HEADER_SIZE:
            raise Broken("record_torn")
        if zlib.crc32(header[:8]) != int.from_bytes(header[8:], "big"):
            raise Broken("record_header")
        length = int.from_bytes(header[:4], "big")
        if not min_body <= length <= MAX_RECORD_BODY:
            raise Broken("record_length")
        if int.from_bytes(header[4:8], "big") != index:
            raise Broken("record_order")
        stop = start + RECORD_HEADER_SIZE + length
        if stop > len(data):
            raise Broken("record_torn")
        yield Record(index, start, stop)
        start, index = stop, index + 1


def first_chain(preamble: bytes) -> bytes:
    """Return chain 0, the hash a log's first record is written after."""
    return hashlib.sha256(preamble).digest()


def next_chain(chain: bytes, data: bytes, records: Iterable[Record]) -> bytes:
    """Return the chain after these records of `data`, given the one before them."""
    view = memoryview(data)
    for record in records:
        digest = hashlib.sha256(chain)
        digest.update(view[record.start : record.stop])
        chain = digest.digest()
    return chain


def stream_id(vault: bytes, signing_key: bytes, nonce: bytes) -> bytes:
    """Return the id of the stream that a signing key begins with this nonce."""
    return hashlib.sha256(b"memseal/v1/stream" + vault + signing_key + nonce).digest()[:16]
