"""Bounded msgpack: values that cannot surprise (vault-format §9)."""

from collections.abc import Iterable
from typing import Any

import msgpack

from memseal.errors import FormatError

DEPTH_LIMIT = 32
COUNT_LIMIT = 1 << 20

Value = Any  # what msgpack can hold: None, bool, int, float, str, bytes, list, dict with text keys


def encode_value(value: Value) -> bytes:
    """Return the msgpack bytes of a value."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def decode_value(content: bytes | memoryview) -> Value:
    """Return the one value that the bytes hold; `FormatError` `msgpack_invalid` for all else."""
    try:
        value = msgpack.unpackb(
            content,
            raw=False,
            strict_map_key=True,
            object_pairs_hook=_map,
            ext_hook=_no_extension,
            max_str_len=len(content),
            max_bin_len=len(content),
            max_array_len=COUNT_LIMIT,
            max_map_len=COUNT_LIMIT,
            max_ext_len=0,
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise FormatError("msgpack_invalid", f"not one well-formed value: {type(error).__name__}") from None
    if _depth(value) > DEPTH_LIMIT:
        raise FormatError("msgpack_invalid", f"nested deeper than {DEPTH_LIMIT}")
    return value


def _map(pairs: list[tuple[Value, Value]]) -> dict[str, Value]:
    entries = dict(pairs)
    if len(entries) != len(pairs) or not all(type(key) is str for key in entries):
        raise ValueError("a map with a key twice or a key that is not text")
    return entries


def _no_extension(code: int, data: bytes) -> Value:
    raise ValueError("an extension type")


def _depth(value: Value) -> int:
    """Return how deep arrays and maps nest, without recursion."""
    depth, level = 0, _inner([value])
    while level:
        depth += 1
        if depth > DEPTH_LIMIT:
            break
        level = _inner([entry for child in level for entry in _entries(child)])
    return depth


def _inner(values: list[Value]) -> list[Value]:
    return [value for value in values if type(value) is list or type(value) is dict]


def _entries(value: Value) -> Iterable[Value]:
    return value.values() if isinstance(value, dict) else value
