"""Pairing codes: what is shown is what is read, and what is mistyped is told before anything is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import PairingCodeMalformed
from memseal.format.keys import ScannedSecret, TypedSecret
from memseal.format.pairing_code import CHANNELS, PairingCode, parse_pairing_code

CODE = PairingCode(48213, TypedSecret(b"903517420"))
LONG = PairingCode(7, ScannedSecret(bytes(range(16))), "https://memories.example:8443")


def test_typed_code_is_sixteen_digits_in_groups() -> None:
    assert CODE.to_text() == "4821-3903-5174-2007"


@given(st.integers(0, CHANNELS - 1), st.integers(0, 10**9 - 1))
def test_what_is_shown_is_what_is_read(channel: int, number: int) -> None:
    code = PairingCode(channel, TypedSecret(f"{number:09d}".encode()))
    assert parse_pairing_code(code.to_text()) == code
    assert parse_pairing_code(f" {code.to_text().replace('-', ' ')}\n") == code


@given(st.integers(0, CHANNELS - 1), st.binary(min_size=16, max_size=16), st.text(max_size=60).filter(str.isprintable))
def test_what_a_camera_reads_is_what_was_shown(channel: int, secret: bytes, server: str) -> None:
    code = PairingCode(channel, ScannedSecret(secret), server)
    assert parse_pairing_code(code.to_text().lower()) == code


def test_every_wrong_digit_is_told() -> None:
    digits = CODE.to_text().replace("-", "")
    for place in range(len(digits)):
        for digit in set("0123456789") - {digits[place]}:
            with pytest.raises(PairingCodeMalformed):
                parse_pairing_code(digits[:place] + digit + digits[place + 1 :])


def test_every_two_digits_that_changed_places_are_told() -> None:
    digits = CODE.to_text().replace("-", "")
    for one in range(len(digits)):
        for two in range(one):
            if digits[one] != digits[two]:
                swapped = list(digits)
                swapped[one], swapped[two] = swapped[two], swapped[one]
                with pytest.raises(PairingCodeMalformed):
                    parse_pairing_code("".join(swapped))


@pytest.mark.parametrize("text", ["", "4821", CODE.to_text() + "1", "٤" * 16, "x" * 16, "MSEAL1P-", "MSEAL1-0000"])
def test_what_is_no_code_is_told(text: str) -> None:
    with pytest.raises(PairingCodeMalformed):
        parse_pairing_code(text)


def test_every_wrong_letter_of_a_long_code_is_told() -> None:
    text = LONG.to_text()
    for place in range(8, len(text)):
        if text[place] != "-":
            with pytest.raises(PairingCodeMalformed):
                parse_pairing_code(text[:place] + ("Z" if text[place] != "Z" else "Y") + text[place + 1 :])


def test_code_shows_its_secret_in_no_repr() -> None:
    assert "903517420" not in repr(CODE)
    assert "0001020304" not in repr(LONG)
