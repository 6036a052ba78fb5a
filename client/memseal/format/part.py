"""A run of sealed records without signatures, as checkpoint parts and bundles hold them (vault-format §8b and §8d)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memseal.errors import Finding, FormatError
from memseal.format.content import Column, Content, chain_next, chain_start, content_pieces, decode_content
from memseal.format.keys import RecordKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, Gap, Place, open_record, places, scan, seal_pieces


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run begins in its container: offset and index of its first record, and the chain before it."""

    offset: int
    index: int
    chain: bytes


def start_of_part(preamble: bytes) -> Start:
    """Return where a part's records begin; a bundle's begin after its record 0."""
    return Start(PREAMBLE_SIZE, 0, chain_start(preamble))


@dataclass(frozen=True, slots=True)
class Sealed:
    """One record of a run as stored, and the chain after it."""

    record: bytearray
    chain: bytes


def seal_run(
    key: RecordKey, preamble: bytes, start: Start, contents: Iterable[tuple[dict[str, Any], tuple[Column, ...]]]
) -> Iterator[Sealed]:
    """Yield the stored records of meta and columns; each says whether more follow, so one is held back."""
    index, chain = start.index, start.chain
    waiting: tuple[dict[str, Any], tuple[Column, ...]] | None = None
    for following in contents:
        if waiting is not None:
            sealed = _seal(key, preamble, index, Content(chain, True, *waiting))
            index, chain = index + 1, sealed.chain
            yield sealed
        waiting = following
    yield _seal(key, preamble, index, Content(chain, False, *(waiting or ({"operations": []}, ()))))


def _seal(key: RecordKey, preamble: bytes, index: int, content: Content) -> Sealed:
    record = seal_pieces(key, preamble, index, content_pieces(content))
    return Sealed(record, chain_next(content.chain, record))


def chain_of(content: memoryview) -> bytes:
    """Return the chain after the last record of a container; raises `FormatError` where its framing is damaged."""
    chain = chain_start(bytes(content[:PREAMBLE_SIZE]))
    for place in places(content):
        chain = chain_next(chain, content[place.offset : place.end])
    return chain


def read_run(
    name: str, key: RecordKey, content: memoryview, start: Start | None = None, chain_after: bytes | None = None
) -> Iterator[Content | Finding]:
    """Yield what each record of a container says, and what is wrong with it, in order; `name` is for the findings.

    `content` is the whole container, its preamble already checked; `chain_after` what its chain must be at the end.
    What opens is given out whatever surrounds it.
    """
    preamble = bytes(content[:PREAMBLE_SIZE])
    start = start_of_part(preamble) if start is None else start
    chain, more = start.chain, True
    for piece in scan(content, start.offset, start.index):
        where, chain_before = f"{name}#{piece.index}", chain
        chain = b""
        if isinstance(piece, Gap):
            yield Finding(piece.code, where, f"{piece.end - piece.offset} bytes at offset {piece.offset} are damaged")
            continue
        try:
            record = _open(key, preamble, piece, content)
        except FormatError as error:
            yield Finding(error.code, where, str(error))
            continue
        if chain_before and record.chain != chain_before:
            yield Finding("chain_broken", where, "the records before it are not those it was written after")
        chain, more = chain_next(record.chain, content[piece.offset : piece.end]), record.more
        yield record
    if more:
        yield Finding("record_torn", name, "it ends before its last record")
    elif chain_after is not None and chain != chain_after:
        yield Finding("checkpoint_mismatch", name, "it is not the one that was named: sync to get it again")


def _open(key: RecordKey, preamble: bytes, place: Place, content: memoryview) -> Content:
    body = open_record(key, preamble, place.index, content[place.offset + HEADER_SIZE : place.end])
    record, signed = decode_content(body, preamble, place.index)
    if signed is not None:
        raise FormatError("checkpoint_invalid", f"record {place.index} is signed, which no record of a part is")
    return record
