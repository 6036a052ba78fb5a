"""What opens a vault from outside, and the proof that a keyring is that vault's (vault-format §7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memseal.errors import (
    FormatError,
    KitOrPassphrase,
    MemsealError,
    RecoveryCodeWrong,
    RemoteRefused,
    RolledBack,
)
from memseal.format.boxes import (
    SlotContent,
    open_device_box,
    open_kit_box,
    open_recovery_box,
    open_recovery_slot,
    open_slot,
    slot_cost,
)
from memseal.format.derivation import kit_request_key, recovery_request_key
from memseal.format.device_file import Stretch
from memseal.format.keyring import KeyringVersion
from memseal.format.keys import SigningKey, VaultKey, WrappingKey
from memseal.format.kit import Kit, RecoveryCode
from memseal.vault.folder.device import Device

_FOREIGN = "the server shows a keyring that is not this vault's: do not trust it"


class Opener(Protocol):
    """Emergency kit and passphrase, a recovery code, or what another device handed over."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def vault_id(self) -> bytes:
        """The vault that it opens."""
        ...

    def request_key(self) -> SigningKey:
        """Return the key that reads the keyring from a server."""
        ...

    def prove(self, versions: Sequence[KeyringVersion]) -> VaultKey:
        """Return the newest vault key from a keyring whose versions were accepted one after the other.

        Raises an error where the keyring is not this vault's.
        """
        ...

    def unknown(self) -> MemsealError:
        """Return the error for a server that does not know its request key."""
        ...


class SlotOpener(Protocol):
    """An opener that has a slot in the keyring."""

    def open_slot(self, newest: KeyringVersion) -> SlotContent:
        """Return what its slot holds."""
        ...

    def open_box(self, newest: KeyringVersion, seed: WrappingKey) -> VaultKey:
        """Return the vault key from its box."""
        ...


@dataclass(frozen=True)
class KitOpener:
    """The emergency kit, with the passphrase."""

    kit: Kit
    stretch: Stretch
    name: str = "emergency kit"

    @property
    def vault_id(self) -> bytes:
        """The vault that it opens."""
        return self.kit.vault_id

    def request_key(self) -> SigningKey:
        """Return the key that reads the keyring from a server."""
        return kit_request_key(self.kit.secret, self.kit.vault_id, self.kit.generation)

    def open_slot(self, newest: KeyringVersion) -> SlotContent:
        """Return what the kit slot holds; raises `KitOrPassphrase`."""
        return open_slot(newest, self.stretch(*slot_cost(newest)), self.kit.secret)

    def open_box(self, newest: KeyringVersion, seed: WrappingKey) -> VaultKey:
        """Return the vault key from the kit's box."""
        return open_kit_box(newest, seed)

    def prove(self, versions: Sequence[KeyringVersion]) -> VaultKey:
        """Return the newest vault key; its slot pins the keyring."""
        return prove(self, versions)

    def unknown(self) -> MemsealError:
        """Return the error for a server that does not know its request key."""
        return KitOrPassphrase("the server does not know this emergency kit: it was replaced by a newer one")


@dataclass(frozen=True)
class RecoveryOpener:
    """The recovery code, which opens alone."""

    code: RecoveryCode
    name: str = "recovery code"

    @property
    def vault_id(self) -> bytes:
        """The vault that it opens."""
        return self.code.vault_id

    def request_key(self) -> SigningKey:
        """Return the key that reads the keyring from a server."""
        return recovery_request_key(self.code.secret, self.code.vault_id, self.code.generation)

    def open_slot(self, newest: KeyringVersion) -> SlotContent:
        """Return what the recovery slot holds; raises `RecoveryCodeWrong`."""
        return open_recovery_slot(newest, self.code.secret)

    def open_box(self, newest: KeyringVersion, seed: WrappingKey) -> VaultKey:
        """Return the vault key from the recovery code's box."""
        return open_recovery_box(newest, seed)

    def prove(self, versions: Sequence[KeyringVersion]) -> VaultKey:
        """Return the newest vault key; its slot pins the keyring."""
        return prove(self, versions)

    def unknown(self) -> MemsealError:
        """Return the error for a server that does not know its request key."""
        return RecoveryCodeWrong("the server does not know this recovery code: it was replaced by a newer one")


@dataclass(frozen=True)
class DeviceOpener:
    """A device's own keys, which a server may list by now; its marks say which keyring was proven before."""

    device: Device
    name: str = "device"

    @property
    def vault_id(self) -> bytes:
        """The vault that it opens."""
        return self.device.vault_id

    def request_key(self) -> SigningKey:
        """Return the key that reads the keyring from a server."""
        return self.device.keys.sign

    def prove(self, versions: Sequence[KeyringVersion]) -> VaultKey:
        """Return the newest vault key from this device's box."""
        check_anchor(versions, self.device.marks.keyring, self.device.marks.digest)
        return open_device_box(versions[-1], self.device.keys.wrap, self.device.signing_public)

    def unknown(self) -> MemsealError:
        """Return the error for a server that does not know its request key."""
        return RemoteRefused("key_unknown", 401, "the server does not list this device: join again")


def check_anchor(versions: Sequence[KeyringVersion], number: int, digest: bytes) -> None:
    """Raise an error where a keyring does not pass through a version that is known."""
    if len(versions) < number:
        raise RolledBack("the server shows an older keyring than was seen before: do not join on it")
    if versions[number - 1].digest != digest:
        raise FormatError("slot_mismatch", _FOREIGN)


def prove(opener: SlotOpener, versions: Sequence[KeyringVersion]) -> VaultKey:
    """Return the newest vault key from a keyring whose versions were accepted one after the other.

    The slot pins the version that made it, and the chain leads from there to the newest: a server cannot show a
    keyring of its own making.
    """
    newest = versions[-1]
    content = opener.open_slot(newest)
    if content.version > len(versions) or versions[content.version - 1].public_digest != content.public:
        raise FormatError("slot_mismatch", _FOREIGN)
    return opener.open_box(newest, content.seed)
