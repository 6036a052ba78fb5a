"""msgpack is decoded within bounds, each found before memory is taken (vault-format §9)."""

import tracemalloc
from collections.abc import Callable

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memseal.format import values
from memseal.format.values import DEPTH_LIMIT, VALUES_LIMIT, decode_value, encode_value
from tests.format.refusing import code_of, outcome

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=30,
)
# Every first byte there is, each with lengths that hold and lengths that lie.
msgpack_like = st.lists(st.integers(0, 255).map(lambda head: bytes([head])) | st.binary(max_size=9), max_size=12)


def _nested(opening: bytes, depth: int) -> bytes:
    return opening * depth + b"\xc0"


def _peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(value=trees)
def test_what_is_encoded_decodes(value: object) -> None:
    assert decode_value(encode_value(value)) == value


@given(value=trees)
def test_view_of_the_bytes_decodes_too(value: object) -> None:
    assert decode_value(memoryview(b"x" + encode_value(value))[1:]) == value


@given(value=trees, data=st.data())
def test_value_that_is_cut_is_refused(value: object, data: st.DataObject) -> None:
    packed = encode_value(value)
    end = data.draw(st.integers(0, len(packed) - 1))
    assert code_of(lambda: decode_value(packed[:end])) == "msgpack_invalid"


@given(value=trees, more=st.binary(min_size=1, max_size=8))
def test_bytes_after_the_value_are_refused(value: object, more: bytes) -> None:
    assert code_of(lambda: decode_value(encode_value(value) + more)) == "msgpack_invalid"


@given(pieces=msgpack_like)
@example([b"\xd6\xff\0\0\0\0"])  # a timestamp of four bytes
@example([b"\xc1"])
@example([b"\xdd\xff\xff\xff\xff"])
@example([b"\xdf\xff\xff\xff\xff"])
def test_any_bytes_are_a_value_or_refused_with_our_code(pieces: list[bytes]) -> None:
    assert outcome(lambda: decode_value(b"".join(pieces))) in {"accepted", "msgpack_invalid"}


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\xdc\0\1", b"\xde\0\1\xa1a"])
def test_nesting_ends_at_the_limit(opening: bytes) -> None:
    decode_value(_nested(opening, DEPTH_LIMIT))
    assert code_of(lambda: decode_value(_nested(opening, DEPTH_LIMIT + 1))) == "msgpack_invalid"


@pytest.mark.parametrize("depth", [100, 1_000, 10_000, 1_000_000])
def test_deep_nesting_is_refused_at_any_depth(depth: int) -> None:
    assert code_of(lambda: decode_value(_nested(b"\x91", depth))) == "msgpack_invalid"


@pytest.mark.parametrize(
    "packed",
    [
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x82\xa1a\x01\xd9\x01a\x02",  # the same key in two writings
        b"\x91\x82\xa0\x01\xa0\x02",
    ],
)
def test_map_with_a_key_twice_is_refused(packed: bytes) -> None:
    assert code_of(lambda: decode_value(packed)) == "msgpack_invalid"


@pytest.mark.parametrize(
    "key", [b"\x01", b"\xc0", b"\xc3", b"\xc4\x01a", b"\xc4\x00", b"\xcb" + bytes(8), b"\x90", b"\x80"]
)
def test_map_with_a_key_that_is_no_text_is_refused(key: bytes) -> None:
    assert code_of(lambda: decode_value(b"\x81" + key + b"\x01")) == "msgpack_invalid"


@pytest.mark.parametrize(
    "packed",
    [
        b"\xd4\x01\x00",
        b"\xd5\x01\x00\x00",
        b"\xd6\xff\x00\x00\x00\x00",
        b"\xd7\xff" + bytes(8),
        b"\xd8\x05" + bytes(16),
        b"\xc7\x00\x01",
        b"\xc7\x0c\xff" + bytes(12),
        b"\xc8\x00\x01\x05\x00",
        b"\xc9\x00\x00\x00\x01\x05\x00",
        b"\xc1",
    ],
)
def test_extension_type_is_refused(packed: bytes) -> None:
    assert code_of(lambda: decode_value(packed)) == "msgpack_invalid"


@pytest.mark.parametrize("text", [b"\xa1\xff", b"\xa3\xed\xa0\x80", b"\xa2\xc0\x80", b"\xa4\xf5\x80\x80\x80"])
def test_text_that_is_not_utf8_is_refused(text: bytes) -> None:
    assert code_of(lambda: decode_value(text)) == "msgpack_invalid"


@pytest.mark.parametrize("number", [-(1 << 63), (1 << 64) - 1])
def test_integers_of_64_bits_are_carried(number: int) -> None:
    assert decode_value(encode_value(number)) == number


def test_as_many_values_as_the_limit_are_decoded() -> None:
    array = encode_value([0] * (VALUES_LIMIT - 1))
    assert len(array) > VALUES_LIMIT
    assert len(decode_value(array)) == VALUES_LIMIT - 1


@pytest.mark.parametrize(
    "content",
    [
        encode_value([0] * VALUES_LIMIT),
        encode_value([[0] * (VALUES_LIMIT // 2 - 1)] * 2),
        encode_value({"a": ["bc"] * (VALUES_LIMIT - 2)}),
    ],
    ids=["one array", "two arrays", "an array in a map"],
)
def test_one_value_more_than_the_limit_is_refused(content: bytes) -> None:
    assert code_of(lambda: decode_value(content)) == "msgpack_invalid"


@given(value=trees)
def test_values_are_counted_as_they_are(value: object) -> None:
    def number(part: object) -> int:
        match part:
            case dict():
                return 1 + len(part) + sum(map(number, part.values()))
            case list():
                return 1 + sum(map(number, part))
            case _:
                return 1

    assert values._count(encode_value(value)) == number(value)


@pytest.mark.parametrize("head", [head for head in range(256) if head != 0xC1])
def test_each_type_is_counted_by_its_own_size(head: int) -> None:
    # Zeros are valid lengths, entries, numbers and (as 1-byte entries of an array) fill what a small one declares.
    for size in range(40):
        reader = msgpack.Unpacker()
        reader.feed(bytes([head]) + bytes(size))
        try:
            reader.skip()
        except msgpack.OutOfData:
            continue
        entries = head & 0x0F if 0x90 <= head <= 0x9F else 2 * (head & 0x0F) if 0x80 <= head <= 0x8F else 0
        assert values._count(bytes([head]) + bytes(size)) == 1 + entries
        return
    pytest.fail("this first byte begins no value")


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xdd\x00\x0f\xff\xff" * 2_000,  # arrays in arrays, a million entries declared in each
        b"\xdf\x00\x0f\xff\xff\xa1a" * 1_400,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\x91" * 10_000 + b"\xc0",
    ],
    ids=["arrays", "maps", "long array", "long map", "long bytes", "long text", "depth"],
)
def test_bomb_of_10_kilobytes_takes_no_memory(bomb: bytes) -> None:
    assert _peak(lambda: code_of(lambda: decode_value(bomb))) < 1 << 20


def test_bomb_of_empty_arrays_takes_no_memory() -> None:
    # 8 MB of one-byte arrays would become 500 MB of lists.
    bomb = b"\xdd" + (8_000_000).to_bytes(4, "big") + b"\x90" * 8_000_000
    assert _peak(lambda: code_of(lambda: decode_value(bomb))) < 20_000_000


@pytest.mark.parametrize("value", [1 << 64, {1, 2}, object(), "\ud800"], ids=["2^64", "set", "object", "surrogate"])
def test_what_msgpack_cannot_hold_is_refused_on_encoding(value: object) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        encode_value(value)
