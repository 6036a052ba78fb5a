"""Every published vector of the primitives, run through our recipes or the library functions they rest on.

Each test counts what came out of every case of its file, so that none can be skipped in silence. HPKE has a
file of its own.
"""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from cryptography import cobblestone
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memseal.format import primitives
from memseal.format.keys import RecordKey
from tests.format import by_hand
from tests.format.published import AGREES, REFUSED, Case, agreement, bytes_of, count, load, wycheproof_cases

# ── AES-GCM ─────────────────────────────────────────────────────────────────────────────────────────

NONCE_REFUSED = "nonce size refused"


def _check_aes_gcm(case: Case) -> str:
    key, nonce, aad, message, ciphertext, tag = bytes_of(case, "key", "iv", "aad", "msg", "ct", "tag")
    cipher = AESGCM(key)
    try:
        opened = cipher.decrypt(nonce, ciphertext + tag, aad)
    except InvalidTag:
        return REFUSED
    except ValueError:
        return NONCE_REFUSED
    return agreement((opened, message), (cipher.encrypt(nonce, message, aad), ciphertext + tag))


def test_aes_gcm_does_what_all_316_vectors_say() -> None:
    cases = wycheproof_cases("wycheproof_aes_gcm_test.json")
    assert count(cases, "result", _check_aes_gcm) == {
        ("valid", AGREES): 202,
        ("valid", NONCE_REFUSED): 27,
        ("invalid", REFUSED): 81,
        ("invalid", NONCE_REFUSED): 6,
    }


def test_aes_gcm_refuses_only_nonces_under_8_or_over_128bytes_of() -> None:
    cases = wycheproof_cases("wycheproof_aes_gcm_test.json")
    refused = {case["ivSize"] for case in cases if _check_aes_gcm(case) == NONCE_REFUSED}
    assert refused == {0, 8, 16, 32, 48, 2056}


# ── HKDF ────────────────────────────────────────────────────────────────────────────────────────────


def _check_hkdf(case: Case) -> str:
    ikm, salt, info, output = bytes_of(case, "ikm", "salt", "info", "okm")
    size: int = case["size"]
    try:
        ours = HKDF(algorithm=hashes.SHA512(), length=size, salt=salt, info=info).derive(ikm)
    except ValueError:
        return REFUSED
    return agreement((ours, output), (by_hand.hkdf("sha512", ikm, salt, info, size), output))


def test_hkdf_sha_512_of_the_library_and_by_hand_do_what_all_83_vectors_say() -> None:
    cases = wycheproof_cases("wycheproof_hkdf_sha512_test.json")
    assert count(cases, "result", _check_hkdf) == {("valid", AGREES): 80, ("invalid", REFUSED): 3}


# ── Ed25519 ─────────────────────────────────────────────────────────────────────────────────────────


def _check_ed25519(case: Case) -> str:
    (public_key,) = bytes_of(case["publicKey"], "pk")
    signature, message = bytes_of(case, "sig", "msg")
    try:
        primitives.verify(public_key, signature, message)
    except primitives.NotAuthentic:
        return REFUSED
    return AGREES


def test_verify_does_what_all_151_vectors_say() -> None:
    cases = wycheproof_cases("wycheproof_ed25519_test.json")
    assert count(cases, "result", _check_ed25519) == {("valid", AGREES): 88, ("invalid", REFUSED): 63}


# ── X25519 ──────────────────────────────────────────────────────────────────────────────────────────


def _check_x25519(case: Case) -> str:
    public, private, shared = bytes_of(case, "public", "private", "shared")
    try:
        ours = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return REFUSED
    return agreement((ours, shared))


def test_x25519_does_what_all_518_vectors_say() -> None:
    cases = wycheproof_cases("wycheproof_x25519_test.json")
    assert count(cases, "result", _check_x25519) == {
        ("valid", AGREES): 264,
        ("acceptable", AGREES): 223,
        ("acceptable", REFUSED): 31,
    }


def test_x25519_refuses_exactly_the_public_keys_that_give_zeros() -> None:
    cases = wycheproof_cases("wycheproof_x25519_test.json")
    zeros = {case["tcId"] for case in cases if "ZeroSharedSecret" in case["flags"]}
    assert {case["tcId"] for case in cases if _check_x25519(case) == REFUSED} == zeros


# ── ML-KEM-768 ──────────────────────────────────────────────────────────────────────────────────────

SEED_REFUSED, CIPHERTEXT_REFUSED = "seed refused", "ciphertext refused"


def _check_mlkem(case: Case) -> str:
    seed, ciphertext, secret = bytes_of(case, "seed", "c", "K")
    try:
        key = MLKEM768PrivateKey.from_seed_bytes(seed)
    except ValueError:
        return SEED_REFUSED
    try:
        opened = key.decapsulate(ciphertext)
    except ValueError:
        return CIPHERTEXT_REFUSED
    public_key = bytes.fromhex(case["ek"])
    new_secret, new_ciphertext = MLKEM768PublicKey.from_public_bytes(public_key).encapsulate()
    return agreement(
        (key.public_key().public_bytes_raw(), public_key),
        (opened, secret),
        (key.decapsulate(new_ciphertext), new_secret),
    )


def test_ml_kem_768_does_what_all_193_vectors_say() -> None:
    cases = wycheproof_cases("wycheproof_mlkem_768_test.json")
    assert count(cases, "result", _check_mlkem) == {
        ("valid", AGREES): 153,
        ("invalid", SEED_REFUSED): 20,
        ("invalid", CIPHERTEXT_REFUSED): 20,
    }


# ── Cobblestone ─────────────────────────────────────────────────────────────────────────────────────

KEY_REFUSED = "key size refused"
EXCERPT = "wycheproof_cobblestone_256_excerpt.json"


def _check_opening(open_it: Callable[[], bytes], *wanted: tuple[Callable[[bytes], object], object]) -> str:
    try:
        opened = open_it()
    except (primitives.NotAuthentic, InvalidTag):
        return REFUSED
    except ValueError:
        return KEY_REFUSED
    return agreement(*((measure(opened), value) for measure, value in wanted))


def _open_into(key: bytes, context: bytes, sealed: bytes) -> bytes:
    target = bytearray(len(sealed))
    size = primitives.open_sealed_into(RecordKey(key), context, sealed, memoryview(target))
    return bytes(target[:size])


def _open_sealed(key: bytes, context: bytes, sealed: bytes) -> bytes:
    return primitives.open_sealed(RecordKey(key), context, sealed)


def _open_by_hand(key: bytes, context: bytes, sealed: bytes) -> bytes:
    return by_hand.chunked_open("sha512", "AEAD_AES_256_GCM", key, context, sealed)


@pytest.mark.parametrize("open_it", [_open_sealed, _open_into, _open_by_hand])
def test_opening_does_what_15_of_the_35_vectors_of_cobblestone_256_say(
    open_it: Callable[[bytes, bytes, bytes], bytes],
) -> None:
    file = load(EXCERPT)
    key = bytes.fromhex(file["key"])

    def check(case: Case) -> str:
        context, packed = bytes_of(case, "ctx", "ct")
        sealed = zlib.decompress(packed)
        return _check_opening(
            lambda: open_it(key, context, sealed),
            (len, case.get("msgLength")),
            (lambda opened: hashlib.sha512(opened).hexdigest(), case.get("msgSha512")),
        )

    assert count(file["cases"], "result", check) == {("valid", AGREES): 8, ("invalid", REFUSED): 7}


# These were made for a draft that derived with SHA-256; Cobblestone derives with SHA-512, so that none of
# them can open in the library. What they show is that chunked encryption by hand, which differs from one to
# the other by the name of the hash, refuses and opens what it should.
DRAFT = "chunked-encryption.json"


def _draft_sealed(case: Case) -> bytes:
    raw = base64.b64decode(case["ciphertext"] or "")
    return zlib.decompress(raw) if case.get("compressed") else raw


def _check_draft(case: Case) -> str:
    (key,) = bytes_of(case, "key")
    return _check_opening(
        lambda: by_hand.chunked_open("sha256", case["aead"], key, case["context"].encode(), _draft_sealed(case)),
        (len, case.get("payload_length")),
        (lambda opened: hashlib.sha256(opened).hexdigest(), case.get("payload_sha256")),
    )


def test_chunked_encryption_by_hand_does_what_all_102_vectors_of_the_draft_say() -> None:
    assert count(load(DRAFT)["vectors"], "expect", _check_draft) == {
        ("success", AGREES): 27,
        ("failure", REFUSED): 69,
        ("failure", KEY_REFUSED): 6,
    }


def _check_draft_keys(case: Case) -> str:
    (key,) = bytes_of(case, "key")
    salt, context = _draft_sealed(case)[:24], case["context"].encode()
    message = by_hand.Chunked.derive("sha256", case["aead"], key, salt, context)
    return agreement((message.key.hex(), case["aead_key"]), (message.base_nonce.hex(), case["base_nonce"]))


def test_chunked_encryption_by_hand_derives_the_keys_of_all_72_vectors_that_show_them() -> None:
    cases = [case for case in load(DRAFT)["vectors"] if "aead_key" in case]
    assert Counter(map(_check_draft_keys, cases)) == {AGREES: 72}


def _check_draft_with_the_library(case: Case) -> str:
    key, context, sealed = bytes.fromhex(case["key"]), case["context"].encode(), _draft_sealed(case)
    if case["aead"] == "AEAD_AES_256_GCM":
        return _check_opening(lambda: _open_sealed(key, context, sealed))

    def open_128() -> bytes:
        decryptor = cobblestone.Cobblestone128Decryptor(key, context)
        return decryptor.update(sealed) + decryptor.finalize()

    return _check_opening(open_128)


@pytest.mark.parametrize("aead", ["AEAD_AES_256_GCM", "AEAD_AES_128_GCM"])
def test_the_library_refuses_every_vector_of_the_draft(aead: str) -> None:
    cases = [case for case in load(DRAFT)["vectors"] if case["aead"] == aead]
    assert count(cases, "expect", _check_draft_with_the_library) == {
        ("success", REFUSED): 9,
        ("failure", REFUSED): 23,
        ("failure", KEY_REFUSED): 2,
    }


def test_a_third_of_the_drafts_vectors_has_a_cipher_that_the_library_lacks() -> None:
    ciphers = Counter(case["aead"] for case in load(DRAFT)["vectors"])
    assert ciphers == {"AEAD_AES_256_GCM": 34, "AEAD_AES_128_GCM": 34, "AEAD_CHACHA20_POLY1305": 34}
    assert {name[:14] for name in cobblestone.__all__} == {"Cobblestone128", "Cobblestone256"}
