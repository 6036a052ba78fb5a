"""The base that stands in the place of a log's dropped beginning, on a device (vault-format §5a)."""

import zlib
from dataclasses import dataclass
from struct import Struct

from memseal.errors import FormatError
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE

BASE_SIZE = 60
_MARK = b"\xff\xff\xff\xff"
_BODY = Struct(">QI32sQ")


@dataclass(frozen=True)
class Base:
    """Where in the whole log the records that follow began, and the counter of the record before them."""

    end: End
    counter: int

    def to_bytes(self) -> bytes:
        """Return the 60 bytes after the preamble."""
        head = _MARK + _BODY.pack(self.end.length, self.end.records, self.end.chain, self.counter)
        return head + zlib.crc32(head).to_bytes(4, "big")


def decode_base(content: bytes | memoryview) -> Base | None:
    """Return the base of a log's file, or None where it begins with its first record; raises `FormatError`."""
    found = bytes(content[PREAMBLE_SIZE : PREAMBLE_SIZE + BASE_SIZE])
    if found[:4] != _MARK:
        return None
    if len(found) < BASE_SIZE or zlib.crc32(found[:-4]).to_bytes(4, "big") != found[-4:]:
        raise FormatError("base_damaged", "the beginning of a shortened log is damaged: sync to get it again")
    length, records, chain, counter = _BODY.unpack_from(found, 4)
    return Base(End(length, records, chain), counter)
