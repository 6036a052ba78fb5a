"""What derivation, passphrases, signing and wrapping promise, whatever is put in."""

import hashlib
import traceback
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memseal.errors import FormatError, PassphraseEmpty
from memseal.format import primitives
from memseal.format.keys import Key, SigningKey, StretchedPassphrase, WrappingKey
from memseal.format.primitives import (
    CEILING_COST,
    PUBLIC_WRAP_SIZE,
    SIGNATURE_SIZE,
    STANDARD_COST,
    WRAPPED_SIZE,
    Cost,
    NotAuthentic,
)
from tests.format import by_hand
from tests.format.broken import flipped, is_refused

raw_keys = st.binary(min_size=32, max_size=32)
short = st.binary(max_size=64)


# ── derivation ──────────────────────────────────────────────────────────────────────────────────────


@given(
    ikm=st.binary(min_size=1, max_size=80),
    salt=st.binary(max_size=150),
    label=st.text(max_size=30),
    parts=st.lists(short),
)
def test_derive_is_hkdf_over_lengths_and_parts(ikm: bytes, salt: bytes, label: str, parts: list[bytes]) -> None:
    info = b"".join(len(text).to_bytes(4, "big") + text for text in (label.encode(), *parts))
    assert primitives.derive(ikm, salt, label, *parts) == by_hand.hkdf("sha512", ikm, salt, info, 32)


@given(one=st.lists(st.binary(max_size=6), max_size=4), other=st.lists(st.binary(max_size=6), max_size=4))
def test_other_parts_derive_another_key(one: list[bytes], other: list[bytes]) -> None:
    assume(one != other)
    assert primitives.derive(bytes(32), b"", "label", *one) != primitives.derive(bytes(32), b"", "label", *other)


@given(joined=st.binary(min_size=1, max_size=12), data=st.data())
def test_one_text_cut_at_two_places_derives_two_keys(joined: bytes, data: st.DataObject) -> None:
    one, other = data.draw(st.lists(st.integers(0, len(joined)), min_size=2, max_size=2, unique=True))
    keys = {primitives.derive(bytes(32), b"", "label", joined[:cut], joined[cut:]) for cut in (one, other)}
    assert len(keys) == 2


@given(pieces=st.lists(short))
def test_sha256_is_of_the_pieces_joined(pieces: list[bytes]) -> None:
    assert primitives.sha256(*pieces) == hashlib.sha256(b"".join(pieces)).digest()


# ── passphrase ──────────────────────────────────────────────────────────────────────────────────────

EDGES = [
    ("memory", STANDARD_COST.memory, CEILING_COST.memory),
    ("passes", STANDARD_COST.passes, CEILING_COST.passes),
    ("lanes", 1, CEILING_COST.lanes),
]


def _with(field: str, value: int) -> Cost:
    return replace(STANDARD_COST, **{field: value})


def test_bounds_are_those_of_the_format() -> None:
    assert [(floor, ceiling) for _, floor, ceiling in EDGES] == [(65536, 1048576), (3, 10), (1, 16)]


@pytest.mark.parametrize(("field", "floor", "ceiling"), EDGES)
def test_cost_on_either_edge_is_taken(field: str, floor: int, ceiling: int) -> None:
    primitives.check_cost(_with(field, floor))
    primitives.check_cost(_with(field, ceiling))


def test_cost_on_all_edges_at_once_is_taken() -> None:
    primitives.check_cost(replace(STANDARD_COST, lanes=1))
    primitives.check_cost(CEILING_COST)


@pytest.mark.parametrize("check", [primitives.check_cost, lambda cost: primitives.stretch("p", bytes(32), cost)])
@pytest.mark.parametrize(("field", "floor", "ceiling"), EDGES)
@pytest.mark.parametrize("below", [1, 2, 1 << 20, 1 << 62])
def test_cost_under_the_floor_is_refused(
    check: Callable[[Cost], object], field: str, floor: int, ceiling: int, below: int
) -> None:
    with pytest.raises(FormatError) as refused:
        check(_with(field, floor - below))
    assert refused.value.code == "kdf_floor"


# What is far beyond the ceiling would exhaust the memory or never end, were it derived.
@pytest.mark.parametrize("check", [primitives.check_cost, lambda cost: primitives.stretch("p", bytes(32), cost)])
@pytest.mark.parametrize(("field", "floor", "ceiling"), EDGES)
@pytest.mark.parametrize("above", [1, 2, 1 << 31, 1 << 62])
def test_cost_over_the_ceiling_is_refused_before_anything_is_derived(
    check: Callable[[Cost], object], field: str, floor: int, ceiling: int, above: int
) -> None:
    with pytest.raises(FormatError) as refused:
        check(_with(field, ceiling + above))
    assert refused.value.code == "kdf_ceiling"


def test_cost_is_bound_as_three_integers_in_order() -> None:
    assert Cost(memory=0x01020304, passes=5, lanes=6).to_bytes().hex() == "010203040000000500000006"


@pytest.mark.parametrize("passphrase", ["", " ", "\t", "\r\n", "\u00a0", "\u2003\u3000", " \u2028 "])
def test_passphrase_of_white_space_is_refused(passphrase: str) -> None:
    with pytest.raises(PassphraseEmpty) as refused:
        primitives.check_passphrase(passphrase)
    assert refused.value.code == "passphrase_empty"


@pytest.mark.parametrize("passphrase", ["0", " x", "\u3000x\n", "\u00fc", "\U0001f511"])
def test_passphrase_with_one_letter_is_taken(passphrase: str) -> None:
    primitives.check_passphrase(passphrase)


def test_stretched_passphrase_is_a_key_that_depends_on_passphrase_and_salt() -> None:
    stretched = [
        primitives.stretch(text, salt * 32, STANDARD_COST) for text, salt in [("a", b"s"), ("b", b"s"), ("a", b"t")]
    ]
    assert [type(key) for key in stretched] == [StretchedPassphrase] * 3
    assert len({key.reveal() for key in stretched}) == 3


LONE_SURROGATE = "geheim\ud800"


def test_passphrase_that_is_no_text_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="not valid Unicode") as refused:
        primitives.stretch(LONE_SURROGATE, bytes(32), STANDARD_COST)
    assert "geheim" not in "".join(traceback.format_exception(refused.value))


def test_refusal_of_a_passphrase_carries_it_nowhere() -> None:
    with pytest.raises(ValueError, match="not valid Unicode") as refused:
        primitives.stretch(LONE_SURROGATE, bytes(32), STANDARD_COST)
    assert refused.value.__context__ is None


# ── signing ─────────────────────────────────────────────────────────────────────────────────────────

# RFC 8032, section 7.1, tests 1 to 3: seed, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]
SIGNER = SigningKey(bytes(range(32)))
PUBLIC = primitives.public_signing_key(SIGNER)


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_signature_is_that_of_rfc_8032(seed: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(seed))
    assert primitives.public_signing_key(key).hex() == public
    assert primitives.sign(key, bytes.fromhex(message)).hex() == signature


@given(raw=raw_keys, message=st.binary())
def test_what_is_signed_verifies(raw: bytes, message: bytes) -> None:
    key = SigningKey(raw)
    signature = primitives.sign(key, message)
    assert len(signature) == SIGNATURE_SIZE
    primitives.verify(primitives.public_signing_key(key), signature, message)


@given(message=st.binary(), bit=st.integers(0, 8 * SIGNATURE_SIZE - 1))
def test_flipped_signature_is_refused(message: bytes, bit: int) -> None:
    with pytest.raises(NotAuthentic):
        primitives.verify(PUBLIC, flipped(primitives.sign(SIGNER, message), bit), message)


@given(signed=st.binary(), shown=st.binary())
def test_signature_of_another_message_is_refused(signed: bytes, shown: bytes) -> None:
    assume(signed != shown)
    with pytest.raises(NotAuthentic):
        primitives.verify(PUBLIC, primitives.sign(SIGNER, signed), shown)


@given(bit=st.integers(0, 255))
def test_signature_under_another_public_key_is_refused(bit: int) -> None:
    with pytest.raises(NotAuthentic):
        primitives.verify(flipped(PUBLIC, bit), primitives.sign(SIGNER, b"message"), b"message")


@given(signature=st.binary(max_size=130).filter(lambda raw: len(raw) != SIGNATURE_SIZE))
def test_signature_of_another_size_is_refused(signature: bytes) -> None:
    with pytest.raises(NotAuthentic):
        primitives.verify(PUBLIC, signature, b"")


@given(public=st.binary(max_size=70).filter(lambda raw: len(raw) != 32))
def test_public_signing_key_of_another_size_is_refused(public: bytes) -> None:
    with pytest.raises(NotAuthentic):
        primitives.verify(public, primitives.sign(SIGNER, b""), b"")


# ── wrapping ────────────────────────────────────────────────────────────────────────────────────────

OWNER = WrappingKey(bytes(range(32)))
OWNER_PUBLIC = primitives.public_wrapping_key(OWNER)
INFO = b"memseal/v1/box: here"
CONTENT = bytes(range(0x40, 0x60))
WRAPPED = primitives.wrap(OWNER_PUBLIC, INFO, CONTENT)
MLKEM_PUBLIC = 1184


@given(raw=raw_keys, info=short, content=st.binary(max_size=100))
def test_what_is_wrapped_opens_with_the_library_and_by_hand(raw: bytes, info: bytes, content: bytes) -> None:
    wrapped = primitives.wrap(primitives.public_wrapping_key(WrappingKey(raw)), info, content)
    assert primitives.unwrap(WrappingKey(raw), info, wrapped) == content
    assert by_hand.unwrap(raw, info, wrapped) == content


def test_sizes_of_wrapping_are_those_of_the_format() -> None:
    assert (len(OWNER_PUBLIC), len(WRAPPED)) == (PUBLIC_WRAP_SIZE, WRAPPED_SIZE) == (1216, 1168)


def test_each_wrapping_draws_its_own_randomness() -> None:
    wrapped = {primitives.wrap(OWNER_PUBLIC, INFO, CONTENT)[:1120] for _ in range(20)}
    assert len(wrapped) == len({enc[:1088] for enc in wrapped}) == len({enc[1088:] for enc in wrapped}) == 20


@given(bit=st.integers(0, 8 * WRAPPED_SIZE - 1))
def test_flipped_bit_of_a_wrapped_key_is_refused(bit: int) -> None:
    with pytest.raises(NotAuthentic):
        primitives.unwrap(OWNER, INFO, flipped(WRAPPED, bit))


def test_each_flipped_byte_of_a_wrapped_key_is_refused() -> None:
    def open_it(key: Key, context: bytes, wrapped: bytes) -> bytes:
        return primitives.unwrap(WrappingKey(key.reveal()), context, wrapped)

    refused = [n for n in range(WRAPPED_SIZE) if is_refused(open_it, OWNER, INFO, flipped(WRAPPED, 8 * n + 7))]
    assert refused == list(range(WRAPPED_SIZE))


@given(end=st.integers(0, WRAPPED_SIZE - 1))
def test_cut_wrapped_key_is_refused(end: int) -> None:
    with pytest.raises(NotAuthentic):
        primitives.unwrap(OWNER, INFO, WRAPPED[:end])


@given(more=st.binary(min_size=1, max_size=40))
def test_longer_wrapped_key_is_refused(more: bytes) -> None:
    with pytest.raises(NotAuthentic):
        primitives.unwrap(OWNER, INFO, WRAPPED + more)


@given(info=short)
def test_other_info_is_refused(info: bytes) -> None:
    assume(info != INFO)
    with pytest.raises(NotAuthentic):
        primitives.unwrap(OWNER, info, WRAPPED)


@given(raw=raw_keys)
def test_other_wrapping_key_is_refused(raw: bytes) -> None:
    assume(raw != OWNER.reveal())
    with pytest.raises(NotAuthentic):
        primitives.unwrap(WrappingKey(raw), INFO, WRAPPED)


@given(size=st.integers(0, 2500).filter(lambda size: size != PUBLIC_WRAP_SIZE))
def test_public_wrapping_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(NotAuthentic):
        primitives.wrap((OWNER_PUBLIC * 3)[:size], INFO, CONTENT)


# FIPS 203, section 7.2: each of the 768 coefficients has 12 bits and must be below 3329.
@given(coefficient=st.integers(0, 767), value=st.integers(3329, 4095))
def test_public_wrapping_key_with_an_unreduced_coefficient_is_refused(coefficient: int, value: int) -> None:
    shift = 12 * coefficient
    number = int.from_bytes(OWNER_PUBLIC, "little")
    changed = number & ~(0xFFF << shift) | value << shift
    with pytest.raises(NotAuthentic):
        primitives.wrap(changed.to_bytes(PUBLIC_WRAP_SIZE, "little"), INFO, CONTENT)


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31)], ids=["zero", "one"])
def test_public_wrapping_key_with_a_point_of_low_order_is_refused(point: bytes) -> None:
    with pytest.raises(NotAuthentic):
        primitives.wrap(OWNER_PUBLIC[:MLKEM_PUBLIC] + point, INFO, CONTENT)


def test_hash_of_a_long_file_holds_one_piece_at_a_time() -> None:
    made = list[weakref.ref[object]]()

    def pieces() -> Iterator[memoryview]:
        for number in range(5):
            piece = np.full(1_000, number, np.uint8)
            made.append(weakref.ref(piece))
            yield piece.data
            assert [each() is None for each in made[:-1]] == [True] * number

    whole = b"".join(bytes([number]) * 1_000 for number in range(5))
    assert primitives.sha256_of(pieces()) == hashlib.sha256(whole).digest()
    assert len(made) == 5
