"""Two branches of the keyring: what a server went on with after it was put back, and what is here (§7, *Branches*)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from memseal.errors import FormatError
from memseal.format.fields import Fields
from memseal.format.keyring import DeviceEntry, Ended, PublicSection
from memseal.format.log import End
from memseal.vault.folder.keychain import Keyring

JOINS = "joins"
"""The field of a public section that names the versions of a branch which is given up."""
_DIGEST_SIZE = 32


@dataclass(frozen=True)
class Branches:
    """The keyring here and a server's; up to version `common` they are the same."""

    own: Keyring
    there: Keyring
    common: int

    def is_joined(self) -> bool:
        """Return whether the server's branch names the newest version here, by a device that is active in that.

        Such a device knew what this branch says: its version counts as if it came next after the one here.
        """
        own = self.own.newest
        active = {entry.sign for entry in own.public.active()}
        return any(
            own.digest in joined_by(version.public) and any(key in active for key, _ in version.signatures)
            for version in self.there.versions[self.common :]
        )

    def takes_away(self) -> bool:
        """Return whether the branch here ended something that opened the vault: keys, a kit, a recovery code."""
        before, own = self.own.versions[self.common - 1].public, self.own.public
        return bool(self._ended_here()) or own.kit != before.kit or own.recovery != before.recovery

    def changes_passphrase(self) -> bool:
        """Return whether the passphrase was changed in the branch here."""
        return self.own.public.passphrase_since > self.common

    def to_end(self) -> Mapping[bytes, Mapping[bytes, End] | None]:
        """Return the signing keys that a version which joins both ends, each with where its streams end.

        None: where they end on the server. Whoever came in there, after something was taken away here, may have come
        in by just that.
        """
        ended = {entry.sign: end.streams for entry, end in self._ended_here()}
        listed = {entry.sign for entry in self.own.versions[self.common - 1].public.devices}
        return {
            entry.sign: ended.get(entry.sign)
            for entry in self.there.public.active()
            if entry.sign in ended or (entry.sign not in listed and self.takes_away())
        }

    def given_up(self) -> list[bytes]:
        """Return the digests of all versions that are given up with the branch here, and that were given up for it."""
        versions = self.own.versions[self.common :]
        return sorted({each.digest for each in versions}.union(*(joined_by(each.public) for each in versions)))

    def _ended_here(self) -> list[tuple[DeviceEntry, Ended]]:
        entries = ((entry, entry.ended) for entry in self.own.public.devices)
        return [(entry, ended) for entry, ended in entries if ended is not None and ended.version > self.common]


@dataclass(frozen=True)
class Joined:
    """What two joined branches leave to their user: secrets in the place of those that opened one of them."""

    emergency_kit: str | None = field(default=None, repr=False)
    """None where the one of the server's branch still counts."""
    recovery_code: str | None = field(default=None, repr=False)
    """Kept nowhere; None where no other takes its place."""


def join_value(number: int, digests: Collection[bytes]) -> dict[str, Any]:
    """Return the field with which version `number` says that it joins a branch."""
    return {"version": number, "names": list(digests)}


def joined_by(public: PublicSection) -> frozenset[bytes]:
    """Return the digests of versions on another branch that this version joins; none where the field is no such.

    Later versions carry the field on, and say nothing by it.
    """
    try:
        fields = Fields(public.others.get(JOINS), "keyring_malformed", JOINS)
        if fields.count("version") != public.version:
            return frozenset()
        names = fields.array("names")
        return frozenset(
            Fields({"name": each}, "keyring_malformed", JOINS).size("name", _DIGEST_SIZE) for each in names
        )
    except FormatError:
        return frozenset()
