"""Typed access to decoded maps: a field of a wrong type is a `FormatError` with the code of its place."""

from typing import Any

from memseal.errors import FormatError
from memseal.format.primitives import is_sound_signing_key

U32 = 1 << 32
U53 = 1 << 53


class Fields:
    """A decoded map whose fields are taken with their types checked."""

    def __init__(self, value: Any, code: str, name: str) -> None:
        """Take what should be a map, the code to raise and the place's name for messages."""
        self._code = code
        self._name = name
        if not isinstance(value, dict):
            raise self._wrong("")
        self._value: dict[str, Any] = value

    def size(self, field: str, size: int) -> bytes:
        """Return a byte string of exactly `size` bytes."""
        value = self._value.get(field)
        if type(value) is not bytes or len(value) != size:
            raise self._wrong(field)
        return value

    def signing_key(self, field: str) -> bytes:
        """Return a public Ed25519 key that may stand in a keyring, 32 bytes."""
        value = self.size(field, 32)
        self.check(is_sound_signing_key(value), field)
        return value

    def octets(self, field: str) -> bytes:
        """Return a byte string of any length."""
        value = self._value.get(field)
        if type(value) is not bytes:
            raise self._wrong(field)
        return value

    def count(self, field: str, least: int = 0, below: int = U32) -> int:
        """Return an integer from `least` to below `below`."""
        value = self._value.get(field)
        if type(value) is not int or not least <= value < below:
            raise self._wrong(field)
        return value

    def text(self, field: str) -> str:
        """Return a text."""
        value = self._value.get(field)
        if type(value) is not str:
            raise self._wrong(field)
        return value

    def array(self, field: str) -> list[Any]:
        """Return an array."""
        value: list[Any] = self._value.get(field, ())
        if type(value) is not list:
            raise self._wrong(field)
        return value

    def tuples(self, field: str, length: int) -> list[list[Any]]:
        """Return an array of arrays that have `length` entries each."""
        rows = self.array(field)
        if not all(type(row) is list and len(row) == length for row in rows):
            raise self._wrong(field)
        return rows

    def optional(self, field: str) -> Any:
        """Return what is there; the field may be nil, but not absent."""
        self.check(field in self._value, field)
        return self._value[field]

    def get(self, field: str) -> Any:
        """Return whatever is there, or None."""
        return self._value.get(field)

    def others(self, known: frozenset[str]) -> dict[str, Any]:
        """Return the fields that are not known, to be carried on."""
        return {field: value for field, value in self._value.items() if field not in known}

    def check(self, condition: bool, field: str) -> None:
        """Raise unless the condition holds."""
        if not condition:
            raise self._wrong(field)

    def _wrong(self, field: str) -> FormatError:
        place = f"{self._name}.{field}" if field else self._name
        return FormatError(self._code, f"{place} is missing or not what it must be")
