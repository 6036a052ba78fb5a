"""Decide from public bytes whether a keyring version is accepted (vault-format §7, rules K2 to K10)."""

import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memseal_server import container
from memseal_server.versions import Entry, Floor, Refused, Row, Version

_NO_DIGEST = bytes(32)
_LEAST_RECORD = container.RECORD_HEADER_SIZE + container.MIN_SEALED_BODY
_LARGEST_RECORD = container.RECORD_HEADER_SIZE + container.MAX_RECORD_BODY
# Rows of a floor times entries: whose log a row is takes a hash for each pair (rule K8).
_MAX_PAIRS = 1 << 22


def vault_id(signing_key: bytes) -> bytes:
    """Return the id of the vault whose first signing key this is."""
    return hashlib.sha256(b"memseal/v1/vault" + signing_key).digest()[:16]


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
    check_sealed(candidate)
    _check_signatures(previous, candidate)


def check_sealed(candidate: Version) -> None:
    """Refuse a whole version whose sealed part is not the approved one (rule K9)."""
    if candidate.sealed_found is not None and candidate.sealed_found != candidate.sealed:
        raise Refused("keyring_sealed", "The sealed part is not the one that was approved.")


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
    return after.ended_in == number and unended == before.fields


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
    before = None if previous is None else previous.fields["floor"]
    if candidate.fields["floor"] == before:
        return
    if previous is None or candidate.floor is None or not _is_next_floor(previous.floor, candidate.floor):
        raise Refused("keyring_floor", "A floor is nil at first, then never goes back, and keeps all its logs.")
    if _other_fields(previous) != _other_fields(candidate):
        raise Refused("keyring_floor", "A version with a new floor changes nothing else.")
    rows = candidate.floor.rows
    judged = len(rows) * len(candidate.entries) <= _MAX_PAIRS
    if not judged or not all(_is_possible(candidate, stream, row) for stream, row in rows.items()):
        raise Refused("keyring_floor", "A floor lists only logs that can be: by a listed key, of an epoch that began.")


def _is_next_floor(before: Floor | None, after: Floor) -> bool:
    if before is None:
        return True
    return after.checkpoint != before.checkpoint and all(
        _is_next_row(row, after.rows.get(stream)) for stream, row in before.rows.items()
    )


def _is_next_row(before: Row, after: Row | None) -> bool:
    if after is None or (after.epoch, after.nonce) != (before.epoch, before.nonce):
        return False
    if after.length == before.length:
        return after == before
    return (
        after.length > before.length
        and after.segment >= before.segment
        and after.records >= before.records
        and after.counter >= before.counter
    )


def _is_possible(candidate: Version, stream: bytes, row: Row) -> bool:
    """Whether there can be a log that ends as a row says: whatever a refill brings, it need not be here."""
    size = row.length - container.PREAMBLE_SIZE
    return (
        row.epoch <= candidate.epoch
        and row.counter <= min(row.epoch << 32, (1 << 53) - 1)
        and max(1, row.segment) <= row.records
        and row.records * _LEAST_RECORD <= size <= row.records * _LARGEST_RECORD
        and any(container.stream_id(candidate.vault, entry.sign, row.nonce) == stream for entry in candidate.entries)
    )


def _other_fields(version: Version) -> Mapping[str, Any]:
    return {name: value for name, value in version.fields.items() if name not in ("version", "previous", "floor")}


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
