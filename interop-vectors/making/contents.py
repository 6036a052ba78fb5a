"""Vectors of a record's content: flags, meta, compression, msgpack, columns (§5, §9)."""

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import zstandard

from making.book import Book, Group, Repeated, Value
from making.containers import COMPRESSED, MORE, SIGNED, content, log_preamble, pack, u32
from making.people import ANN, seed

RECORDS, META = "vault-format §5", "vault-format §9"
PREAMBLE = log_preamble(ANN.public_sign)
CHAIN = sha256(PREAMBLE).digest()


def add(book: Book) -> None:
    group = book.group("content")
    _add_contents(group)
    _add_content_faults(group)
    _add_columns(group)
    _add_column_values(group)
    _add_zstd(group)
    _add_values(group)
    _add_value_faults(group)


def made(meta: Any, index: int = 0, **options: Any) -> bytes:
    packed = meta if isinstance(meta, bytes) else pack(meta)
    return content(packed, **({"chain": CHAIN, "preamble": PREAMBLE, "index": index} | options))


def given(body: bytes, index: int = 0) -> dict[str, object]:
    return {"content": body, "preamble": PREAMBLE, "index": index}


SMALL = {"previous": 0, "heads": [], "operations": []}


def _add_contents(group: Group) -> None:
    def opens(name: str, title: str, body: bytes, meta: Any = SMALL, **gives: Any) -> None:
        usual = {"chain": CHAIN, "signed": True, "more": False, "meta": Value(meta), "columns": []}
        group.ok(name, RECORDS, title, "decode_content", given(body), **(usual | gives))

    opens("signed", "a signed content", made(SMALL))
    opens("not-signed", "a content without signature", made(SMALL, signer=None), signed=False)
    opens("more", "more records of its write follow", made(SMALL, flags=MORE), more=True)
    opens(
        "more-not-signed", "neither signed nor the last", made(SMALL, flags=MORE, signer=None), more=True, signed=False
    )
    large = {"operations": ["again and again"] * 500}
    frame = group.frozen.compressed("large meta", pack(large), 19)
    opens("compressed", "meta is a zstd frame", made(frame, flags=COMPRESSED), large)
    opens("empty-map", "an empty meta", made({}), {})
    unknown = {"previous": 0, "newer": {"field": [1, b"\0", None]}}
    opens("unknown-field", "a field of newer software is kept", made(unknown), unknown)


def _add_content_faults(group: Group) -> None:
    def refused(name: str, title: str, body: bytes, code: str, rule: str = RECORDS) -> None:
        group.refused(name, rule, title, "decode_content", given(body), code)

    for bit in range(3, 8):
        body = made(SMALL, flags=1 << bit)
        refused(f"flag-{1 << bit}", f"the unknown flag {1 << bit}", body, "record_flags")
    refused("flags-all", "all flags", made(SMALL, flags=0xFF), "record_flags")
    refused("empty", "no content", b"", "record_content")
    refused("short", "36 bytes: the meta's length is cut", CHAIN + bytes(4), "record_content")
    refused("meta-over", "meta longer than the content", made(SMALL, meta_length=200), "record_content")
    refused("meta-huge", "a meta of 2^32 − 1 bytes", made(SMALL, meta_length=(1 << 32) - 1), "record_content")
    body = CHAIN + bytes([SIGNED]) + u32(1) + b"\x80" + bytes(63)
    refused("signature-cut", "a signature of 63 bytes", body, "record_content")
    body = CHAIN + bytes([SIGNED]) + u32(1) + b"\x80"
    refused("signature-none", "flagged as signed and without a signature", body, "record_content")
    refused("meta-array", "meta is an array", made([]), "msgpack_invalid", META)
    refused("meta-nil", "meta is nil", made(None), "msgpack_invalid", META)
    refused("meta-empty", "meta has no byte", made(b""), "msgpack_invalid", META)
    refused("meta-short", "meta ends one byte before its value", made(pack(SMALL)[:-1]), "msgpack_invalid", META)
    refused("meta-two", "meta has two values", made(pack(SMALL) + b"\xc0"), "msgpack_invalid", META)
    refused("meta-raw", "flagged as compressed, and raw", made(SMALL, flags=COMPRESSED), "zstd_invalid")
    frame = group.frozen.compressed("small meta", pack(SMALL))
    refused("meta-frame", "compressed, and not flagged so", made(frame), "msgpack_invalid", META)


def halves(*rows: Sequence[float]) -> bytes:
    """Rows of binary16."""
    return b"".join(struct.pack(f"<{len(row)}e", *row) for row in rows)


VECTORS = halves([1, 0, 0], [0, 0.6, 0.8])


def column(**changes: Any) -> dict[str, Any]:
    usual = {"name": "embedding", "type": "f2", "width": 3, "rows": 2, "bytes": 12, "model": "a model"}
    return usual | changes


def _add_columns(group: Group) -> None:
    def opens(name: str, title: str, columns: list[Any], raw: bytes, found: list[Any]) -> None:
        body = made(SMALL | {"columns": columns}, columns=raw)
        gives = {"chain": CHAIN, "signed": True, "more": False, "meta": Value(SMALL), "columns": found}
        group.ok(f"column-{name}", RECORDS, title, "decode_content", given(body), **gives)

    def refused(name: str, title: str, columns: Any, raw: bytes = VECTORS) -> None:
        body = made(SMALL | {"columns": columns}, columns=raw)
        group.refused(f"column-{name}", RECORDS, title, "decode_content", given(body), "column_length")

    found = {"name": "embedding", "model": "a model", "width": 3, "rows": 2, "content": VECTORS}
    opens("one", "a column of two vectors", [column()], VECTORS, [found])
    opens("no-rows", "a column without rows", [column(rows=0, bytes=0)], b"", [found | {"rows": 0, "content": b""}])
    other = {"name": "newer", "type": "x9", "bytes": 5}
    opens("unknown-name", "a column of another name is skipped", [other, column()], b"12345" + VECTORS, [found])
    opens("unknown-type", "an embedding of another type is skipped", [column(type="i1", bytes=6)], bytes(6), [])
    opens("type-map", "an embedding whose type is a map is skipped", [column(type={"f2": 1})], VECTORS, [])
    opens("type-array", "an embedding whose type is an array is skipped", [column(type=["f2"])], VECTORS, [])
    opens("name-bytes", "a column whose name is a byte string is skipped", [column(name=b"embedding")], VECTORS, [])
    refused("type-map-too-few", "a column whose type is a map, and too few bytes", [column(type={})], VECTORS[:-1])
    refused("too-few", "one byte too few for the columns", [column()], VECTORS[:-1])
    refused("too-many", "one byte more than the columns say", [column()], VECTORS + b"\0")
    refused("none-listed", "bytes after meta and no column listed", [])
    refused("bytes-under", "fewer bytes than rows and width say", [column(bytes=10)], VECTORS[:10])
    refused("rows-over", "more rows than there are bytes", [column(rows=3)])
    refused("width-0", "a width of 0", [column(width=0, rows=0, bytes=0)], b"")
    refused("width-negative", "a negative width and negative rows", [column(width=-3, rows=-2)])
    refused("bytes-text", "bytes is a text", [column(bytes="12")])
    refused("bytes-negative", "negative bytes", [column(bytes=-1)])
    refused("bytes-huge", "2^63 bytes", [column(bytes=1 << 63)])
    refused("bytes-float", "bytes is a float", [column(bytes=12.0)])
    refused("no-model", "a column without a model", [{**column(), "model": None}])
    refused("map", "columns is a map", {"embedding": column()})
    refused("text", "a column is a text", ["embedding"])
    refused("cut-into-signature", "the columns take the signature's bytes", [column(bytes=12 + 64, rows=2, width=19)])


def _add_column_values(group: Group) -> None:
    def read(name: str, title: str, rows: list[Sequence[float]], usable: list[int]) -> None:
        place = (f"rows-{name}", RECORDS, title, "read_column", {"content": halves(*rows), "width": len(rows[0])})
        if len(usable) == len(rows):
            group.ok(*place, usable=usable)
        else:
            group.found(*place, "column_value", usable=usable)

    read("unit", "rows of unit length", [[1, 0], [0.6, -0.8], [0, -1]], [0, 1, 2])
    read("rounded", "what rounding to binary16 does is allowed", [[0.577, 0.577, 0.5775]], [0])
    read("zero", "a row of zeros", [[1, 0], [0, 0]], [0])
    read("nan", "a value that is not a number", [[float("nan"), 0], [1, 0]], [1])
    read("infinite", "an infinite value", [[1, 0], [float("inf"), 0], [0, 1]], [0, 2])
    read("minus-infinite", "a negative infinite value", [[float("-inf"), 1]], [])
    read("long", "a row of squared length 1.05", [[1.0247, 0], [1, 0]], [1])
    read("short", "a row of squared length 0.95", [[0.9747, 0], [1, 0]], [1])
    read("very-long", "a row of length 60000, which would come first in each search", [[60000.0, 0.0]], [])
    read("within", "squared lengths of 1.03 and 0.97", [[1.015, 0], [0.985, 0]], [0, 1])


def _add_zstd(group: Group) -> None:
    def refused(name: str, title: str, frame: bytes, code: str) -> None:
        group.refused(f"zstd-{name}", RECORDS, title, "decompress", {"frame": frame}, code)

    def opens(name: str, title: str, frame: bytes, content: Any) -> None:
        group.ok(f"zstd-{name}", RECORDS, title, "decompress", {"frame": frame}, content=content)

    text = b"the same words, the same words, the same words again " * 20
    compress = group.frozen.compressed
    good = compress("text", text)
    opens("frame", "one frame that says its size", good, text)
    checked = compress("text with checksum", text, write_checksum=True)
    opens("checksum", "a frame with a checksum", checked, text)
    opens("empty", "a frame of nothing", compress("nothing", b""), b"")
    small = compress("zeros", bytes(65_536))
    opens("ratio-floor", "65,536 bytes in a few: always allowed", small, Repeated(b"", b"\0", 65_536))
    opens("ratio-most", "nearly 256 times the stored size, beyond 65,536", *_dense(group, 240))
    refused("ratio", "65,537 bytes in a few", compress("one zero more", bytes(65_537)), "zstd_limit")
    refused("bomb", "64 MiB of zeros in a few KiB", compress("bomb", bytes(1 << 26)), "zstd_limit")
    refused("declares-more", "a header that declares 64 MiB and one byte", _header(good, (1 << 26) + 1), "zstd_limit")
    refused("declares-2-63", "a header that declares 2^63 bytes", _header(good, 1 << 63), "zstd_limit")
    sizeless = compress("text without size", text, write_content_size=False)
    refused("no-size", "a frame that does not say its size", sizeless, "zstd_limit")
    refused("declares-less", "it declares one byte less than it holds", _header(good, len(text) - 1), "zstd_invalid")
    refused(
        "declares-one-more", "it declares one byte more than it holds", _header(good, len(text) + 1), "zstd_invalid"
    )
    refused("cut", "one byte too few", good[:-1], "zstd_invalid")
    refused("more", "one byte after the frame", good + b"\0", "zstd_invalid")
    refused("two", "two frames", good + good, "zstd_invalid")
    refused("nothing", "no bytes", b"", "zstd_invalid")
    refused("magic", "another magic number", b"\x29" + good[1:], "zstd_invalid")
    wrong = checked[:-1] + bytes([checked[-1] ^ 1])
    refused("checksum-wrong", "the checksum is wrong", wrong, "zstd_invalid")


def _dense(group: Group, times: int) -> tuple[bytes, Repeated]:
    """A frame of about this many times its size, and what it holds: noise that does not compress, again and again."""
    noise = b"".join(seed(f"noise {number}") for number in range(64))
    frame = group.frozen.compressed("dense", noise * times, 19)
    if not 200 < len(noise) * times / len(frame) < 256:
        raise ValueError("not near the limit")
    return frame, Repeated(b"", noise, times)


def _header(frame: bytes, size: int) -> bytes:
    """The frame with a header of 8 bytes of content size, and the window that it had."""
    parameters = zstandard.get_frame_parameters(frame)
    body = frame[zstandard.frame_header_size(frame) :]
    single = 1 << 5
    descriptor = 3 << 6 | single | (4 if parameters.has_checksum else 0)
    return frame[:4] + bytes([descriptor]) + size.to_bytes(8, "little") + body


def _add_values(group: Group) -> None:
    def opens(name: str, title: str, content: bytes, value: Any) -> None:
        group.ok(f"msgpack-{name}", META, title, "decode_msgpack", {"content": content}, value=Value(value))

    opens("nil", "nil", b"\xc0", None)
    opens("largest", "the largest integer of 64 bits", b"\xcf" + b"\xff" * 8, (1 << 64) - 1)
    opens("smallest", "the smallest", b"\xd3\x80" + bytes(7), -(1 << 63))
    opens("long-form", "an integer in a longer form than it needs", b"\xcf" + bytes(7) + b"\1", 1)
    opens("float", "a float", b"\xcb\x3f\xf8" + bytes(6), 1.5)
    opens("float-32", "a float of 32 bits", b"\xca\x3f\xc0\0\0", 1.5)
    opens("bytes-and-text", "a byte string is not a text", b"\x92\xc4\1a\xa1a", [b"a", "a"])
    opens("depth-32", "32 arrays, one in the other", b"\x91" * 31 + b"\x90", _nested(32))
    text = "Gru\u0308\u00dfe \U0001f511 \u0000"
    opens("text", "a text is not normalised", pack(text), text)
    opens("empty-key", "an empty key", pack({"": 1}), {"": 1})
    opens("same-key-deeper", "the same key in two maps", pack({"a": {"a": 1}}), {"a": {"a": 1}})


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


VALUES_MOST = 1 << 21


def _add_value_faults(group: Group) -> None:
    faults: dict[str, tuple[str, Any]] = {
        "empty": ("no byte", b""),
        "two": ("two values", b"\xc0\xc0"),
        "depth-33": ("33 arrays, one in the other", b"\x91" * 32 + b"\x90"),
        "depth-maps": ("33 maps, one in the other", b"\x81\xa1a" * 32 + b"\x80"),
        "depth-many": ("100,000 arrays, one in the other", Repeated(b"", b"\x91", 100_000)),
        "key-twice": ("a map with a key twice", b"\x82\xa1a\1\xa1a\2"),
        "key-twice-forms": ("a key twice, in two forms", b"\x82\xa1a\1\xd9\1a\2"),
        "key-twice-deep": ("a key twice in an inner map", b"\x91\x82\xa1a\1\xa1a\1"),
        "key-integer": ("a key that is an integer", b"\x81\1\1"),
        "key-bytes": ("a key that is a byte string", b"\x81\xc4\1a\1"),
        "key-nil": ("a key that is nil", b"\x81\xc0\1"),
        "extension": ("an extension type", b"\xd4\1\0"),
        "timestamp": ("a timestamp, which is an extension too", b"\xd6\xff" + bytes(4)),
        "extension-8": ("an extension of variable length", b"\xc7\1\5a"),
        "reserved": ("the byte that msgpack reserves", b"\xc1"),
        "text-cut": ("a text of 5 bytes, 4 of them there", b"\xa5abcd"),
        "text-utf8": ("a text that is not UTF-8", b"\xa1\xff"),
        "text-overlong": ("a text with an overlong form", b"\xa2\xc0\x80"),
        "text-surrogate": ("a text with a lone surrogate", b"\xa3\xed\xa0\x80"),
        "key-utf8": ("a key that is not UTF-8", b"\x81\xa1\xff\1"),
        "array-cut": ("an array of two, one is there", b"\x92\1"),
        "array-huge": ("an array that declares 2^32 − 1 entries", b"\xdd\xff\xff\xff\xff\1"),
        "map-huge": ("a map that declares 2^32 − 1 entries", b"\xdf\xff\xff\xff\xff"),
        "bytes-huge": ("a byte string that declares 2^32 − 1 bytes", b"\xc6\xff\xff\xff\xff"),
        "arrays-declared": ("arrays that declare many entries, one in the other", Repeated(b"", b"\xdc\xff\xff", 30)),
        "values-many": (
            "2^21 values in an array, which is one more",
            Repeated(b"\xdd" + VALUES_MOST.to_bytes(4, "big"), b"\xc0", VALUES_MOST),
        ),
    }
    for name, (title, body) in faults.items():
        group.refused(f"msgpack-{name}", META, title, "decode_msgpack", {"content": body}, "msgpack_invalid")
