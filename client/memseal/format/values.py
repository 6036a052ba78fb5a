"""Bounded msgpack: values that cannot surprise (vault-format §9)."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgpack

from memseal.errors import FormatError

DEPTH_LIMIT: Final = 32
VALUES_LIMIT: Final = 1 << 21
# What can be decoded without a look at it before: whatever its headers declare, at each of the levels that its bytes
# can nest, takes less than 12 MB.
_SMALL: Final = 2048
# All bytes but those that begin an array or a map.
_NO_PARENTS: Final = bytes(head for head in range(256) if not (0x80 <= head < 0xA0 or 0xDC <= head < 0xE0))

Value: TypeAlias = Any  # what msgpack can hold: None, bool, int, float, str, bytes, list, dict with text keys


def encode_value(value: Value) -> bytes:
    """Return the msgpack bytes of a value; `ValueError` for what msgpack cannot hold."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def decode_value(content: bytes | memoryview) -> Value:
    """Return the one value that the bytes hold; `FormatError` `msgpack_invalid` for all else."""
    small = len(content) <= _SMALL
    try:
        if not small:
            _check_complete(content)
        value = msgpack.unpackb(
            content,
            raw=False,
            strict_map_key=True,
            object_pairs_hook=_map,
            ext_hook=_no_extension,
            max_ext_len=0,
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise FormatError("msgpack_invalid", f"not one well-formed value: {type(error).__name__}") from None
    if not (small and len(bytes(content).translate(None, _NO_PARENTS)) <= DEPTH_LIMIT) and _is_too_deep(value):
        raise FormatError("msgpack_invalid", f"nested deeper than {DEPTH_LIMIT}")
    return value


def decode_map(content: bytes | memoryview) -> dict[str, Value]:
    """Return the map that the bytes hold; `FormatError` `msgpack_invalid` for all else."""
    value: dict[str, Value] = decode_value(content)
    if type(value) is not dict:
        raise FormatError("msgpack_invalid", "not a map")
    return value


def _check_complete(content: bytes | memoryview) -> None:
    """Refuse what is not exactly one value, or too many in it, before memory is taken for any.

    Decoding takes memory for the entries that an array's header declares before it sees whether they are there: eight
    bytes for each, at every level of nesting. Skipping takes none.
    """
    reader = msgpack.Unpacker(max_buffer_size=len(content))
    reader.feed(content)
    reader.skip()
    if reader.tell() != len(content):
        raise ValueError("bytes after the value")
    # Every value takes a byte at least, so that most contents need no counting.
    if len(content) > VALUES_LIMIT and _count(bytes(content)) > VALUES_LIMIT:
        raise ValueError("too many values")


# The size of a value by its first byte, that one included, where nothing of variable size follows (for arrays and maps:
# the size of their header); and for texts and byte strings how many bytes of length follow.
_SIZES: Final = bytes(
    [1] * 0x80  # small integers
    + [1] * 0x20  # small maps and arrays
    + [1 + size for size in range(0x20)]  # short texts
    + [1, 1, 1, 1, 2, 3, 5, 3, 4, 6, 5, 9, 2, 3, 5, 9]  # nil, …, false, true, bytes, extensions, floats, unsigned
    + [2, 3, 5, 9, 3, 4, 6, 10, 18, 2, 3, 5, 3, 5, 3, 5]  # signed, extensions, texts, arrays, maps
    + [1] * 0x20  # small negative integers
)
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _count(content: bytes) -> int:
    """Return the number of values in a complete content; keys, arrays and maps count too."""
    count = position = 0
    while position < len(content) and count <= VALUES_LIMIT:
        head = content[position]
        start = position + 1
        position += _SIZES[head]
        if (width := _LENGTHS.get(head)) is not None:
            position += int.from_bytes(content[start : start + width], "big")
        count += 1
    return count


def _map(pairs: list[tuple[Value, Value]]) -> dict[str, Value]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a map with a key twice")
    # Keys are texts or byte strings by now; joining them is the cheapest way to see that none is of the second kind.
    "".join(entries)
    return entries


def _no_extension(code: int, data: bytes) -> Value:
    raise ValueError("an extension type")


_ENTRIES: Final[dict[type, Callable[[Any], Iterable[Value]]]] = {list: iter, dict: dict[str, Value].values}


def _is_too_deep(value: Value) -> bool:
    level: list[Value] = [value] if type(value) in _ENTRIES else []
    for _ in range(DEPTH_LIMIT):
        level = [entry for parent in level for entry in _ENTRIES[type(parent)](parent) if type(entry) in _ENTRIES]
        if not level:
            return False
    return True
