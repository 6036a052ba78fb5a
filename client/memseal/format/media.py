"""Media: items beside the memories that name them, sealed in pieces (vault-format §8c)."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from memseal.errors import FormatError
from memseal.format.fields import U53, Fields
from memseal.format.keys import RecordKey
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.records import HEADER_SIZE, decode_header, open_record, seal_record

PIECE_LIMIT: Final = 1 << 20
_KNOWN: Final = frozenset({"id", "key", "bytes", "digest", "type", "name"})


@dataclass(frozen=True)
class Medium:
    """What a memory says of one item: where it is, its key, how long it is, its SHA-256, its media type and name."""

    id: bytes
    key: RecordKey
    size_bytes: int
    digest: bytes
    type: str
    name: str | None
    others: dict[str, Any]


def media_preamble(vault_id: bytes, media_id: bytes) -> bytes:
    """Return the preamble of an item's container."""
    return Preamble(Kind.MEDIA, 0, vault_id, media_id, bytes(12)).to_bytes()


def seal_media(key: RecordKey, preamble: bytes, content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the stored records of an item that comes in pieces of any size."""
    index, waiting = 0, bytearray()
    for piece in content:
        waiting += piece
        while len(waiting) >= PIECE_LIMIT:
            yield seal_record(key, preamble, index, bytes(waiting[:PIECE_LIMIT]))
            index += 1
            del waiting[:PIECE_LIMIT]
    if waiting:
        yield seal_record(key, preamble, index, bytes(waiting))


def open_media(medium: Medium, vault_id: bytes, container: memoryview) -> Iterator[bytes]:
    """Yield an item's pieces; raises `FormatError`, at the end too: use nothing before the last piece was given."""
    preamble = _checked_preamble(medium, vault_id, container)
    digest, size, index, offset = hashlib.sha256(), 0, 0, PREAMBLE_SIZE
    while offset < len(container):
        place = decode_header(container, offset, index)
        piece = bytes(open_record(medium.key, preamble, index, container[offset + HEADER_SIZE : place.end]))
        if len(piece) > PIECE_LIMIT:
            raise FormatError("media_mismatch", f"record {index} holds more than a piece of media may")
        digest.update(piece)
        index, offset, size = index + 1, place.end, size + len(piece)
        yield piece
    if size != medium.size_bytes or digest.digest() != medium.digest:
        raise FormatError("media_mismatch", "the item is not the one that the memory names: fetch it anew")


def _checked_preamble(medium: Medium, vault_id: bytes, container: memoryview) -> bytes:
    decode_preamble(container, Kind.MEDIA, vault_id)
    preamble = media_preamble(vault_id, medium.id)
    if bytes(container[:PREAMBLE_SIZE]) != preamble:
        raise FormatError("media_mismatch", "the file holds another item than its name says")
    return preamble


# ── in a memory ─────────────────────────────────────────────────────────────────────────────────────


def encode_media(media: Iterable[Medium]) -> list[dict[str, Any]]:
    """Return the value of a memory's field `media`."""
    return [
        {
            **medium.others,
            "id": medium.id,
            "key": medium.key.reveal(),
            "bytes": medium.size_bytes,
            "digest": medium.digest,
            "type": medium.type,
            "name": medium.name,
        }
        for medium in media
    ]


def decode_media(value: Any) -> tuple[Medium, ...]:
    """Return what a memory's field `media` says; raises `FormatError` `operation_invalid`."""
    entries = Fields({"media": value}, "operation_invalid", "operation").array("media")
    return tuple(_decode_medium(Fields(entry, "operation_invalid", "media")) for entry in entries)


def _decode_medium(fields: Fields) -> Medium:
    return Medium(
        id=fields.size("id", ID_SIZE),
        key=RecordKey(fields.size("key", RecordKey.SIZE)),
        size_bytes=fields.count("bytes", below=U53),
        digest=fields.size("digest", 32),
        type=fields.text("type"),
        name=None if fields.get("name") is None else fields.text("name"),
        others=fields.others(_KNOWN),
    )
