"""A segment carries a piece of a log with its place (sync-protocol §1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.format.log import End
from memseal.format.segment import FIRST, Segment, decode_segment
from tests.format.refusing import code_of, outcome

SEGMENT = Segment(End(5480, 4, bytes(range(32))), b"records")
STORED = SEGMENT.to_bytes()


def test_segment_is_stored_as_the_format_says() -> None:
    header = (5480).to_bytes(8, "big") + (7).to_bytes(8, "big") + (4).to_bytes(4, "big") + bytes(range(32))
    assert header + b"records" == STORED


def test_first_segment_starts_at_nothing() -> None:
    assert decode_segment(Segment(FIRST, b"preamble").to_bytes()).start == End(0, 0, bytes(32))


@given(
    length=st.integers(0, (1 << 64) - 1),
    records=st.integers(0, (1 << 32) - 1),
    chain=st.binary(min_size=32, max_size=32),
    piece=st.binary(max_size=100),
)
def test_what_is_encoded_decodes(length: int, records: int, chain: bytes, piece: bytes) -> None:
    segment = Segment(End(length, records, chain), piece)
    assert decode_segment(segment.to_bytes()) == segment


@pytest.mark.parametrize("end", range(len(STORED)))
def test_segment_that_is_cut_is_refused(end: int) -> None:
    assert code_of(lambda: decode_segment(STORED[:end])) == "segment_invalid"


@given(more=st.binary(min_size=1, max_size=20))
def test_bytes_after_the_piece_are_refused(more: bytes) -> None:
    assert code_of(lambda: decode_segment(STORED + more)) == "segment_invalid"


@given(content=st.binary(max_size=120))
def test_any_bytes_are_a_segment_or_refused_with_our_code(content: bytes) -> None:
    assert outcome(lambda: decode_segment(content)) in {"accepted", "segment_invalid"}
