"""How a vault and a remote that it follows stand to each other, and what of it only the person can change."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from memseal.errors import CallerError, KeyringForked, MemsealError, RemoteRefused, RolledBack, UserError
from memseal.vault.remote.syncing import SyncReport

# What no trying again heals.
_FATAL = frozenset(
    """key_unknown key_ended key_forbidden vault_unknown server_identity registration_closed invitation_needed
    invitation_refused signature_missing folder_keys route_unknown method_unknown""".split()
)
_ADVICE = {
    "rolled_back": "memseal sync --accept-rollback",
    "device_ended": "memseal join",
    "passphrase_wrong": "memseal passwd",
    "vault_unknown": "memseal sync --accept-rollback",
    "keyring_forked": "memseal sync --accept-rollback",
    "invitation_needed": "memseal sync --invitation",
    "invitation_refused": "memseal sync --invitation",
}

Phase: TypeAlias = Literal["connecting", "synced", "syncing", "offline", "stopped"]


@dataclass(frozen=True)
class SyncState:
    """How a vault and its remote stand to each other.

    `offline`: it is tried again at `next_try_at`; `stopped`: the person has to act first, `advice` is the command that
    goes on. `error` says why, `report` what the last round did.
    """

    phase: Phase
    remote: str
    error: MemsealError | None = None
    next_try_at: datetime | None = None
    advice: str = ""
    synced_at: datetime | None = None
    report: SyncReport | None = None


OnState: TypeAlias = Callable[[SyncState], None]


def is_final(error: MemsealError) -> bool:
    """Return whether trying again cannot heal it: the person, or the program, has to act."""
    if isinstance(error, RemoteRefused):
        return error.code in _FATAL
    return isinstance(error, CallerError | UserError | RolledBack | KeyringForked)


def advice_on(error: MemsealError) -> str:
    """Return the command that goes on after an error that stops the synchronisation."""
    return _ADVICE.get(error.code, "memseal sync")
