"""Framing, padding and sealing of records, and how a scan goes on after damage (vault-format §4)."""

import math
import random
import time
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import RecordTooLarge
from memseal.format import primitives
from memseal.format.keys import RecordKey
from memseal.format.records import (
    BODY_LIMIT,
    HEADER_SIZE,
    PLAINTEXT_LIMIT,
    SMALLEST_RECORD,
    Gap,
    Place,
    decode_header,
    frame,
    open_record,
    padded_size,
    places,
    scan,
    seal_record,
    sealed_size,
)
from tests.format.broken import flipped
from tests.format.refusing import code_of, outcome

KEY = RecordKey(bytes(range(32)))
PREAMBLE = bytes(range(64))
RECORD = seal_record(KEY, PREAMBLE, 5, b"content")
SMALLEST_BODY = SMALLEST_RECORD - HEADER_SIZE


def _header(length: int, index: int) -> bytes:
    head = length.to_bytes(4, "big") + index.to_bytes(4, "big")
    return head + zlib.crc32(head).to_bytes(4, "big")


def _sealed(plaintext: bytes) -> memoryview:
    context = b"memseal/v1/record" + PREAMBLE + (5).to_bytes(4, "big")
    return memoryview(primitives.seal(KEY, context, plaintext))


def _open(record: bytes, index: int = 5, preamble: bytes = PREAMBLE, key: RecordKey = KEY) -> bytes:
    place = decode_header(memoryview(record), 0, index)
    return bytes(open_record(key, preamble, index, memoryview(record)[HEADER_SIZE : place.end]))


# ── framing ─────────────────────────────────────────────────────────────────────────────────────────


def test_header_is_length_index_and_their_crc() -> None:
    assert frame(7, b"body") == _header(4, 7) + b"body"


@given(bodies=st.lists(st.binary(max_size=30), max_size=6))
def test_framed_bodies_are_found_where_they_are(bodies: list[bytes]) -> None:
    content = b"p" * 64 + b"".join(frame(index, body) for index, body in enumerate(bodies))
    found = places(memoryview(content))
    assert [content[place.offset + HEADER_SIZE : place.end] for place in found] == bodies
    assert [place.index for place in found] == list(range(len(bodies)))


@pytest.mark.parametrize("end", range(HEADER_SIZE + 4))
def test_record_that_ends_early_is_torn(end: int) -> None:
    assert code_of(lambda: decode_header(memoryview(frame(0, b"body"))[:end], 0, 0)) == "record_torn"


@pytest.mark.parametrize("bit", range(8 * HEADER_SIZE))
def test_flipped_bit_of_a_header_is_damage(bit: int) -> None:
    content = memoryview(flipped(frame(3, b"body"), bit))
    assert code_of(lambda: decode_header(content, 0, 3)) == "record_header"


def test_length_ends_at_the_limit() -> None:
    assert code_of(lambda: decode_header(memoryview(_header(BODY_LIMIT, 0)), 0, 0)) == "record_torn"
    assert code_of(lambda: decode_header(memoryview(_header(BODY_LIMIT + 1, 0)), 0, 0)) == "record_length"


@pytest.mark.parametrize("index", [2, 4, 0xFFFFFFFF])
def test_record_with_another_index_is_out_of_order(index: int) -> None:
    assert code_of(lambda: decode_header(memoryview(frame(index, b"body")), 0, 3)) == "record_order"


# ── padding ─────────────────────────────────────────────────────────────────────────────────────────


def _padme(size: int) -> int:
    """The rule as the specification words it, with its logarithms."""
    if size <= 1024:
        return 1024
    exponent = math.floor(math.log2(size))
    step = 2 ** (exponent - math.floor(math.log2(exponent)) - 1)
    return int(min(math.ceil(size / step) * step, 67_043_327))


@pytest.mark.parametrize(
    ("size", "padded"),
    [
        (0, 1024),
        (1024, 1024),
        (1025, 1088),
        (1088, 1088),
        (1089, 1152),
        (2048, 2048),
        (2049, 2176),
        (65536, 65536),
        (65537, 67584),
    ],
)
def test_padded_size_is_what_the_format_says(size: int, padded: int) -> None:
    assert padded_size(size) == padded


@given(size=st.integers(0, 10_000) | st.integers(0, PLAINTEXT_LIMIT))
def test_padded_size_follows_the_rule(size: int) -> None:
    assert padded_size(size) == _padme(size) >= size


@pytest.mark.parametrize("exponent", range(10, 26))
@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_padded_size_follows_the_rule_around_powers_of_two(exponent: int, difference: int) -> None:
    assert padded_size(2**exponent + difference) == _padme(2**exponent + difference)


def test_largest_plaintext_just_fits_a_record() -> None:
    assert sealed_size(PLAINTEXT_LIMIT) <= BODY_LIMIT < sealed_size(PLAINTEXT_LIMIT + 1)
    assert padded_size(PLAINTEXT_LIMIT) == PLAINTEXT_LIMIT


def test_smallest_record_is_as_small_as_it_gets() -> None:
    assert len(seal_record(KEY, PREAMBLE, 0, b"")) == SMALLEST_RECORD == 1108


# ── sealing ─────────────────────────────────────────────────────────────────────────────────────────


@given(content=st.binary(max_size=5000), index=st.integers(0, (1 << 32) - 1))
def test_what_is_sealed_opens(content: bytes, index: int) -> None:
    assert _open(seal_record(KEY, PREAMBLE, index, content), index) == content


def test_largest_content_is_sealed_and_one_byte_more_is_refused() -> None:
    largest = bytes(PLAINTEXT_LIMIT - 4)
    record = seal_record(KEY, PREAMBLE, 5, largest)
    assert len(record) - HEADER_SIZE <= BODY_LIMIT
    assert open_record(KEY, PREAMBLE, 5, memoryview(record)[HEADER_SIZE:]) == largest
    with pytest.raises(RecordTooLarge):
        seal_record(KEY, PREAMBLE, 5, largest + b"\0")


def test_each_flipped_byte_of_a_record_is_refused() -> None:
    codes = [code_of(lambda: _open(flipped(RECORD, 8 * n + n % 8))) for n in range(len(RECORD))]  # noqa: B023
    assert codes == ["record_header"] * HEADER_SIZE + ["record_sealed"] * (len(RECORD) - HEADER_SIZE)


@pytest.mark.parametrize("size", [0, 16_000, 16_380, 16_381, 40_000])
def test_record_of_one_chunk_and_of_several_opens_whole_or_not_at_all(size: int) -> None:
    record = seal_record(KEY, PREAMBLE, 5, b"c" * size)
    assert _open(record) == b"c" * size
    places_hit = (HEADER_SIZE, len(record) // 2, len(record) - 1)
    assert {code_of(lambda: _open(flipped(record, 8 * n))) for n in places_hit} == {"record_sealed"}  # noqa: B023
    assert code_of(lambda: open_record(KEY, PREAMBLE, 5, memoryview(record)[HEADER_SIZE:-1])) == "record_sealed"


@pytest.mark.parametrize("index", [4, 6])
def test_record_at_another_index_does_not_open(index: int) -> None:
    moved = frame(index, RECORD[HEADER_SIZE:])
    assert code_of(lambda: _open(moved, index)) == "record_sealed"


def test_record_in_another_container_does_not_open() -> None:
    assert code_of(lambda: _open(RECORD, preamble=PREAMBLE[::-1])) == "record_sealed"


def test_record_under_another_key_does_not_open() -> None:
    assert code_of(lambda: _open(RECORD, key=RecordKey(bytes(32)))) == "record_sealed"


@given(end=st.integers(0, len(RECORD) - HEADER_SIZE - 1))
def test_record_that_is_cut_and_framed_anew_does_not_open(end: int) -> None:
    cut = frame(5, RECORD[HEADER_SIZE : HEADER_SIZE + end])
    assert code_of(lambda: _open(cut)) == "record_sealed"


def test_plaintext_padded_by_hand_opens() -> None:
    plaintext = (3).to_bytes(4, "big") + b"abc" + bytes(1017)
    assert bytes(open_record(KEY, PREAMBLE, 5, _sealed(plaintext))) == b"abc"


@pytest.mark.parametrize(
    "plaintext",
    [
        b"",
        b"\0\0\0",
        (0).to_bytes(4, "big"),
        (3).to_bytes(4, "big") + b"abc",
        (3).to_bytes(4, "big") + b"abc" + bytes(1016),
        (3).to_bytes(4, "big") + b"abc" + bytes(1018),
        (1021).to_bytes(4, "big") + bytes(1020),
        (0xFFFFFFFF).to_bytes(4, "big") + bytes(1020),
        (1022).to_bytes(4, "big") + bytes(1084 + 64),
        (3).to_bytes(4, "big") + b"abc" + bytes(1016) + b"\1",
        (3).to_bytes(4, "big") + b"abc\1" + bytes(1016),
    ],
    ids=[
        "nothing",
        "no length",
        "length alone",
        "no padding",
        "a byte short",
        "a byte long",
        "beyond the end",
        "far beyond",
        "a step more",
        "not zero at the end",
        "not zero at the start",
    ],
)
def test_other_padding_is_refused(plaintext: bytes) -> None:
    assert code_of(lambda: open_record(KEY, PREAMBLE, 5, _sealed(plaintext))) == "record_padding"


# ── scanning ────────────────────────────────────────────────────────────────────────────────────────


def _log(count: int, first: int = 0) -> list[bytes]:
    draw = random.Random(count)
    return [frame(first + n, draw.randbytes(SMALLEST_BODY + 64 * draw.randrange(4))) for n in range(count)]


def _found(content: bytes, index: int = 0) -> list[tuple[int, bytes]]:
    return [
        (piece.index, content[piece.offset : piece.end])
        for piece in scan(memoryview(content), 0, index)
        if isinstance(piece, Place)
    ]


def _gaps(content: bytes, index: int = 0) -> list[Gap]:
    return [piece for piece in scan(memoryview(content), 0, index) if isinstance(piece, Gap)]


@given(count=st.integers(0, 6), first=st.integers(0, 300_000))
def test_sound_log_has_no_gap(count: int, first: int) -> None:
    log = _log(count, first)
    assert _found(b"".join(log), first) == list(enumerate(log, first))
    assert _gaps(b"".join(log), first) == []


@given(data=st.data(), first=st.sampled_from([0, 65_530, 20_000_000]))
def test_scan_finds_every_record_around_any_damage(data: st.DataObject, first: int) -> None:
    log = _log(6, first)
    content = bytearray(b"".join(log))
    start = data.draw(st.integers(0, len(content) - 1))
    damage = data.draw(st.binary(min_size=1, max_size=40) | st.integers(41, 3000).map(random.Random(1).randbytes))
    end = min(len(content), start + len(damage))
    content[start:end] = damage[: end - start]
    damaged = bytes(content)
    offsets = [sum(map(len, log[:number])) for number in range(len(log) + 1)]
    untouched = [
        (first + number, record)
        for number, record in enumerate(log)
        if damaged[offsets[number] : offsets[number + 1]] == record
    ]
    found = _found(damaged, first)
    assert [entry for entry in found if entry in untouched] == untouched
    # What else is found has a header that was not touched, or is random damage that none of us will see in this life.
    sound_headers = {(first + n, offsets[n]) for n in range(6) if damaged[offsets[n] :][:12] == log[n][:12]}
    places_found = [piece for piece in scan(memoryview(damaged), 0, first) if isinstance(piece, Place)]
    assert {(place.index, place.offset) for place in places_found} == sound_headers


@given(data=st.data())
def test_scan_finds_every_record_after_bytes_were_lost_or_put_in(data: st.DataObject) -> None:
    log = _log(6)
    content = b"".join(log)
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start, len(content)))
    between = data.draw(st.integers(0, 2500).map(random.Random(2).randbytes))
    changed = content[:start] + between + content[end:]
    offsets = [sum(map(len, log[:number])) for number in range(len(log) + 1)]
    before = [(number, record) for number, record in enumerate(log) if offsets[number + 1] <= start]
    # A record that lost bytes takes as many from the next one, because its header still says how long it was.
    after = [(number, record) for number, record in enumerate(log) if offsets[number] >= end][1:]
    whole = before + after
    assert [entry for entry in _found(changed) if entry in whole] == whole


@pytest.mark.parametrize("gone", range(4))
def test_record_that_was_cut_out_costs_only_itself(gone: int) -> None:
    log = _log(5)
    content = b"".join(log[:gone] + log[gone + 1 :])
    assert [index for index, _ in _found(content)] == [index for index in range(5) if index != gone]
    assert [gap.code for gap in _gaps(content)] == ["record_order"]


def test_record_that_was_put_twice_is_served_once() -> None:
    log = _log(4)
    assert [index for index, _ in _found(b"".join([log[0], log[1], log[1], *log[2:]]))] == [0, 1, 2, 3]


def test_records_in_another_order_are_never_served_backwards() -> None:
    log = _log(5)
    assert [index for index, _ in _found(b"".join([log[0], log[2], log[1], log[3], log[4]]))] == [0, 2, 3, 4]


@pytest.mark.parametrize(("jump", "served"), [(1024, True), (1025, False)])
def test_index_may_rise_by_as_many_records_as_may_be_missing(jump: int, served: bool) -> None:
    content = frame(jump, bytes(SMALLEST_BODY))
    assert bool(_found(content)) == served


def test_header_of_a_record_shorter_than_any_sealed_one_is_damage() -> None:
    content = frame(0, bytes(SMALLEST_BODY - 1)) + frame(1, bytes(SMALLEST_BODY))
    assert [index for index, _ in _found(content)] == [1]
    assert [gap.code for gap in _gaps(content)] == ["record_length"]


@pytest.mark.parametrize("size", [1, 11, 12, 500])
def test_incomplete_record_at_the_end_is_torn(size: int) -> None:
    log = _log(3)
    content = b"".join(log[:2]) + log[2][:size]
    assert [gap.code for gap in _gaps(content)] == ["record_torn"]
    assert len(_found(content)) == 2


def test_gap_names_the_range_that_is_lost() -> None:
    log = _log(4)
    content = b"".join([log[0], flipped(log[1], 0), *log[2:]])
    assert _gaps(content) == [Gap("record_header", len(log[0]), len(log[0]) + len(log[1]), 1)]


TEN_MEGABYTES = 10_000_000


def _many(pattern: bytes) -> bytes:
    return (pattern * (TEN_MEGABYTES // len(pattern) + 1))[:TEN_MEGABYTES]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "00": lambda: bytes(TEN_MEGABYTES),
    "04": lambda: _many(b"\4"),
    "nearly headers": lambda: _many(b"\0\0\0\1\1"),
    "random": lambda: random.Random(3).randbytes(TEN_MEGABYTES),
    "headers in a row": lambda: b"".join(_header(SMALLEST_BODY, n + 1) for n in range(TEN_MEGABYTES // 12)),
    "headers of nothing": lambda: b"".join(_header(0, n) for n in range(TEN_MEGABYTES // 12)),
    "a byte between": lambda: b"".join(frame(n, bytes(SMALLEST_BODY)) + b"x" for n in range(TEN_MEGABYTES // 1109)),
}


# On a machine that was busy with other work these took 0.1 to 1 s of processor time, "nearly headers" 5 to 12 s; a
# search that begins anew at each damage would take hours.
@pytest.mark.parametrize("name", HOSTILE)
def test_ten_megabytes_of_hostile_bytes_are_scanned_in_seconds(name: str) -> None:
    content = memoryview(HOSTILE[name]())
    started = time.process_time()
    pieces = sum(1 for _ in scan(content, 0, 0))
    assert time.process_time() - started < 120
    assert pieces <= 2 * TEN_MEGABYTES // SMALLEST_RECORD + 2


@given(content=st.binary(max_size=200) | st.binary(min_size=SMALLEST_RECORD, max_size=2 * SMALLEST_RECORD))
def test_scan_of_any_bytes_covers_them_without_an_error(content: bytes) -> None:
    pieces = list(scan(memoryview(content), 0, 0))
    assert [piece.offset for piece in pieces] == [0, *(piece.end for piece in pieces[:-1])][: len(pieces)]
    assert (pieces[-1].end if pieces else 0) == len(content)


@given(content=st.binary(max_size=300))
def test_framing_of_any_bytes_is_sound_or_refused_with_our_code(content: bytes) -> None:
    codes = {"accepted", "record_torn", "record_header", "record_length", "record_order"}
    assert outcome(lambda: places(memoryview(content), 0)) in codes
