"""The sealed part of keyring versions: boxes, slots, secrets; and what opens it from outside."""

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from making.containers import context, frame, pack, plaintext, u32, u64
from making.frozen import Frozen
from making.keyrings import (
    COST,
    Map,
    Recipe,
    Version,
    build,
    kit_secret,
    kit_seed,
    recovery_secret,
    recovery_seed,
    vault_key,
    version_preamble,
    wrap_of,
)
from making.people import ANN, BEN, EVE, VAULT, seed
from memseal.format import primitives
from memseal.format.primitives import Cost

PASSPHRASE = "Gr\u00fc\u00dfe aus Malm\u00f6"
SALT = seed("salt")
DEVICES = [device for first in (ANN, BEN, EVE) for device in (first, first.renewed())]


@lru_cache(maxsize=64)
def stretched(
    passphrase: str = PASSPHRASE, salt: bytes = SALT, memory: int = 65536, passes: int = 3, lanes: int = 4
) -> bytes:
    return primitives.stretch(passphrase, salt, Cost(memory, passes, lanes)).reveal()


def cost_bytes(cost: Map = COST) -> bytes:
    return u32(cost["memory"]) + u32(cost["passes"]) + u32(cost["lanes"])


# ── boxes ───────────────────────────────────────────────────────────────────────────────────────────


def box_info(public: Map, owner: bytes, sign: bytes, wrap: bytes, vault: bytes = VAULT) -> bytes:
    numbers = u64(public["version"]) + u32(public["epoch"])
    return b"memseal/v1/box" + vault + numbers + owner + sign + sha256(wrap).digest()


def boxes(frozen: Frozen, name: str, public: Map, key: bytes) -> list[list[bytes]]:
    """A box for each active entry, the kit and the recovery code."""
    owners = [(each["id"], each["sign"], each["wrap"]) for each in public["devices"] if each["ended"] is None]
    owners += [(bytes(16), each["request"], each["wrap"]) for each in (public["kit"], public["recovery"]) if each]
    return [
        [wrap, frozen.wrapped(f"{name} box {number}", seed_of(wrap), box_info(public, owner, sign, wrap), key)]
        for number, (owner, sign, wrap) in enumerate(owners)
    ]


def seed_of(wrap: bytes) -> bytes:
    """The private half of a fixed wrapping key."""
    return _seeds()[wrap]


@lru_cache(maxsize=1)
def _seeds() -> dict[bytes, bytes]:
    private = [device.wrap for device in DEVICES]
    private += [kit_seed(generation) for generation in (1, 2)] + [recovery_seed(generation) for generation in (1, 2)]
    return {wrap_of(each): each for each in private}


# ── slots ───────────────────────────────────────────────────────────────────────────────────────────


def slot_content(version: Version, private: bytes, **changes: Any) -> Map:
    return {"seed": private, "version": version.public["version"], "public": version.public_hash} | changes


def kit_slot(
    frozen: Frozen,
    name: str,
    content: Any,
    *,
    generation: int = 1,
    passphrase: str = PASSPHRASE,
    secret: bytes | None = None,
    cost: Map = COST,
    vault: bytes = VAULT,
) -> Map:
    code = kit_secret(generation) if secret is None else secret
    ikm = stretched(passphrase, SALT, *(cost[field] for field in ("memory", "passes", "lanes"))) + code
    key = primitives.derive(ikm, SALT, "memseal/v1/kit-slot", vault, u32(generation), cost_bytes(cost))
    sealed = frozen.sealed(name, key, b"memseal/v1/slot" + vault + u32(generation), pack(content))
    return {"for": "kit", "generation": generation, "salt": SALT, "sealed": sealed}


def recovery_slot(frozen: Frozen, name: str, content: Any, *, generation: int = 1, vault: bytes = VAULT) -> Map:
    key = primitives.derive(recovery_secret(generation), b"", "memseal/v1/recovery-slot", vault, u32(generation))
    sealed = frozen.sealed(name, key, b"memseal/v1/recovery-slot" + vault + u32(generation), pack(content))
    return {"for": "recovery", "generation": generation, "sealed": sealed}


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────


def secrets_record(frozen: Frozen, name: str, public: Map, key: bytes, content: Any) -> bytes:
    begin = version_preamble(public)
    secrets_key = primitives.derive(key, b"", "memseal/v1/keyring-secrets", VAULT, u64(public["version"]))
    body = content if isinstance(content, bytes) else pack(content)
    return frame(3, frozen.sealed(name, secrets_key, context(begin, 3), plaintext(body)))


def secrets_map(public: Map, names: Mapping[bytes, str], history: Sequence[int] = ()) -> Map:
    return {
        "history": [[epoch, vault_key(epoch)] for epoch in history],
        "names": [[device, name] for device, name in names.items()],
        "kit_secret": kit_secret(public["kit"]["generation"]),
    }


NAMES = {ANN.id: "laptop", BEN.id: "T\u00e9l\u00e9phone"}


def whole(
    frozen: Frozen,
    name: str,
    public: Map,
    signers: Sequence[bytes],
    slots: Sequence[Map],
    *,
    history: Sequence[int] = (),
    box_rows: Sequence[Any] | None = None,
    secrets: Any = None,
    record_2: bytes | None = None,
) -> Version:
    """A whole version; slots need the version's own public part, so they are made before it."""
    key = vault_key(public["epoch"])
    rows = boxes(frozen, name, public, key) if box_rows is None else list(box_rows)
    second = frame(2, pack({"boxes": rows, "slots": list(slots)}) if record_2 is None else record_2)
    content = secrets_map(public, NAMES, history) if secrets is None else secrets
    part = second + secrets_record(frozen, f"{name} secrets", public, key, content)
    return build(public, Recipe(signers, sealed_part=part))


# ── strings ─────────────────────────────────────────────────────────────────────────────────────────

_TO_CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def crockford(content: bytes) -> str:
    return base64.b32encode(content).decode().rstrip("=").translate(_TO_CROCKFORD)


def grouped(letters: str, prefix: str) -> str:
    return "-".join([prefix, *(letters[start : start + 4] for start in range(0, len(letters), 4))])


def kit_bytes(
    secret: bytes,
    generation: int = 1,
    server: bytes = b"",
    *,
    first: int = 1,
    vault: bytes = VAULT,
    label: bytes = b"memseal/v1/kit",
) -> bytes:
    content = bytes([first]) + vault + secret + u32(generation) + server
    return content + sha256(label + content).digest()[:4]


def kit_text(generation: int = 1, server: bytes = b"", **changes: Any) -> str:
    return grouped(crockford(kit_bytes(kit_secret(generation), generation, server, **changes)), "MSEAL1")


def recovery_text(generation: int = 1, server: bytes = b"", **changes: Any) -> str:
    options: dict[str, Any] = {"first": 2, "label": b"memseal/v1/recovery"} | changes
    return grouped(crockford(kit_bytes(recovery_secret(generation), generation, server, **options)), "MSEAL1R")
