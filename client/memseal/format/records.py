"""Record framing, padding and sealing inside a container (vault-format §4)."""

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from memseal.errors import FormatError, RecordTooLarge
from memseal.format import primitives
from memseal.format.keys import RecordKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.primitives import Buffer, sealed_size

HEADER_SIZE = 12
BODY_LIMIT = 1 << 26
# The largest plaintext whose sealed length is at most BODY_LIMIT (vault-format §4).
PLAINTEXT_LIMIT = 67_043_327
PLAINTEXT_LEAST = 1024
SMALLEST_RECORD = HEADER_SIZE + PLAINTEXT_LEAST + 72
_HEADER = Struct(">III")  # length of the body, index, CRC-32 of both
_CONTEXT = b"memseal/v1/record"
_SEVERAL_CHUNKS = sealed_size(primitives.CHUNK)


# Not frozen, because one is made for every record of a log: that alone would take three times as long.
@dataclass(slots=True)
class Place:
    """Where a record stands in its container: index, offset of its header in bytes, offset after its body."""

    index: int
    offset: int
    end: int

    @property
    def length(self) -> int:
        """Length of its body, in bytes."""
        return self.end - self.offset - HEADER_SIZE


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of a container where no record could be found, and the code that says why."""

    code: str
    offset: int
    end: int
    index: int


def encode_header(length: int, index: int) -> bytes:
    """Return the 12 bytes before a record's body."""
    head = length.to_bytes(4, "big") + index.to_bytes(4, "big")
    return head + zlib.crc32(head).to_bytes(4, "big")


def frame(index: int, body: bytes) -> bytes:
    """Return a record of these stored bytes."""
    return encode_header(len(body), index) + body


def decode_header(content: memoryview, offset: int, index: int, size: int | None = None) -> Place:
    """Return the place of the record expected at an offset; raises `FormatError`.

    `size` is how long the container is, where `content` is only a piece of it.
    """
    if len(content) - offset < HEADER_SIZE:
        raise FormatError("record_torn", f"the file ends inside the header of record {index}")
    length, found, checksum = _HEADER.unpack_from(content, offset)
    if zlib.crc32(content[offset : offset + 8]) != checksum:
        raise FormatError("record_header", f"the header of record {index} is damaged")
    if length > BODY_LIMIT:
        raise FormatError("record_length", f"record {index} claims more than 64 MiB")
    if found != index:
        raise FormatError("record_order", f"another record stands where record {index} belongs")
    end = offset + HEADER_SIZE + length
    if end > (len(content) if size is None else size):
        raise FormatError("record_torn", f"the file ends inside record {index}")
    return Place(index, offset, end)


def places(content: memoryview, offset: int = PREAMBLE_SIZE, index: int = 0) -> list[Place]:
    """Return every record from an offset to the end; raises `FormatError` at the first that is not whole."""
    found = list[Place]()
    while offset < len(content):
        place = decode_header(content, offset, index)
        found.append(place)
        offset, index = place.end, index + 1
    return found


def scan(content: memoryview, offset: int, index: int) -> Iterator[Place | Gap]:
    """Walk the records of a log that may be damaged: places, and gaps where nothing can be found.

    Takes time in proportion to the content's size, whatever it holds.
    """
    while offset < len(content):
        try:
            place = decode_header(content, offset, index)
            if place.end - offset < SMALLEST_RECORD:
                raise FormatError("record_length", f"record {index} is shorter than any sealed record")
        except FormatError as error:
            after = _resume(content, offset, index)
            if after is None:
                yield Gap(error.code, offset, len(content), index)
                return
            yield Gap("record_header" if error.code == "record_torn" else error.code, offset, after.offset, index)
            place = after
        yield place
        offset, index = place.end, place.index + 1


# What a header after damage begins with: a length of at most 64 MiB, and an index that is not 0, because it rises. The
# look-ahead makes the matches overlap. In a log of less than 65,536 records an index begins with two zeros, which few
# bytes do.
_LENGTH = rb"(?:[\x00-\x03].{3}|\x04\x00{3})"
_ANY_HEADER = re.compile(rb"(?=" + _LENGTH + rb"(?!\x00{4}).{4})", re.DOTALL)
_SMALL_HEADER = re.compile(rb"(?=" + _LENGTH + rb"\x00\x00(?!\x00\x00).{2})", re.DOTALL)
# How many records may have been cut out in a gap, beyond those that its bytes could hold.
_MISSING_LIMIT = 1024


def _resume(content: memoryview, offset: int, index: int) -> Place | None:
    """Find the first sound header from an offset on, where that of record `index` should be and is not."""
    last = len(content) - SMALLEST_RECORD
    most = index + _MISSING_LIMIT + max(0, last - offset) // SMALLEST_RECORD
    candidates = _SMALL_HEADER if most < 1 << 16 else _ANY_HEADER
    for match in candidates.finditer(content, offset):
        start = match.start()
        if start > last:
            break
        length, found, checksum = _HEADER.unpack_from(content, start)
        if (
            index <= found <= index + _MISSING_LIMIT + (start - offset) // SMALLEST_RECORD
            and SMALLEST_RECORD <= HEADER_SIZE + length <= len(content) - start
            and zlib.crc32(content[start : start + 8]) == checksum
        ):
            return Place(found, start, start + HEADER_SIZE + length)
    return None


def padded_size(size: int) -> int:
    """Return the padded length of a plaintext of `size` bytes, length word counted: Padmé, at least 1,024."""
    if size <= PLAINTEXT_LEAST:
        return PLAINTEXT_LEAST
    exponent = size.bit_length() - 1
    step = 1 << (exponent - exponent.bit_length())
    return min((size + step - 1) // step * step, PLAINTEXT_LIMIT)


def seal_record(key: RecordKey, preamble: bytes, index: int, content: bytes) -> bytes:
    """Return the record, header included, that seals a content at its place."""
    return bytes(seal_pieces(key, preamble, index, (content,)))


def seal_pieces(key: RecordKey, preamble: bytes, index: int, content: Sequence[Buffer]) -> bytearray:
    """Return the record of a content given in pieces: sealed straight into place.

    Each copy of 2 MiB, the size of a part's records, takes longer than encrypting them.
    """
    size = 4 + sum(map(len, content))
    if size > PLAINTEXT_LIMIT:
        raise RecordTooLarge("one memory is larger than a record can hold (64 MiB): split it")
    padded = padded_size(size)
    length = sealed_size(padded)
    record = bytearray(HEADER_SIZE + length)
    record[:HEADER_SIZE] = encode_header(length, index)
    pieces = ((size - 4).to_bytes(4, "big"), *content, bytes(padded - size))
    primitives.seal_into(key, _context(preamble, index), pieces, memoryview(record)[HEADER_SIZE:])
    return record


def open_record(key: RecordKey, preamble: bytes, index: int, body: memoryview) -> memoryview:
    """Return the content of a sealed record; raises `FormatError`."""
    plaintext: bytes | bytearray
    context = _context(preamble, index)
    try:
        if len(body) < _SEVERAL_CHUNKS:
            plaintext = primitives.open_sealed(key, context, body)
            length = len(plaintext)
        else:  # opened straight into place: the last chunk comes out apart from the others
            plaintext = bytearray(len(body))
            length = primitives.open_sealed_into(key, context, body, memoryview(plaintext))
    except primitives.NotAuthentic:
        raise FormatError("record_sealed", f"record {index} does not open: damaged, replaced or moved") from None
    size = 4 + int.from_bytes(plaintext[:4], "big")
    if length < 4 or size > PLAINTEXT_LIMIT or length != padded_size(size):
        raise FormatError("record_padding", f"the padding of record {index} has the wrong length")
    if plaintext.count(0, size, length) != length - size:
        raise FormatError("record_padding", f"the padding of record {index} is not zero")
    return memoryview(plaintext)[4:size] if type(plaintext) is bytes else memoryview(plaintext).toreadonly()[4:size]


def _context(preamble: bytes, index: int) -> bytes:
    return _CONTEXT + preamble + index.to_bytes(4, "big")


__all__ = [
    "BODY_LIMIT",
    "HEADER_SIZE",
    "Gap",
    "Place",
    "decode_header",
    "frame",
    "open_record",
    "padded_size",
    "places",
    "scan",
    "seal_pieces",
    "seal_record",
    "sealed_size",
]
