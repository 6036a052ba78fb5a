"""Make a new device one of a vault's devices, by what opens it from outside (sync-protocol §6)."""

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memseal.errors import (
    DeviceEnded,
    FolderKeys,
    KeyringForked,
    MemsealError,
    RemoteAnswer,
    RemoteRefused,
    RemoteUnknown,
    RolledBack,
    VaultExists,
)
from memseal.format.acceptance import accept
from memseal.format.boxes import build_version, open_secrets
from memseal.format.derivation import epoch_signing_key
from memseal.format.device_file import KeySet, Stretch
from memseal.format.keyring import KeyringVersion, decode_version
from memseal.format.keys import SigningKey, VaultKey
from memseal.format.kit import parse_kit
from memseal.format.primitives import public_signing_key
from memseal.store.disk import Disk
from memseal.store.folder import VaultFolder
from memseal.sync.messages import Absent, Answer, Content, GetKeyring, PutKeyring, Refused, Stored
from memseal.transport import Transport
from memseal.vault.folder.device import Device
from memseal.vault.folder.keychain import version_file
from memseal.vault.folder.opening import stretcher
from memseal.vault.keys.begun import Begun
from memseal.vault.keys.creation import entry_for, new_device, new_key_set
from memseal.vault.keys.proving import DeviceOpener, KitOpener, Opener
from memseal.vault.remote import syncing

_SERVER_FAILED = 500  # the statuses of HTTP that do not say whether a request was done
_TRIES = 8  # another device can make a version between our look and our put


def join(path: Path, disk: Disk, kit_text: str, passphrase: str, remote: str | None, name: str) -> VaultFolder:
    """Join by emergency kit, and make the vault's folder."""
    kit, stretch = parse_kit(kit_text), stretcher(passphrase)
    return join_with(path, disk, KitOpener(kit, stretch), stretch, remote or kit.server, name)


def join_with(path: Path, disk: Disk, opener: Opener, stretch: Stretch, address: str, name: str) -> VaultFolder:
    """Join, and make the vault's folder; nothing is written anywhere before the vault key was proven."""
    check_place(path, disk, opener.name, address)
    begun = Begun(path, disk)
    device = begun.open(opener.vault_id, stretch)
    if device is not None:
        with contextlib.suppress(DeviceEnded):  # it had joined, and was removed since
            return enter(path, disk, opener, Joiner(device.keys, device.device_id, name), stretch, address)[0]
    return enter(path, disk, opener, Joiner.draw(name), stretch, address)[0]


def check_place(path: Path, disk: Disk, what: str, address: str) -> None:
    """Raise `RemoteUnknown` or `VaultExists` where a vault could not be joined at a path."""
    if not address:
        raise RemoteUnknown(f"the {what} names no server: give its address")
    if not disk.is_free(path):
        raise VaultExists(f"something is already at {path}: choose another path")


def enter(
    path: Path, disk: Disk, opener: Opener, joiner: "Joiner", stretch: Stretch, address: str
) -> tuple[VaultFolder, KeyringVersion]:
    """Let a joiner in, make the vault's folder, and return it with the version by which it joined."""
    begun, devices = Begun(path, disk), list[Device]()

    def device_at(version: KeyringVersion, server: str) -> Device:
        devices[:] = devices or [joiner.device(version, stretch)]  # once: each takes a derivation
        number = version.public.version
        marks = replace(devices[0].marks, keyring=number, digest=version.digest, rewritten=number, server=server)
        return devices[0].with_marks(marks)

    def announce(newest: KeyringVersion, server: str) -> None:
        begun.keep(device_at(newest, server))

    try:
        versions, address = join_there(opener, joiner, address, (), announce)
    except RemoteRefused as error:
        if error.status < _SERVER_FAILED:
            begun.forget()  # else it may be stored all the same
        raise
    device = device_at(versions[-1], address)

    def fill(folder: VaultFolder) -> None:
        for each in versions:
            folder.replace(version_file(each.public.version), each.content)
        device.save(folder)

    folder = VaultFolder.create(path, disk, secrets.token_hex(8), fill)
    begun.forget()
    return folder, joiner.joined_by(versions)


def resume(path: Path, disk: Disk, stretch: Stretch) -> VaultFolder | None:
    """Go on with a join that was cut short after the server had its version; None where there is no such join."""
    begun = Begun(path, disk)
    device = begun.open(None, stretch)
    if device is None:
        return None
    joiner = Joiner(device.keys, device.device_id, "")
    try:
        return enter(path, disk, DeviceOpener(device), joiner, stretch, device.marks.server)[0]
    except RemoteRefused as error:
        if error.code not in ("key_unknown", "key_ended", "vault_unknown"):
            raise
        return None


@dataclass(frozen=True)
class Joiner:
    """A device that is about to join: its keys, id and name."""

    keys: KeySet
    device_id: bytes
    name: str

    @classmethod
    def draw(cls, name: str) -> "Joiner":
        """Draw keys and id."""
        return cls(new_key_set(), secrets.token_bytes(16), name)

    def version(self, newest: KeyringVersion, vault_key: VaultKey) -> tuple[KeyringVersion, SigningKey]:
        """Return the version that adds this device and nothing else, and the epoch key that may put it."""
        public, hidden = newest.public, open_secrets(newest, vault_key)
        number = public.version + 1
        entry = entry_for(self.keys, self.device_id, number)
        joined = replace(public, version=number, previous=newest.digest, devices=(*public.devices, entry))
        hidden = replace(hidden, names={**hidden.names, self.device_id: self.name})
        epoch_key = epoch_signing_key(vault_key, newest.vault_id, public.epoch)
        signers = [epoch_key, self.keys.sign]
        return build_version(newest.vault_id, joined, vault_key, hidden, newest.slots, signers), epoch_key

    @property
    def signing_public(self) -> bytes:
        """The public signing key."""
        return public_signing_key(self.keys.sign)

    def is_in(self, version: KeyringVersion) -> bool:
        """Return whether a version lists this device as active."""
        entry = version.public.entry_of(self.signing_public)
        return entry is not None and entry.ended is None

    def joined_by(self, versions: Sequence[KeyringVersion]) -> KeyringVersion:
        """Return the first version that lists it."""
        return next(each for each in versions if self.is_in(each))

    def device(self, version: KeyringVersion, stretch: Stretch) -> Device:
        """Return this device as its file is to hold it."""
        return new_device(version, self.keys, self.device_id, stretch)


def join_there(
    opener: Opener,
    joiner: Joiner,
    address: str,
    known: Sequence[KeyringVersion],
    announce: Callable[[KeyringVersion, str], None] | None = None,
) -> tuple[list[KeyringVersion], str]:
    """Join on a server, and return the keyring with the version that did it, and the name that the server has in marks.

    `known` is the beginning of the keyring as it is here; it is not fetched again. `announce` is told the newest
    version, and the server's name, when they are proven and before anything is stored there.
    """
    transport = syncing.open_transport(address, opener.vault_id, opener.request_key())
    try:
        for _ in range(_TRIES):
            versions = _fetch_keyring(transport, opener, known)
            vault_key = opener.prove(versions)
            if joiner.is_in(versions[-1]):
                return versions, transport.address  # by an earlier try, whose answer was lost
            if versions[-1].public.entry_of(joiner.signing_public) is not None:
                raise DeviceEnded("this device was removed before it had wholly joined: join again")
            version, signer = joiner.version(versions[-1], vault_key)
            if announce is not None:
                announce(versions[-1], transport.address)
            writer = syncing.open_transport(transport.address, opener.vault_id, signer)
            try:
                if put_version(writer, version):
                    return [*versions, version], transport.address
            finally:
                writer.close()
    finally:
        transport.close()
    raise RemoteRefused("keyring_conflict", 409, "other devices kept changing the keyring: try again")


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
    try:
        there = decode_version(fetch(transport, version.public.version), version.vault_id)
    except RemoteRefused as error:
        if error.code != "key_unknown":
            raise
        return False  # the key that this version would have begun: another version came first
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


def _fetch_keyring(transport: Transport, opener: Opener, known: Sequence[KeyringVersion]) -> list[KeyringVersion]:
    """Return the keyring, each version accepted after the one before, the newest whole."""
    try:
        newest = decode_version(fetch(transport, None), opener.vault_id)
    except RemoteRefused as error:
        if error.code != "key_unknown":
            raise
        raise opener.unknown() from error
    if newest.public.version < len(known):
        raise RolledBack("the server shows an older keyring than this device has: do not change keys on it")
    versions = list(known)
    for number in range(len(known) + 1, newest.public.version + 1):
        last = number == newest.public.version
        version = newest if last else decode_version(fetch(transport, number, public=True), opener.vault_id)
        accept(versions[-1] if versions else None, version)
        versions.append(version)
    if versions[-1].digest != newest.digest:
        raise KeyringForked("the server shows another keyring than this device has: do not trust it")
    return versions
