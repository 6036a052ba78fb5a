"""The beginning of a bundle: its key in a slot for a passphrase of its own (vault-format §8d)."""

from dataclasses import dataclass
from typing import Any, Final

from memseal.errors import BundlePassphrase, FormatError
from memseal.format import primitives
from memseal.format.content import chain_next, chain_start
from memseal.format.derivation import bundle_slot_key
from memseal.format.device_file import Stretch
from memseal.format.fields import Fields
from memseal.format.keyring import decode_cost, encode_cost
from memseal.format.keys import RecordKey
from memseal.format.part import Start
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.primitives import Cost, check_cost, sealed_size
from memseal.format.records import HEADER_SIZE, decode_header, frame
from memseal.format.values import decode_map, encode_value

WRITERS_COST: Final = Cost(memory=262144, passes=3, lanes=4)
"""What a writer takes at least (vault-format §8d): a bundle stands alone against guessing."""
_CONTEXT = b"memseal/v1/bundle-slot"
_INVALID = "bundle_invalid"


@dataclass(frozen=True)
class Beginning:
    """A bundle's preamble and record 0 as stored, the key of its records, and where they begin."""

    stored: bytes
    key: RecordKey
    start: Start

    @property
    def preamble(self) -> bytes:
        """The 64 bytes before the records."""
        return self.stored[:PREAMBLE_SIZE]


def begin_bundle(
    vault_id: bytes, bundle_id: bytes, key: RecordKey, salt: bytes, stretch: Stretch, cost: Cost = WRITERS_COST
) -> Beginning:
    """Return the beginning of a new bundle; `stretch` stands for its passphrase, the salt is random."""
    preamble = Preamble(Kind.BUNDLE, 0, vault_id, bundle_id, bytes(12)).to_bytes()
    slot_key = bundle_slot_key(stretch(salt, cost), salt, vault_id, bundle_id, cost)
    sealed = primitives.seal(slot_key, _CONTEXT + preamble, key.reveal())
    record = frame(0, encode_value({"salt": salt, "cost": encode_cost(cost), "sealed": sealed}))
    return _beginning(preamble + record, key)


def open_beginning(content: memoryview, stretch: Stretch) -> Beginning:
    """Return what a bundle begins with; raises `FormatError`, or `BundlePassphrase` where the passphrase is another."""
    preamble = decode_preamble(content, Kind.BUNDLE)
    if preamble.epoch or any(preamble.nonce):
        raise FormatError(_INVALID, "the bundle's preamble names an epoch or a nonce")
    place = decode_header(content, PREAMBLE_SIZE, 0)
    slot = Fields(_slot(content[place.offset + HEADER_SIZE : place.end]), _INVALID, "bundle")
    salt, sealed = slot.size("salt", 32), slot.size("sealed", sealed_size(RecordKey.SIZE))
    cost = decode_cost(slot.get("cost"), _INVALID)
    check_cost(cost)
    slot_key = bundle_slot_key(stretch(salt, cost), salt, preamble.vault_id, preamble.stream_id, cost)
    try:
        key = primitives.open_sealed(slot_key, _CONTEXT + content[:PREAMBLE_SIZE], sealed)
    except primitives.NotAuthentic:
        raise BundlePassphrase(
            "this passphrase does not open the bundle: give the one that was chosen at its export"
        ) from None
    return _beginning(bytes(content[: place.end]), RecordKey(key))


def _slot(body: memoryview) -> dict[str, Any]:
    try:
        return decode_map(body)
    except FormatError:
        raise FormatError(_INVALID, "the bundle's first record is not a map") from None


def _beginning(stored: bytes, key: RecordKey) -> Beginning:
    chain = chain_next(chain_start(stored[:PREAMBLE_SIZE]), stored[PREAMBLE_SIZE:])
    return Beginning(stored, key, Start(len(stored), 1, chain))
