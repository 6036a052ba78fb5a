"""Write the vectors of derivation, passphrases and wrapping."""

import json
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PublicKey, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from memseal.format import primitives
from memseal.format.keys import WrappingKey
from memseal.format.primitives import CEILING_COST, STANDARD_COST, Cost

FOLDER = Path(__file__).parent

Case: TypeAlias = dict[str, Any]

IKM = bytes(range(32))
SALT = bytes(range(0x40, 0x60))
VAULT_ID = bytes(range(0xA0, 0xB0))
STREAM_ID = bytes(range(0xC0, 0xD0))


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        "derive.json": _text("derive: HKDF-SHA-512, label and parts with their lengths", derive_cases()),
        "argon2.json": _text("passphrase: Argon2id over NFC text, within floor and ceiling", argon2_cases()),
        "hpke.json": _text("wrap: HPKE with X-Wing, HKDF-SHA-256 and AES-256-GCM", hpke_cases()),
    }


def _text(about: str, cases: list[Case]) -> str:
    # Escaped, so that no editor normalises the passphrases.
    file = {"about": f"vault-format, section 2, {about}", "cases": cases}
    return json.dumps(file, indent=1, ensure_ascii=True) + "\n"


# ── derive ──────────────────────────────────────────────────────────────────────────────────────────

LOG = "memseal/v1/log"


def derive_cases() -> list[Case]:
    return [
        _derived("log_key", "the key of a log", LOG, [VAULT_ID, STREAM_ID]),
        _derived("no_parts", "a label alone", LOG, []),
        _derived("empty_part", "an empty part counts: its length is bound", LOG, [b""]),
        _derived("two_empty_parts", "two empty parts are not one", LOG, [b"", b""]),
        _derived("split_ab_c", "lengths say where a part ends: ab, c …", LOG, [b"ab", b"c"]),
        _derived("split_a_bc", "… is not a, bc …", LOG, [b"a", b"bc"]),
        _derived("split_abc", "… and not abc", LOG, [b"abc"]),
        _derived("split_label", "what ends the label is not a part", LOG + "a", [b"bc"]),
        _derived("order", "parts have an order", LOG, [STREAM_ID, VAULT_ID]),
        _derived("like_lengths", "a part may look like a length and a part", LOG, [b"\0\0\0\1a"]),
        _derived("other_label", "the label separates uses", "memseal/v1/cache", [VAULT_ID, STREAM_ID]),
        _derived("unicode_label", "a label is UTF-8", "memseal/v1/\u00fc", []),
        _derived("salt", "with a salt", "memseal/v1/device", [VAULT_ID], salt=SALT),
        _derived("long_ikm", "48 bytes go in", "memseal/v1/kit-slot", [VAULT_ID], SALT, IKM + IKM[:16]),
        *_derive_mistakes(LOG, [VAULT_ID, STREAM_ID]),
    ]


def _derived(name: str, says: str, label: str, parts: list[bytes], salt: bytes = b"", ikm: bytes = IKM) -> Case:
    output = primitives.derive(ikm, salt, label, *parts)
    return _derive_case(name, says, label, parts, salt, ikm, output, "same")


def _derive_case(
    name: str, says: str, label: str, parts: list[bytes], salt: bytes, ikm: bytes, output: bytes, expect: str
) -> Case:
    return {
        "name": name,
        "says": says,
        "label": label,
        "parts": [part.hex() for part in parts],
        "ikm": ikm.hex(),
        "salt": salt.hex(),
        "output": output.hex(),
        "expect": expect,
    }


def _derive_mistakes(label: str, parts: list[bytes]) -> list[Case]:
    texts = [label.encode(), *parts]

    def joined(length: Callable[[bytes], bytes]) -> bytes:
        return b"".join(length(text) + text for text in texts)

    right = joined(lambda text: len(text).to_bytes(4, "big"))
    outputs = {
        "without_lengths": _hkdf(joined(lambda _: b"")),
        "little_endian": _hkdf(joined(lambda text: len(text).to_bytes(4, "little"))),
        "lengths_of_2_bytes": _hkdf(joined(lambda text: len(text).to_bytes(2, "big"))),
        "lengths_in_bits": _hkdf(joined(lambda text: (8 * len(text)).to_bytes(4, "big"))),
        "label_without_length": _hkdf(right[4:]),
        "sha_256": HKDF(hashes.SHA256(), 32, b"", right).derive(IKM),
        "expand_only": HKDFExpand(hashes.SHA512(), 32, right).derive(IKM),
    }
    return [
        _derive_case(name, name.replace("_", " "), label, parts, b"", IKM, output, "other")
        for name, output in outputs.items()
    ]


def _hkdf(info: bytes) -> bytes:
    return HKDF(hashes.SHA512(), 32, b"", info).derive(IKM)


# ── passphrase ──────────────────────────────────────────────────────────────────────────────────────

ACCENTED = "Gr\u00fc\u00dfe aus Malm\u00f6 \u1ec7"


def argon2_cases() -> list[Case]:
    one_lane = replace(STANDARD_COST, lanes=1)
    return [
        _stretched("ascii", "a passphrase in ASCII", "correct horse battery staple"),
        _stretched("composed", "accents as one character each", unicodedata.normalize("NFC", ACCENTED)),
        _stretched("decomposed", "accents apart give the same", unicodedata.normalize("NFD", ACCENTED)),
        _stretched("ligature", "NFC, not NFKC: a ligature stays …", "\ufb01nch"),
        _stretched("no_ligature", "… and is not its two letters", "finch"),
        _stretched("spaces", "white space around it counts", " finch "),
        _stretched("astral", "characters beyond 16 bits", "\U0001f511\U0001f9e0"),
        _stretched("one_lane", "the cost decides too", "finch", one_lane),
        *_refused_costs("kdf_floor", STANDARD_COST, -1, lanes=0),
        *_refused_costs("kdf_ceiling", CEILING_COST, 1, lanes=CEILING_COST.lanes + 1),
        _refused("empty", "nothing", "", "passphrase_empty"),
        _refused("space", "a space", " ", "passphrase_empty"),
        _refused("controls", "tab and line breaks", "\t\r\n", "passphrase_empty"),
        _refused("wide_space", "white space outside ASCII", "\u00a0\u3000", "passphrase_empty"),
    ]


def _stretched(name: str, says: str, passphrase: str, cost: Cost = STANDARD_COST) -> Case:
    output = primitives.stretch(passphrase, SALT, cost).reveal().hex()
    return _passphrase_case(name, says, passphrase, cost) | {"output": output, "expect": "same"}


def _refused_costs(code: str, edge: Cost, step: int, lanes: int) -> list[Case]:
    costs = {
        "memory": replace(edge, memory=edge.memory + step),
        "passes": replace(edge, passes=edge.passes + step),
        "lanes": replace(edge, lanes=lanes),
    }
    return [
        _refused(f"{code}_{field}", f"{field} beyond the edge by one", "finch", code, cost)
        for field, cost in costs.items()
    ]


def _refused(name: str, says: str, passphrase: str, code: str, cost: Cost = STANDARD_COST) -> Case:
    return _passphrase_case(name, says, passphrase, cost) | {"expect": code}


def _passphrase_case(name: str, says: str, passphrase: str, cost: Cost) -> Case:
    return {
        "name": name,
        "says": says,
        "passphrase": passphrase,
        "salt": SALT.hex(),
        "cost": {"name": "argon2id"} | asdict(cost),
    }


# ── wrap ────────────────────────────────────────────────────────────────────────────────────────────

SEED = WrappingKey(bytes(range(0x20, 0x40)))
PUBLIC = primitives.public_wrapping_key(SEED)
CONTENT = bytes(range(0xE0, 0x100))
# A box as of vault-format, section 7: version 3, epoch 2.
INFO = b"".join(
    [
        b"memseal/v1/box",
        VAULT_ID,
        (3).to_bytes(8, "big"),
        (2).to_bytes(4, "big"),
        STREAM_ID,
        bytes(range(0x60, 0x80)),
        sha256(PUBLIC).digest(),
    ]
)
MLKEM_ENC, ENC = 1088, 1120


def hpke_cases() -> list[Case]:
    wraps: dict[str, Callable[[], bytes]] = {
        "box": lambda: primitives.wrap(PUBLIC, INFO, CONTENT),
        "empty_info": lambda: primitives.wrap(PUBLIC, b"", CONTENT),
        "other_aead": lambda: _wrap_with(KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305),
        "other_kdf": lambda: _wrap_with(KDF.HKDF_SHA512, AEAD.AES_256_GCM),
    }
    frozen = _frozen()
    wrapped = {name: frozen[name] if name in frozen else wrap() for name, wrap in wraps.items()}
    box = wrapped["box"]
    return [
        _opening("box", "the vault key in a device's box", INFO, box),
        _opening("empty_info", "an empty info", b"", wrapped["empty_info"]),
        _closed("other_aead", "ChaCha20-Poly1305 in place of AES-256-GCM", wrapped["other_aead"]),
        _closed("other_kdf", "HKDF-SHA-512 in place of HKDF-SHA-256", wrapped["other_kdf"]),
        _closed("no_info", "a box needs its info", box, info=b""),
        _closed("other_info", "the last bit of the info", box, info=_flipped(INFO, len(INFO) - 1)),
        _closed("other_seed", "another private key", box, seed=bytes(reversed(SEED.reveal()))),
        _closed("mlkem_first", "the first byte of ML-KEM's part", _flipped(box, 0)),
        _closed("mlkem_last", "the last byte of ML-KEM's part", _flipped(box, MLKEM_ENC - 1)),
        _closed("x25519_first", "the first byte of X25519's part", _flipped(box, MLKEM_ENC)),
        _closed("x25519_top_bit", "the bit that X25519 ignores", _flipped(box, ENC - 1, 0x80)),
        _closed("x25519_zeros", "a point of low order", box[:MLKEM_ENC] + bytes(32) + box[ENC:]),
        _closed("halves_swapped", "X25519 first", box[MLKEM_ENC:ENC] + box[:MLKEM_ENC] + box[ENC:]),
        _closed("other_enc", "another message's encapsulation", wrapped["empty_info"][:ENC] + box[ENC:]),
        _closed("ciphertext", "the first byte of the ciphertext", _flipped(box, ENC)),
        _closed("tag", "the last byte of the tag", _flipped(box, len(box) - 1)),
        _closed("cut", "one byte too few", box[:-1]),
        _closed("longer", "one byte too many", box + b"\0"),
        _closed("enc_alone", "no ciphertext", box[:ENC]),
        _closed("nothing", "no bytes at all", b""),
    ]


def _frozen() -> dict[str, bytes]:
    # Wrapping draws fresh randomness, which the library takes from nobody: what was wrapped once stays.
    path = FOLDER / "hpke.json"
    cases: list[Case] = json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else []
    return {case["name"]: bytes.fromhex(case["wrapped"]) for case in cases}


def _wrap_with(kdf: KDF, aead: AEAD) -> bytes:
    recipient = MLKEM768X25519PublicKey(
        mlkem.MLKEM768PublicKey.from_public_bytes(PUBLIC[:1184]),
        x25519.X25519PublicKey.from_public_bytes(PUBLIC[1184:]),
    )
    return Suite(KEM.MLKEM768_X25519, kdf, aead).encrypt(CONTENT, recipient, INFO)


def _opening(name: str, says: str, info: bytes, wrapped: bytes) -> Case:
    return _wrap_case(name, says, SEED.reveal(), info, wrapped) | {
        "public": PUBLIC.hex(),
        "content": CONTENT.hex(),
        "expect": "same",
    }


def _closed(name: str, says: str, wrapped: bytes, info: bytes = INFO, seed: bytes = SEED.reveal()) -> Case:
    return _wrap_case(name, says, seed, info, wrapped) | {"expect": "box_sealed"}


def _wrap_case(name: str, says: str, seed: bytes, info: bytes, wrapped: bytes) -> Case:
    return {"name": name, "says": says, "seed": seed.hex(), "info": info.hex(), "wrapped": wrapped.hex()}


def _flipped(content: bytes, position: int, mask: int = 1) -> bytes:
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


if __name__ == "__main__":
    main()
