"""zstd frames are checked before any work (vault-format §5)."""

import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from memseal.format.compression import RATIO_FLOOR, RATIO_LIMIT, SIZE_LIMIT, compress, decompress
from tests.format.refusing import code_of, outcome

TEXT = b"the same words again and again, " * 40
FRAME = zstandard.ZstdCompressor().compress(TEXT)


def _frame(declared: int, body: bytes = b"") -> bytes:
    """A frame header that declares eight bytes of size, and one raw block."""
    header = (0xFD2FB528).to_bytes(4, "little") + bytes([0b1110_0000]) + declared.to_bytes(8, "little")
    return header + (len(body) << 3 | 1).to_bytes(3, "little") + body


@given(piece=st.binary(min_size=1, max_size=60), times=st.integers(20, 400))
def test_what_is_compressed_decompresses(piece: bytes, times: int) -> None:
    frame = compress(piece * times)
    assert frame is not None
    assert len(frame) < len(piece * times)
    assert decompress(frame) == piece * times


@pytest.mark.parametrize("content", [b"", b"short", bytes(range(256))])
def test_what_gets_no_smaller_is_left_as_it_is(content: bytes) -> None:
    assert compress(content) is None


def test_what_a_reader_would_refuse_is_left_as_it_is() -> None:
    content = bytes(50_000_000)
    assert len(zstandard.ZstdCompressor().compress(content)) * RATIO_LIMIT < len(content)
    assert compress(content) is None


def test_small_part_may_grow_to_the_floor() -> None:
    assert decompress(zstandard.ZstdCompressor().compress(bytes(RATIO_FLOOR))) == bytes(RATIO_FLOOR)
    assert code_of(lambda: decompress(zstandard.ZstdCompressor().compress(bytes(RATIO_FLOOR + 1)))) == "zstd_limit"


@pytest.mark.parametrize("declared", [1 << 30, 1 << 26, SIZE_LIMIT + 1, (1 << 64) - 3])
def test_bomb_is_refused_before_memory_is_taken(declared: int) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 25))[:10_000]
    bomb = _frame(declared, bomb)
    tracemalloc.start()
    try:
        assert code_of(lambda: decompress(bomb)) == "zstd_limit"
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


def test_real_bomb_of_a_gibibyte_is_refused() -> None:
    compressor = zstandard.ZstdCompressor(level=19).compressobj(size=1 << 30)
    block = bytes(1 << 24)
    bomb = b"".join([*(compressor.compress(block) for _ in range(64)), compressor.flush()])
    assert len(bomb) < 200_000
    assert code_of(lambda: decompress(bomb)) == "zstd_limit"


def test_frame_without_a_declared_size_is_refused() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert code_of(lambda: decompress(frame)) == "zstd_limit"


@pytest.mark.parametrize("declared", [len(TEXT) - 1, len(TEXT) + 1])
def test_frame_that_declares_another_size_is_refused(declared: int) -> None:
    assert decompress(_frame(len(TEXT), TEXT)) == TEXT
    assert code_of(lambda: decompress(_frame(declared, TEXT))) == "zstd_invalid"


@pytest.mark.parametrize("more", [b"\0", FRAME, b"\x50\x2a\x4d\x18\0\0\0\0"], ids=["byte", "frame", "skippable"])
def test_bytes_after_the_frame_are_refused(more: bytes) -> None:
    assert code_of(lambda: decompress(FRAME + more)) == "zstd_invalid"


@pytest.mark.parametrize("frame", [b"\x50\x2a\x4d\x18\x04\0\0\0abcd", b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + FRAME])
def test_skippable_frame_is_refused(frame: bytes) -> None:
    assert code_of(lambda: decompress(frame)) in {"zstd_invalid", "zstd_limit"}


def test_frame_with_a_dictionary_is_refused() -> None:
    dictionary = zstandard.ZstdCompressionDict(b"the same words again and again" * 20)
    frame = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT)
    assert outcome(lambda: decompress(frame)) in {"zstd_invalid", "accepted"}


@given(end=st.integers(0, len(FRAME) - 1))
def test_frame_that_is_cut_is_refused(end: int) -> None:
    assert code_of(lambda: decompress(FRAME[:end])) in {"zstd_invalid", "zstd_limit"}


@given(frame=st.binary(max_size=60).map(lambda body: (0xFD2FB528).to_bytes(4, "little") + body) | st.binary())
def test_any_bytes_are_a_frame_or_refused_with_our_code(frame: bytes) -> None:
    assert outcome(lambda: decompress(frame)) in {"accepted", "zstd_invalid", "zstd_limit"}
