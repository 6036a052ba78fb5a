"""Whether a keyring version may follow another: rules K2 to K10 (vault-format §7), decided from public bytes."""

from dataclasses import replace

from memseal.errors import FormatError
from memseal.format import primitives
from memseal.format.keyring import DeviceEntry, KeyringVersion, KitEntry, PublicSection, signed_message
from memseal.format.preamble import vault_id_of


def accept(previous: KeyringVersion | None, candidate: KeyringVersion) -> None:
    """Raise `FormatError` with the broken rule's code unless `candidate` is accepted after `previous` (None: first)."""
    new = candidate.public
    _check_chain(previous, candidate)
    if previous is None:
        _check_first(candidate)
    else:
        old = previous.public
        _check_epoch(old, new)
        _check_devices(old, new)
        _check_kits(old, new)
        _check_epoch_needed(old, new)
    _check_floor(None if previous is None else previous.public, candidate)
    if candidate.boxes is not None:
        digest = primitives.sha256(candidate.sealed_part())
        _require(
            digest == candidate.sealed_digest,
            "keyring_sealed",
            "the sealed part is not the one that was signed",
        )
    _check_signatures(None if previous is None else previous.public, candidate)


def _require(condition: bool, code: str, detail: str) -> None:
    if not condition:
        raise FormatError(code, f"keyring version refused: {detail}")


def _check_chain(previous: KeyringVersion | None, candidate: KeyringVersion) -> None:
    number, digest = (1, bytes(32)) if previous is None else (previous.public.version + 1, previous.digest)
    _require(candidate.public.version == number, "keyring_chain", "its number is not the next")
    _require(candidate.public.previous == digest, "keyring_chain", "it does not follow the version before")


def _check_first(candidate: KeyringVersion) -> None:
    new = candidate.public
    good = (
        len(new.devices) == 1
        and vault_id_of(new.devices[0].sign) == candidate.vault_id
        and new.devices[0].ended is None
        and {new.epoch, new.epoch_since, new.devices[0].since, new.passphrase_since} == {1}
        and all(kit is None or (kit.generation, kit.since) == (1, 1) for kit in (new.kit, new.recovery))
    )
    _require(good, "keyring_first", "it is not a first version of this vault")


def _check_epoch(old: PublicSection, new: PublicSection) -> None:
    same = (new.epoch, new.epoch_since, new.epoch_key) == (old.epoch, old.epoch_since, old.epoch_key)
    next_one = new.epoch == old.epoch + 1 and new.epoch_since == new.version and new.epoch_key != old.epoch_key
    _require(same or next_one, "keyring_epoch", "its epoch does not follow")


def _check_devices(old: PublicSection, new: PublicSection) -> None:
    kept, added = new.devices[: len(old.devices)], new.devices[len(old.devices) :]
    _require(len(kept) == len(old.devices), "keyring_devices", "an entry is missing")
    for before, after in zip(old.devices, kept, strict=True):
        ends_now = before.ended is None and after.ended is not None and after.ended.version == new.version
        unchanged = after == before or (ends_now and replace(after, ended=None) == before)
        _require(unchanged, "keyring_devices", "an entry was changed")
    freed = {after.id for before, after in zip(old.devices, kept, strict=True) if before.ended is None and after.ended}
    listed = {entry.id for entry in old.devices}
    for entry in added:
        good = entry.ended is None and entry.since == new.version and (entry.id not in listed or entry.id in freed)
        _require(good, "keyring_devices", "an entry was added that may not be")
    _require(bool(new.active()), "keyring_devices", "no device is left")


def _check_kits(old: PublicSection, new: PublicSection) -> None:
    kit_changed = new.kit != old.kit
    _require(not kit_changed or _renewed(old.kit, new.kit, new.version), "keyring_kit", "the kit does not follow")
    if new.recovery != old.recovery:
        _require(
            new.recovery is not None and _renewed(old.recovery, new.recovery, new.version),
            "keyring_kit",
            "the recovery code does not follow",
        )
    same = new.passphrase_since == old.passphrase_since
    _require(
        same or (new.passphrase_since == new.version and kit_changed),
        "keyring_kit",
        "the passphrase changed without the kit",
    )


def _renewed(old: KitEntry | None, new: KitEntry, version: int) -> bool:
    if old is None:
        return (new.generation, new.since) == (1, version)
    return (
        (new.generation, new.since) == (old.generation + 1, version)
        and new.wrap != old.wrap
        and new.request != old.request
    )


def _check_epoch_needed(old: PublicSection, new: PublicSection) -> None:
    ended = len([entry for entry in new.devices if entry.ended]) != len([entry for entry in old.devices if entry.ended])
    changed = ended or new.kit != old.kit or new.recovery != old.recovery
    _require(not changed or new.epoch == old.epoch + 1, "keyring_epoch_needed", "it changes keys but not the epoch")


def _check_floor(old: PublicSection | None, candidate: KeyringVersion) -> None:
    new = candidate.public
    if new.floor == (None if old is None else old.floor):
        return
    only = old is not None and replace(new, version=old.version, previous=old.previous, floor=old.floor) == old
    _require(only, "keyring_floor", "it changes the floor and something else")
    follows = old is not None and new.floor is not None and new.floor.may_follow(old.floor)
    _require(follows, "keyring_floor", "its floor is below the one before")
    signers = [entry.sign for entry in new.devices]
    possible = new.floor is not None and new.floor.is_possible(candidate.vault_id, new.epoch, signers)
    _require(possible, "keyring_floor", "its floor lists a log that cannot be")


def _check_signatures(old: PublicSection | None, candidate: KeyringVersion) -> None:
    new = candidate.public
    base = old or new
    known = {entry.sign for entry in (() if old is None else old.devices)}
    added = {entry.sign for entry in new.devices if entry.sign not in known}
    active = {entry.sign for entry in base.active()}
    signers = {key for key, _ in candidate.signatures}
    _require(len(signers) == len(candidate.signatures), "keyring_signature", "one key signed it twice")
    _require(
        signers <= active | added | {base.epoch_key, new.epoch_key},
        "keyring_signature",
        "a stranger signed it",
    )
    _require(added | {base.epoch_key, new.epoch_key} <= signers, "keyring_signature", "a signature is missing")
    if old is not None:
        _require(
            bool(signers & active) or is_join(old, new),
            "keyring_signature",
            "no device of the vault signed it",
        )
    message = signed_message(candidate.digest)
    for key, signature in candidate.signatures:
        try:
            primitives.verify(key, signature, message)
        except primitives.NotAuthentic:
            raise FormatError("keyring_signature", "keyring version refused: a signature is wrong") from None


def is_join(old: PublicSection, new: PublicSection) -> bool:
    """Return whether nothing differs but one added entry with a new id."""
    added: tuple[DeviceEntry, ...] = new.devices[len(old.devices) :]
    only_added = (
        replace(new, version=old.version, previous=old.previous, devices=new.devices[: len(old.devices)]) == old
    )
    return only_added and len(added) == 1 and added[0].id not in {entry.id for entry in old.devices}
