"""Operations, their stamps, and the rest of a record's meta (vault-format §9)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import FormatError
from memseal.format.values import decode_value, encode_value
from memseal.memory.memory import Draft
from memseal.memory.operations import (
    Embed,
    Head,
    Meta,
    Operation,
    Remember,
    Retraction,
    Setting,
    Tagging,
    Unknown,
    decode_meta,
    decode_operation,
    encode_meta,
    encode_operation,
    first_place,
    make_stamp,
)
from tests.format.refusing import outcome

ID, TARGET = bytes(range(16)), bytes(range(16, 32))
COUNTERS, U32 = 1 << 53, 1 << 32
LATE = 1 << 21

ids = st.binary(min_size=16, max_size=16)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
numbers = st.integers(-(1 << 63), (1 << 63) - 1)
rows = st.integers(0, U32 - 1)
names = st.sampled_from(["newer", "x", "weight"])
drafts = st.builds(
    Draft,
    content=texts,
    source=texts,
    kind=texts,
    tags=st.lists(texts, max_size=3).map(tuple),
    author=st.none() | any_text,
    thread=st.none() | any_text,
    position=st.none() | numbers,
    captured_at=st.none() | numbers,
    origin=st.none() | any_text,
    others=st.dictionaries(names, st.none() | numbers | any_text | st.lists(any_text)),
)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Remember, ids, drafts, numbers, st.none() | rows, st.none(), st.none()),
    st.builds(Remember, ids, drafts, numbers, st.none() | rows, ids, st.none() | any_text),
    st.builds(Retraction, ids, ids, st.booleans(), numbers, st.none() | any_text),
    st.builds(
        Tagging, ids, ids, numbers, st.lists(texts).map(tuple), st.lists(st.tuples(texts, ids), max_size=3).map(tuple)
    ),
    st.builds(Embed, ids, ids, rows),
    st.builds(Setting, ids, any_text, st.none() | numbers | st.dictionaries(texts, numbers), numbers),
)


def code(value: object, counter: int = 9, position: int = 3) -> str:
    with pytest.raises(FormatError) as refused:
        decode_operation(value, counter, position)
    return refused.value.code


def remember(**changes: Any) -> dict[str, Any]:
    value = {"op": "remember", "id": ID, "content": "tea", "kind": "fact", "source": "app", "written_at": 5, **changes}
    return {name: field for name, field in value.items() if field is not ...}


# ── round trips ─────────────────────────────────────────────────────────────────────────────────────


@given(operation=operations, counter=st.integers(1, COUNTERS), position=st.integers(0, U32 - 1))
def test_what_is_encoded_decodes(operation: Operation, counter: int, position: int) -> None:
    stored = decode_value(encode_value(encode_operation(operation)))
    assert decode_operation(stored, counter, position) == (operation, make_stamp(counter, position, operation.id))


@given(operation=operations, counter=st.integers(0, COUNTERS - 1), position=st.integers(0, U32 - 1))
def test_reemitted_operation_keeps_its_first_stamp(operation: Operation, counter: int, position: int) -> None:
    stamp = make_stamp(counter, position, operation.id)
    stored = decode_value(encode_value(encode_operation(operation, stamp)))
    assert decode_operation(stored, COUNTERS, 0) == (operation, stamp)


def test_absent_fields_are_not_stored() -> None:
    assert encode_operation(Remember(ID, Draft("tea", "app", "fact"), 5)) == remember()
    assert encode_operation(Retraction(ID, TARGET, True, 5)) == {"op": "retract", "id": ID, "target": TARGET, "at": 5}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, None) for name in "captured_at tags author thread position origin embedding reason stamp".split()],
)
def test_field_that_is_nil_is_as_if_it_were_absent(name: str, value: None) -> None:
    assert decode_operation(remember(**{name: value}), 9, 3) == decode_operation(remember(), 9, 3)


def test_unknown_fields_are_carried_on() -> None:
    operation, _ = decode_operation(remember(newer={"a": [1]}, weight=2), 9, 3)
    assert isinstance(operation, Remember)
    assert operation.draft.others == {"newer": {"a": [1]}, "weight": 2}
    assert encode_operation(operation) == remember(newer={"a": [1]}, weight=2)


def test_unknown_operation_is_kept_by_its_name() -> None:
    value = {"op": "newer", "id": ID, "whatever": 7}
    assert decode_operation(value, 9, 3) == (Unknown(ID, "newer"), make_stamp(9, 3, ID))


def test_unknown_operation_is_not_written_anew() -> None:
    with pytest.raises(ValueError, match="unknown"):
        encode_operation(Unknown(ID, "newer"))


def test_kind_of_newer_software_is_read() -> None:
    operation, _ = decode_operation(remember(kind="of newer software"), 9, 3)
    assert isinstance(operation, Remember)
    assert operation.draft.kind == "of newer software"


# ── what is quarantined ─────────────────────────────────────────────────────────────────────────────

MISSING = ...
WRONG: dict[str, list[Any]] = {
    "id": [MISSING, None, bytes(15), bytes(17), "0" * 16, 7],
    "op": [MISSING, None, 7, b"remember"],
    "content": [MISSING, None, "", 7, b"tea", ["tea"]],
    "kind": [MISSING, None, "", 7],
    "source": [MISSING, None, "", 7],
    "written_at": [MISSING, None, "5", 5.0, True, 1 << 63],
    "captured_at": ["5", 5.0, False, 1 << 63],
    "tags": ["a", {}, [7], [""], [None], 7, False, 0],
    "author": [7, b"a", []],
    "thread": [7, b"a"],
    "position": ["1", 1.5, True, 1 << 63],
    "origin": [7, b"a"],
    "embedding": ["1", -1, U32, True, 1.0],
    "reason": [7, b"a"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_memory_with_a_wrong_field_is_refused(field: str, value: Any) -> None:
    assert code(remember(**{field: value})) == "operation_invalid"


@pytest.mark.parametrize("of", [MISSING, None, bytes(15), "x" * 16])
def test_supersede_names_the_memory_it_replaces(of: Any) -> None:
    assert code(remember(op="supersede", of=of)) == "operation_invalid"
    assert decode_operation(remember(op="supersede", of=TARGET), 9, 3)[0].of == TARGET  # type: ignore[union-attr]


def _other(op: str, **fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "retract": {"target": TARGET, "at": 5},
        "restore": {"target": TARGET, "at": 5},
        "tag": {"target": TARGET, "at": 5, "add": ["a"], "remove": [["b", ID]]},
        "embed": {"target": TARGET, "embedding": 0},
        "setting": {"name": "n", "value": 1, "at": 5},
    }[op]
    value = {"op": op, "id": ID, **base, **fields}
    return {name: field for name, field in value.items() if field is not ...}


@pytest.mark.parametrize("op", ["retract", "restore", "tag", "embed", "setting"])
def test_other_operation_decodes(op: str) -> None:
    assert decode_operation(_other(op), 9, 3)[1] == make_stamp(9, 3, ID)


@pytest.mark.parametrize(
    ("op", "field", "values"),
    [
        ("retract", "target", [MISSING, bytes(15), 7]),
        ("retract", "at", [MISSING, "5", 1 << 63, -(1 << 63) - 1, True]),
        ("retract", "reason", [7, b"r"]),
        ("restore", "target", [MISSING]),
        ("tag", "target", [MISSING]),
        ("tag", "at", [MISSING]),
        ("tag", "add", [MISSING, "a", [7], [""], None]),
        ("tag", "remove", [MISSING, [["b"]], [["b", bytes(15)]], [["", ID]], [[7, ID]], [["b", ID, 1]], {}]),
        ("embed", "target", [MISSING]),
        ("embed", "embedding", [MISSING, None, -1, U32, "0"]),
        ("setting", "name", [MISSING, 7]),
        ("setting", "at", [MISSING]),
    ],
)
def test_other_operation_with_a_wrong_field_is_refused(op: str, field: str, values: list[Any]) -> None:
    assert {code(_other(op, **{field: value})) for value in values} == {"operation_invalid"}


@pytest.mark.parametrize("value", [None, 7, "remember", [], [["op", "remember"]], b""])
def test_operation_that_is_no_map_is_refused(value: object) -> None:
    assert code(value) == "operation_invalid"


@pytest.mark.parametrize(
    "stamp",
    [
        [9, 0],
        [10, 0],
        [1 << 60, 0],
        [8, U32],
        [-1, 0],
        [0, -1],
        [8],
        [8, 0, 0],
        ["8", 0],
        [8.0, 0],
        [True, 0],
        "80",
        8,
        {},
    ],
)
def test_first_stamp_that_is_not_below_the_record_is_refused(stamp: object) -> None:
    assert code(remember(stamp=stamp)) == "stamp_invalid"


def test_lone_surrogate_never_gets_out_of_msgpack() -> None:
    packed = encode_value(remember(content="???")).replace(b"???", b"\xed\xa0\x80")
    with pytest.raises(FormatError) as refused:
        decode_value(packed)
    assert refused.value.code == "msgpack_invalid"


@given(
    value=st.dictionaries(
        st.sampled_from([*WRONG, "of", "target", "add", "remove", "at", "stamp"]),
        st.none() | numbers | any_text | ids | st.lists(any_text),
    ),
    op=st.sampled_from(["remember", "supersede", "retract", "tag", "embed", "setting", "x"]),
)
def test_any_map_is_an_operation_or_refused_with_our_code(value: dict[str, Any], op: str) -> None:
    decoded = outcome(lambda: decode_operation({"id": ID, **value, "op": op}, 9, 3))
    assert decoded in {"accepted", "operation_invalid", "stamp_invalid"}


# ── stamps ──────────────────────────────────────────────────────────────────────────────────────────

places = st.tuples(st.integers(0, COUNTERS), st.integers(0, U32 - 1), ids)


@given(one=places, other=places)
def test_stamps_compare_by_counter_position_and_id(one: tuple[int, int, bytes], other: tuple[int, int, bytes]) -> None:
    assert (make_stamp(*one) < make_stamp(*other)) == (one < other)
    assert (make_stamp(*one) == make_stamp(*other)) == (one == other)


@given(counter=st.integers(0, COUNTERS), position=st.integers(0, U32 - 1))
def test_stamp_gives_its_place_back(counter: int, position: int) -> None:
    assert first_place(make_stamp(counter, position, ID)) == [counter, position]


# ── meta ────────────────────────────────────────────────────────────────────────────────────────────

heads = st.builds(Head, ids, st.integers(0, U32 - 1), st.binary(min_size=32, max_size=32), st.integers(0, COUNTERS - 2))


def meta_code(value: dict[str, Any], epoch: int = LATE) -> str:
    with pytest.raises(FormatError) as refused:
        decode_meta(value, epoch)
    return refused.value.code


@given(previous=st.integers(0, COUNTERS - 2), named=st.lists(heads, max_size=3))
def test_meta_that_is_encoded_decodes(previous: int, named: list[Head]) -> None:
    stored = decode_value(encode_value(encode_meta(previous, tuple(named), [remember()], LATE)))
    meta = decode_meta(stored, LATE)
    counter = 1 + max([previous, *(head.counter for head in named)])
    assert meta == Meta(previous, counter, tuple(named), [remember()])


def test_empty_meta_is_a_record_without_operations() -> None:
    assert decode_meta({}, 1) == Meta(0, 1, (), ())


@pytest.mark.parametrize(
    ("epoch", "most"),
    [(1, U32), (2, 2 * U32), ((1 << 21) - 1, COUNTERS - U32), (LATE, COUNTERS - 1), (U32 - 1, COUNTERS - 1)],
)
def test_counters_end_at_the_highest_of_their_epoch(epoch: int, most: int) -> None:
    assert decode_meta({"previous": most - 1}, epoch).counter == most
    assert meta_code({"previous": most}, epoch) == "counter_limit"
    assert meta_code({"previous": (1 << 64) - 1}, epoch) == "counter_limit"
    assert meta_code({"heads": [[TARGET, 0, bytes(32), most]]}, epoch) == "counter_limit"


def test_record_that_no_reader_would_count_is_not_written() -> None:
    assert encode_meta(U32 - 1, (), [], 1)["previous"] == U32 - 1
    for previous, named in [(U32, ()), (0, (Head(TARGET, 0, bytes(32), U32),))]:
        with pytest.raises(FormatError) as refused:
            encode_meta(previous, named, [], 1)
        assert refused.value.code == "counter_limit"


@pytest.mark.parametrize(
    "value",
    [
        {"previous": -1},
        {"previous": "1"},
        {"previous": True},
        {"heads": {}},
        {"heads": [7]},
        {"heads": [[TARGET, 0, bytes(32)]]},
        {"heads": [[bytes(15), 0, bytes(32), 1]]},
        {"heads": [[TARGET, -1, bytes(32), 1]]},
        {"heads": [[TARGET, U32, bytes(32), 1]]},
        {"heads": [[TARGET, 0, bytes(31), 1]]},
        {"heads": [[TARGET, 0, bytes(32), -1]]},
        {"operations": {}},
        {"operations": 7},
    ],
)
def test_meta_with_a_wrong_field_is_refused(value: dict[str, Any]) -> None:
    assert meta_code(value) == "operation_invalid"
