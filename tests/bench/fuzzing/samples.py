"""Inputs to begin with: what the interop vectors hold, valid and not."""

import functools
from collections.abc import Iterator
from typing import Any

from tests.interop import manifest

LARGEST = 1 << 16  # bytes of an input: larger ones only slow the search down


@functools.cache
def _cases() -> tuple[manifest.Case, ...]:
    return tuple(manifest.cases())


def inputs(operation: str) -> Iterator[dict[str, Any]]:
    """Yield the inputs of all vectors of one operation."""
    return (case["input"] for case in _cases() if case["operation"] == operation)


def field(operation: str, name: str) -> Iterator[bytes]:
    """Yield the byte strings that the vectors of one operation have in one field."""
    for given in inputs(operation):
        content = b"" if given[name] is None else manifest.octets(given[name])
        if 0 < len(content) <= LARGEST:
            yield content
