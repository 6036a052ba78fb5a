"""The published vectors of HPKE with post-quantum KEMs, through the library and through HPKE by hand.

None of them has our own suite; interop-vectors/primitives/hpke.json does.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

from cryptography.hazmat.bindings._rust import openssl as rust_openssl
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM1024PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM1024P384PrivateKey,
    Suite,
)

from memseal.format import primitives
from memseal.format.keys import WrappingKey
from tests.format import by_hand
from tests.format.published import Case, bytes_of, load

KEMS = {
    0x10: KEM.P256,
    0x11: KEM.P384,
    0x41: KEM.MLKEM768,
    0x42: KEM.MLKEM1024,
    0x51: KEM.MLKEM1024_P384,
    by_hand.X_WING: KEM.MLKEM768_X25519,
}
KDFS = {1: KDF.HKDF_SHA256, 2: KDF.HKDF_SHA384, 0x10: KDF.SHAKE128, 0x11: KDF.SHAKE256}
AEADS = {1: AEAD.AES_128_GCM, 2: AEAD.AES_256_GCM, 3: AEAD.CHACHA20_POLY1305}
# In the file, but not in the library: by their names in draft-ietf-hpke-pq.
MISSING_KEMS = {0x40: "MLKEM512", 0x50: "MLKEM768_P256", 0x21: "X448"}
MISSING_KDFS = {0x12: "TURBOSHAKE128", 0x13: "TURBOSHAKE256"}

SuiteIds: TypeAlias = tuple[int, int, int]


def _suite_ids(case: Case) -> SuiteIds:
    return case["kem_id"], case["kdf_id"], case["aead_id"]


def _runs(case: Case) -> bool:
    return case["kem_id"] in KEMS and case["kdf_id"] in KDFS


def _hybrid_768(seed: bytes) -> MLKEM768X25519PrivateKey:
    expanded = hashlib.shake_256(seed).digest(64 + 32)
    return MLKEM768X25519PrivateKey(
        MLKEM768PrivateKey.from_seed_bytes(expanded[:64]), X25519PrivateKey.from_private_bytes(expanded[64:])
    )


def _hybrid_1024(seed: bytes) -> MLKEM1024P384PrivateKey:
    expanded = hashlib.shake_256(seed).digest(64 + 48)
    return MLKEM1024P384PrivateKey(
        MLKEM1024PrivateKey.from_seed_bytes(expanded[:64]), _elliptic(ec.SECP384R1())(expanded[64:])
    )


def _elliptic(curve: ec.EllipticCurve) -> Callable[[bytes], ec.EllipticCurvePrivateKey]:
    return lambda raw: ec.derive_private_key(int.from_bytes(raw, "big"), curve)


PRIVATE_KEYS: dict[int, Callable[[bytes], Any]] = {
    0x10: _elliptic(ec.SECP256R1()),
    0x11: _elliptic(ec.SECP384R1()),
    0x41: MLKEM768PrivateKey.from_seed_bytes,
    0x42: MLKEM1024PrivateKey.from_seed_bytes,
    0x51: _hybrid_1024,
    by_hand.X_WING: _hybrid_768,
}


def _first_message_agrees(case: Case) -> bool:
    kem, kdf, aead = _suite_ids(case)
    enc, info, private = bytes_of(case, "enc", "info", "skRm")
    aad, ciphertext, plaintext = bytes_of(case["encryptions"][0], "aad", "ct", "pt")
    # The public decrypt() takes no aad and all vectors have one; this is what it calls with an empty one.
    opened = rust_openssl.hpke._decrypt_with_aad(
        Suite(KEMS[kem], KDFS[kdf], AEADS[aead]), enc + ciphertext, PRIVATE_KEYS[kem](private), info, aad
    )
    return opened == plaintext


def test_hpke_of_the_library_opens_the_first_message_of_the_seven_suites_it_has() -> None:
    opened = {_suite_ids(case): _first_message_agrees(case) for case in load("hpke-pq.json") if _runs(case)}
    assert opened == {
        (0x41, 1, 1): True,
        (0x42, 2, 2): True,
        (0x51, 2, 2): True,
        (0x10, 0x10, 1): True,
        (0x11, 0x11, 2): True,
        (by_hand.X_WING, 1, 3): True,
        (by_hand.X_WING, 0x11, 3): True,
    }


def test_six_hpke_vectors_have_a_kem_or_kdf_that_the_library_lacks() -> None:
    cases = load("hpke-pq.json")
    missing = [_suite_ids(case) for case in cases if not _runs(case)]
    assert len(cases) == 7 + 6
    assert sorted(missing) == [
        (0x20, 0x12, 3),
        (0x21, 0x13, 3),
        (0x40, 1, 1),
        (0x42, 0x13, 1),
        (0x50, 1, 1),
        (0x50, 0x10, 2),
    ]
    assert not {name for name in MISSING_KEMS.values() if hasattr(KEM, name)}
    assert not {name for name in MISSING_KDFS.values() if hasattr(KDF, name)}
    assert all(kem in MISSING_KEMS or kdf in MISSING_KDFS for kem, kdf, _ in missing)


def test_wrapping_keys_are_encoded_as_both_x_wing_vectors_say() -> None:
    cases = [case for case in load("hpke-pq.json") if case["kem_id"] == by_hand.X_WING]
    ours = [primitives.public_wrapping_key(WrappingKey(bytes.fromhex(case["skRm"]))).hex() for case in cases]
    assert ours == [case["pkRm"] for case in cases]
    assert len(cases) == 2


def test_x_wing_by_hand_gives_the_shared_secret_of_both_vectors() -> None:
    cases = [case for case in load("hpke-pq.json") if case["kem_id"] == by_hand.X_WING]
    ours = [by_hand.x_wing_open(*bytes_of(case, "skRm", "enc")).hex() for case in cases]
    assert ours == [case["shared_secret"] for case in cases]
    assert len(cases) == 2


def _schedule_of(case: Case) -> by_hand.Hpke:
    return by_hand.Hpke.schedule(*_suite_ids(case), *bytes_of(case, "shared_secret", "info"))


HKDF_CASES = [case for case in load("hpke-pq.json") if case["kdf_id"] in (1, 2)]


def test_hpke_by_hand_gives_the_keys_of_the_six_vectors_with_hkdf() -> None:
    schedules = [_schedule_of(case) for case in HKDF_CASES]
    ours = [(hpke.suite_id, hpke.key, hpke.base_nonce, hpke.exporter_secret) for hpke in schedules]
    assert ours == [bytes_of(case, "suite_id", "key", "base_nonce", "exporter_secret") for case in HKDF_CASES]
    assert {case["mode"] for case in HKDF_CASES} == {0}
    assert len(HKDF_CASES) == 6


def test_hpke_by_hand_opens_all_60_messages_of_the_vectors_with_hkdf() -> None:
    messages = [
        (_schedule_of(case), number, bytes_of(message, "aad", "ct", "nonce", "pt"))
        for case in HKDF_CASES
        for number, message in enumerate(case["encryptions"])
    ]
    assert all(hpke.open(number, aad, ct) == pt for hpke, number, (aad, ct, _, pt) in messages)
    assert all(hpke.nonce(number) == nonce for hpke, number, (_, _, nonce, _) in messages)
    assert len(messages) == 60


def test_hpke_by_hand_gives_all_30_exports_of_the_vectors_with_hkdf() -> None:
    exports = [
        (_schedule_of(case), export["L"], bytes_of(export, "exporter_context", "exported_value"))
        for case in HKDF_CASES
        for export in case["exports"]
    ]
    assert all(hpke.export(context, size) == value for hpke, size, (context, value) in exports)
    assert len(exports) == 30
