"""From operations to the contents of records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memseal.format.content import Column, Content
from memseal.memory.operations import (
    Head,
    Operation,
    Stamp,
    counter_after,
    decode_operation,
    encode_meta,
    encode_operation,
    make_stamp,
)


@dataclass(frozen=True)
class Batch:
    """What one record will carry: operations and columns; `values` are operations re-emitted as they were stored."""

    operations: Sequence[Operation] = ()
    columns: tuple[Column, ...] = ()
    values: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Composed:
    """What one record says: operations with their stamps, columns, and its counter."""

    operations: list[tuple[Operation, Stamp]]
    columns: tuple[Column, ...]
    counter: int


def compose(
    epoch: int, previous: int, heads: tuple[Head, ...], batches: Sequence[Batch]
) -> tuple[list[Content], list[Composed]]:
    """Return the contents of records of an epoch, and the same operations with their stamps for the view."""
    contents, composed = list[Content](), list[Composed]()
    for batch in batches:
        counter = counter_after(previous, heads)
        values = [*batch.values, *(encode_operation(operation) for operation in batch.operations)]
        contents.append(Content(b"", False, encode_meta(previous, heads, values, epoch), batch.columns))
        decoded = [decode_operation(value, counter, position) for position, value in enumerate(batch.values)]
        decoded += [
            (operation, make_stamp(counter, position, operation.id))
            for position, operation in enumerate(batch.operations, start=len(decoded))
        ]
        composed.append(Composed(decoded, batch.columns, counter))
        previous, heads = counter, ()
    return contents, composed


def restamped(value: dict[str, Any], counter: int, position: int) -> dict[str, Any]:
    """Return an operation as it was stored, with the stamp of its first record."""
    return value if value.get("stamp") else {**value, "stamp": [counter, position]}
