"""Decide from public bytes whether a keyring version is accepted (vault-format §7, rules K1 to K10)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memseal_server import container, packed

MAX_VERSION_BYTES = 4 * 1024 * 1024
MAX_ENTRIES = 1_024

_KEY_SIZE = 32
_WRAP_SIZE = 1_216
_SIGNATURE_SIZE = 64
_WHOLE_RECORDS = 4
_OPEN_RECORDS = 2
_NO_DIGEST = bytes(32)


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
    fields: Mapping[str, Any]
    sealed: bytes
    sealed_found: bytes | None
    signatures: tuple[tuple[bytes, bytes], ...]
    digest: bytes
    open_length: int
    size_bytes: int

    def active_signers(self) -> frozenset[bytes]:
        """Return the signing keys of the active devices."""
        return frozenset(entry.sign for entry in self.entries if entry.active)


def vault_id(signing_key: bytes) -> bytes:
    """Return the id of the vault whose first signing key this is."""
    return hashlib.sha256(b"memseal/v1/vault" + signing_key).digest()[:16]


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
        and preamble.nonce == bytes(12),
        "The preamble does not agree with the public section.",
    )
    head = data[: container.PREAMBLE_SIZE] + data[records[0].start : records[0].stop]
    return Version(
        number=number,
        previous=_bytes(public, "previous", _KEY_SIZE),
        vault=vault,
        epoch=epoch,
        epoch_since=_integer(public, "epoch_since", least=1),
        epoch_key=_bytes(public, "epoch_key", _KEY_SIZE),
        entries=_read_entries(public),
        kit=_read_kit(public),
        recovery=_read_recovery(public),
        passphrase_since=_integer(public, "passphrase_since", least=1),
        fields=public,
        sealed=sealed,
        sealed_found=hashlib.sha256(sealed_part).digest() if sealed_part else None,
        signatures=_read_signatures(approval),
        digest=hashlib.sha256(b"memseal/v1/keyring" + head + sealed).digest(),
        open_length=open_length,
        size_bytes=len(data),
    )


def accept(previous: Version | None, candidate: Version) -> None:
    """Refuse with the first rule of K2 to K10 that the candidate breaks after `previous`; None is: there is none."""
    _check_chain(previous, candidate)
    if previous is None:
        _check_first(candidate)
    else:
        _check_epoch(previous, candidate)
        _check_devices(previous, candidate)
        _check_kit(previous, candidate)
        _check_epoch_needed(previous, candidate)
    _check_floor(previous, candidate)
    _check_sealed(candidate)
    _check_signatures(previous, candidate)


def is_join(previous: Version, candidate: Version) -> bool:
    """Whether nothing differs but `version`, `previous` and one added entry whose id is new (rule K10)."""
    changing = ("version", "previous", "devices")
    before = {name: value for name, value in previous.fields.items() if name not in changing}
    after = {name: value for name, value in candidate.fields.items() if name not in changing}
    kept = len(previous.entries)
    return (
        before == after
        and len(candidate.entries) == kept + 1
        and candidate.fields["devices"][:kept] == previous.fields["devices"]
        and candidate.entries[kept].id not in {entry.id for entry in previous.entries}
    )


# K1: types, counts, lengths.


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


def _sized(value: Any, length: int, what: str) -> bytes:
    if not isinstance(value, bytes) or len(value) != length:
        raise Refused("keyring_malformed", f"{what} is not {length} bytes.")
    return value


def _integer(fields: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    return _whole(fields.get(name), least, f"`{name}`")


def _whole(value: Any, least: int, what: str) -> int:
    # In Python True is an integer; in msgpack it is not.
    if type(value) is not int or value < least:
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
        id=_bytes(fields, "id", 16),
        sign=_bytes(fields, "sign", _KEY_SIZE),
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
        name = _sized(stream, 16, "A stream id")
        _require(name not in streams, "A stream's end stands twice.")
        streams[name] = StreamEnd(
            records=_whole(records, 0, "A count of records"),
            chain=_sized(chain, _KEY_SIZE, "A chain"),
            length=_whole(length, 0, "A length"),
        )
    return streams


def _read_kit(public: Mapping[str, Any]) -> Mapping[str, Any]:
    kit = _read_opener(_map(public.get("kit"), "`kit`"))
    cost = _map(kit.get("cost"), "`cost`")
    _require(isinstance(cost.get("name"), str), "`name` of the cost is not a text.")
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
    _bytes(fields, "request", _KEY_SIZE)
    return fields


def _read_signatures(approval: Mapping[str, Any]) -> tuple[tuple[bytes, bytes], ...]:
    pairs = (_array(pair, "A signature", 2) for pair in _array(approval.get("signatures"), "`signatures`"))
    return tuple(
        (_sized(key, _KEY_SIZE, "A signing key"), _sized(signature, _SIGNATURE_SIZE, "A signature"))
        for key, signature in pairs
    )


# K2 to K10, in the table's order.


def _check_chain(previous: Version | None, candidate: Version) -> None:
    number, digest = (1, _NO_DIGEST) if previous is None else (previous.number + 1, previous.digest)
    if candidate.number != number or candidate.previous != digest:
        raise Refused("keyring_chain", "The version does not continue the newest one: fetch it and start again.")


def _check_first(candidate: Version) -> None:
    openers = [candidate.kit] if candidate.recovery is None else [candidate.kit, candidate.recovery]
    first = (
        len(candidate.entries) == 1
        and candidate.vault == vault_id(candidate.entries[0].sign)
        and candidate.entries[0].active
        and candidate.epoch == candidate.epoch_since == candidate.passphrase_since == 1
        and candidate.entries[0].since == 1
        and all(opener["since"] == opener["generation"] == 1 for opener in openers)
    )
    if not first:
        raise Refused("keyring_first", "A first version has one active device, whose key names the vault.")


def _check_epoch(previous: Version, candidate: Version) -> None:
    kept = (candidate.epoch, candidate.epoch_since, candidate.epoch_key) == (
        previous.epoch,
        previous.epoch_since,
        previous.epoch_key,
    )
    changed = (
        candidate.epoch == previous.epoch + 1
        and candidate.epoch_since == candidate.number
        and candidate.epoch_key != previous.epoch_key
    )
    if not kept and not changed:
        raise Refused("keyring_epoch", "An epoch stays whole, or is the next one with a key of its own.")


def _check_devices(previous: Version, candidate: Version) -> None:
    kept = len(previous.entries)
    # The keys of added entries are new by rule K1: an entry never leaves the list, and no key stands twice.
    holds = (
        len(candidate.entries) >= kept
        and all(
            _is_kept(before, after, candidate.number)
            for before, after in zip(previous.entries, candidate.entries, strict=False)
        )
        and all(_is_added(previous, candidate, entry) for entry in candidate.entries[kept:])
        and any(entry.active for entry in candidate.entries)
    )
    if not holds:
        raise Refused("keyring_devices", "Entries stay as they are; one may end, and new ones come after them.")


def _is_kept(before: Entry, after: Entry, number: int) -> bool:
    if before.fields == after.fields:
        return True
    unended = {**after.fields, "ended": None}
    return before.active and after.ended_in == number and unended == before.fields


def _is_added(previous: Version, candidate: Version, entry: Entry) -> bool:
    kept = len(previous.entries)
    namesakes = [
        (before, after)
        for before, after in zip(previous.entries, candidate.entries[:kept], strict=True)
        if before.id == entry.id
    ]
    free = not namesakes or any(before.active and not after.active for before, after in namesakes)
    return entry.active and entry.since == candidate.number and free


def _check_kit(previous: Version, candidate: Version) -> None:
    kit_changed = candidate.kit != previous.kit
    holds = (
        (not kit_changed or _is_next_opener(previous.kit, candidate.kit, candidate.number))
        and _is_next_recovery(previous, candidate)
        and (
            candidate.passphrase_since == previous.passphrase_since
            or (candidate.passphrase_since == candidate.number and kit_changed)
        )
    )
    if not holds:
        raise Refused("keyring_kit", "Kit and recovery stay, or are the next generation with keys of their own.")


def _is_next_opener(before: Mapping[str, Any], after: Mapping[str, Any], number: int) -> bool:
    return bool(
        after["generation"] == before["generation"] + 1
        and after["since"] == number
        and after["wrap"] != before["wrap"]
        and after["request"] != before["request"]
    )


def _is_next_recovery(previous: Version, candidate: Version) -> bool:
    before, after = previous.recovery, candidate.recovery
    if before == after:
        return True
    if before is None or after is None:
        return after is not None and after["generation"] == 1 and after["since"] == candidate.number
    return _is_next_opener(before, after, candidate.number)


def _check_epoch_needed(previous: Version, candidate: Version) -> None:
    ended = any(
        before.active and not after.active for before, after in zip(previous.entries, candidate.entries, strict=False)
    )
    needed = ended or candidate.kit != previous.kit or candidate.recovery != previous.recovery
    if needed and candidate.epoch == previous.epoch:
        raise Refused("keyring_epoch_needed", "What ends a key begins a new epoch.")


def _check_floor(previous: Version | None, candidate: Version) -> None:
    floor = None if previous is None else previous.fields.get("floor")
    if "floor" not in candidate.fields or candidate.fields["floor"] != floor:
        raise Refused("keyring_floor", "The floor is nil in this version of the format.")


def _check_sealed(candidate: Version) -> None:
    if candidate.sealed_found is not None and candidate.sealed_found != candidate.sealed:
        raise Refused("keyring_sealed", "The sealed part is not the one that was approved.")


def _check_signatures(previous: Version | None, candidate: Version) -> None:
    kept = 0 if previous is None else len(previous.entries)
    added = frozenset(entry.sign for entry in candidate.entries[kept:])
    voters = frozenset[bytes]() if previous is None else previous.active_signers()
    epoch_keys = {candidate.epoch_key} if previous is None else {previous.epoch_key, candidate.epoch_key}
    signers = [key for key, _ in candidate.signatures]
    present = frozenset(signers)
    # The counts come before the curve: a list of forty thousand signatures would take seconds to verify.
    holds = (
        len(present) == len(signers)
        and present <= added | voters | epoch_keys
        and present >= added | epoch_keys
        and (previous is None or bool(present & voters) or is_join(previous, candidate))
        and all(_verifies(key, signature, candidate.digest) for key, signature in candidate.signatures)
    )
    if not holds:
        raise Refused("keyring_signature", "The version is not signed by all who must, and by no one else.")


def _verifies(key: bytes, signature: bytes, digest: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, b"memseal/v1/keyring-sign" + digest)
    except InvalidSignature:
        return False
    return True
