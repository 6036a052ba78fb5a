"""Decide whether a segment continues a log (sync-protocol §1 and §4)."""

import hashlib
from dataclasses import dataclass

from memseal_server import container
from memseal_server.versions import Row, StreamEnd

HEADER_SIZE = 52
MAX_SEGMENT_BYTES = 68 * 1024 * 1024

_NO_CHAIN = bytes(32)


class SegmentInvalid(ValueError):
    """A segment that breaks the format; the message is a sentence without ids."""


@dataclass(frozen=True)
class End:
    """Where a log ends: bytes, records, the chain after the last of them, the number of the next segment."""

    length: int = 0
    records: int = 0
    chain: bytes = _NO_CHAIN
    next: int = 0

    def to_members(self) -> dict[str, int | str]:
        """Return the end as it stands in JSON, the chain in hex digits."""
        return {
            "length": self.length,
            "records": self.records,
            "chain": self.chain.hex(),
            "next": self.next,
        }


@dataclass(frozen=True)
class Header:
    """The first 52 bytes of a segment: where its piece belongs, and how long it is in bytes."""

    start: int
    length: int
    first_index: int
    chain: bytes


@dataclass(frozen=True)
class Segment:
    """A well-formed segment: where it begins, and where the log ends after it."""

    header: Header
    end: End


def read_header(data: bytes) -> Header:
    """Return a segment's header from its first 52 bytes."""
    if len(data) < HEADER_SIZE:
        raise SegmentInvalid("The segment ends before its header does.")
    return Header(
        start=int.from_bytes(data[:8], "big"),
        length=int.from_bytes(data[8:16], "big"),
        first_index=int.from_bytes(data[16:20], "big"),
        chain=data[20:52],
    )


def read_segment(data: bytes, *, seq: int) -> Segment:
    """Return the segment in `data`, its records walked and chained; `SegmentInvalid` where its form is wrong."""
    header = read_header(data)
    if header.length != len(data) - HEADER_SIZE:
        raise SegmentInvalid("The segment's length is not that of its piece.")
    # A log whose beginning was never here starts with a segment 0 at the floor's row.
    if seq > 0 or header.start > 0:
        return _walk(data, header, seq, at=HEADER_SIZE, chain=header.chain)
    if (header.start, header.first_index, header.chain) != (0, 0, _NO_CHAIN):
        raise SegmentInvalid("A log starts at index 0 and a chain of zeros.")
    at = HEADER_SIZE + container.PREAMBLE_SIZE
    if len(data) < at:
        raise SegmentInvalid("Segment 0 ends before the log's preamble does.")
    return _walk(data, header, seq, at=at, chain=container.first_chain(data[HEADER_SIZE:at]))


def preamble_at(row: Row, *, vault: bytes, stream: bytes) -> container.Preamble:
    """Return the preamble of a log whose beginning is not needed any more."""
    return container.Preamble(row.epoch, vault, stream, row.nonce)


def read_log_preamble(data: bytes, *, vault: bytes, stream: bytes) -> container.Preamble:
    """Return the preamble of a log of this vault and stream; `SegmentInvalid` where it is another's."""
    try:
        preamble = container.read_preamble(data, kind=container.KIND_LOG, vault=vault)
    except container.Broken as broken:
        raise SegmentInvalid(f"The log's preamble is broken: {broken.code}.") from None
    if preamble.stream != stream:
        raise SegmentInvalid("The log's preamble names another stream.")
    if preamble.epoch < 1:
        raise SegmentInvalid("A log's epoch is 1 or more.")
    return preamble


def begins_on(preamble: container.Preamble, epoch_digest: bytes) -> bool:
    """Whether a log's nonce begins with the digest of the version that began its epoch."""
    return preamble.nonce[:8] == epoch_digest[:8]


def continues(segment: Segment, end: End) -> bool:
    """Whether the segment's piece begins where the log ends."""
    header = segment.header
    return (header.start, header.first_index, header.chain) == (end.length, end.records, end.chain)


def end_at(row: Row) -> End:
    """Return where a log ends of which nothing is above the floor."""
    return End(row.length, row.records, row.chain, row.segment)


def starts_at(header: Header, row: Row) -> bool:
    """Whether a segment's piece begins where the floor ends."""
    return (header.start, header.first_index, header.chain) == (row.length, row.records, row.chain)


def is_within(end: End, named: StreamEnd | None) -> bool:
    """Whether a log that ends here goes no further than where an ended device's stream was said to end."""
    if named is None:
        return False
    if (end.length, end.records) == (named.length, named.records):
        return end.chain == named.chain
    return end.length < named.length and end.records < named.records


def piece_digest(data: bytes) -> bytes:
    """Return the SHA-256 of a segment's piece of the log, without the segment's header."""
    return hashlib.sha256(memoryview(data)[HEADER_SIZE:]).digest()


def _walk(data: bytes, header: Header, seq: int, *, at: int, chain: bytes) -> Segment:
    # Without the smallest body there could be 350,000 records in 4 MiB, each a hash to compute.
    try:
        records = list(
            container.walk(data, start=at, first_index=header.first_index, min_body=container.MIN_SEALED_BODY)
        )
    except container.Broken as broken:
        raise SegmentInvalid(f"A record of the segment is broken: {broken.code}.") from None
    if not records:
        raise SegmentInvalid("A segment has at least one record.")
    chain = container.next_chain(chain, data, records)
    count = header.first_index + len(records)
    return Segment(header, End(header.start + header.length, count, chain, seq + 1))
