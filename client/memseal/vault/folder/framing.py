"""Walk the headers of a file's records without reading what they hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from memseal.errors import FormatError
from memseal.format.records import HEADER_SIZE, SMALLEST_RECORD, Place, decode_header

Read = Callable[[int, int], bytes]
"""Returns the bytes from an offset to another."""
# What is read at once: of large records little more than their headers, of small ones some fifty.
_WINDOW = 1 << 16


def frames(read: Read, offset: int, index: int, until: int) -> Iterator[Place]:
    """Yield where sealed records stand, from their headers alone: the first is record `index`, at `offset`.

    Raises `FormatError` at the first that is wrong.
    """
    first, window = offset, memoryview(b"")
    while offset < until:
        if offset + HEADER_SIZE > first + len(window):
            first, window = offset, memoryview(read(offset, min(until, offset + _WINDOW)))
        place = decode_header(window, offset - first, index, until - first)
        if HEADER_SIZE + place.length < SMALLEST_RECORD:
            raise FormatError("record_length", f"record {index} is shorter than any sealed record")
        yield replace(place, offset=offset)
        offset, index = offset + HEADER_SIZE + place.length, index + 1
