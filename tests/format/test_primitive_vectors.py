"""Our own vectors of the primitives, run through our recipes and through second implementations."""

import json
import runpy
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from memseal.errors import FormatError, PassphraseEmpty
from memseal.format import primitives
from memseal.format.keys import WrappingKey
from memseal.format.primitives import Cost
from tests.format import by_hand
from tests.format.published import Case, bytes_of

FOLDER = Path(__file__).parents[2] / "interop-vectors" / "primitives"


def _cases(name: str, fields: set[str], expected: dict[str, int]) -> list[Case]:
    """Return a file's cases; stops at unknown fields, repeated names and other numbers of each `expect`."""
    cases: list[Case] = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cases"]
    assert set().union(*cases) == fields | {"name", "says", "expect"}
    assert len({case["name"] for case in cases}) == len(cases)
    found = [case["expect"] for case in cases]
    assert {expect: found.count(expect) for expect in found} == expected
    return cases


def _named(case: Case) -> str:
    return str(case["name"])


DERIVE = _cases("derive.json", {"label", "parts", "ikm", "salt", "output"}, {"same": 14, "other": 7})
ARGON2 = _cases(
    "argon2.json",
    {"passphrase", "salt", "cost", "output"},
    {"same": 8, "kdf_floor": 3, "kdf_ceiling": 3, "passphrase_empty": 4},
)
HPKE = _cases("hpke.json", {"seed", "info", "wrapped", "public", "content"}, {"same": 2, "box_sealed": 18})


def test_files_are_what_the_generator_makes() -> None:
    made = runpy.run_path(str(FOLDER / "generate.py"))["files"]()
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == made


# ── derive ──────────────────────────────────────────────────────────────────────────────────────────


def _derived(case: Case) -> tuple[bytes, bytes]:
    """Return what our recipe derives, and what HKDF by hand does."""
    ikm, salt = bytes_of(case, "ikm", "salt")
    parts = [bytes.fromhex(part) for part in case["parts"]]
    info = b"".join(len(text).to_bytes(4, "big") + text for text in (case["label"].encode(), *parts))
    return primitives.derive(ikm, salt, case["label"], *parts), by_hand.hkdf("sha512", ikm, salt, info, 32)


@pytest.mark.parametrize("case", [case for case in DERIVE if case["expect"] == "same"], ids=_named)
def test_derive_gives_the_vectors_output_as_does_hkdf_by_hand(case: Case) -> None:
    output = bytes.fromhex(case["output"])
    assert _derived(case) == (output, output)


@pytest.mark.parametrize("case", [case for case in DERIVE if case["expect"] == "other"], ids=_named)
def test_derive_does_not_make_the_vectors_mistake(case: Case) -> None:
    assert bytes.fromhex(case["output"]) not in _derived(case)


def test_no_two_derivations_of_the_vectors_give_one_output() -> None:
    assert len({case["output"] for case in DERIVE}) == len(DERIVE)


# ── passphrase ──────────────────────────────────────────────────────────────────────────────────────


def _cost(case: Case) -> Cost:
    fields = dict(case["cost"])
    assert fields.pop("name") == "argon2id"
    return Cost(**fields)


@pytest.mark.parametrize("case", [case for case in ARGON2 if case["expect"] == "same"], ids=_named)
def test_stretch_gives_the_vectors_output(case: Case) -> None:
    primitives.check_passphrase(case["passphrase"])
    stretched = primitives.stretch(case["passphrase"], bytes.fromhex(case["salt"]), _cost(case))
    assert stretched.reveal().hex() == case["output"]


@pytest.mark.parametrize("name", ["ascii", "composed", "one_lane"])
def test_argon2id_of_openssl_gives_the_vectors_output(name: str) -> None:
    (case,) = (case for case in ARGON2 if case["name"] == name)
    cost = _cost(case)
    argon2id = Argon2id(
        salt=bytes.fromhex(case["salt"]),
        length=32,
        iterations=cost.passes,
        lanes=cost.lanes,
        memory_cost=cost.memory,
    )
    assert argon2id.derive(case["passphrase"].encode()).hex() == case["output"]


def test_argon2id_of_openssl_gives_the_output_of_rfc_9106() -> None:
    argon2id = Argon2id(
        salt=b"\x02" * 16,
        length=32,
        iterations=3,
        lanes=4,
        memory_cost=32,
        ad=b"\x04" * 12,
        secret=b"\x03" * 8,
    )
    tag = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"
    assert argon2id.derive(b"\x01" * 32).hex() == tag


def test_passphrase_has_one_output_in_both_unicode_forms() -> None:
    composed, decomposed = (case for case in ARGON2 if case["name"] in ("composed", "decomposed"))
    assert composed["passphrase"] != decomposed["passphrase"]
    assert composed["output"] == decomposed["output"]


def test_other_passphrases_and_costs_of_the_vectors_have_outputs_of_their_own() -> None:
    outputs = [case["output"] for case in ARGON2 if case["expect"] == "same"]
    assert len(set(outputs)) == len(outputs) - 1


@pytest.mark.parametrize("case", [case for case in ARGON2 if case["expect"] != "same"], ids=_named)
def test_passphrase_or_cost_is_refused_with_the_vectors_code(case: Case) -> None:
    with pytest.raises((FormatError, PassphraseEmpty)) as refused:
        _set_passphrase(case)
    assert refused.value.code == case["expect"]


def _set_passphrase(case: Case) -> None:
    primitives.check_passphrase(case["passphrase"])
    primitives.stretch(case["passphrase"], bytes.fromhex(case["salt"]), _cost(case))


# ── wrap ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", [case for case in HPKE if case["expect"] == "same"], ids=_named)
def test_wrapped_bytes_open_as_the_vector_says_with_the_library_and_by_hand(case: Case) -> None:
    seed, info, wrapped, content = bytes_of(case, "seed", "info", "wrapped", "content")
    assert len(wrapped) == primitives.WRAPPED_SIZE
    assert primitives.unwrap(WrappingKey(seed), info, wrapped) == content
    assert by_hand.unwrap(seed, info, wrapped) == content


@pytest.mark.parametrize("case", [case for case in HPKE if case["expect"] == "same"], ids=_named)
def test_public_wrapping_key_is_the_vectors(case: Case) -> None:
    (seed,) = bytes_of(case, "seed")
    assert primitives.public_wrapping_key(WrappingKey(seed)).hex() == case["public"]


@pytest.mark.parametrize("case", [case for case in HPKE if case["expect"] == "box_sealed"], ids=_named)
def test_wrapped_bytes_stay_closed_as_the_vector_says(case: Case) -> None:
    seed, info, wrapped = bytes_of(case, "seed", "info", "wrapped")
    with pytest.raises(primitives.NotAuthentic):
        primitives.unwrap(WrappingKey(seed), info, wrapped)


@pytest.mark.parametrize("name", ["other_aead", "other_kdf"])
def test_messages_of_another_suite_are_whole_and_closed_only_by_the_suite(name: str) -> None:
    (case,) = (case for case in HPKE if case["name"] == name)
    (box,) = (case for case in HPKE if case["name"] == "box")
    seed, info, wrapped = bytes_of(case, "seed", "info", "wrapped")
    kdf, aead = {
        "other_aead": (by_hand.HKDF_SHA256, by_hand.CHACHA20_POLY1305),
        "other_kdf": (by_hand.HKDF_SHA512, by_hand.AES_256_GCM),
    }[name]
    assert by_hand.unwrap(seed, info, wrapped, kdf, aead).hex() == box["content"]


def test_unwrapping_by_hand_refuses_what_is_flipped() -> None:
    (case,) = (case for case in HPKE if case["name"] == "tag")
    seed, info, wrapped = bytes_of(case, "seed", "info", "wrapped")
    with pytest.raises(InvalidTag):
        by_hand.unwrap(seed, info, wrapped)
