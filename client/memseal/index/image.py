"""The open state as a sealed container, so that the next opening need not read the logs (kind 8, cache)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from memseal.errors import FormatError
from memseal.format.keys import RecordKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, open_record, places, seal_record
from memseal.format.values import decode_value, encode_value
from memseal.index.state import VaultState
from memseal.index.vectors import VectorIndex
from memseal.index.view import View

# Records of 4 MiB stay in the processor's outer cache while they are sealed and copied, and pad by at most 3 %.
_PIECE = 4 << 20


def seal_image(view: View, bound: dict[str, Any], preamble: bytes, key: RecordKey) -> Iterator[bytes]:
    """Yield a cache file piece by piece; `bound` is what it is valid for, given back by `open_image`."""
    state = view.state.image()
    header: dict[str, Any] = {"bound": bound, "state": len(state), "foreign_vectors": view.foreign_vectors}
    codes, numbers = b"", b""
    if view.vectors is not None:
        codes, numbers = view.vectors.codes(), view.vectors.numbers().astype("<i8").tobytes()
        header |= {"dimension": view.vectors.dimension, "numbers": len(numbers), "codes": len(codes)}
    yield preamble
    yield seal_record(key, preamble, 0, encode_value(header))
    index = 1
    for content in (state, numbers, codes):
        whole = memoryview(content)
        for start in range(0, len(whole), _PIECE):
            yield seal_record(key, preamble, index, bytes(whole[start : start + _PIECE]))
            index += 1


def open_bound(content: memoryview, key: RecordKey) -> dict[str, Any]:
    """Return what a cache file is valid for, without opening the rest; raises `FormatError`."""
    bound: dict[str, Any] = _header(content, key)["bound"]
    return bound


def open_image(content: memoryview, key: RecordKey) -> View:
    """Return the view that a cache file holds; raises `FormatError` for any damage."""
    header = _header(content, key)
    preamble = bytes(content[:PREAMBLE_SIZE])
    pieces = [
        open_record(key, preamble, place.index, content[place.offset + HEADER_SIZE : place.end])
        for place in places(content)[1:]
    ]
    parts = _split(pieces, [header["state"], header.get("numbers", 0), header.get("codes", 0)])
    vectors = None
    if "dimension" in header:
        numbers = np.frombuffer(parts[1], "<i8").astype(np.int64)
        vectors = VectorIndex.from_codes(header["dimension"], numbers, parts[2])
    view = View(VaultState(parts[0]), vectors)
    view.foreign_vectors = header["foreign_vectors"]
    return view


def _header(content: memoryview, key: RecordKey) -> dict[str, Any]:
    preamble, place = bytes(content[:PREAMBLE_SIZE]), places(content)[0]
    header = decode_value(open_record(key, preamble, 0, content[place.offset + HEADER_SIZE : place.end]))
    if not isinstance(header, dict) or not isinstance(header.get("bound"), dict):
        raise FormatError("record_content", "the cache has no header")
    return header


def _split(pieces: list[memoryview], sizes: list[int]) -> list[bytes]:
    """Join pieces into parts of these sizes; each part begins with a piece of its own."""
    parts, taken = [], 0
    for size in sizes:
        count = -(-size // _PIECE)
        part = b"".join(pieces[taken : taken + count])
        if len(part) != size:
            raise FormatError("record_content", "the cache is not whole")
        parts.append(part)
        taken += count
    return parts
