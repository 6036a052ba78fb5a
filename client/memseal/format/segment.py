"""A consecutive piece of a log, as a remote stores it (sync-protocol §1)."""

from dataclasses import dataclass

from memseal.errors import FormatError
from memseal.format.log import End

_HEADER = 8 + 8 + 4 + 32
SEGMENT_TARGET = 4 << 20  # sync-protocol §6: at most 4 MiB unless one record is larger


@dataclass(frozen=True)
class Segment:
    """Start (offset, first index, chain there) and the bytes of the log from there on."""

    start: End
    piece: bytes

    def to_bytes(self) -> bytes:
        """Return header and piece."""
        return b"".join(
            (
                self.start.length.to_bytes(8, "big"),
                len(self.piece).to_bytes(8, "big"),
                self.start.records.to_bytes(4, "big"),
                self.start.chain,
                self.piece,
            )
        )


FIRST = End(0, 0, bytes(32))
"""The start of segment 0, which begins with the preamble."""


def decode_segment(content: bytes) -> Segment:
    """Return the segment; raises `FormatError`."""
    if len(content) < _HEADER or len(content) != _HEADER + int.from_bytes(content[8:16], "big"):
        raise FormatError("segment_invalid", "a segment does not have the length it declares")
    start = End(int.from_bytes(content[:8], "big"), int.from_bytes(content[16:20], "big"), content[20:52])
    return Segment(start, content[_HEADER:])
