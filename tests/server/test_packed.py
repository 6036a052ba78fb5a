"""The decoder takes what msgpack says within the bounds of vault-format §9, and nothing else."""

import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal_server.packed import MsgpackInvalid, decode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.binary() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@given(VALUES)
def test_what_msgpack_packs_is_decoded(value: Any) -> None:
    assert decode(msgpack.packb(value)) == value


@pytest.mark.parametrize("length", [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
def test_each_width_of_length_is_decoded(length: int) -> None:
    for value in ("t" * length, b"b" * length, [0] * length, {str(n): n for n in range(length)}):
        assert decode(msgpack.packb(value)) == value


def test_single_precision_is_decoded() -> None:
    assert decode(msgpack.packb([0.5, -2.0], use_single_float=True)) == [0.5, -2.0]


@given(VALUES, st.data())
def test_cut_off_value_is_refused(value: Any, data: st.DataObject) -> None:
    packed = msgpack.packb(value)
    with pytest.raises(MsgpackInvalid):
        decode(packed[: data.draw(st.integers(0, len(packed) - 1))])


@given(st.binary(max_size=64))
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    try:
        value = decode(data)
    except MsgpackInvalid:
        return
    assert decode(msgpack.packb(value)) == value or value != value


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xc0\xc0", id="two values"),
        pytest.param(b"\xc1", id="the unused type"),
        pytest.param(b"\xd4\x01\x00", id="an extension"),
        pytest.param(b"\xc7\x00\x01", id="an empty extension"),
        pytest.param(b"\xd6\xff\x00\x00\x00\x00", id="a timestamp"),
        pytest.param(b"\x81\x01\x02", id="a key that is a number"),
        pytest.param(b"\x81\xc4\x01a\x02", id="a key that is bytes"),
        pytest.param(b"\x82\xa1a\x01\xa1a\x02", id="a key twice"),
        pytest.param(b"\xa1\xff", id="a text that is not UTF-8"),
        pytest.param(b"\xa3\xed\xa0\x80", id="a lone surrogate"),
        pytest.param(b"\x91" * 32 + b"\x90", id="too deep"),
        pytest.param(b"\x91" * 32 + b"\x80", id="a map too deep"),
        pytest.param(b"\x91" * 32 + b"\xdc\x00\x00", id="a long array too deep"),
        pytest.param(b"\x81\xa0" * 32 + b"\x90", id="too deep in maps"),
        pytest.param(b"\xdd\x00\x10\x00\x01" + bytes(1_048_577), id="too many entries"),
        pytest.param(b"\x9f" + b"\xdd\x00\x01\x00\x00" * 2, id="a count without entries"),
        pytest.param(b"\xdc\xff\xff" + (b"\xdc\x00\x1f" + b"\x90" * 31) * 65_535, id="too many values"),
    ],
)
def test_value_beyond_the_bounds_is_refused(data: bytes) -> None:
    with pytest.raises(MsgpackInvalid):
        decode(data)


def test_depth_of_32_is_decoded() -> None:
    for innermost in (b"\x91\xc0", b"\x90", b"\x80", b"\x81\xa0\xc0"):
        assert decode(b"\x91" * 31 + innermost)


def test_declared_lengths_cost_nothing_before_the_entries_are_there() -> None:
    # Each header promises a million entries; a decoder that believed it would take 8 MiB at each depth.
    tracemalloc.start()
    with pytest.raises(MsgpackInvalid):
        decode(b"\xdd\x00\x10\x00\x00" * 32)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20
