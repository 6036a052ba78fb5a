"""Kept sessions: one sealed file each, that opens under its own name alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import FormatError
from memseal.format.derivation import session_id
from memseal.format.keys import SessionSecret
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.session import FRAME_SIZE, check_session_frame, open_session, seal_session
from memseal.format.values import decode_value, encode_value
from tests.format.building import seed
from tests.format.refusing import code_of

SECRET = SessionSecret(seed("session secret"))
FILE_ID = seed("vault", 16), seed("device", 16)
NAME = "tax letters"
OWN = session_id(SECRET, *FILE_ID, NAME)
SOUND = seal_session(SECRET, FILE_ID, NAME, {"names": {"sarah chen": "Marta Ilves"}})

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.binary(max_size=20) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(texts, st.dictionaries(texts, plain, max_size=4))
def test_session_that_was_sealed_opens_as_it_was(name: str, session: dict[str, Any]) -> None:
    file = seal_session(SECRET, FILE_ID, name, session)
    assert open_session(SECRET, FILE_ID, session_id(SECRET, *FILE_ID, name), file) == (name, session)


@given(st.integers(0, 8 * len(SOUND) - 1))
def test_flipped_bit_anywhere_is_refused(bit: int) -> None:
    file = bytearray(SOUND)
    file[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        open_session(SECRET, FILE_ID, OWN, bytes(file))


@given(st.integers(0, len(SOUND) - 1))
def test_cut_file_is_refused_by_its_frame_already(size: int) -> None:
    code = code_of(lambda: check_session_frame(FILE_ID[0], OWN, SOUND[:size][:FRAME_SIZE], size))
    assert code == ("preamble_short" if size < PREAMBLE_SIZE else "record_torn")


def test_frame_is_checked_without_the_rest_of_the_file() -> None:
    check_session_frame(FILE_ID[0], OWN, SOUND[:FRAME_SIZE], len(SOUND))
    code = code_of(lambda: check_session_frame(FILE_ID[0], OWN, SOUND[:FRAME_SIZE], len(SOUND) + 1))
    assert code == "record_length"


def nested(depth: int) -> Any:
    value: Any = "Sarah"
    for _ in range(depth):
        value = [value]
    return value


def test_deepest_session_that_is_kept_opens_again() -> None:
    deepest = {"a": nested(30)}
    assert decode_value(encode_value({"session": deepest})) == {"session": deepest}
    file = seal_session(SECRET, FILE_ID, NAME, deepest)
    assert open_session(SECRET, FILE_ID, OWN, file)[1] == deepest


@pytest.mark.parametrize(
    "session",
    [
        {"a": nested(31)},
        {1: "Sarah"},
        {b"a": "Sarah"},
        {"a": {"Sarah"}},
        {"a": 1 << 64},
        {"a": "Sarah \ud800"},
        {"a": (value for value in ("Sarah",))},
        ["Sarah"],
        None,
    ],
)
def test_session_that_could_not_be_read_again_is_refused_and_not_shown(session: Any) -> None:
    with pytest.raises(ValueError, match="map of plain values") as refused:
        seal_session(SECRET, FILE_ID, NAME, session)
    assert "Sarah" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
