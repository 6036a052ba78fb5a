"""Make a new device one of a vault's devices, by emergency kit and passphrase (sync-protocol §6)."""

import secrets
from dataclasses import replace
from pathlib import Path

from memseal.errors import (
    FolderKeys,
    FormatError,
    KitOrPassphrase,
    MemsealError,
    RemoteAnswer,
    RemoteRefused,
    RemoteUnknown,
    VaultExists,
)
from memseal.format.acceptance import accept
from memseal.format.boxes import build_version, open_kit_box, open_secrets, open_slot, slot_cost
from memseal.format.derivation import epoch_signing_key, kit_request_key
from memseal.format.device_file import KeySet, Stretch
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.keys import SigningKey, VaultKey
from memseal.format.kit import Kit, parse_kit
from memseal.store.disk import Disk
from memseal.store.folder import VaultFolder
from memseal.sync.messages import Absent, Answer, Content, GetKeyring, PutKeyring, Refused, Stored
from memseal.transport import Transport
from memseal.vault.creation import entry_for, new_device, new_key_set
from memseal.vault.keychain import version_file
from memseal.vault.opening import stretcher
from memseal.vault.syncing import open_transport

_TRIES = 8  # another device can make a version between our look and our put


def join(path: Path, disk: Disk, kit_text: str, passphrase: str, remote: str | None, name: str) -> VaultFolder:
    """Join, and make the vault's folder; nothing is written anywhere before the vault key was proven."""
    kit = parse_kit(kit_text)
    address = remote or kit.server
    if not address:
        raise RemoteUnknown("the emergency kit names no server: give its address")
    if not disk.is_free(path):
        raise VaultExists(f"something is already at {path}: choose another path")
    request_key = kit_request_key(kit.secret, kit.vault_id, kit.generation)
    transport = open_transport(address, kit.vault_id, request_key)
    try:
        return _join(path, disk, kit, stretcher(passphrase), transport, name)
    finally:
        transport.close()


def _join(path: Path, disk: Disk, kit: Kit, stretch: Stretch, transport: Transport, name: str) -> VaultFolder:
    keys, device_id = new_key_set(), secrets.token_bytes(16)
    for _ in range(_TRIES):
        versions, vault_key = _prove(transport, kit, stretch)
        version, signer = _join_version(versions[-1], vault_key, keys, device_id, name)
        writer = open_transport(transport.address, kit.vault_id, signer)
        try:
            if put_version(writer, version):
                break
        finally:
            writer.close()
    else:
        raise RemoteRefused("keyring_conflict", 409, "other devices kept changing the keyring: try again")
    device = new_device(version, keys, device_id, stretch)
    device = device.with_marks(replace(device.marks, server=transport.address))

    def fill(folder: VaultFolder) -> None:
        for each in (*versions, version):
            folder.replace(version_file(each.public.version), each.content)
        device.save(folder)

    return VaultFolder.create(path, disk, secrets.token_hex(8), fill)


def put_version(transport: Transport, version: KeyringVersion, reader: Transport | None = None) -> bool:
    """Store a keyring version and read it back (with another key, where the version ends this one's).

    False where another version came first. Raises `RemoteRefused`.
    """
    back = reader or transport
    number = version.public.version
    answer = transport.send(PutKeyring(number, version.content))
    if isinstance(answer, Refused) and answer.code == "keyring_conflict":
        # A lost answer to an earlier try of ours looks the same: what is there decides.
        return _is_there(back, version)
    if not isinstance(answer, Stored):
        raise refusal(answer)
    if not _is_there(back, version):
        raise RemoteRefused("keyring_conflict", 409, "the server did not keep what it confirmed: do not trust it")
    return True


def _is_there(transport: Transport, version: KeyringVersion) -> bool:
    """Return whether a server has this version, whole."""
    there = decode_version(fetch(transport, version.public.version), version.vault_id)
    return there.digest == version.digest and there.boxes is not None


def fetch(transport: Transport, number: int | None, *, public: bool = False) -> bytes:
    """Return a keyring version's bytes (None: the newest); raises `RemoteRefused` or `FolderKeys`."""
    if not transport.carries_keys:
        raise FolderKeys("joining and changing keys need a server: give its address")
    answer = transport.send(GetKeyring(number, public))
    if not isinstance(answer, Content):
        raise refusal(answer)
    return answer.content


def refusal(answer: Answer) -> MemsealError:
    """Return the error that an answer is, where another was wanted."""
    if isinstance(answer, Refused):
        return RemoteRefused(answer.code, answer.status, answer.detail)
    if isinstance(answer, Absent):
        return RemoteRefused("vault_unknown", 404, "the server does not have this vault")
    return RemoteAnswer("the remote answered something else than was asked for")


def _prove(transport: Transport, kit: Kit, stretch: Stretch) -> tuple[list[KeyringVersion], VaultKey]:
    """Return the keyring, all public sections checked, the newest whole, and the vault key that the kit opens.

    The slot pins the version that made it, and a chain of accepted versions leads from there to the newest: a server
    cannot show a keyring of its own making.
    """
    try:
        newest = decode_version(fetch(transport, None), kit.vault_id)
    except RemoteRefused as error:
        if error.code != "key_unknown":
            raise
        raise KitOrPassphrase("the server does not know this emergency kit: it was replaced by a newer one") from error
    content = open_slot(newest, stretch(*slot_cost(newest)), kit.secret)
    versions = list[KeyringVersion]()
    for number in range(1, newest.public.version + 1):
        last = number == newest.public.version
        version = newest if last else decode_version(fetch(transport, number, public=True), kit.vault_id)
        accept(versions[-1] if versions else None, version)
        versions.append(version)
    if content.version > len(versions) or versions[content.version - 1].public_digest != content.public:
        raise FormatError("slot_mismatch", "the server shows a keyring that is not this vault's: do not trust it")
    return versions, open_kit_box(newest, content.seed)


def _join_version(
    newest: KeyringVersion, vault_key: VaultKey, keys: KeySet, device_id: bytes, name: str
) -> tuple[KeyringVersion, SigningKey]:
    """Return the version that adds this device and nothing else, and the epoch key that may put it."""
    public, hidden = newest.public, open_secrets(newest, vault_key)
    if newest.slot is None:
        raise FormatError("keyring_missing", "the keyring version has no kit slot")
    number = public.version + 1
    entry = entry_for(keys, device_id, number)
    joined = replace(public, version=number, previous=newest.digest, devices=(*public.devices, entry))
    secrets_after = replace(hidden, names={**hidden.names, device_id: name})
    epoch_key = epoch_signing_key(vault_key, newest.vault_id, public.epoch)
    signers = [epoch_key, keys.sign]
    return build_version(newest.vault_id, joined, vault_key, secrets_after, newest.slot, signers), epoch_key
