"""Ways to break bytes, and to see that they are refused."""

from collections.abc import Callable

from memseal.format.keys import Key
from memseal.format.primitives import NotAuthentic


def flipped(content: bytes, bit: int) -> bytes:
    position, mask = bit // 8, 1 << bit % 8
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


def is_refused(open_it: Callable[[Key, bytes, bytes], bytes], key: Key, context: bytes, sealed: bytes) -> bool:
    try:
        open_it(key, context, sealed)
    except NotAuthentic:
        return True
    return False
