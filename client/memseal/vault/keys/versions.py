"""Make the next keyring version of an open vault (vault-format §7)."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from memseal.format.boxes import build_version
from memseal.format.derivation import epoch_signing_key
from memseal.format.device_file import KeySet, Stretch
from memseal.format.floor import Floor
from memseal.format.keyring import DeviceEntry, Ended, KeyringVersion, PublicSection
from memseal.format.keys import RecoverySecret, SigningKey, VaultKey
from memseal.format.log import End
from memseal.format.primitives import public_signing_key
from memseal.vault.folder.keychain import Keychain
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.creation import NewKit, NewRecovery, entry_for, kit_cost
from memseal.vault.remote.branches import JOINS, join_value


@dataclass(frozen=True)
class Change:
    """What the next version changes: the floor alone, names alone, or the epoch and whatever else is named."""

    keys: KeySet | None = None
    """New keys of this device."""
    ended: Mapping[bytes, Mapping[bytes, End]] = field(default_factory=dict[bytes, Mapping[bytes, End]])
    """The signing keys that end, each with where its streams end."""
    kit: Stretch | None = None
    """The passphrase of a new kit."""
    new_passphrase: bool = False
    """Whether that passphrase is another than before."""
    recovery: RecoverySecret | None = None
    """The secret of a new recovery code."""
    floor: Floor | None = None
    names: Mapping[bytes, str] = field(default_factory=dict[bytes, str])
    """New names of devices, by their ids."""
    joins: Collection[bytes] = ()
    """Digests of the versions of another branch that is given up with this."""
    epochs: Collection[int] | None = None
    """The earlier epochs whose vault keys stay in the history; all that are known, if not given."""

    @property
    def same_epoch(self) -> bool:
        """Whether nobody's keys change, so that the epoch goes on."""
        return self.floor is not None or bool(self.names)

    @property
    def removes(self) -> bool:
        """Whether it ends another device, and this one's keys stay."""
        return bool(self.ended) and self.keys is None


@dataclass(frozen=True)
class Made:
    """A version that is stored nowhere yet, its vault key, and this device's keys in it."""

    version: KeyringVersion
    vault_key: VaultKey
    keys: KeySet


def next_version(opened: Opened, change: Change) -> Made:
    """Return the version that follows the newest one here."""
    vault_id, chain = opened.device.vault_id, opened.keychain
    before, number = chain.keyring.public, chain.keyring.public.version + 1
    vault_key = chain.vault_key if change.same_epoch else VaultKey(secrets.token_bytes(32))
    kit = code = None
    if change.kit is not None:
        kit = NewKit.draw(vault_id, before.kit.generation + 1, number, kit_cost(before.kit))
    if change.recovery is not None:
        code = NewRecovery.draw(change.recovery, vault_id, recovery_generation(before) + 1, number)
    public = replace(
        _section(opened, change, vault_key),
        kit=before.kit if kit is None else kit.entry,
        recovery=before.recovery if code is None else code.entry,
    )
    hidden = replace(
        chain.secrets,
        history=_history(chain, public.epoch, change.epochs),
        names={**chain.secrets.names, **change.names},
        kit_secret=chain.secrets.kit_secret if kit is None else kit.secret,
    )
    slots = chain.keyring.newest.slots
    # A slot pins the public section: it is made when all of that is known.
    if kit is not None and change.kit is not None:
        slots = replace(slots, kit=kit.slot(vault_id, public, change.kit))
    if code is not None:
        slots = replace(slots, recovery=code.slot(vault_id, public))
    version = build_version(vault_id, public, vault_key, hidden, slots, _signers(opened, change, vault_key))
    return Made(version, vault_key, change.keys or opened.device.keys)


def recovery_generation(public: PublicSection) -> int:
    """Return the generation of the recovery code; 0 where there is none yet."""
    return 0 if public.recovery is None else public.recovery.generation


def _section(opened: Opened, change: Change, vault_key: VaultKey) -> PublicSection:
    """Return the public section, but for kit and recovery code."""
    newest = opened.keychain.keyring.newest
    before, number = newest.public, newest.public.version + 1
    following = replace(before, version=number, previous=newest.digest)
    if change.same_epoch:
        return replace(following, floor=change.floor or before.floor)
    epoch_key = epoch_signing_key(vault_key, newest.vault_id, before.epoch + 1)
    return replace(
        following,
        epoch=before.epoch + 1,
        epoch_since=number,
        epoch_key=public_signing_key(epoch_key),
        devices=_entries(opened, change, number),
        passphrase_since=number if change.new_passphrase else before.passphrase_since,
        others={**before.others, JOINS: join_value(number, change.joins)} if change.joins else before.others,
    )


def _entries(opened: Opened, change: Change, number: int) -> tuple[DeviceEntry, ...]:
    entries = [
        replace(entry, ended=Ended(number, change.ended[entry.sign])) if entry.sign in change.ended else entry
        for entry in opened.keychain.keyring.public.devices
    ]
    if change.keys is not None:
        entries.append(entry_for(change.keys, opened.device.device_id, number))
    return tuple(entries)


def _history(chain: Keychain, epoch: int, kept: Collection[int] | None) -> dict[int, VaultKey]:
    """Return the vault keys of the earlier epochs that stay, in their order."""
    earlier = sorted(each for each in chain.epochs() if each < epoch and (kept is None or each in kept))
    return {each: key for each in earlier if (key := chain.vault_key_of(each)) is not None}


def _signers(opened: Opened, change: Change, vault_key: VaultKey) -> list[SigningKey]:
    """Return who must sign (rule K10): this device, the epoch key, and those that are new."""
    chain, vault_id = opened.keychain, opened.device.vault_id
    epoch = chain.keyring.public.epoch
    signers = [opened.device.keys.sign, epoch_signing_key(chain.vault_key, vault_id, epoch)]
    if change.keys is not None:
        signers.append(change.keys.sign)
    if not change.same_epoch:
        signers.append(epoch_signing_key(vault_key, vault_id, epoch + 1))
    return signers
