"""Traces: what a device has given out, one sealed record each, in files of its own."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import Finding, FormatError
from memseal.format.content import chain_start
from memseal.format.derivation import trace_key
from memseal.format.keys import LocalKey
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import places
from memseal.format.trace import (
    FILE_LIMIT,
    TRACE_LIMIT,
    Candidate,
    Given,
    Piece,
    Trace,
    began_of,
    check_trace_preamble,
    decode_trace,
    encode_trace,
    made_at,
    read_traces,
    seal_trace,
    trace_id,
    trace_nonce,
    trace_preamble,
)
from memseal.format.values import decode_value, encode_value
from tests.format.building import seed
from tests.format.refusing import code_of

VAULT, DEVICE = seed("vault", 16), seed("device", 16)
NONCE = trace_nonce(1_700_000_000_000_000, b"four")
LOCAL = LocalKey(seed("local key"))
KEY = trace_key(LOCAL, VAULT, DEVICE, NONCE)
PREAMBLE = trace_preamble(VAULT, DEVICE, NONCE)
NAME = f"traces/{NONCE.hex()}.mseal"

ids = st.binary(min_size=16, max_size=16).map(bytes.hex)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
scores = st.floats(allow_nan=False, allow_infinity=False)
flags = st.booleans()
counts = st.integers(0, (1 << 32) - 1)
maps = st.dictionaries(st.sampled_from(["status", "query", "spans"]), texts, max_size=2)
traces = st.builds(
    Trace,
    id=ids,
    at=st.integers(-(1 << 63), (1 << 63) - 1),
    surface=st.sampled_from(["search", "recall", "injection", "capture", "proposal", "of newer software"]),
    turn=st.none() | texts,
    about=st.none() | ids,
    query=st.none() | texts,
    searched=st.none() | texts,
    terms=st.lists(texts, max_size=3).map(tuple),
    time=st.none() | maps,
    engine=texts,
    embedder=st.none() | texts,
    floor=st.none() | scores,
    considered=counts,
    candidates=st.lists(st.builds(Candidate, ids, scores, scores, st.none() | scores, flags, flags), max_size=3).map(
        tuple
    ),
    stages=st.lists(st.tuples(texts, counts), max_size=3).map(tuple),
    served=st.lists(st.builds(Given, ids, counts, flags, flags), max_size=3).map(tuple),
    pieces=st.none() | st.lists(st.builds(Piece, st.none() | ids, st.none() | texts), max_size=4).map(tuple),
    receipt=st.none() | maps,
    erased=st.lists(ids, max_size=2).map(tuple),
    others=st.dictionaries(st.sampled_from(["mood", "weather"]), st.integers(0, 9), max_size=2),
)


def trace(number: int = 0, **fields: Any) -> Trace:
    return Trace(
        trace_id(1_700_000_000_000_000 + number, b"eight by"), 1_700_000_000_000_000 + number, "recall", **fields
    )


def file(*kept: Trace) -> bytes:
    """A file of these traces as stored."""
    stored, chain = PREAMBLE, chain_start(PREAMBLE)
    for index, each in enumerate(kept):
        sealed = seal_trace(KEY, PREAMBLE, index, chain, each)
        stored, chain = stored + sealed.record, sealed.chain
    return stored


def read(content: bytes) -> list[Trace | Finding]:
    return list(read_traces(NAME, KEY, memoryview(content)))


@given(traces)
def test_what_is_written_of_a_trace_is_read(kept: Trace) -> None:
    assert decode_trace(decode_value(encode_value(encode_trace(kept)))) == kept


def test_file_holds_its_traces_in_order() -> None:
    kept = [trace(number, query=f"question {number}") for number in range(4)]
    assert read(file(*kept)) == kept


def test_trace_shows_no_text_in_its_repr() -> None:
    shown = repr(trace(query="cashews", turn="cashews", terms=("cashews",), pieces=(Piece(None, "cashews"),)))
    assert "cashews" not in shown


def test_text_is_joined_of_its_pieces_and_none_once_one_was_erased() -> None:
    whole = trace(pieces=(Piece(None, "a"), Piece(DEVICE.hex(), "b")))
    assert whole.text == "ab"
    assert replace(whole, pieces=(Piece(None, "a"), Piece(DEVICE.hex(), None))).text is None
    assert trace().text is None


def test_an_id_says_when_it_was_made_and_a_nonce_when_its_file_was_begun() -> None:
    assert made_at(trace(5).id) == 1_700_000_000_000_005
    assert began_of(NONCE) == 1_700_000_000_000_000


@pytest.mark.parametrize("name", sorted(encode_trace(trace())))
def test_trace_without_a_field_is_refused(name: str) -> None:
    value = encode_trace(trace())
    del value[name]
    with pytest.raises(FormatError) as refused:
        decode_trace(value)
    assert refused.value.code == "trace_invalid"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", bytes(15)),
        ("at", 1 << 63),
        ("at", 1.0),
        ("surface", None),
        ("turn", 3),
        ("about", b""),
        ("terms", ["a", b"b"]),
        ("time", []),
        ("floor", float("nan")),
        ("floor", 1),
        ("considered", -1),
        ("candidates", [[bytes(16), 1.0, 1.0, None, 1]]),
        ("candidates", [[bytes(16), float("inf"), 1.0, None, 1, 1]]),
        ("candidates", [[bytes(16), 1.0, 1.0, None, 2, 1]]),
        ("stages", [["a", -1]]),
        ("served", [[bytes(15), 0, 0, 0]]),
        ("served", [[bytes(16), 0, True, 0]]),
        ("pieces", [["a", "b"]]),
        ("pieces", [[None, 3]]),
        ("receipt", "a"),
        ("erased", ["a"]),
    ],
)
def test_field_of_a_wrong_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(FormatError) as refused:
        decode_trace({**encode_trace(trace()), name: value})
    assert refused.value.code == "trace_invalid"


def test_file_of_another_vault_device_or_name_is_refused() -> None:
    content = file(trace())
    check_trace_preamble(content, VAULT, DEVICE, NONCE)
    assert code_of(lambda: check_trace_preamble(content, seed("other", 16), DEVICE, NONCE)) == "vault_mismatch"
    assert code_of(lambda: check_trace_preamble(content, VAULT, seed("other", 16), NONCE)) == "trace_invalid"
    assert code_of(lambda: check_trace_preamble(content, VAULT, DEVICE, trace_nonce(1, b"four"))) == "trace_invalid"


def test_each_files_key_opens_no_other_file() -> None:
    other = trace_key(LOCAL, VAULT, DEVICE, trace_nonce(1_700_000_000_000_000, b"five"))
    found = list(read_traces(NAME, other, memoryview(file(trace(), trace(1)))))
    assert [each.code for each in found if isinstance(each, Finding)] == ["record_sealed"] * 2


def test_damage_costs_one_trace_and_is_named() -> None:
    kept = [trace(number) for number in range(3)]
    content = bytearray(file(*kept))
    content[places(memoryview(content))[1].offset + 100] ^= 1
    found = read(bytes(content))
    assert [each for each in found if isinstance(each, Trace)] == [kept[0], kept[2]]
    assert [(each.code, each.where) for each in found if isinstance(each, Finding)] == [("record_sealed", f"{NAME}#1")]


def test_file_that_was_cut_anywhere_gives_the_traces_that_are_whole_and_no_finding() -> None:
    """A process that is killed in the middle of writing leaves such a file."""
    kept = [trace(number) for number in range(2)]
    content = file(*kept)
    ends = [place.end for place in places(memoryview(content))]
    for length in (PREAMBLE_SIZE, PREAMBLE_SIZE + 5, ends[0] - 1, ends[0], ends[0] + 12, ends[1] - 1):
        assert read(content[:length]) == kept[: sum(end <= length for end in ends)]


def test_records_that_changed_places_are_named() -> None:
    content = file(trace(), trace(1))
    first, second = places(memoryview(content))
    swapped = content[:PREAMBLE_SIZE] + content[second.offset : second.end] + content[first.offset : first.end]
    assert "record_order" in {each.code for each in read(swapped) if isinstance(each, Finding)}


def test_file_over_the_limit_is_passed_over_unread() -> None:
    (found,) = read(PREAMBLE + bytes(FILE_LIMIT))
    assert isinstance(found, Finding)
    assert found.code == "trace_invalid"


def test_of_a_trace_that_is_too_large_candidates_go_first_then_the_text() -> None:
    noise = Random(1).randbytes(2 * TRACE_LIMIT).hex()  # of which zstd makes half
    many = tuple(Candidate(seed(str(number), 16).hex(), number * 0.1, 0.0, None, False, False) for number in range(9))
    (less,) = read(file(trace(candidates=many, query="asked", pieces=(Piece(None, noise),))))
    assert isinstance(less, Trace)
    assert (less.query, less.candidates, less.pieces) == ("asked", (), None)


def test_memories_that_a_trace_names_are_those_of_all_its_parts_but_what_was_erased() -> None:
    a, b, c, d = (seed(name, 16).hex() for name in "abcd")
    named = trace(
        candidates=(Candidate(a, 1.0, 0.0, None, True, False),),
        served=(Given(b, 0),),
        pieces=(Piece(c, "c"), Piece(None, "-")),
    )
    assert named.memories == {a, b, c}
    assert replace(named, erased=(b, d)).memories == {a, c}
