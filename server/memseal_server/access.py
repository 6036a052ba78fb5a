"""Decide which signing key counts in a vault, and what it may do (sync-protocol §3)."""

from enum import Enum

from memseal_server.keyring import vault_id
from memseal_server.problems import Problem
from memseal_server.versions import Version


class Role(Enum):
    """What a signing key is in a vault."""

    DEVICE = "device"
    EPOCH = "epoch"
    OPENER = "opener"  # the kit's or the recovery code's request key
    FOUNDER = "founder"  # the key that names a vault which is not there yet
    BEARER = "bearer"  # any key, with a keyring version that the server once had


def role_of(key: bytes, newest: Version) -> Role:
    """Return what the key is in the newest version; `key_ended` or `key_unknown` where it does not count."""
    for entry in newest.entries:
        if entry.sign == key:
            if entry.active:
                return Role.DEVICE
            raise Problem("key_ended", "This device was ended: join again with the emergency kit.")
    if key == newest.epoch_key:
        return Role.EPOCH
    openers = (newest.kit, newest.recovery)
    if any(opener is not None and opener["request"] == key for opener in openers):
        return Role.OPENER
    raise Problem("key_unknown", "Sign with a key that the newest keyring version lists.")


def founder_role(key: bytes, vault: bytes) -> Role:
    """Return the founder's role of a key that names this vault, which is not there yet; else `key_unknown`."""
    if vault_id(key) != vault:
        raise Problem("key_unknown", "A vault is registered with the signing key that its id is made from.")
    return Role.FOUNDER


def require(role: Role, *allowed: Role) -> None:
    """Refuse with `key_forbidden` a key whose role is not among those allowed."""
    if role not in allowed:
        raise Problem("key_forbidden", "Sign with the key of an active device.")
