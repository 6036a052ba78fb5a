"""What a log's record carries: flags, meta, columns, signature (vault-format §5)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.format import primitives
from memseal.format.compression import compress
from memseal.format.content import Column, Content, Signed, decode_content, encode_content
from memseal.format.keys import SigningKey
from memseal.format.values import encode_value
from tests.format.refusing import code_of, outcome

OWNER = SigningKey(bytes(range(32)))
PREAMBLE, CHAIN = bytes(range(64)), bytes(range(32, 64))
COLUMN = Column("embedding", "model", "f2", 3, 2, bytes(range(12)))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
metas = st.dictionaries(
    texts.filter(lambda name: name != "columns"), texts | st.integers(-5, 1 << 40) | st.lists(texts)
)


def _decode(body: bytes, index: int = 4) -> tuple[Content, Signed | None]:
    return decode_content(memoryview(body), PREAMBLE, index)


def _body(
    flags: int = 0, meta: bytes = b"\x80", columns: bytes = b"", signature: bytes = b"", meta_size: int | None = None
) -> bytes:
    """A record's content from its parts, as the table in the specification lists them."""
    size = len(meta) if meta_size is None else meta_size
    return CHAIN + bytes([flags]) + size.to_bytes(4, "big") + meta + columns + signature


def _described(*columns: dict[str, Any]) -> bytes:
    return encode_value({"columns": list(columns)})


def _column(**changes: Any) -> dict[str, Any]:
    return {"name": "embedding", "model": "m", "type": "f2", "width": 3, "rows": 2, "bytes": 12, **changes}


@given(meta=metas, more=st.booleans(), with_column=st.booleans())
def test_what_is_encoded_decodes(meta: dict[str, Any], more: bool, with_column: bool) -> None:
    content = Content(CHAIN, more, meta, (COLUMN,) if with_column else ())
    decoded, signed = _decode(encode_content(content, PREAMBLE, 4, OWNER))
    assert decoded == content
    assert signed is not None
    primitives.verify(primitives.public_signing_key(OWNER), signed.signature, signed.message)


def test_content_made_by_hand_decodes() -> None:
    decoded, signed = _decode(_body(2, encode_value({"previous": 3})))
    assert (decoded, signed) == (Content(CHAIN, True, {"previous": 3}, ()), None)


def test_signature_is_over_place_and_content() -> None:
    body = _body(1, signature=b"s" * 64)
    _, signed = _decode(body)
    expected = b"memseal/v1/sign" + PREAMBLE + (4).to_bytes(4, "big") + body[:-64]
    assert signed is not None
    assert (signed.signature, signed.message) == (b"s" * 64, expected)


@pytest.mark.parametrize("flag", [8, 16, 32, 64, 128])
def test_unknown_flag_is_refused(flag: int) -> None:
    assert code_of(lambda: _decode(_body(flag))) == "record_flags"


@pytest.mark.parametrize("end", range(38))
def test_content_shorter_than_its_fields_is_refused(end: int) -> None:
    assert code_of(lambda: _decode(_body()[:end])) in {"record_content", "record_flags"}


@pytest.mark.parametrize(("flags", "meta_size"), [(0, 2), (0, 0xFFFFFFFF), (1, 1)])
def test_meta_beyond_the_content_is_refused(flags: int, meta_size: int) -> None:
    assert (
        code_of(lambda: _decode(_body(flags, meta_size=meta_size, signature=bytes(63 * (flags & 1)))))
        == "record_content"
    )


@pytest.mark.parametrize("meta", [b"", b"\x90", b"\xc0", b"\x80\x80", b"\x81\x01\x01"])
def test_meta_that_is_no_map_is_refused(meta: bytes) -> None:
    assert code_of(lambda: _decode(_body(meta=meta))) == "msgpack_invalid"


def test_compressed_meta_decodes() -> None:
    frame = compress(encode_value({"text": "again and again " * 20}))
    assert frame is not None
    assert _decode(_body(4, frame))[0].meta == {"text": "again and again " * 20}


def test_long_meta_is_stored_compressed_and_a_short_one_as_it_is() -> None:
    long = encode_content(Content(CHAIN, False, {"text": "again " * 100}, ()), PREAMBLE, 4, OWNER)
    short = encode_content(Content(CHAIN, False, {"text": "once"}, ()), PREAMBLE, 4, OWNER)
    assert (long[32] & 4, short[32] & 4) == (4, 0)
    assert len(long) < 300


def test_meta_of_which_a_frame_saves_less_than_a_quarter_is_stored_as_it_is() -> None:
    text = "".join(chr(33 + (number * number) % 89) for number in range(90))  # nothing of it comes again
    for times, flag in ((1, 0), (3, 4)):
        body = encode_content(Content(CHAIN, False, {"text": text * times + "again " * 9}, ()), PREAMBLE, 4, OWNER)
        frame = compress(encode_value({"text": text * times + "again " * 9}))
        assert frame is not None
        assert body[32] & 4 == flag


def test_meta_flagged_as_compressed_must_be() -> None:
    assert code_of(lambda: _decode(_body(4))) == "zstd_invalid"


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [_column()],
        [_column(), _column(rows=0, bytes=0)],
        [_column(name="newer", bytes=5, type="f4", model=None)],
        [_column(type="i1", bytes=7, width="?")],
        [_column(name="newer", bytes=0), _column()],
    ],
    ids=["none", "one", "an empty one", "unknown name", "unknown type", "unknown and known"],
)
def test_columns_that_fill_the_content_are_taken_or_skipped(columns: list[dict[str, Any]]) -> None:
    content = bytes(sum(column["bytes"] for column in columns))
    known = [column for column in columns if (column["name"], column["type"]) == ("embedding", "f2")]
    assert [column.rows for column in _decode(_body(0, _described(*columns), content))[0].columns] == [
        column["rows"] for column in known
    ]


@pytest.mark.parametrize(
    ("column", "size"),
    [
        (_column(), 11),
        (_column(), 13),
        (_column(bytes=10), 10),
        (_column(bytes=-12), 12),
        (_column(bytes=True), 1),
        (_column(bytes=None), 12),
        (_column(bytes=1 << 63), 12),
        (_column(rows=3), 12),
        (_column(rows=-2, width=-3), 12),
        (_column(rows=None), 12),
        (_column(width=0, rows=5, bytes=0), 0),
        (_column(width=1 << 62, rows=1 << 62), 12),
        (_column(model=None), 12),
        ("no map", 12),
    ],
)
def test_column_that_does_not_fit_is_refused(column: Any, size: int) -> None:
    assert code_of(lambda: _decode(_body(0, _described(column), bytes(size)))) == "column_length"


def test_columns_that_are_no_list_are_refused() -> None:
    assert code_of(lambda: _decode(_body(0, encode_value({"columns": {}})))) == "column_length"


def test_bytes_that_no_column_names_are_refused() -> None:
    assert code_of(lambda: _decode(_body(columns=b"x"))) == "column_length"


CODES = {"accepted", "record_flags", "record_content", "msgpack_invalid", "zstd_limit", "zstd_invalid", "column_length"}


@given(body=st.binary(max_size=150))
def test_any_bytes_are_a_content_or_refused_with_our_code(body: bytes) -> None:
    assert outcome(lambda: _decode(body)) in CODES


@given(data=st.data())
def test_any_changed_content_is_one_or_refused_with_our_code(data: st.DataObject) -> None:
    body = bytearray(encode_content(Content(CHAIN, False, {"text": "again " * 50}, (COLUMN,)), PREAMBLE, 4, OWNER))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(32, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(lambda: _decode(bytes(body))) in CODES
