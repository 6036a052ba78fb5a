"""The keyring as this device has it: versions in their order, and the vault keys they give."""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from memseal.errors import BoxMissing, FormatError
from memseal.format.acceptance import accept
from memseal.format.boxes import Secrets, open_device_box, open_secrets
from memseal.format.derivation import log_key
from memseal.format.fields import Fields
from memseal.format.keyring import DeviceEntry, Ended, KeyringVersion, PublicSection, decode_version
from memseal.format.keys import RecordKey, VaultKey, WrappingKey
from memseal.format.log import End
from memseal.format.preamble import Kind, decode_preamble, stream_id_of
from memseal.format.values import decode_value
from memseal.store.folder import KEYRING, VaultFolder

BRANCH = f"{KEYRING}/branch.mseal"
"""The versions of another branch, while this device goes over to it: they count in place of those from there on."""


def version_file(version: int) -> str:
    """Return the name of a version's file in the vault's folder."""
    return f"{KEYRING}/{version:08d}.mseal"


@dataclass(frozen=True)
class Keyring:
    """All versions, each accepted after the one before; the newest is whole."""

    versions: tuple[KeyringVersion, ...]

    @property
    def newest(self) -> KeyringVersion:
        """The version that counts."""
        return self.versions[-1]

    @property
    def public(self) -> PublicSection:
        """The public section of the version that counts."""
        return self.newest.public

    def followed_by(self, candidate: KeyringVersion) -> "Keyring":
        """Return the keyring with one more version; raises `FormatError` where it is not accepted."""
        accept(self.newest, candidate)
        return Keyring((*self.versions, candidate))

    def epoch_digest(self, epoch: int) -> bytes | None:
        """Return the digest of the version that began an epoch, or None."""
        return next((each.digest for each in self.versions if each.public.epoch == epoch), None)


def load_keyring(folder: VaultFolder, vault_id: bytes) -> Keyring:
    """Return the keyring in a vault's folder, checked from version 1 on; raises `FormatError`."""
    names = [stem for stem in folder.stems(KEYRING) if len(stem) == 8 and stem.isascii() and stem.isdigit()]
    branch = _branch(folder)
    keyring: Keyring | None = None
    for number in range(1, max(branch, default=len(names)) + 1):
        content = branch.get(number) or folder.read(version_file(number))
        if content is None:
            raise FormatError("keyring_missing", f"keyring version {number} is missing: restore it, or join again")
        version = decode_version(content, vault_id)
        keyring = _first(version) if keyring is None else keyring.followed_by(version)
    if keyring is None or keyring.newest.boxes is None:
        raise FormatError("keyring_missing", "the newest keyring version is missing: restore it, or join again")
    return keyring


def _branch(folder: VaultFolder) -> dict[int, bytes]:
    """Return the versions of a branch that this device was going over to, by number."""
    content = folder.read(BRANCH)
    if content is None:
        return {}
    fields = Fields({"versions": decode_value(content)}, "keyring_malformed", BRANCH)
    versions = [Fields({"one": each}, "keyring_malformed", BRANCH).octets("one") for each in fields.array("versions")]
    return {decode_version(each).public.version: each for each in versions}


def _first(version: KeyringVersion) -> Keyring:
    accept(None, version)
    return Keyring((version,))


def save_version(folder: VaultFolder, version: KeyringVersion) -> None:
    """Write a version durably; the one before keeps its sealed part until `strip`."""
    folder.replace(version_file(version.public.version), version.content)


def strip(folder: VaultFolder, version: KeyringVersion) -> bool:
    """Take a version's sealed part off its file, and return whether there was one."""
    name = version_file(version.public.version)
    size = folder.size(name)
    whole = size is not None and size > len(version.stripped())
    if whole:
        folder.replace(name, version.stripped())
    return whole


@dataclass(frozen=True)
class Stream:
    """What is known of a log before its records are read; `limit` is where it ends if its owner was ended."""

    preamble: bytes
    epoch: int
    stream_id: bytes
    owner: DeviceEntry
    key: RecordKey
    limit: End | None


@dataclass(frozen=True)
class Keychain:
    """A keyring with the vault keys it gives to this device; `former` is what versions before the newest gave."""

    keyring: Keyring
    vault_key: VaultKey
    secrets: Secrets
    vault_id: bytes
    former: Mapping[int, Mapping[int, VaultKey]] = field(default_factory=dict[int, Mapping[int, VaultKey]])
    """By version and epoch: only keys that the newest lacks. They are on disk in those versions' sealed parts."""

    @classmethod
    def open(cls, keyring: Keyring, wrapping_key: WrappingKey, signing_public: bytes) -> "Keychain":
        """Open this device's box in the newest version, and in each older one that is whole here (§7, *Older keys*)."""
        former = dict[int, Mapping[int, VaultKey]]()
        for version in keyring.versions[:-1]:
            if version.boxes is not None:
                # One that does not open gives nothing: it was made before this device had its present keys.
                with contextlib.suppress(BoxMissing, FormatError):
                    vault_key = open_device_box(version, wrapping_key, signing_public)
                    former[version.public.version] = _keys(version, vault_key, open_secrets(version, vault_key))
        return cls.of(keyring, open_device_box(keyring.newest, wrapping_key, signing_public), former)

    @classmethod
    def of(
        cls, keyring: Keyring, vault_key: VaultKey, former: Mapping[int, Mapping[int, VaultKey]] | None = None
    ) -> "Keychain":
        """Take a keyring whose newest vault key is known, and what older versions give."""
        hidden = open_secrets(keyring.newest, vault_key)
        known = _keys(keyring.newest, vault_key, hidden)
        more = {number: _without(keys, known) for number, keys in (former or {}).items()}
        return cls(keyring, vault_key, hidden, keyring.newest.vault_id, {n: keys for n, keys in more.items() if keys})

    def followed_by(self, keyring: Keyring, vault_key: VaultKey) -> "Keychain":
        """Take a keyring that goes on from this one; what this one gives is not forgotten."""
        mine = _keys(self.keyring.newest, self.vault_key, self.secrets)
        return Keychain.of(keyring, vault_key, {**self.former, self.keyring.public.version: mine})

    def vault_key_of(self, epoch: int) -> VaultKey | None:
        """Return the vault key of an epoch, or None where it is not known (yet, or any more)."""
        if epoch == self.keyring.public.epoch:
            return self.vault_key
        given = (self.secrets.history, *(self.former[number] for number in sorted(self.former, reverse=True)))
        return next((keys[epoch] for keys in given if epoch in keys), None)

    def epochs(self) -> set[int]:
        """Return the epochs whose vault key is known."""
        given = (self.secrets.history, *self.former.values())
        return {self.keyring.public.epoch}.union(*given)

    def still_needed(self, epochs: Collection[int]) -> set[int]:
        """Return the older versions whose sealed part alone gives a key of one of these epochs."""
        left, needed = set(epochs), set[int]()
        for number in sorted(self.former, reverse=True):
            if left & self.former[number].keys():
                needed.add(number)
                left -= self.former[number].keys()
        return needed

    def stream(self, preamble: bytes, stream_id: bytes) -> Stream:
        """Check a log's preamble against the keyring; raises `FormatError`."""
        parsed = decode_preamble(preamble, Kind.LOG, self.vault_id)
        vault_key, digest = self.vault_key_of(parsed.epoch), self.keyring.epoch_digest(parsed.epoch)
        if digest is None and parsed.epoch > self.keyring.public.epoch:
            raise FormatError("keyring_behind", "written under newer keys: sync with the server first")
        if vault_key is None or digest is None:
            raise FormatError("epoch_mismatch", "written under keys this vault does not have")
        if parsed.nonce[:8] != digest[:8]:
            raise FormatError("stream_mismatch", "begun on another keyring of this vault")
        owner = self._owner(parsed.nonce, stream_id)
        if parsed.stream_id != stream_id or owner is None:
            raise FormatError(
                "stream_mismatch",
                "not a log of a device that this keyring lists: one that joined since? Sync with the server first",
            )
        limit = None if owner.ended is None else self._limit(owner.ended, stream_id)
        return Stream(preamble, parsed.epoch, stream_id, owner, log_key(vault_key, self.vault_id, stream_id), limit)

    def _limit(self, ended: Ended, stream_id: bytes) -> End:
        """Return where an ended device's stream ends: never below the floor, whose checkpoint holds it up to there."""
        floor, limit = self.keyring.public.floor, ended.streams.get(stream_id, End(0, 0, b""))
        row = None if floor is None else floor.rows.get(stream_id)
        return row.end if row is not None and row.end.length > limit.length else limit

    def _owner(self, nonce: bytes, stream_id: bytes) -> DeviceEntry | None:
        for entry in self.keyring.public.devices:
            if stream_id_of(self.vault_id, entry.sign, nonce) == stream_id:
                return entry
        return None


def _keys(version: KeyringVersion, vault_key: VaultKey, hidden: Secrets) -> dict[int, VaultKey]:
    """Return the vault keys that a version gives, by epoch."""
    return {**hidden.history, version.public.epoch: vault_key}


def _without(keys: Mapping[int, VaultKey], known: Collection[int]) -> dict[int, VaultKey]:
    return {epoch: key for epoch, key in keys.items() if epoch not in known}
