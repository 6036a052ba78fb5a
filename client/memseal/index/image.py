"""The open state as a sealed container, so that the next opening need not read the logs (vault-format §8a)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from memseal.errors import FormatError
from memseal.format.fields import U53, Fields
from memseal.format.keys import RecordKey
from memseal.format.pieces import open_piece, piece_size, seal_piece
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, decode_header, open_record, seal_record
from memseal.format.values import decode_value, encode_value
from memseal.index.approximate import FORMAT
from memseal.index.state import VaultState
from memseal.index.vectors import VectorIndex
from memseal.index.view import View

# Pieces of 4 MiB stay in the processor's outer cache while they are read and opened.
_PIECE = 4 << 20
Read = Callable[[int, int], bytes]
"""Returns a file's bytes from an offset to another."""


def seal_image(view: View, bound: dict[str, Any], preamble: bytes, key: RecordKey) -> Iterator[bytes]:
    """Yield a cache file piece by piece; `bound` is what it is valid for, given back by `open_bound`."""
    state = view.state.image()
    header: dict[str, Any] = {"bound": bound, "state": len(state), "foreign_vectors": view.foreign_vectors}
    numbers = b"" if view.vectors is None else view.vectors.numbers().astype("<i8").tobytes()
    codes = None if view.vectors is None else view.vectors.approximation()
    if view.vectors is not None:
        header |= {"dimension": view.vectors.dimension, "vectors": len(view.vectors)}
    if codes is not None:
        header |= {"approximate": codes.size, "approximate_format": FORMAT}
    yield preamble
    yield seal_record(key, preamble, 0, encode_value(header))
    index = 1
    for content in _cut(state), _cut(numbers), () if view.vectors is None else view.vectors.code_pieces(_PIECE):
        for piece in content:
            yield seal_piece(key, preamble, index, piece)
            index += 1
    for piece in () if codes is None else _cut(codes.data):
        yield seal_piece(key, preamble, index, piece)
        index += 1


class SealedImage:
    """A cache file: what it is valid for, and the view in it; any damage is a `FormatError`."""

    def __init__(self, read: Read, key: RecordKey) -> None:
        """Take how to read the file, and its key; opens only the header."""
        self._read = read
        self._key = key
        self._preamble = read(0, PREAMBLE_SIZE)
        length = int.from_bytes(read(PREAMBLE_SIZE, PREAMBLE_SIZE + 4), "big")
        self._offset = PREAMBLE_SIZE + HEADER_SIZE + length
        record = memoryview(read(PREAMBLE_SIZE, self._offset))
        place = decode_header(record, 0, 0)
        content = open_record(key, self._preamble, 0, record[HEADER_SIZE : place.end])
        self._fields = Fields(decode_value(content), "record_content", "cache")
        self._index = 1

    @property
    def bound(self) -> Any:
        """What the cache is valid for."""
        return self._fields.get("bound")

    def view(self) -> View:
        """Open the rest, straight into where it is used."""
        # The state first: its bytes, of which SQLite makes a copy, are gone before the vectors need room.
        view = View(self._state(), self._vectors())
        view.foreign_vectors = self._fields.count("foreign_vectors")
        return view

    def _state(self) -> VaultState:
        content = np.empty(self._fields.count("state", below=U53), np.uint8)  # not zeroed first, and in large pages
        self._fill(content.data, _PIECE)
        return VaultState(content.data)

    def _vectors(self) -> VectorIndex | None:
        fields = self._fields
        if fields.get("dimension") is None:
            return None
        dimension, count = fields.count("dimension", 1), fields.count("vectors")
        numbers = np.empty(count, "<i8")
        self._fill(numbers.view(np.uint8).data, _PIECE)
        vectors = VectorIndex.with_codes(
            dimension, numbers.astype(np.int64, copy=False), lambda codes: self._fill(codes, _whole_rows(dimension))
        )
        self._approximate(vectors)
        return vectors

    def _approximate(self, vectors: VectorIndex) -> None:
        size = self._approximate_size()
        if size and self._fields.get("approximate_format") == FORMAT:
            codes = np.empty(size, np.uint8)
            self._fill(codes.data, _PIECE)
            vectors.take_approximation(codes)

    def _approximate_size(self) -> int:
        return 0 if self._fields.get("approximate") is None else self._fields.count("approximate", below=U53)

    def check(self) -> None:
        """Open the rest and keep nothing of it; raises `FormatError`."""
        fields, scratch = self._fields, memoryview(bytearray(_PIECE))
        self._skim(fields.count("state", below=U53), scratch, _PIECE)
        if fields.get("dimension") is not None:
            dimension, count = fields.count("dimension", 1), fields.count("vectors")
            self._skim(8 * count, scratch, _PIECE)
            self._skim(2 * dimension * count, scratch, _whole_rows(dimension))
            self._skim(self._approximate_size(), scratch, _PIECE)

    def _skim(self, size: int, scratch: memoryview, step: int) -> None:
        for start in range(0, size, step):
            self._fill(scratch[: min(step, size - start)], step)

    def _fill(self, target: memoryview, step: int) -> None:
        for start in range(0, len(target), step):
            piece = target[start : start + step]
            end = self._offset + piece_size(len(piece))
            open_piece(self._key, self._preamble, self._index, self._read(self._offset, end), piece)
            self._offset, self._index = end, self._index + 1


def _whole_rows(dimension: int) -> int:
    """Return the size of a piece of float16 rows."""
    return max(1, _PIECE // (2 * dimension)) * 2 * dimension


def _cut(content: bytes | memoryview) -> Iterator[memoryview]:
    whole = memoryview(content)
    return (whole[start : start + _PIECE] for start in range(0, len(whole), _PIECE))


def damage(read: Read, key: RecordKey) -> FormatError | None:
    """Return what is wrong with a cache file, or None."""
    try:
        SealedImage(read, key).check()
    except FormatError as error:
        return error
    return None
