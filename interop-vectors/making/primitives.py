"""Vectors of the recipes (§2): those of primitives/ again in the manifest's form, and signatures."""

import json
from typing import Any

from making import curve
from making.book import Book, Group
from making.people import ANN, BEN, public_sign, seed, sign

RULE = "vault-format §2"
MESSAGE = b"memseal/v1/sign and some more"


def add(book: Book) -> None:
    group = book.group("primitives")
    _add_older(group, "derive", "derive", ("ikm", "salt", "label", "parts"), ("output",))
    _add_older(group, "argon2", "stretch", ("passphrase", "salt", "cost"), ("output",))
    _add_older(group, "hpke", "unwrap", ("seed", "info", "wrapped"), ("content", "public"))
    unknown = {"name": "scrypt", "memory": 65536, "passes": 3, "lanes": 4}
    given = {"passphrase": "finch", "salt": seed("salt"), "cost": unknown}
    group.refused("stretch-unknown", RULE, "another derivation than Argon2id", "stretch", given, "kdf_unknown")
    _add_signatures(group)
    _add_keys(group)


def _add_older(group: Group, name: str, operation: str, takes: tuple[str, ...], gives: tuple[str, ...]) -> None:
    path = group.folder / "primitives" / f"{name}.json"
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        given: dict[str, Any] = {field: _octets(field, case[field]) for field in takes}
        title = _BOUNDS.get(case["expect"], "") + case["says"]
        place = (f"{operation}-{case['name'].replace('_', '-')}", RULE, title, operation, given)
        if case["expect"] == "same":
            group.ok(*place, **{field: _octets(field, case[field]) for field in gives})
        elif case["expect"] != "other":  # what a mistake gives is nothing that a right reader meets
            group.refused(*place, case["expect"])


_BOUNDS = {"kdf_floor": "floor: ", "kdf_ceiling": "ceiling: "}


def _octets(field: str, value: Any) -> Any:
    if field in ("label", "passphrase", "cost"):
        return value
    return [bytes.fromhex(part) for part in value] if isinstance(value, list) else bytes.fromhex(value)


def _add_signatures(group: Group) -> None:
    public, good = ANN.public_sign, sign(ANN.sign, MESSAGE)

    def given(signature: bytes, key: bytes = public, message: bytes = MESSAGE) -> dict[str, object]:
        return {"public": key, "message": message, "signature": signature}

    def refused(name: str, title: str, given: dict[str, object]) -> None:
        group.refused(f"verify-{name}", RULE, title, "verify", given, "signature_invalid")

    group.ok("verify", RULE, "a signature", "verify", given(good))
    empty = given(sign(ANN.sign, b""), message=b"")
    group.ok("verify-empty", RULE, "a signature of an empty message", "verify", empty)
    refused("other-message", "of another message", given(good, message=MESSAGE + b"."))
    refused("other-key", "of another key", given(good, BEN.public_sign))
    refused("flipped-r", "a flipped bit in R", given(bytes([good[0] ^ 1]) + good[1:]))
    refused("flipped-s", "a flipped bit in S", given(good[:32] + bytes([good[32] ^ 1]) + good[33:]))
    larger = int.from_bytes(good[32:], "little") + curve.L
    title = "S is the group's order too large: one signature must not have two writings"
    refused("s-too-large", title, given(good[:32] + larger.to_bytes(32, "little")))
    off = curve.signature_off_by(curve.EIGHTH, ANN.sign, public, MESSAGE)
    refused("cofactor", "R has a part of order 8: true only when multiplied by the cofactor", given(off))
    refused("short", "63 bytes", given(good[:63]))
    refused("long", "65 bytes", given(good + b"\0"))
    refused("zeros", "64 zero bytes", given(bytes(64)))
    refused("no-point", "the key is no point of the curve", given(good, _no_point()))


def _no_point() -> bytes:
    for y in range(2, 100):
        content = y.to_bytes(32, "little")
        try:
            curve.decode(content)
        except ValueError:
            return content
    raise ValueError("every small y is one of a point")


def _add_keys(group: Group) -> None:
    def refused(name: str, title: str, key: bytes) -> None:
        group.refused(f"key-{name}", RULE, title, "check_signing_key", {"key": key}, "keyring_malformed")

    sound = {"key": public_sign(seed("any seed"))}
    group.ok("key", RULE, "a key that a seed gives", "check_signing_key", sound)
    group.ok(
        "key-highest", RULE, "the largest y below the field's size", "check_signing_key", {"key": _number(curve.P - 2)}
    )
    refused("zero", "y = 0, of order 4", _number(0))
    refused("one", "y = 1, the neutral point", _number(1))
    refused("minus-one", "y = 2^255 − 20, of order 2", _number(curve.P - 1))
    refused("eighth", "a point of order 8", curve.encode(curve.EIGHTH))
    refused("eighth-negative", "the same with the sign bit", curve.encode(curve.times(7, curve.EIGHTH)))
    refused("eighth-other", "the other y of order 8", curve.encode(curve.times(3, curve.EIGHTH)))
    refused("one-with-sign", "y = 1 with the sign bit", _number(1 | 1 << 255))
    refused("too-large", "y is the field's size: 0 written otherwise", _number(curve.P))
    refused("too-large-by-five", "y is the field's size and five", _number(curve.P + 5))
    refused("all-ones", "32 bytes of ones", b"\xff" * 32)


def _number(value: int) -> bytes:
    return value.to_bytes(32, "little")
