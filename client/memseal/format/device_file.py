"""The device file: private keys behind the passphrase, and marks (vault-format §8)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memseal.errors import DeviceFileDamaged, FormatError
from memseal.format.derivation import device_slot_key, marks_key
from memseal.format.fields import Fields
from memseal.format.keyring import decode_cost, encode_cost
from memseal.format.keys import LocalKey, RecordKey, SigningKey, StretchedPassphrase, WrappingKey
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.primitives import Cost, check_cost
from memseal.format.records import HEADER_SIZE, frame, open_record, places, seal_record
from memseal.format.values import decode_map, decode_value, encode_value

Stretch = Callable[[bytes, Cost], StretchedPassphrase]


@dataclass(frozen=True)
class KeySet:
    """A device's private keys; `local_before` opens marks that an unfinished passphrase change left behind."""

    sign: SigningKey
    wrap: WrappingKey
    local: LocalKey
    local_before: LocalKey | None = None


@dataclass(frozen=True)
class DeviceSlot:
    """One sealed key set as stored: state (`current` or `pending`), salt, cost, sealed record body."""

    state: str
    salt: bytes
    cost: Cost
    body: bytes


@dataclass(frozen=True)
class DeviceFile:
    """The parts of a device file as stored."""

    vault_id: bytes
    device_id: bytes
    slots: tuple[DeviceSlot, ...]
    marks: bytes

    @property
    def preamble(self) -> bytes:
        """The 64 bytes before the records."""
        return device_preamble(self.vault_id, self.device_id)

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        listed = [{"state": slot.state, "salt": slot.salt, "cost": encode_cost(slot.cost)} for slot in self.slots]
        bodies = [encode_value({"slots": listed}), *(slot.body for slot in self.slots), self.marks]
        return self.preamble + b"".join(frame(index, body) for index, body in enumerate(bodies))


def device_preamble(vault_id: bytes, device_id: bytes) -> bytes:
    """Return the preamble of a device file."""
    return Preamble(Kind.DEVICE, 0, vault_id, device_id, bytes(12)).to_bytes()


def decode_device_file(content: bytes) -> DeviceFile:
    """Return the parts; `DeviceFileDamaged` names what is wrong."""
    try:
        preamble = decode_preamble(content, Kind.DEVICE)
        bodies = [content[place.offset + HEADER_SIZE : place.end] for place in places(memoryview(content))]
        if content[:PREAMBLE_SIZE] != device_preamble(preamble.vault_id, preamble.stream_id) or len(bodies) < 3:
            raise FormatError("record_content", "records are missing")
        fields = Fields(decode_value(bodies[0]), "record_content", "device file")
        listed = [Fields(value, "record_content", "slot") for value in fields.array("slots")]
        if [slot.text("state") for slot in listed] not in (["current"], ["current", "pending"]) or len(bodies) != len(
            listed
        ) + 2:
            raise FormatError("record_content", "its slots are not what they must be")
        slots = tuple(
            DeviceSlot(
                slot.text("state"),
                slot.size("salt", 32),
                decode_cost(slot.get("cost"), "record_content"),
                body,
            )
            for slot, body in zip(listed, bodies[1:-1], strict=True)
        )
    except FormatError as error:
        if error.code in ("version_unknown", "suite_unknown", "kdf_unknown"):
            raise
        raise DeviceFileDamaged(f"device.mseal is damaged ({error.code}): join again with the emergency kit") from error
    for slot in slots:
        check_cost(slot.cost)
    return DeviceFile(preamble.vault_id, preamble.stream_id, slots, bodies[-1])


def seal_key_set(
    file_id: tuple[bytes, bytes], state: str, salt: bytes, cost: Cost, keys: KeySet, stretch: Stretch
) -> DeviceSlot:
    """Return a slot for the vault and device ids given, sealed under what `stretch` makes of the passphrase."""
    vault_id, device_id = file_id
    value = {
        "sign": keys.sign.reveal(),
        "wrap": keys.wrap.reveal(),
        "local": keys.local.reveal(),
        "local_before": None if keys.local_before is None else keys.local_before.reveal(),
    }
    key = device_slot_key(stretch(salt, cost), salt, vault_id, device_id, cost)
    index = 1 if state == "current" else 2
    record = seal_record(key, device_preamble(vault_id, device_id), index, encode_value(value))
    return DeviceSlot(state, salt, cost, record[HEADER_SIZE:])


def open_key_set(file: DeviceFile, slot: DeviceSlot, stretch: Stretch) -> KeySet | None:
    """Return the key set, or None where the passphrase does not open it."""
    key = device_slot_key(stretch(slot.salt, slot.cost), slot.salt, file.vault_id, file.device_id, slot.cost)
    index = 1 if slot.state == "current" else 2
    try:
        content = open_record(key, file.preamble, index, memoryview(slot.body))
        return _decode_key_set(Fields(decode_value(content), "record_content", "key set"))
    except FormatError as error:
        if error.code == "record_sealed":
            return None
        raise DeviceFileDamaged(f"device.mseal is damaged ({error.code}): join again with the emergency kit") from error


def _decode_key_set(fields: Fields) -> KeySet:
    before = None if fields.get("local_before") is None else LocalKey(fields.size("local_before", 32))
    return KeySet(
        SigningKey(fields.size("sign", 32)),
        WrappingKey(fields.size("wrap", 32)),
        LocalKey(fields.size("local", 32)),
        before,
    )


def seal_marks(
    file_id: tuple[bytes, bytes], slots: Sequence[DeviceSlot], local: LocalKey, marks: dict[str, Any]
) -> bytes:
    """Return the stored body of the marks record that comes after these slots."""
    record = seal_record(marks_key(local, *file_id), device_preamble(*file_id), len(slots) + 1, encode_value(marks))
    return record[HEADER_SIZE:]


def open_marks(file: DeviceFile, local: LocalKey) -> dict[str, Any]:
    """Return the marks; raises `FormatError` where they do not open under this local key."""
    key: RecordKey = marks_key(local, file.vault_id, file.device_id)
    content = open_record(key, file.preamble, len(file.slots) + 1, memoryview(file.marks))
    return decode_map(content)
