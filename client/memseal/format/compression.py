"""zstd with limits that are checked before any work (vault-format §5)."""

import threading

import zstandard

from memseal.errors import FormatError

SIZE_LIMIT = 1 << 26
RATIO_LIMIT = 256
RATIO_FLOOR = 65536
_LEVEL = 3  # zstd's default; higher levels gain under 3 % on msgpack of short texts and cost several times the time

_local = threading.local()  # a (de)compressor must not be used by two threads at once


def compress(content: bytes) -> bytes | None:
    """Return one zstd frame, or None where it would not be smaller or a reader would refuse it."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
    frame: bytes = _local.compressor.compress(content)
    if len(frame) >= len(content) or len(content) > _most(len(frame)):
        return None
    return frame


def decompress(frame: bytes | memoryview) -> bytes:
    """Return what one zstd frame holds; raises `FormatError` before decompressing too much."""
    try:
        size = zstandard.frame_content_size(frame)
    except zstandard.ZstdError:
        raise FormatError("zstd_invalid", "a compressed part has no valid header") from None
    if size < 0 or (size > RATIO_FLOOR and size > _most(len(frame))):
        raise FormatError("zstd_limit", "a compressed part declares no size, or more than it may")
    try:
        # In their order, because names take a fifth of the time: the size, whether to read on in further frames, and
        # whether to pass over what comes after this one.
        content: bytes = _decompressor().decompress(frame, size, False, False)
    except zstandard.ZstdError:
        raise FormatError("zstd_invalid", "a compressed part is damaged") from None
    if len(content) != size:
        raise FormatError("zstd_invalid", "a compressed part does not have the size it declares")
    return content


def _decompressor() -> zstandard.ZstdDecompressor:
    try:
        kept: zstandard.ZstdDecompressor = _local.decompressor
    except AttributeError:
        kept = _local.decompressor = zstandard.ZstdDecompressor()
    return kept


def _most(stored: int) -> int:
    return min(SIZE_LIMIT, max(RATIO_FLOOR, RATIO_LIMIT * stored))
