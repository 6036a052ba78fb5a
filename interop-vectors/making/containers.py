"""Preambles and records, put together by hand so that each of their fields can be wrong."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgpack

from making.frozen import Frozen
from making.people import ANN, VAULT, seed, sign

KEYRING, LOG, CHECKPOINT, MEDIA, TRACE, BUNDLE, DEVICE, CACHE, SESSION = range(1, 10)
KINDS = {
    KEYRING: "keyring",
    LOG: "log",
    CHECKPOINT: "checkpoint",
    MEDIA: "media",
    TRACE: "trace",
    BUNDLE: "bundle",
    DEVICE: "device",
    CACHE: "cache",
    SESSION: "session",
}


def u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def u64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def crc(content: bytes) -> bytes:
    return u32(zlib.crc32(content))


def pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def preamble(
    kind: int,
    *,
    epoch: int = 0,
    vault: bytes = VAULT,
    stream: bytes = bytes(16),
    nonce: bytes = bytes(12),
    version: int = 1,
    suite: int = 1,
    reserved: int = 0,
    magic: bytes = b"\x89MSEAL\r\n",
) -> bytes:
    head = magic + bytes([version, suite, kind, reserved]) + u32(epoch) + vault + stream + nonce
    return head + crc(head)


def log_preamble(
    owner: bytes, epoch: int = 1, began: bytes = bytes(8), random: bytes = b"rand", vault: bytes = VAULT
) -> bytes:
    """The preamble of a log: `owner` is its public signing key, `began` the digest of the version of its epoch."""
    nonce = began[:8] + random
    stream = sha256(b"memseal/v1/stream" + vault + owner + nonce).digest()[:16]
    return preamble(LOG, epoch=epoch, vault=vault, stream=stream, nonce=nonce)


def header(length: int, index: int) -> bytes:
    return u32(length) + u32(index) + crc(u32(length) + u32(index))


def frame(index: int, body: bytes) -> bytes:
    return header(len(body), index) + body


def padded(size: int) -> int:
    """Padmé by the formula of §4, for sizes that need no cap."""
    if size <= 1024:
        return 1024
    exponent = size.bit_length() - 1
    last = exponent - exponent.bit_length()
    return (size + (1 << last) - 1) >> last << last


def plaintext(content: bytes, *, size: int | None = None, length: int | None = None, filler: bytes = b"\0") -> bytes:
    """Length word, content, padding; `size` and `length` are what they should be unless they are given."""
    body = u32(len(content) if length is None else length) + content
    whole = padded(len(body)) if size is None else size
    return body + bytes(max(0, whole - len(body) - 1)) + (filler if whole > len(body) else b"")


def context(preamble: bytes, index: int) -> bytes:
    return b"memseal/v1/record" + preamble + u32(index)


def record(frozen: Frozen, name: str, key: bytes, preamble: bytes, index: int, plain: bytes) -> bytes:
    """A sealed record, header included."""
    return frame(index, frozen.sealed(name, key, context(preamble, index), plain))


SIGNED, MORE, COMPRESSED = 1, 2, 4


def content(
    meta: bytes,
    *,
    chain: bytes,
    preamble: bytes,
    index: int,
    signer: bytes | None = ANN.sign,
    flags: int = 0,
    columns: bytes = b"",
    meta_length: int | None = None,
) -> bytes:
    """The content of a log's record; signed unless nobody signs."""
    body = chain + bytes([flags | (SIGNED if signer else 0)])
    body += u32(len(meta) if meta_length is None else meta_length) + meta + columns
    return body + (sign(signer, b"memseal/v1/sign" + preamble + u32(index) + body) if signer else b"")


@dataclass
class MadeLog:
    """A log that is being made, record by record."""

    frozen: Frozen
    name: str
    preamble: bytes
    key: bytes
    records: list[bytes] = field(default_factory=list[bytes])
    chains: list[bytes] = field(default_factory=list[bytes])
    contents: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        self.chains.append(sha256(self.preamble).digest())

    @property
    def chain(self) -> bytes:
        return self.chains[-1]

    def put(self, meta: Any, **options: Any) -> bytes:
        """One record after the others; the options are those of `content`."""
        index = len(self.records)
        packed = meta if isinstance(meta, bytes) else pack(meta)
        options = {"chain": self.chain, "preamble": self.preamble, "index": index} | options
        body = content(packed, **options)
        made = record(self.frozen, f"{self.name} {index}", self.key, self.preamble, index, plaintext(body))
        return self.take(made, body)

    def take(self, made: bytes, body: bytes = b"") -> bytes:
        """A record that is made already."""
        self.records.append(made)
        self.contents.append(body)
        self.chains.append(sha256(self.chain + made).digest())
        return made

    def whole(self, records: Sequence[bytes] | None = None) -> bytes:
        return self.preamble + b"".join(self.records if records is None else records)

    def end(self, count: int | None = None) -> dict[str, Any]:
        """Where the log ends after its first records."""
        number = len(self.records) if count is None else count
        length = 64 + sum(map(len, self.records[:number]))
        return {"length": length, "records": number, "chain": self.chains[number]}


def flipped(content: bytes, position: int, mask: int = 1) -> bytes:
    position %= len(content)
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


LOG_KEY = seed("log key")
