"""Decode one msgpack value within the bounds of vault-format §9 and sync-protocol §4.

Written here because the bytes are a stranger's: the library takes memory for what an array's header
declares, at every depth, before it sees that the entries are missing.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

_MAX_DEPTH = 32
_MAX_ENTRIES = 1_048_576
# A byte of msgpack can cost 64 bytes and 3 µs as a Python object (an empty list), so the values are counted too.
# Enough for 1,024 entries of 15 values and 50,000 ended streams of five (sync-protocol §4).
_MAX_VALUES = 300_000

_Number = tuple[str, int]
_NUMBERS: Mapping[int, _Number] = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
_CONSTANTS: Mapping[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}
_BYTES: Mapping[int, int] = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS: Mapping[int, int] = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS: Mapping[int, int] = {0xDC: 2, 0xDD: 4}
_MAPS: Mapping[int, int] = {0xDE: 2, 0xDF: 4}


class MsgpackInvalid(ValueError):
    """The bytes are not one well-formed msgpack value within the limits."""


def decode(data: bytes) -> Any:
    """Return the one value that `data` holds; maps are dicts with text keys, arrays are lists."""
    reader = _Reader(data)
    value = reader.value(depth=0)
    if reader.position != len(data):
        raise MsgpackInvalid("bytes after the value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values = 0
        self.position = 0

    def value(self, depth: int) -> Any:
        """Read one value; what is unknown (an extension type) is refused."""
        self._values += 1
        if self._values > _MAX_VALUES:
            raise MsgpackInvalid("too many values")
        head = self._take(1)[0]
        if head <= 0x7F:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head in _NUMBERS:
            form, size = _NUMBERS[head]
            return struct.unpack(form, self._take(size))[0]
        return self._sized(head, depth)

    def _sized(self, head: int, depth: int) -> Any:
        if head & 0xE0 == 0xA0:
            return self._text(head & 0x1F)
        if head & 0xF0 == 0x90:
            return self._array(head & 0x0F, depth)
        if head & 0xF0 == 0x80:
            return self._map(head & 0x0F, depth)
        readers: tuple[tuple[Mapping[int, int], Callable[[int], Any]], ...] = (
            (_BYTES, self._take),
            (_TEXTS, self._text),
            (_ARRAYS, lambda count: self._array(count, depth)),
            (_MAPS, lambda count: self._map(count, depth)),
        )
        for sizes, read in readers:
            if head in sizes:
                return read(int.from_bytes(self._take(sizes[head]), "big"))
        raise MsgpackInvalid("a type that is not used here")

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise MsgpackInvalid("the value ends early")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def _text(self, count: int) -> str:
        try:
            return self._take(count).decode("utf-8")
        except UnicodeDecodeError:
            raise MsgpackInvalid("a text that is not UTF-8") from None

    def _array(self, count: int, depth: int) -> list[Any]:
        self._check_bounds(count, 1, depth)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        self._check_bounds(count, 2, depth)
        entries: dict[str, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in entries:
                raise MsgpackInvalid("a key that is not a text, or stands twice")
            entries[key] = self.value(depth + 1)
        return entries

    def _check_bounds(self, count: int, values_each: int, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            raise MsgpackInvalid("arrays and maps nested too deep")
        # Each entry takes a byte at least, so a count beyond what is left is a lie.
        if count > _MAX_ENTRIES or count * values_each > len(self._data) - self.position:
            raise MsgpackInvalid("more entries than there can be")
