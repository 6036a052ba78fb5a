"""The part of an open vault that is about its keys, and the devices that have them."""

from collections.abc import Callable, Iterable, Sequence

from memseal.vault.extras import extra
from memseal.vault.folder.opening import (
    stretcher,
)
from memseal.vault.held import Held
from memseal.vault.keys import naming, passphrases, rekeying, revoking, roster
from memseal.vault.keys.revoking import Revocation
from memseal.vault.keys.roster import DeviceInfo


class KeysAndDevices(Held):
    """Keys are renewed, devices let in, named and removed."""

    @property
    def emergency_kit(self) -> str:
        """The string that, with the passphrase, lets a new device join: a secret, to be kept on paper."""
        with self._reading() as opened:
            return rekeying.emergency_kit(opened)

    def change_passphrase(self, old: str, new: str, *, remote: str | None = None) -> None:
        """Change the passphrase: new keys for this device, a new emergency kit, a new epoch.

        Where the passphrase was changed on another device, `new` is that one, and this device takes it on. A vault that
        lives on a server needs it for this (`remote`, or the one it was last synchronised with). Raises
        `PassphraseWrong`, `PassphraseEmpty` or `RemoteUnreachable`; then nothing has changed.
        """
        with self._writing() as opened:
            passphrases.change(opened, stretcher(old), stretcher(new), new, remote)

    def new_kit(self, passphrase: str, *, remote: str | None = None) -> str:
        """Replace the emergency kit by a new one and return it; the old one opens nothing any more.

        `passphrase` is the vault's. Raises `PassphraseWrong`, or `RemoteUnreachable` as `change_passphrase` does.
        """
        with self._writing() as opened:
            rekeying.new_kit(opened, stretcher(passphrase), remote)
            return self.emergency_kit

    def new_recovery_code(self, *, remote: str | None = None) -> str:
        """Make a recovery code, which opens the vault alone, and return it: it is kept nowhere, and not shown again.

        The one before opens nothing any more, also where this was broken off: then make another. Raises as `rekey`.
        """
        with self._writing() as opened:
            return rekeying.new_recovery_code(opened, remote)

    def devices(self) -> Sequence[DeviceInfo]:
        """Return all devices of the vault, also those that were removed, in the order in which they came."""
        with self._reading() as opened:
            return roster.devices(opened)

    def pair(self, show: Callable[[str], None], *, scanned: bool = False, remote: str | None = None) -> DeviceInfo:
        """Let a new device join by a code, and return that device; `Vault.join_with_code` is its side.

        `show` is given the code: 16 digits to type, or with `scanned` a longer text for a QR code. It is good for two
        minutes and one attempt, and waited for here; other threads may use the vault meanwhile. Raises
        `PairingCodeWrong`, `PairingExpired`, `PairingUnfinished`, or `RemoteUnknown` where the vault is on no server.
        """
        with extra("sync"):
            from memseal.vault.keys import pairing

        return pairing.pair(self._writing, show, remote, scanned=scanned)

    def rename_device(self, device: str, name: str, *, remote: str | None = None) -> None:
        """Give a device (its id or present name) another name; no keys change.

        Raises `DeviceUnknown`, `DeviceName`, or `RemoteUnreachable` as `change_passphrase` does.
        """
        with self._writing() as opened:
            naming.rename(opened, device, name, remote)

    def revoke(
        self, device: str, passphrase: str, *, seen: Iterable[str] | None = None, remote: str | None = None
    ) -> Revocation:
        """Remove a device (its id or name), and renew all keys that it knew: it reads and writes nothing from then on.

        The emergency kit of before, and a recovery code, open nothing any more: show the new ones. `seen` are the ids
        of the devices that the user was shown: where there are others, nothing is changed (`DeviceUnseen`). Not given,
        they are those that are here now. Raises `DeviceUnknown`, `DeviceIsThis`, `PassphraseWrong`, or
        `RemoteUnreachable` as `change_passphrase` does.
        """
        known = None if seen is None else frozenset(seen)
        with self._writing() as opened:
            return revoking.revoke(opened, device, stretcher(passphrase), known, remote)

    def rekey(self, *, remote: str | None = None) -> None:
        """Begin a new epoch, under a new vault key; no data is touched, and all older keys are kept for it.

        A vault that lives on a server needs it for this. Raises `RemoteUnreachable`.
        """
        with self._writing() as opened:
            rekeying.rekey(opened, remote)
