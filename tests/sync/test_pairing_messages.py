"""What the two devices of a pairing say: the same code on both sides, and whoever stands between is found out."""

from dataclasses import replace

import pytest

from memseal.errors import MemsealError, PairingCodeWrong, PairingInvalid
from memseal.format.keys import SigningKey, TypedSecret, VaultKey, WrappingKey
from memseal.format.pairing_code import PairingCode
from memseal.format.primitives import public_signing_key, public_wrapping_key
from memseal.format.values import decode_value, encode_value
from memseal.sync.pairing import MESSAGE_MOST, REFUSAL, Answered, Hello, Joined, Met, Newcomer, Place, Shower

CODE = PairingCode(48213, TypedSecret(b"903517420"))
VAULT_KEY = VaultKey(bytes(range(32)))
WRAP = WrappingKey(b"w" * 32)
HELLO = Hello(b"i" * 16, public_signing_key(SigningKey(b"s" * 32)), public_wrapping_key(WRAP), "phone")
PLACE = Place(b"v" * 16, public_signing_key(SigningKey(b"o" * 32)), 3, b"d" * 32, 2)
JOINED = Joined(4, b"j" * 32)


def shower(code: PairingCode = CODE, random: bytes = b"a" * 64) -> Shower:
    return Shower(code, random)


def newcomer(code: PairingCode = CODE, random: bytes = b"b" * 64) -> Newcomer:
    return Newcomer(code, random)


def exchanged() -> tuple[Met, Answered, bytes]:
    """A pairing up to the welcome, by the book."""
    one = shower()
    answered = newcomer().answer(one.opening, HELLO)
    met = one.meet(answered.message)
    return met, answered, met.welcome(PLACE, VAULT_KEY)


def test_same_code_hands_the_vault_key_over() -> None:
    met, answered, welcome = exchanged()
    assert met.hello == HELLO
    assert answered.receive(welcome, WRAP) == (PLACE, VAULT_KEY)
    assert met.joined(welcome, answered.finish(welcome, JOINED)) == JOINED


def test_messages_fit_the_relay_and_carry_no_key_in_clear() -> None:
    met, answered, welcome = exchanged()
    longest = newcomer().answer(shower().opening, replace(HELLO, name="📱" * 64)).message
    for message in (met.opening, answered.message, longest, welcome, answered.finish(welcome, JOINED)):
        assert len(message) <= MESSAGE_MOST
        for hidden in (VAULT_KEY.reveal(), HELLO.sign, HELLO.wrap[:32], PLACE.vault_id, b"phone"):
            assert hidden not in message


@pytest.mark.parametrize(
    "other",
    [PairingCode(48213, TypedSecret(b"903517421")), PairingCode(48214, TypedSecret(b"903517420"))],
    ids=["secret", "channel"],
)
def test_another_code_is_told_to_both(other: PairingCode) -> None:
    one = shower()
    answered = newcomer(other).answer(one.opening, HELLO)
    with pytest.raises(PairingCodeWrong):
        one.meet(answered.message)
    with pytest.raises(PairingCodeWrong):
        answered.receive(REFUSAL, WRAP)


def test_code_takes_one_guess() -> None:
    """The exchange itself takes no second answer, whatever its caller does."""
    one = shower()
    wrong = newcomer(PairingCode(48213, TypedSecret(b"000000000"))).answer(one.opening, HELLO)
    with pytest.raises(PairingCodeWrong):
        one.meet(wrong.message)
    with pytest.raises(PairingInvalid):
        one.meet(newcomer().answer(one.opening, HELLO).message)


def test_relay_that_shows_its_own_opening_and_guesses_once_gets_nothing() -> None:
    """It answers as the shower would, under a code of its own."""
    guess = shower(PairingCode(48213, TypedSecret(b"123456789")), b"c" * 64)
    answered = newcomer().answer(guess.opening, HELLO)
    with pytest.raises(PairingCodeWrong):
        guess.meet(answered.message)
    honest = newcomer(PairingCode(48213, TypedSecret(b"123456789"))).answer(guess.opening, HELLO)
    own_welcome = guess_again(guess.opening, honest)
    with pytest.raises(PairingCodeWrong):
        answered.receive(own_welcome, WRAP)


def guess_again(opening: bytes, honest: Answered) -> bytes:
    again = shower(PairingCode(48213, TypedSecret(b"123456789")), b"c" * 64)
    assert again.opening == opening
    return again.meet(honest.message).welcome(PLACE, VAULT_KEY)


def test_relay_that_mixes_two_joiners_or_two_showers_is_found_out() -> None:
    met, answered, welcome = exchanged()
    other = newcomer(random=b"e" * 64).answer(met.opening, replace(HELLO, name="another"))
    with pytest.raises(PairingCodeWrong):
        other.receive(welcome, WRAP)
    second = shower(random=b"f" * 64)
    with pytest.raises(PairingCodeWrong):
        second.meet(answered.message)
    third = newcomer(random=b"g" * 64).answer(second.opening, HELLO)
    with pytest.raises(PairingCodeWrong):
        third.receive(welcome, WRAP)


def test_relay_that_replays_or_reorders_is_found_out() -> None:
    met, answered, welcome = exchanged()
    joined = answered.finish(welcome, JOINED)
    for wrong in (met.opening, answered.message, joined, REFUSAL):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            answered.receive(wrong, WRAP)
    for wrong in (met.opening, welcome, joined):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            shower().meet(wrong)
    for wrong in (met.opening, answered.message, welcome):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            met.joined(welcome, wrong)
    # Reflection: what a side said itself.
    with pytest.raises(PairingInvalid):
        newcomer().answer(encode_value({"element": decode_value(answered.message)["element"]}), HELLO)
    with pytest.raises(PairingInvalid):
        shower().meet(encode_value({**decode_value(answered.message), "element": decode_value(met.opening)["element"]}))


def test_any_flipped_byte_is_found_out() -> None:
    met, answered, welcome = exchanged()
    joined = answered.finish(welcome, JOINED)
    for place in range(0, len(answered.message), 61):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            shower().meet(flipped(answered.message, place))
    for place in range(0, len(welcome), 7):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            answered.receive(flipped(welcome, place), WRAP)
    for place in range(len(joined)):
        with pytest.raises((PairingCodeWrong, PairingInvalid)):
            met.joined(welcome, flipped(joined, place))


def flipped(message: bytes, place: int) -> bytes:
    return message[:place] + bytes((message[place] ^ 1,)) + message[place + 1 :]


@pytest.mark.parametrize(
    "element",
    [
        b"",
        b"A" * 33,
        b"A" + bytes(32),
        b"A" + (1).to_bytes(32, "little"),  # the neutral element
        b"A" + (2**255 - 20).to_bytes(32, "little"),  # of order 2
        b"A" + (2).to_bytes(32, "little"),
        b"B" + (4).to_bytes(32, "little"),
        b"S" + (4).to_bytes(32, "little"),
        b"A" + bytes(33),
    ],
    ids=["empty", "letters", "order 4", "neutral", "order 2", "no point", "own side", "no side", "long"],
)
def test_element_that_is_none_is_refused(element: bytes) -> None:
    with pytest.raises(PairingInvalid):
        newcomer().answer(encode_value({"element": element}), HELLO)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc0",
        b"\x80",
        encode_value([]),
        encode_value({"element": "text"}),
        encode_value({"wrong": False}),
        b"\xdf",
    ],
)
def test_message_that_is_none_is_refused(message: bytes) -> None:
    met, answered, welcome = exchanged()
    for take in (
        lambda: newcomer().answer(message, HELLO),
        lambda: shower().meet(message),
        lambda: answered.receive(message, WRAP),
        lambda: met.joined(welcome, message),
    ):
        with pytest.raises(PairingInvalid):
            take()


def test_box_opens_for_the_joiner_alone() -> None:
    _, answered, welcome = exchanged()
    with pytest.raises(PairingInvalid):
        answered.receive(welcome, WrappingKey(b"x" * 32))


def test_wrapping_key_that_is_none_is_refused() -> None:
    one = shower()
    met = one.meet(newcomer().answer(one.opening, replace(HELLO, wrap=b"\xff" * 1216)).message)
    with pytest.raises(PairingInvalid):
        met.welcome(PLACE, VAULT_KEY)


def test_key_for_which_anyone_can_sign_is_refused() -> None:
    one = shower()
    message = newcomer().answer(one.opening, replace(HELLO, sign=bytes(32))).message
    with pytest.raises(MemsealError) as caught:
        one.meet(message)
    assert caught.value.code == "pairing_invalid"
