"""Read a keyring version's public parts, and check its form (vault-format §7, rule K1)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memseal_server import container, packed

MAX_VERSION_BYTES = 4 * 1024 * 1024
MAX_ENTRIES = 1_024

_ID_SIZE = 16
_KEY_SIZE = 32
_WRAP_SIZE = 1_216
_SIGNATURE_SIZE = 64
_WHOLE_RECORDS = 4
_OPEN_RECORDS = 2
_NUMBERS_BELOW = 1 << 32
_LENGTHS_BELOW = 1 << 53

# Ed25519: the y coordinates of keys of small order, for which anyone could make signatures (vault-format §2).
_FIELD = (1 << 255) - 19
_SMALL_ORDER = frozenset(
    {
        0,
        1,
        _FIELD - 1,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    }
)


class Refused(Exception):
    """A version that breaks a rule: the rule's code, and a sentence without ids or keys."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class StreamEnd:
    """Where a version says that an ended device's stream ends: records, chain and length in bytes."""

    records: int
    chain: bytes
    length: int


@dataclass(frozen=True)
class Entry:
    """One device's key set; `ended_streams` is None while it is active, and `fields` is all that it says."""

    id: bytes
    sign: bytes
    wrap: bytes
    since: int
    ended_in: int | None
    ended_streams: Mapping[bytes, StreamEnd] | None
    fields: Mapping[str, Any]

    @property
    def active(self) -> bool:
        """Whether the device may still act."""
        return self.ended_in is None


@dataclass(frozen=True)
class Row:
    """From where on a log is needed: its segment's number, and length, records, chain and counter before it.

    `epoch` and `nonce` are those of the log's preamble.
    """

    epoch: int
    nonce: bytes
    segment: int
    length: int
    records: int
    chain: bytes
    counter: int


@dataclass(frozen=True)
class Floor:
    """A committed checkpoint: its id, its manifest's digest, its parts, and a row for each log, by stream id."""

    checkpoint: bytes
    digest: bytes
    parts: tuple[bytes, ...]
    rows: Mapping[bytes, Row]


@dataclass(frozen=True)
class Version:
    """A well-formed version (rule K1); `open_length` is where its stripped form ends, in bytes."""

    number: int
    previous: bytes
    vault: bytes
    epoch: int
    epoch_since: int
    epoch_key: bytes
    entries: tuple[Entry, ...]
    kit: Mapping[str, Any]
    recovery: Mapping[str, Any] | None
    passphrase_since: int
    floor: Floor | None
    fields: Mapping[str, Any]
    sealed: bytes
    sealed_found: bytes | None
    signatures: tuple[tuple[bytes, bytes], ...]
    digest: bytes
    open_length: int

    def active_signers(self) -> frozenset[bytes]:
        """Return the signing keys of the active devices."""
        return frozenset(entry.sign for entry in self.entries if entry.active)

    def row(self, stream: bytes) -> Row | None:
        """Return the floor's row for a stream, or None where the log is needed from its beginning."""
        return None if self.floor is None else self.floor.rows.get(stream)

    def base(self, stream: bytes) -> int:
        """Return the number of the first segment of a log that is needed."""
        row = self.row(stream)
        return 0 if row is None else row.segment


def read_version(data: bytes, vault: bytes) -> Version:
    """Return the version in `data`, whole or stripped; `Refused` where it breaks rule K1 or a limit."""
    if len(data) > MAX_VERSION_BYTES:
        raise Refused("keyring_limit", "A version has at most 4 MiB.")
    try:
        preamble = container.read_preamble(data, kind=container.KIND_KEYRING, vault=vault)
        records = list(container.walk(data, start=container.PREAMBLE_SIZE, first_index=0))
    except container.Broken as broken:
        raise Refused("keyring_malformed", f"The version's container is broken: {broken.code}.") from None
    _require(len(records) in (_OPEN_RECORDS, _WHOLE_RECORDS), "A version has two or four records.")
    public = _unpack(_body(data, records[0]))
    approval = _unpack(_body(data, records[1]))
    open_length = records[1].stop
    sealed_part = data[open_length:]
    sealed = _bytes(approval, "sealed", _KEY_SIZE)
    number = _integer(public, "version", least=1)
    epoch = _integer(public, "epoch", least=1)
    _require(
        preamble.epoch == epoch
        and preamble.stream == bytes(8) + number.to_bytes(8, "big")
        and preamble.nonce == bytes(container.NONCE_SIZE),
        "The preamble does not agree with the public section.",
    )
    head = data[: container.PREAMBLE_SIZE] + data[records[0].start : records[0].stop]
    return Version(
        number=number,
        previous=_bytes(public, "previous", _KEY_SIZE),
        vault=vault,
        epoch=epoch,
        epoch_since=_integer(public, "epoch_since", least=1),
        epoch_key=_signing_key(public, "epoch_key"),
        entries=_read_entries(public),
        kit=_read_kit(public),
        recovery=_read_recovery(public),
        passphrase_since=_integer(public, "passphrase_since", least=1),
        floor=_read_floor(public),
        fields=public,
        sealed=sealed,
        sealed_found=hashlib.sha256(sealed_part).digest() if sealed_part else None,
        signatures=_read_signatures(approval),
        digest=hashlib.sha256(b"memseal/v1/keyring" + head + sealed).digest(),
        open_length=open_length,
    )


def _require(holds: bool, detail: str) -> None:
    if not holds:
        raise Refused("keyring_malformed", detail)


def _body(data: bytes, record: container.Record) -> bytes:
    return data[record.start + container.RECORD_HEADER_SIZE : record.stop]


def _unpack(body: bytes) -> Mapping[str, Any]:
    try:
        value = packed.decode(body)
    except packed.MsgpackInvalid:
        raise Refused("keyring_malformed", "An open record is not one msgpack value.") from None
    return _map(value, "An open record")


def _map(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused("keyring_malformed", f"{what} is not a map.")
    return cast("Mapping[str, Any]", value)


def _array(value: Any, what: str, length: int | None = None) -> Sequence[Any]:
    entries = cast("Sequence[Any]", value) if isinstance(value, list) else None
    if entries is None or (length is not None and len(entries) != length):
        raise Refused("keyring_malformed", f"{what} is not an array of the right length.")
    return entries


def _bytes(fields: Mapping[str, Any], name: str, length: int) -> bytes:
    return _sized(fields.get(name), length, f"`{name}`")


def _signing_key(fields: Mapping[str, Any], name: str) -> bytes:
    key = _bytes(fields, name, _KEY_SIZE)
    y = int.from_bytes(key, "little") & ((1 << 255) - 1)
    _require(y < _FIELD and y not in _SMALL_ORDER, f"`{name}` is not a sound Ed25519 key.")
    return key


def _sized(value: Any, length: int, what: str) -> bytes:
    if not isinstance(value, bytes) or len(value) != length:
        raise Refused("keyring_malformed", f"{what} is not {length} bytes.")
    return value


def _integer(fields: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    return _whole(fields.get(name), least, f"`{name}`")


def _whole(value: Any, least: int, what: str, below: int = _NUMBERS_BELOW) -> int:
    # In Python True is an integer; in msgpack it is not.
    if type(value) is not int or not least <= value < below:
        raise Refused("keyring_malformed", f"{what} is not an integer from {least}.")
    return value


def _read_entries(public: Mapping[str, Any]) -> tuple[Entry, ...]:
    listed = _array(public.get("devices"), "`devices`")
    if len(listed) > MAX_ENTRIES:
        raise Refused("keyring_limit", "A version has at most 1,024 device entries.")
    entries = tuple(_read_entry(_map(fields, "A device entry")) for fields in listed)
    distinct: tuple[Callable[[Entry], bytes], ...] = (lambda entry: entry.sign, lambda entry: entry.wrap)
    for key in distinct:
        _require(len({key(entry) for entry in entries}) == len(entries), "A key stands twice.")
    active = [entry.id for entry in entries if entry.active]
    _require(len(set(active)) == len(active), "Two active entries have one id.")
    return entries


def _read_entry(fields: Mapping[str, Any]) -> Entry:
    _require("ended" in fields, "`ended` is missing.")
    ended = None if fields["ended"] is None else _map(fields["ended"], "`ended`")
    return Entry(
        id=_bytes(fields, "id", _ID_SIZE),
        sign=_signing_key(fields, "sign"),
        wrap=_bytes(fields, "wrap", _WRAP_SIZE),
        since=_integer(fields, "since", least=1),
        ended_in=None if ended is None else _integer(ended, "version", least=1),
        ended_streams=None if ended is None else _read_streams(ended),
        fields=fields,
    )


def _read_streams(ended: Mapping[str, Any]) -> Mapping[bytes, StreamEnd]:
    streams: dict[bytes, StreamEnd] = {}
    for listed in _array(ended.get("streams"), "`streams`"):
        stream, records, chain, length = _array(listed, "A stream's end", 4)
        name = _sized(stream, _ID_SIZE, "A stream id")
        _require(name not in streams, "A stream's end stands twice.")
        streams[name] = StreamEnd(
            records=_whole(records, 0, "A count of records"),
            chain=_sized(chain, _KEY_SIZE, "A chain"),
            length=_whole(length, container.PREAMBLE_SIZE, "A length", _LENGTHS_BELOW),
        )
    return streams


def _read_kit(public: Mapping[str, Any]) -> Mapping[str, Any]:
    kit = _read_opener(_map(public.get("kit"), "`kit`"))
    cost = _map(kit.get("cost"), "`cost`")
    _require(isinstance(cost.get("name"), str), "`name` of the cost is not a text.")
    _require(cost.keys() <= {"name", "memory", "passes", "lanes"}, "The cost has a field of its own.")
    for name in ("memory", "passes", "lanes"):
        _integer(cost, name)
    return kit


def _read_recovery(public: Mapping[str, Any]) -> Mapping[str, Any] | None:
    _require("recovery" in public, "`recovery` is missing.")
    recovery = public["recovery"]
    return None if recovery is None else _read_opener(_map(recovery, "`recovery`"))


def _read_opener(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    _integer(fields, "generation", least=1)
    _integer(fields, "since", least=1)
    _bytes(fields, "wrap", _WRAP_SIZE)
    _signing_key(fields, "request")
    return fields


def _read_floor(public: Mapping[str, Any]) -> Floor | None:
    _require("floor" in public, "`floor` is missing.")
    if public["floor"] is None:
        return None
    floor = _map(public["floor"], "`floor`")
    parts = tuple(_sized(part, _ID_SIZE, "A part id") for part in _array(floor.get("parts"), "`parts`"))
    _require(len(set(parts)) == len(parts), "A part stands twice in the floor.")
    return Floor(
        checkpoint=_bytes(floor, "checkpoint", _ID_SIZE),
        digest=_bytes(floor, "digest", _KEY_SIZE),
        parts=parts,
        rows=_read_rows(floor),
    )


def _read_rows(floor: Mapping[str, Any]) -> Mapping[bytes, Row]:
    rows: dict[bytes, Row] = {}
    for listed in _array(floor.get("logs"), "`logs`"):
        stream, epoch, nonce, segment, length, records, chain, counter = _array(listed, "A floor's row", 8)
        name = _sized(stream, _ID_SIZE, "A stream id")
        _require(name not in rows, "A log stands twice in the floor.")
        rows[name] = Row(
            epoch=_whole(epoch, 1, "An epoch"),
            nonce=_sized(nonce, container.NONCE_SIZE, "A nonce"),
            segment=_whole(segment, 0, "A number of a segment"),
            length=_whole(length, container.PREAMBLE_SIZE, "A length", _LENGTHS_BELOW),
            records=_whole(records, 0, "A count of records"),
            chain=_sized(chain, _KEY_SIZE, "A chain"),
            counter=_whole(counter, 0, "A counter", _LENGTHS_BELOW),
        )
    return rows


def _read_signatures(approval: Mapping[str, Any]) -> tuple[tuple[bytes, bytes], ...]:
    pairs = (_array(pair, "A signature", 2) for pair in _array(approval.get("signatures"), "`signatures`"))
    return tuple(
        (_sized(key, _KEY_SIZE, "A signing key"), _sized(signature, _SIGNATURE_SIZE, "A signature"))
        for key, signature in pairs
    )
