"""Sealed pieces of a cache: records without length word and padding, opened straight into place (vault-format §8a)."""

from memseal.errors import FormatError
from memseal.format import primitives
from memseal.format.keys import RecordKey
from memseal.format.primitives import Buffer
from memseal.format.records import HEADER_SIZE, decode_header, encode_header

_CONTEXT = b"memseal/v1/piece"


def piece_size(content_size: int) -> int:
    """Return the stored size of a piece, header included."""
    return HEADER_SIZE + primitives.sealed_size(content_size)


def seal_piece(key: RecordKey, preamble: bytes, index: int, content: Buffer) -> bytes:
    """Return the record that seals a piece at its place."""
    body = primitives.seal(key, _context(preamble, index), content)
    return encode_header(len(body), index) + body


def open_piece(key: RecordKey, preamble: bytes, index: int, record: bytes, target: memoryview) -> None:
    """Open a piece into a buffer of exactly its size; raises `FormatError`."""
    place = decode_header(memoryview(record), 0, index)
    if place.end != len(record) or len(record) != piece_size(len(target)):
        raise FormatError("record_length", "a piece of the cache has the wrong length")
    try:
        primitives.open_sealed_into(key, _context(preamble, index), memoryview(record)[HEADER_SIZE:], target)
    except primitives.NotAuthentic:
        raise FormatError("record_sealed", "a piece of the cache does not open") from None


def _context(preamble: bytes, index: int) -> bytes:
    return _CONTEXT + preamble + index.to_bytes(4, "big")
