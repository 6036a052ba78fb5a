"""Operations that share an id: which one counts, and where another's content goes (vault-format §10)."""

from collections.abc import Iterable
from typing import Any, Final, cast

from memseal.format.primitives import sha256
from memseal.format.values import encode_value
from memseal.memory.operations import Operation, Remember, encode_operation
from memseal.memory.texts import ID_SIZE

_LEFT_OUT: Final = frozenset("id stamp written_at tags embedding".split())


def print_of(operation: Operation) -> bytes:
    """Return what tells an operation from another with its id: a hash over what it says, but for tags and times."""
    value = encode_operation(operation)
    said = {name: each for name, each in value.items() if name not in _LEFT_OUT and each is not None}
    return sha256(encode_value(ordered(said)))


def order(operation: Remember) -> tuple[bytes, bytes, int]:
    """Return what decides between two memories with one id and one stamp: the lower counts."""
    return print_of(operation), encode_value(sorted(set(operation.draft.tags))), operation.written_at


def double_id(operation: Remember) -> bytes:
    """Return the id under which a memory is kept that does not count under its own."""
    return sha256(b"memseal/v1/double", operation.id, print_of(operation))[:ID_SIZE]


def ordered(value: Any) -> Any:
    """Return a value as every writer would encode it: maps in the order of their keys."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: ordered(fields[name]) for name in sorted(fields)}
    if isinstance(value, list):
        return [ordered(each) for each in cast("Iterable[Any]", value)]
    return value
