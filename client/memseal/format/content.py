"""What a log's record carries: chain, flags, meta, columns, signature (vault-format §5)."""

from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from memseal.errors import FormatError
from memseal.format import compression, primitives
from memseal.format.keys import SigningKey
from memseal.format.primitives import Buffer
from memseal.format.values import decode_map, encode_value

SIGNED, MORE, COMPRESSED = 1, 2, 4
CHAIN_SIZE = 32
_KNOWN_FLAGS = SIGNED | MORE | COMPRESSED
_HEAD = Struct(f">{CHAIN_SIZE}sBI")  # chain, flags, stored length of meta
_FIXED = _HEAD.size
_SIGN = b"memseal/v1/sign"
_ITEM_SIZES = {"f2": 2}
# The most of its meta that a frame may be: one of a short memory saves an eighth, and undoing it takes 2.4 µs of the 32
# that reading such a record takes.
_WORTH = 0.75


# Named tuples, because one or more are made for every record of a log: a frozen dataclass takes three times as long.


class Column(NamedTuple):
    """Raw values beside the meta: `rows` × `width` of a type (`f2`: float16, little-endian), row after row."""

    name: str
    model: str
    type: str
    width: int
    rows: int
    content: bytes | memoryview

    def described(self) -> dict[str, Any]:
        """Return what the meta says of this column."""
        return {
            "name": self.name,
            "model": self.model,
            "type": self.type,
            "width": self.width,
            "rows": self.rows,
            "bytes": len(self.content),
        }


class Content(NamedTuple):
    """One record of a log, opened: the chain before it, whether more of its write follows, its meta and columns."""

    chain: bytes
    more: bool
    meta: dict[str, Any]
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Signed:
    """A record's content that ends with its signature; of most records of a log nobody looks at it."""

    preamble: bytes
    index: int
    content: memoryview

    @property
    def signature(self) -> bytes:
        """The signature, 64 bytes."""
        return bytes(self.content[-primitives.SIGNATURE_SIZE :])

    @property
    def message(self) -> bytes:
        """The message that was signed."""
        return _message(self.preamble, self.index, bytes(self.content[: -primitives.SIGNATURE_SIZE]))


def chain_start(preamble: bytes) -> bytes:
    """Return the chain before the first record."""
    return primitives.sha256(preamble)


def chain_next(chain: bytes, record: Buffer) -> bytes:
    """Return the chain after a record, given as stored."""
    return primitives.sha256(chain, record)


def encode_content(content: Content, preamble: bytes, index: int, owner: SigningKey) -> bytes:
    """Return the bytes of a content at its place, signed by its owner."""
    body = b"".join(content_pieces(content, SIGNED))
    return body + primitives.sign(owner, _message(preamble, index, body))


def content_pieces(content: Content, flags: int = 0) -> list[Buffer]:
    """Return the bytes of a content in pieces; without a flag it is not signed."""
    meta = content.meta
    if content.columns:
        meta = {**meta, "columns": [column.described() for column in content.columns]}
    packed = encode_value(meta)
    frame = compression.compress(packed)
    if frame is not None and len(frame) > _WORTH * len(packed):
        frame = None
    stored = packed if frame is None else frame
    flags |= (MORE if content.more else 0) | (COMPRESSED if frame is not None else 0)
    head = b"".join((content.chain, bytes((flags,)), len(stored).to_bytes(4, "big"), stored))
    return [head, *(column.content for column in content.columns)]


def decode_content(body: memoryview, preamble: bytes, index: int) -> tuple[Content, Signed | None]:
    """Return a record's content and its signature, not yet verified; raises `FormatError`."""
    if len(body) < _FIXED:
        raise FormatError("record_content", f"record {index} is shorter than its fields")
    chain, flags, size = _HEAD.unpack_from(body)
    if flags & ~_KNOWN_FLAGS:
        raise FormatError("record_flags", f"record {index} has flags this version does not know: update memseal")
    end = len(body) - (primitives.SIGNATURE_SIZE if flags & SIGNED else 0)
    meta_end = _FIXED + size
    if meta_end > end:
        raise FormatError("record_content", f"record {index} is shorter than its fields")
    stored = body[_FIXED:meta_end]
    meta = decode_map(compression.decompress(stored) if flags & COMPRESSED else stored)
    columns = _decode_columns(meta.pop("columns", []), body[meta_end:end], index)
    signed = Signed(preamble, index, body) if flags & SIGNED else None
    return Content(chain, bool(flags & MORE), meta, columns), signed


def _decode_columns(listed: Any, content: memoryview, index: int) -> tuple[Column, ...]:
    """Return the columns of known names and types; the others are skipped by their length."""
    columns: list[Column] = []
    entries: list[Any] = listed
    offset = 0
    if type(entries) is not list:
        raise FormatError("column_length", f"the columns of record {index} are not a list")
    for value in entries:
        entry: dict[str, Any] = value
        size = entry.get("bytes") if type(entry) is dict else None
        if type(size) is not int or not 0 <= size <= len(content) - offset:
            raise FormatError("column_length", f"the columns of record {index} do not fit it")
        if entry.get("name") == "embedding" and _is_known(entry.get("type")):
            columns.append(_decode_column(entry, content[offset : offset + size], index))
        offset += size
    if offset != len(content):
        raise FormatError("column_length", f"the columns of record {index} do not fill it")
    return tuple(columns)


def _decode_column(entry: dict[str, Any], content: memoryview, index: int) -> Column:
    model, width, rows = entry.get("model"), entry.get("width"), entry.get("rows")
    if type(model) is not str or type(width) is not int or type(rows) is not int or width < 0 or rows < 0:
        raise FormatError("column_length", f"a column of record {index} is not described")
    if rows * width * _ITEM_SIZES[entry["type"]] != len(content) or width == 0:
        raise FormatError("column_length", f"a column of record {index} has the wrong length")
    return Column("embedding", model, entry["type"], width, rows, content)


def _is_known(kind: Any) -> bool:
    # The type first: a map or array has no hash to be looked up by.
    return type(kind) is str and kind in _ITEM_SIZES


def _message(preamble: bytes, index: int, body: bytes) -> bytes:
    return _SIGN + preamble + index.to_bytes(4, "big") + body
