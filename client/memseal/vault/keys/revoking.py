"""Remove a device: its keys end, and all keys that it knew are renewed, in one version (vault-format §7, *Revoke*)."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from memseal.errors import DeviceIsThis, DeviceUnseen
from memseal.format.device_file import Stretch
from memseal.format.keyring import DeviceEntry
from memseal.format.keys import RecoverySecret
from memseal.format.kit import RecoveryCode
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.cutoffs import readable_ends_of
from memseal.vault.keys.naming import find_device
from memseal.vault.keys.rekeying import emergency_kit, follow_stored, prove_passphrase, renew
from memseal.vault.keys.versions import Change, recovery_generation


@dataclass(frozen=True)
class CutOff:
    """Where a stream of a removed device ends: what it wrote beyond does not count."""

    stream: str
    records: int
    length_bytes: int


@dataclass(frozen=True)
class Revocation:
    """A device that was removed, and the secrets that take the place of those that it may know."""

    id: str
    name: str
    cut_offs: Sequence[CutOff]
    emergency_kit: str = field(repr=False)
    recovery_code: str | None = field(repr=False)
    """Kept nowhere; None where the vault has none."""


def revoke(
    opened: Opened, wanted: str, passphrase: Stretch, seen: Collection[str] | None, remote: str | None
) -> Revocation:
    """Remove a device; `seen` are the ids of the devices that the user knows of (None: all that are here now).

    Raises `DeviceUnknown`, `DeviceIsThis`, `PassphraseWrong` or `DeviceUnseen`; then nothing has changed.
    """
    follow_stored(opened)
    device = find_device(opened, wanted)
    if device == opened.device.device_id:
        raise DeviceIsThis("this is the device in your hands: remove it on another device of the vault")
    # Key sets, not ids: who has the vault's keys could put keys of their own under an id that is known.
    known = {entry.sign for entry in _active(opened) if seen is None or entry.id.hex() in seen}
    secret = RecoverySecret(secrets.token_bytes(32))

    def change() -> Change:
        find_device(opened, device.hex())  # another device may have removed it since
        prove_passphrase(opened, passphrase)
        _check_seen(opened, known, device)
        ended = {entry.sign: readable_ends_of(opened, entry.sign) for entry in _active(opened) if entry.id == device}
        has_code = opened.keychain.keyring.public.recovery is not None
        return Change(ended=ended, kit=passphrase, recovery=secret if has_code else None)

    prove_passphrase(opened, passphrase)
    renew(opened, change, remote)
    return _revocation(opened, device, secret)


def _active(opened: Opened) -> Sequence[DeviceEntry]:
    return opened.keychain.keyring.public.active()


def _check_seen(opened: Opened, known: Collection[bytes], target: bytes) -> None:
    """Stop where the new epoch's key would go to a device that the user has not seen."""
    names = opened.keychain.secrets.names
    strangers = [entry.id for entry in _active(opened) if entry.sign not in known and entry.id != target]
    if strangers:
        called = ", ".join(f"{names.get(each, '')} ({each.hex()[:8]})".strip() for each in strangers)
        detail = (
            f"not seen before, or with new keys: {called}. Nothing was changed: look at the devices, then try again"
        )
        raise DeviceUnseen(detail, tuple(each.hex() for each in strangers))


def _revocation(opened: Opened, device: bytes, secret: RecoverySecret) -> Revocation:
    public, vault_id, server = opened.keychain.keyring.public, opened.device.vault_id, opened.device.marks.server
    code = RecoveryCode(vault_id, secret, recovery_generation(public), server) if public.recovery is not None else None
    ended = [entry.ended for entry in public.devices if entry.id == device and entry.ended is not None][-1]
    return Revocation(
        id=device.hex(),
        name=opened.keychain.secrets.names.get(device, ""),
        cut_offs=[CutOff(stream.hex(), end.records, end.length) for stream, end in ended.streams.items()],
        emergency_kit=emergency_kit(opened),
        recovery_code=None if code is None else code.to_text(),
    )
