"""Texts and ids that can be stored."""

from typing import Final

from memseal.errors import MemoryInvalid

ID_SIZE: Final = 16


def check_text(name: str, value: str) -> str:
    """Return a text that can be stored; raises `MemoryInvalid` or `TypeError` that name the field, never its text."""
    if type(value) is not str:
        if not isinstance(value, str):
            raise TypeError(f"{name} is a text, not {type(value).__name__}")
        value = str(value)
    if not value or value.isspace():
        raise MemoryInvalid(f"{name} is empty")
    if not value.isascii() and not _is_unicode(value):
        raise MemoryInvalid(f"{name} has a lone surrogate: it is not valid Unicode text")
    return value


def _is_unicode(value: str) -> bool:
    # On its own, so that the text, which the encoding error holds, is no context of ours.
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_id(value: str) -> bytes:
    """Return the 16 bytes of a memory id; `ValueError` for what is not 32 hex digits."""
    if not isinstance(value, str):
        raise TypeError(f"a memory id is a text of 32 hex digits, not {type(value).__name__}")
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        raw = b""
    if len(raw) != ID_SIZE or len(value) != 2 * ID_SIZE:
        raise ValueError("a memory id has 32 hex digits")
    return raw
