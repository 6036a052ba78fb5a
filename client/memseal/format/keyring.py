"""One keyring version: its bytes, its parts, its digest (vault-format §7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memseal.errors import FormatError
from memseal.format.fields import U53, Fields
from memseal.format.floor import Floor, decode_floor
from memseal.format.log import End
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.primitives import PUBLIC_WRAP_SIZE, SIGNATURE_SIZE, WRAPPED_SIZE, Cost, sha256
from memseal.format.records import HEADER_SIZE, frame, places
from memseal.format.values import decode_value, encode_value

VERSION_LIMIT = 4 << 20
DEVICES_LIMIT = 1024
_FIELDS = frozenset("version previous epoch epoch_since epoch_key devices kit recovery passphrase_since floor".split())
_ENTRY_FIELDS = frozenset("id sign wrap since ended".split())
_ENDED_FIELDS = frozenset("version streams".split())
_RECOVERY_FIELDS = frozenset("generation since wrap request".split())
_KIT_FIELDS = _RECOVERY_FIELDS | {"cost"}
_RECOVERY_SLOT_FIELDS = frozenset("for generation sealed".split())
_KIT_SLOT_FIELDS = _RECOVERY_SLOT_FIELDS | {"salt"}
_COST_FIELDS = frozenset("name memory passes lanes".split())


@dataclass(frozen=True)
class Ended:
    """When a device's entry ended, and where each of its streams ends."""

    version: int
    streams: Mapping[bytes, End]
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class DeviceEntry:
    """One key set of a device: id (16), public signing (32) and wrapping (1,216) key, the version that added it."""

    id: bytes
    sign: bytes
    wrap: bytes
    since: int
    ended: Ended | None = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class KitEntry:
    """The kit's (or recovery code's) public keys; `cost` is None for a recovery code."""

    generation: int
    since: int
    wrap: bytes
    request: bytes
    cost: Cost | None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class PublicSection:
    """What everyone may know of a version, servers too; `others` here and in its parts are fields of newer software."""

    version: int
    previous: bytes
    epoch: int
    epoch_since: int
    epoch_key: bytes
    devices: tuple[DeviceEntry, ...]
    kit: KitEntry
    passphrase_since: int
    recovery: KitEntry | None = None
    floor: Floor | None = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def active(self) -> tuple[DeviceEntry, ...]:
        """Return the entries that are not ended."""
        return tuple(entry for entry in self.devices if entry.ended is None)

    def entry_of(self, signing_key: bytes) -> DeviceEntry | None:
        """Return the entry, active or ended, with this public signing key."""
        return next((entry for entry in self.devices if entry.sign == signing_key), None)


@dataclass(frozen=True)
class Slot:
    """The kit's or recovery code's slot as stored: generation, salt (32; empty for a code), sealed bytes."""

    generation: int
    salt: bytes
    sealed: bytes
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Slots:
    """What opens a version from outside; `others` are slots of newer software, carried on as they are."""

    kit: Slot | None
    recovery: Slot | None = None
    others: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class KeyringVersion:
    """One version as stored, with its parts; `boxes` is None where it is stripped.

    Boxes and slots come from bytes that decide nothing: what in them is malformed is as if it were not there.
    """

    content: bytes
    vault_id: bytes
    public: PublicSection
    sealed_digest: bytes
    signatures: tuple[tuple[bytes, bytes], ...]
    boxes: Mapping[bytes, bytes] | None
    slots: Slots
    secrets: bytes | None
    open_size: int
    approval_offset: int

    @property
    def digest(self) -> bytes:
        """The digest that the next version names and signatures are over."""
        return digest_of(self.content[: self.approval_offset], self.sealed_digest)

    @property
    def public_digest(self) -> bytes:
        """SHA-256 of preamble and public section: what a kit slot pins."""
        return sha256(self.content[: self.approval_offset])

    def stripped(self) -> bytes:
        """Return the version without its sealed part."""
        return self.content[: self.open_size]

    def sealed_part(self) -> bytes:
        """Return the stored bytes of the sealed part; empty where it is stripped."""
        return self.content[self.open_size :]


def digest_of(open_part: bytes, sealed_digest: bytes) -> bytes:
    """Return the digest of a version from its preamble and record 0, and the hash of its sealed part."""
    return sha256(b"memseal/v1/keyring", open_part, sealed_digest)


def signed_message(digest: bytes) -> bytes:
    """Return what the signatures of a version are over."""
    return b"memseal/v1/keyring-sign" + digest


def version_preamble(vault_id: bytes, epoch: int, version: int) -> bytes:
    """Return the preamble of a version."""
    return Preamble(Kind.KEYRING, epoch, vault_id, bytes(8) + version.to_bytes(8, "big"), bytes(12)).to_bytes()


# ── decoding ────────────────────────────────────────────────────────────────────────────────────────


def decode_version(content: bytes, vault_id: bytes | None = None) -> KeyringVersion:
    """Return a version's parts, checked by rule K1; raises `FormatError`."""
    if len(content) > VERSION_LIMIT:
        raise FormatError("keyring_limit", "a keyring version is larger than 4 MiB")
    preamble = decode_preamble(content, Kind.KEYRING, vault_id)
    found = places(memoryview(content))
    if len(found) not in (2, 4):
        raise FormatError("keyring_malformed", "a keyring version has two records, or four")
    bodies = [content[place.offset + HEADER_SIZE : place.end] for place in found]
    public = _decode_public(bodies[0])
    if preamble != Preamble(
        Kind.KEYRING, public.epoch, preamble.vault_id, bytes(8) + public.version.to_bytes(8, "big"), bytes(12)
    ):
        raise FormatError("keyring_malformed", "the preamble of a keyring version disagrees with it")
    sealed_digest, signatures = _decode_approval(bodies[1])
    boxes, slots = _decode_boxes(bodies[2]) if len(found) == 4 else (None, Slots(None))
    return KeyringVersion(
        content=content,
        vault_id=preamble.vault_id,
        public=public,
        sealed_digest=sealed_digest,
        signatures=signatures,
        boxes=boxes,
        slots=slots,
        secrets=bodies[3] if len(found) == 4 else None,
        open_size=found[1].end,
        approval_offset=found[1].offset,
    )


def _decode_public(body: bytes) -> PublicSection:
    fields = _fields(body, "public section")
    entries = fields.array("devices")
    if len(entries) > DEVICES_LIMIT:
        raise FormatError("keyring_limit", "a keyring lists more than 1,024 devices")
    devices = tuple(_decode_entry(entry) for entry in entries)
    recovery, floor = fields.optional("recovery"), fields.optional("floor")
    public = PublicSection(
        version=fields.count("version", 1),
        previous=fields.size("previous", 32),
        epoch=fields.count("epoch", 1),
        epoch_since=fields.count("epoch_since", 1),
        epoch_key=fields.signing_key("epoch_key"),
        devices=devices,
        kit=_decode_kit(fields.get("kit"), with_cost=True),
        passphrase_since=fields.count("passphrase_since", 1),
        recovery=None if recovery is None else _decode_kit(recovery, with_cost=False),
        floor=None if floor is None else decode_floor(floor, "keyring_malformed"),
        others=fields.others(_FIELDS),
    )
    _check_unique(public, fields)
    return public


def _check_unique(public: PublicSection, fields: Fields) -> None:
    devices, active = public.devices, [entry.id for entry in public.active()]
    fields.check(len({entry.sign for entry in devices}) == len(devices), "devices")
    fields.check(len({entry.wrap for entry in devices}) == len(devices), "devices")
    fields.check(len(set(active)) == len(active), "devices")


def _decode_entry(value: Any) -> DeviceEntry:
    fields = Fields(value, "keyring_malformed", "device")
    ended = fields.optional("ended")
    return DeviceEntry(
        id=fields.size("id", 16),
        sign=fields.signing_key("sign"),
        wrap=fields.size("wrap", PUBLIC_WRAP_SIZE),
        since=fields.count("since", 1),
        ended=None if ended is None else _decode_ended(ended),
        others=fields.others(_ENTRY_FIELDS),
    )


def _decode_ended(value: Any) -> Ended:
    fields = Fields(value, "keyring_malformed", "ended")
    streams = dict[bytes, End]()
    for stream_id, records, chain, length in fields.tuples("streams", 4):
        row = Fields(
            {"stream": stream_id, "records": records, "chain": chain, "length": length},
            "keyring_malformed",
            "ended",
        )
        end = End(row.count("length", PREAMBLE_SIZE, U53), row.count("records"), row.size("chain", 32))
        fields.check(row.size("stream", 16) not in streams, "streams")
        streams[stream_id] = end
    return Ended(fields.count("version", 1), streams, fields.others(_ENDED_FIELDS))


def _decode_kit(value: Any, with_cost: bool) -> KitEntry:
    fields = Fields(value, "keyring_malformed", "kit")
    return KitEntry(
        generation=fields.count("generation", 1),
        since=fields.count("since", 1),
        wrap=fields.size("wrap", PUBLIC_WRAP_SIZE),
        request=fields.signing_key("request"),
        cost=decode_cost(fields.get("cost"), "keyring_malformed") if with_cost else None,
        others=fields.others(_KIT_FIELDS if with_cost else _RECOVERY_FIELDS),
    )


def decode_cost(value: Any, code: str) -> Cost:
    """Return a derivation's cost; bounds are checked where it is used."""
    fields = Fields(value, code, "cost")
    if fields.text("name") != "argon2id":
        raise FormatError(
            "kdf_unknown", "the passphrase protection is of a kind this version does not know: update memseal"
        )
    fields.check(not fields.others(_COST_FIELDS), "name")
    return Cost(fields.count("memory"), fields.count("passes"), fields.count("lanes"))


def _decode_approval(body: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
    fields = _fields(body, "approval")
    rows = fields.tuples("signatures", 2)
    for key, signature in rows:
        row = Fields({"key": key, "signature": signature}, "keyring_malformed", "approval")
        row.size("key", 32)
        row.size("signature", SIGNATURE_SIZE)
    return fields.size("sealed", 32), tuple((key, signature) for key, signature in rows)


def _decode_boxes(body: bytes) -> tuple[dict[bytes, bytes], Slots]:
    boxes, kit, recovery, others = dict[bytes, bytes](), None, None, list[Mapping[str, Any]]()
    try:
        fields = _fields(body, "boxes")
        for key, wrapped in fields.tuples("boxes", 2):
            row = Fields({"key": key, "wrapped": wrapped}, "keyring_malformed", "box")
            boxes[row.size("key", PUBLIC_WRAP_SIZE)] = row.size("wrapped", WRAPPED_SIZE)
        for value in fields.array("slots"):
            entry = Fields(value, "keyring_malformed", "slot")
            match entry.text("for"):
                case "kit":
                    kit = _decode_slot(entry, entry.size("salt", 32), _KIT_SLOT_FIELDS)
                case "recovery":
                    recovery = _decode_slot(entry, b"", _RECOVERY_SLOT_FIELDS)
                case _:
                    others.append(value)
    except FormatError:
        return {}, Slots(None)
    return boxes, Slots(kit, recovery, tuple(others))


def _decode_slot(fields: Fields, salt: bytes, known: frozenset[str]) -> Slot:
    return Slot(fields.count("generation", 1), salt, fields.octets("sealed"), fields.others(known))


def _fields(body: bytes, name: str) -> Fields:
    try:
        return Fields(decode_value(body), "keyring_malformed", name)
    except FormatError as error:
        raise FormatError("keyring_malformed", str(error)) from None


# ── encoding ────────────────────────────────────────────────────────────────────────────────────────


def encode_open_part(vault_id: bytes, public: PublicSection) -> bytes:
    """Return the preamble and record 0."""
    return version_preamble(vault_id, public.epoch, public.version) + frame(0, encode_value(_public_value(public)))


def encode_approval(sealed_digest: bytes, signatures: list[tuple[bytes, bytes]]) -> bytes:
    """Return record 1."""
    rows = [[key, signature] for key, signature in signatures]
    return frame(1, encode_value({"sealed": sealed_digest, "signatures": rows}))


def encode_boxes(boxes: Mapping[bytes, bytes], slots: Slots) -> bytes:
    """Return record 2."""
    known = (("kit", slots.kit), ("recovery", slots.recovery))
    values = [*slots.others, *(_slot_value(purpose, slot) for purpose, slot in known if slot is not None)]
    return frame(2, encode_value({"boxes": [list(box) for box in boxes.items()], "slots": values}))


def _slot_value(purpose: str, slot: Slot) -> dict[str, Any]:
    value = {"for": purpose, "generation": slot.generation, "sealed": slot.sealed, **slot.others}
    return {**value, "salt": slot.salt} if slot.salt else value


def encode_cost(cost: Cost) -> dict[str, Any]:
    """Return a cost as it stands in a keyring or device file."""
    return {"name": "argon2id", "memory": cost.memory, "passes": cost.passes, "lanes": cost.lanes}


def _public_value(public: PublicSection) -> dict[str, Any]:
    return {
        "version": public.version,
        "previous": public.previous,
        "epoch": public.epoch,
        "epoch_since": public.epoch_since,
        "epoch_key": public.epoch_key,
        "devices": [_entry_value(entry) for entry in public.devices],
        "kit": _kit_value(public.kit),
        "recovery": None if public.recovery is None else _kit_value(public.recovery),
        "passphrase_since": public.passphrase_since,
        "floor": None if public.floor is None else public.floor.to_value(),
        **public.others,
    }


def _entry_value(entry: DeviceEntry) -> dict[str, Any]:
    ended = None
    if entry.ended is not None:
        streams = [[stream, end.records, end.chain, end.length] for stream, end in entry.ended.streams.items()]
        ended = {"version": entry.ended.version, "streams": streams, **entry.ended.others}
    value = {"id": entry.id, "sign": entry.sign, "wrap": entry.wrap, "since": entry.since, "ended": ended}
    return {**value, **entry.others}


def _kit_value(kit: KitEntry) -> dict[str, Any]:
    value: dict[str, Any] = {
        "generation": kit.generation,
        "since": kit.since,
        "wrap": kit.wrap,
        "request": kit.request,
        **kit.others,
    }
    return value if kit.cost is None else {**value, "cost": encode_cost(kit.cost)}
