"""Change the passphrase, or take on a change made on another device (vault-format §7 and §8)."""

from collections.abc import Mapping
from dataclasses import replace

from memseal.errors import PassphraseWrong, RemoteRefused
from memseal.format.boxes import open_device_box, open_slot, slot_cost
from memseal.format.device_file import KeySet, Stretch, open_key_set
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.log import End
from memseal.format.primitives import check_passphrase, public_signing_key
from memseal.transport import Transport
from memseal.vault.folder.device import read_device_file
from memseal.vault.folder.keychain import load_keyring
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.creation import new_key_set
from memseal.vault.keys.cutoffs import ends_of
from memseal.vault.keys.joining import fetch
from memseal.vault.keys.rekeying import adopt, follow_stored, renew
from memseal.vault.keys.versions import Change
from memseal.vault.remote import syncing


def change(opened: Opened, old: Stretch, new: Stretch, new_passphrase: str, remote: str | None) -> None:
    """Replace this device's keys by ones behind the new passphrase; each step is safe to be the last."""
    check_passphrase(new_passphrase)
    file = read_device_file(opened.folder)
    if open_key_set(file, file.slots[0], old) is None:
        raise PassphraseWrong("the old passphrase is wrong: nothing was changed")
    pending = [keys for slot in file.slots[1:] if (keys := open_key_set(file, slot, new)) is not None]
    server = opened.device.marks.server
    done = _finish_there(opened, pending, new, remote or server) if server else _finish_here(opened, pending, new)
    if not done:
        renew(opened, lambda: _change(opened, new), remote, new)


def _change(opened: Opened, new: Stretch) -> Change:
    device = opened.device
    keys = replace(new_key_set(), local_before=device.keys.local)
    ended = {device.signing_public: _own_ends(opened), **_replaced(opened)}
    if _is_proven(opened, new):
        return Change(keys=keys, ended=ended)
    return Change(keys=keys, ended=ended, kit=new, new_passphrase=True)


def _own_ends(opened: Opened) -> Mapping[bytes, End]:
    """Return where this device's streams end: what the server has of them; without one, everything is written anew.

    A stream whose end is damaged is left out, so that all of it that can be read is written anew.
    """
    if not opened.device.marks.server:
        return {}
    return ends_of(opened, opened.device.signing_public)


def _replaced(opened: Opened) -> Mapping[bytes, Mapping[bytes, End]]:
    """Return the keys of the device whose place in this folder this one took, and where its streams end.

    While a log of it is damaged at its end it is not ended: nobody could write again what comes after the damage.
    """
    old = opened.device.marks.replaces
    logs = {name: log for name, log in opened.logbook.logs.items() if log.stream.owner.id == old}
    if not all(log.end.chain for log in logs.values()):
        return {}
    ends = dict[bytes, dict[bytes, End]]()
    for entry in opened.keychain.keyring.public.active():
        if entry.id == old:
            ends[entry.sign] = {name: log.end for name, log in logs.items() if log.stream.owner.sign == entry.sign}
    return ends


def _is_proven(opened: Opened, new: Stretch) -> bool:
    """Return whether another device changed the passphrase, to `new`; False where the change is our own.

    Raises `KitOrPassphrase` where another passphrase than `new` counts.
    """
    newest = opened.keychain.keyring.newest
    entry = newest.public.entry_of(opened.device.signing_public)
    if entry is None or entry.since >= newest.public.passphrase_since:
        return False
    open_slot(newest, new(*slot_cost(newest)), opened.keychain.secrets.kit_secret)
    return True


# ── a change that was broken off ────────────────────────────────────────────────────────────────────


def _finish_here(opened: Opened, pending: list[KeySet], new: Stretch) -> bool:
    """Complete a change that failed after its version was stored in the folder."""
    stored, known = load_keyring(opened.folder, opened.device.vault_id), opened.keychain.keyring.public.version
    listed = {entry.sign for entry in stored.public.active()}
    if pending and public_signing_key(pending[0].sign) in listed:
        _take_on(opened, stored.versions[known:], pending[0], new)
        return True
    follow_stored(opened)
    return False


def _finish_there(opened: Opened, pending: list[KeySet], new: Stretch, address: str) -> bool:
    """Complete a change whose answer was lost: the server may have the version that lists the pending keys."""
    if not pending:
        return False
    reader = syncing.open_transport(address, opened.device.vault_id, pending[0].sign)
    try:
        versions = _newer_versions(opened, reader)
    except RemoteRefused as error:
        if error.code not in ("key_unknown", "key_ended"):
            raise
        return False  # the server never took it
    finally:
        reader.close()
    _take_on(opened, tuple(versions), pending[0], new)
    return True


def _take_on(opened: Opened, versions: tuple[KeyringVersion, ...], keys: KeySet, new: Stretch) -> None:
    vault_key = open_device_box(versions[-1], keys.wrap, public_signing_key(keys.sign))
    adopt(opened, versions, keys, vault_key, new)


def _newer_versions(opened: Opened, reader: Transport) -> list[KeyringVersion]:
    first = opened.keychain.keyring.public.version + 1
    newest = decode_version(fetch(reader, None), opened.device.vault_id)
    between = [
        decode_version(fetch(reader, number), opened.device.vault_id) for number in range(first, newest.public.version)
    ]
    return [*between, newest]
