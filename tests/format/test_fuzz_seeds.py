"""Inputs by which fuzzing found something: each is refused with a typed error, or read, and does nothing else."""

import pytest

from memseal.errors import FormatError
from memseal.format.content import decode_content
from memseal.format.preamble import Kind, Preamble
from memseal.format.values import encode_value
from memseal.vault.device import Marks, decode_marks

PREAMBLE = Preamble(Kind.LOG, 1, bytes(16), bytes(16), bytes(12)).to_bytes()


def content_of(column: dict[str, object], rest: bytes) -> memoryview:
    """The content of an unsigned record whose meta lists one column."""
    meta = encode_value({"operations": [], "columns": [column]})
    return memoryview(bytes(33) + len(meta).to_bytes(4, "big") + meta + rest)


@pytest.mark.parametrize("kind", [{}, [], {"f2": 1}, ["f2"]])
def test_column_whose_type_is_no_text_is_skipped_by_its_bytes(kind: object) -> None:
    column = {"name": "embedding", "type": kind, "width": 2, "rows": 1, "bytes": 4, "model": "a"}
    assert decode_content(content_of(column, bytes(4)), PREAMBLE, 0)[0].columns == ()


@pytest.mark.parametrize("kind", [{}, []])
def test_column_whose_type_is_no_text_still_has_to_fit(kind: object) -> None:
    column = {"name": "embedding", "type": kind, "width": 2, "rows": 1, "bytes": 5, "model": "a"}
    with pytest.raises(FormatError) as refused:
        decode_content(content_of(column, bytes(4)), PREAMBLE, 0)
    assert refused.value.code == "column_length"


@pytest.mark.parametrize("cache", [-1, None, [b"n" * 12], [1 << 40, bytes(32)], [b"n" * 12, 32], [b"n" * 12, b"s"]])
def test_marks_with_a_cache_that_is_no_byte_strings_are_refused(cache: object) -> None:
    """Python's `bytes` makes that many zeros of an integer."""
    with pytest.raises(FormatError) as refused:
        decode_marks({**Marks().to_value(), "cache_secrets": [cache]})
    assert refused.value.code == "record_content"
