"""Emergency kit and recovery code are each one string that a person can type (vault-format §7)."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import KitMalformed
from memseal.format.keys import KitSecret, RecoverySecret
from memseal.format.kit import Kit, RecoveryCode, parse_kit, parse_recovery_code
from tests.format.refusing import code_of, outcome

KIT = Kit(bytes(range(16)), KitSecret(bytes(range(16, 32))), 7, "https://memory.example")
TEXT = KIT.to_text()
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def _written(content: bytes) -> str:
    """A kit of any content, with the check that belongs to it."""
    checked = content + sha256(b"memseal/v1/kit" + content).digest()[:4]
    letters = base64.b32encode(checked).decode().rstrip("=").translate(str.maketrans(STANDARD, LETTERS))
    return "MSEAL1-" + "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def _read(typed: str) -> str:
    return outcome(lambda: parse_kit(typed))


CONTENT = b"\1" + bytes(range(32)) + (7).to_bytes(4, "big") + b"https://memory.example"


def test_kit_is_written_as_the_format_says() -> None:
    assert _written(CONTENT) == TEXT


@given(
    ids=st.binary(min_size=16, max_size=16),
    secret=st.binary(min_size=16, max_size=16),
    generation=st.integers(0, (1 << 32) - 1),
    server=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
def test_what_is_written_is_read(ids: bytes, secret: bytes, generation: int, server: str) -> None:
    kit = Kit(ids, KitSecret(secret), generation, server)
    assert parse_kit(kit.to_text()) == kit


@pytest.mark.parametrize(
    "typed",
    [
        TEXT.lower(),
        TEXT.replace("-", ""),
        TEXT.replace("-", " "),
        TEXT.replace("-", "\n"),
        TEXT.replace("-", "\r\n  "),
        f"  {TEXT}\n",
        TEXT.replace("0", "O"),
        TEXT.replace("0", "o").replace("1", "l"),
        TEXT.replace("1", "I"),
        TEXT.replace("1", "L"),
    ],
)
def test_kit_is_read_as_people_type_it(typed: str) -> None:
    assert parse_kit(typed) == KIT


def test_each_wrong_letter_is_noticed() -> None:
    letters, refused = TEXT.removeprefix("MSEAL1-"), set[str]()
    for number, letter in enumerate(letters):
        if letter != "-":
            wrong = LETTERS[(LETTERS.index(letter) + 1 + number) % 32]
            other = LETTERS[(LETTERS.index(letter) + 1) % 32] if wrong == letter else wrong
            typed = "MSEAL1-" + letters[:number] + other + letters[number + 1 :]
            refused.add(_read(typed))
    assert refused == {"kit_malformed"}


def test_two_letters_that_changed_places_are_noticed() -> None:
    body, refused = TEXT.removeprefix("MSEAL1-").replace("-", ""), set[str]()
    for number in range(len(body) - 1):
        if body[number] != body[number + 1]:
            typed = "MSEAL1" + body[:number] + body[number + 1] + body[number] + body[number + 2 :]
            refused.add(_read(typed))
    assert refused == {"kit_malformed"}


@given(end=st.integers(0, len(TEXT) - 1))
def test_kit_that_is_cut_is_refused(end: int) -> None:
    assert _read(TEXT[:end]) == "kit_malformed"


def test_kit_with_bits_after_its_last_byte_is_refused() -> None:
    assert len(TEXT.removeprefix("MSEAL1-").replace("-", "")) * 5 % 8 != 0
    last = LETTERS.index(TEXT[-1])
    assert code_of(lambda: parse_kit(TEXT[:-1] + LETTERS[last | 1])) == "kit_malformed"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "MSEAL1",
        "MSEAL1-",
        "MSEAL2" + TEXT[6:],
        TEXT[7:],
        TEXT + "U",
        TEXT + "!",
        TEXT + "0",
        TEXT.replace("S", "ſ"),
        TEXT + "é",
        TEXT[:-1] + "＝",
        "MSEAL1-" + "0" * 65,
    ],
)
def test_other_text_is_no_kit(typed: str) -> None:
    assert code_of(lambda: parse_kit(typed)) == "kit_malformed"


@pytest.mark.parametrize("version", [0, 2, 255])
def test_kit_of_another_version_asks_for_an_update(version: int) -> None:
    assert code_of(lambda: parse_kit(_written(bytes([version]) + CONTENT[1:]))) == "kit_version"


def test_kit_whose_server_is_no_text_is_refused() -> None:
    assert code_of(lambda: parse_kit(_written(CONTENT + b"\xff"))) == "kit_malformed"


@given(text=st.text(max_size=120) | st.text(LETTERS, max_size=120).map(lambda body: "MSEAL1" + body))
def test_any_text_is_a_kit_or_refused_with_our_code(text: str) -> None:
    assert outcome(lambda: parse_kit(text)) in {"accepted", "kit_malformed", "kit_version"}


def test_secret_of_a_kit_shows_nowhere() -> None:
    assert bytes(range(16, 32)).hex() not in repr(KIT)
    assert "<KitSecret>" in repr(KIT)


# ── the recovery code ───────────────────────────────────────────────────────────────────────────────

CODE = RecoveryCode(bytes(range(16)), RecoverySecret(bytes(range(16, 48))), 7, "https://memory.example")
CODE_TEXT = CODE.to_text()
CODE_CONTENT = b"\2" + bytes(range(48)) + (7).to_bytes(4, "big") + b"https://memory.example"


def _code_written(content: bytes, label: bytes = b"memseal/v1/recovery") -> str:
    """A recovery code of any content, with the check that belongs to it."""
    checked = content + sha256(label + content).digest()[:4]
    letters = base64.b32encode(checked).decode().rstrip("=").translate(str.maketrans(STANDARD, LETTERS))
    return "MSEAL1R-" + "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def test_recovery_code_is_written_as_the_format_says() -> None:
    assert _code_written(CODE_CONTENT) == CODE_TEXT


@given(
    ids=st.binary(min_size=16, max_size=16),
    secret=st.binary(min_size=32, max_size=32),
    generation=st.integers(0, (1 << 32) - 1),
    server=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
def test_recovery_code_that_is_written_is_read(ids: bytes, secret: bytes, generation: int, server: str) -> None:
    code = RecoveryCode(ids, RecoverySecret(secret), generation, server)
    assert parse_recovery_code(code.to_text()) == code


@pytest.mark.parametrize(
    "typed",
    [
        CODE_TEXT.lower(),
        CODE_TEXT.replace("-", " "),
        CODE_TEXT.replace("1", "I"),
        CODE_TEXT.replace("1", "l").replace("0", "o"),
    ],
)
def test_recovery_code_is_read_as_people_type_it(typed: str) -> None:
    assert parse_recovery_code(typed) == CODE


def test_each_wrong_letter_of_a_recovery_code_is_noticed() -> None:
    start = len("MSEAL1R-")
    places = [place for place in range(start, len(CODE_TEXT)) if CODE_TEXT[place] != "-"]
    others = {place: LETTERS[(LETTERS.index(CODE_TEXT[place]) + 1) % 32] for place in places}
    typed = [CODE_TEXT[:place] + letter + CODE_TEXT[place + 1 :] for place, letter in others.items()]
    assert {outcome(lambda: parse_recovery_code(each)) for each in typed} == {"kit_malformed"}  # noqa: B023


@pytest.mark.parametrize("version", [0, 1, 3, 255])
def test_recovery_code_of_another_version_asks_for_an_update(version: int) -> None:
    written = _code_written(bytes([version]) + CODE_CONTENT[1:])
    assert code_of(lambda: parse_recovery_code(written)) == "kit_version"


def test_check_of_a_kit_is_none_for_a_recovery_code() -> None:
    written = _code_written(CODE_CONTENT, b"memseal/v1/kit")
    assert code_of(lambda: parse_recovery_code(written)) == "kit_malformed"


def test_neither_is_taken_for_the_other() -> None:
    assert code_of(lambda: parse_recovery_code(TEXT)) == "kit_malformed"
    with pytest.raises(KitMalformed, match="this is a recovery code"):
        parse_kit(CODE_TEXT)


@given(text=st.text(max_size=120) | st.text(LETTERS, max_size=120).map(lambda body: "MSEAL1R" + body))
def test_any_text_is_a_recovery_code_or_refused_with_our_code(text: str) -> None:
    assert outcome(lambda: parse_recovery_code(text)) in {"accepted", "kit_malformed", "kit_version"}


def test_secret_of_a_recovery_code_shows_nowhere() -> None:
    assert bytes(range(16, 48)).hex() not in repr(CODE)
    assert "<RecoverySecret>" in repr(CODE)
