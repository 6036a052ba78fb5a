"""Keyring versions put together from maps, so that each field can be wrong and the rest is as it must be."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgpack

from making.containers import KEYRING, frame, pack, preamble, u64
from making.people import ANN, VAULT, Device, public_sign, seed, sign
from memseal.format import primitives
from memseal.format.keys import WrappingKey

Map = dict[str, Any]
Change = Callable[[Map], object]

COST = {"name": "argon2id", "memory": 65536, "passes": 3, "lanes": 4}


def vault_key(epoch: int) -> bytes:
    return seed(f"vault key {epoch}")


def epoch_key(epoch: int) -> bytes:
    """The private epoch key: of the fixed vault key of this epoch."""
    number = epoch.to_bytes(4, "big")
    return primitives.derive(vault_key(epoch), b"", "memseal/v1/epoch", VAULT, number)


def kit_secret(generation: int) -> bytes:
    return seed(f"kit secret {generation}", 16)


def kit_seed(generation: int) -> bytes:
    return seed(f"kit seed {generation}")


def recovery_secret(generation: int) -> bytes:
    return seed(f"recovery secret {generation}")


def recovery_seed(generation: int) -> bytes:
    return seed(f"recovery seed {generation}")


def wrap_of(private: bytes) -> bytes:
    return primitives.public_wrapping_key(WrappingKey(private))


def entry(device: Device, since: int) -> Map:
    keys = {"sign": device.public_sign, "wrap": device.public_wrap}
    return {"id": device.id, **keys, "since": since, "ended": None}


def kit(generation: int, since: int) -> Map:
    number = generation.to_bytes(4, "big")
    request = primitives.derive(kit_secret(generation), b"", "memseal/v1/kit-request", VAULT, number)
    keys = {"wrap": wrap_of(kit_seed(generation)), "request": public_sign(request)}
    return {"generation": generation, "since": since, **keys, "cost": dict(COST)}


def recovery(generation: int, since: int) -> Map:
    number = generation.to_bytes(4, "big")
    request = primitives.derive(recovery_secret(generation), b"", "memseal/v1/recovery-request", VAULT, number)
    keys = {"wrap": wrap_of(recovery_seed(generation)), "request": public_sign(request)}
    return {"generation": generation, "since": since, **keys}


def stream_row(name: str, records: int = 3) -> list[Any]:
    """A row of `ended.streams`."""
    return [seed(f"stream {name}", 16), records, seed(f"chain {name} {records}"), 64 + 1108 * records]


def floor_row(name: str, records: int, segment: int = 0) -> list[Any]:
    """A row of a floor's `logs`."""
    nonce, chain = seed(f"nonce {name}", 12), seed(f"chain {name} {records}")
    return [stream_of(ANN, nonce), 1, nonce, segment, 64 + 1108 * records, records, chain, records]


def stream_of(device: Device, nonce: bytes) -> bytes:
    """The id of the stream that a device begins with this nonce."""
    return sha256(b"memseal/v1/stream" + VAULT + device.public_sign + nonce).digest()[:16]


def floor(number: int, *rows: list[Any]) -> Map:
    parts = [seed(f"part {number} {part}", 16) for part in (1, 2)]
    checkpoint = {"checkpoint": seed(f"checkpoint {number}", 16), "digest": seed(f"manifest {number}")}
    return {**checkpoint, "parts": parts, "logs": list(rows)}


@dataclass(frozen=True)
class Version:
    """A version as stored."""

    public: Map
    content: bytes
    digest: bytes
    open_size: int
    record_0_end: int

    @property
    def public_hash(self) -> bytes:
        """What a slot made in this version pins."""
        return sha256(self.content[: self.record_0_end]).digest()

    def stripped(self) -> bytes:
        return self.content[: self.open_size]

    def signatures(self) -> list[list[bytes]]:
        found: list[list[bytes]] = msgpack.unpackb(self.content[self.record_0_end + 12 : self.open_size])["signatures"]
        return found

    def active(self) -> list[bytes]:
        return [each["id"] for each in self.public["devices"] if each["ended"] is None]


def first_public(device: Device = ANN) -> Map:
    return {
        "version": 1,
        "previous": bytes(32),
        "epoch": 1,
        "epoch_since": 1,
        "epoch_key": public_sign(epoch_key(1)),
        "devices": [entry(device, 1)],
        "kit": kit(1, 1),
        "recovery": None,
        "passphrase_since": 1,
        "floor": None,
    }


def next_public(before: Version) -> Map:
    """The same again as the next version."""
    public = deepcopy(before.public)
    return public | {"version": public["version"] + 1, "previous": before.digest}


# ── changes ─────────────────────────────────────────────────────────────────────────────────────────


def new_epoch(public: Map) -> None:
    epoch = public["epoch"] + 1
    public.update(epoch=epoch, epoch_since=public["version"], epoch_key=public_sign(epoch_key(epoch)))


def adds(*devices: Device) -> Change:
    return lambda public: public["devices"].extend(entry(device, public["version"]) for device in devices)


def ends(device: Device, *streams: list[Any]) -> Change:
    def change(public: Map) -> None:
        for each in public["devices"]:
            if each["sign"] == device.public_sign:
                each["ended"] = {"version": public["version"], "streams": list(streams)}

    return change


def new_kit(public: Map) -> None:
    public["kit"] = kit(public["kit"]["generation"] + 1, public["version"])


def new_recovery(public: Map) -> None:
    generation = 1 if public["recovery"] is None else public["recovery"]["generation"] + 1
    public["recovery"] = recovery(generation, public["version"])


def sets(*path: Any, to: Any) -> Change:
    """Put a value at a place of the public section."""

    def change(public: Map) -> None:
        place: Any = public
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def drops(*path: Any) -> Change:
    def change(public: Map) -> None:
        place: Any = public
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def changed(public: Map, changes: Iterable[Change]) -> Map:
    after = deepcopy(public)
    for change in changes:
        change(after)
    return after


# ── signing ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Recipe:
    """How a version is put together; what is None follows from the rest."""

    signers: Sequence[bytes]
    sealed_part: bytes = b""
    sealed: bytes | None = None
    preamble: bytes | None = None
    signatures: Sequence[Any] | None = None
    label: bytes = b"memseal/v1/keyring-sign"
    more: Map = field(default_factory=Map)


def build(public: Map, recipe: Recipe) -> Version:
    """Return a version; without a sealed part it is a stripped one."""
    begin = recipe.preamble or version_preamble(public)
    open_part = begin + frame(0, pack(public))
    sealed = sha256(recipe.sealed_part or b"not shown").digest() if recipe.sealed is None else recipe.sealed
    digest = sha256(b"memseal/v1/keyring" + open_part + sealed).digest()
    signatures = recipe.signatures
    if signatures is None:
        signatures = [[public_sign(key), sign(key, recipe.label + digest)] for key in recipe.signers]
    approval = frame(1, pack({"sealed": sealed, "signatures": signatures} | recipe.more))
    content = open_part + approval + recipe.sealed_part
    return Version(public, content, digest, len(open_part) + len(approval), len(open_part))


def version_preamble(public: Map, **changes: Any) -> bytes:
    epoch, version = (_number(public.get(name)) for name in ("epoch", "version"))
    return preamble(KEYRING, **({"epoch": epoch, "stream": bytes(8) + u64(version)} | changes))


def _number(value: Any) -> int:
    """What a preamble can carry of a field that may be wrong."""
    return value if type(value) is int and 0 <= value < 1 << 32 else 1


def first(*changes: Change, signers: Sequence[bytes] = (ANN.sign, epoch_key(1))) -> Version:
    return build(changed(first_public(), changes), Recipe(signers))


def follow(before: Version, *changes: Change, by: Sequence[bytes] = (ANN.sign,), new: Sequence[bytes] = ()) -> Version:
    """The next version, signed by `by`, by the keys of `new` entries, and by the epoch keys."""
    public = changed(next_public(before), changes)
    epochs = dict.fromkeys((before.public["epoch"], public["epoch"]))
    return build(public, Recipe([*by, *new, *(epoch_key(epoch) for epoch in epochs)]))
