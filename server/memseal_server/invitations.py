"""Let new vaults in by invitations, each of which serves once or a few times (sync-protocol §2).

The store keeps an invitation's digest alone, and a create-only object for each use: so processes that share a store
agree, and whoever reads the store can invite nobody.
"""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable

from memseal_server.blobs import AlreadyThere, BlobStore, StoreUnavailable, numbered
from memseal_server.problems import Problem

# The first folder of all of them.
FOLDER = "invitations"
# Each use is looked at in turn.
MAX_USES = 1_000

_FORM = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SECRET_BYTES = 32


class Invitations:
    """The invitations of one store."""

    def __init__(self, store: BlobStore, clock: Callable[[], float] = time.time) -> None:
        """Take a clock that gives Unix seconds."""
        self._store = store
        self._clock = clock

    async def make(self, uses: int, seconds: float) -> str:
        """Return a new invitation for so many vaults, good for so long."""
        invitation = secrets.token_urlsafe(_SECRET_BYTES)
        offer = {"uses": uses, "expires": int(self._clock() + seconds)}
        await self._store.put_new(_folder(invitation) + "offer", json.dumps(offer).encode())
        return invitation

    async def spend(self, invitation: str | None, vault: bytes) -> None:
        """Use an invitation for a vault, for which it may have been used before; else refuse the vault."""
        if invitation is None:
            raise Problem("invitation_needed", "Ask the server's operator for an invitation, and send it along.")
        content = await self._store.get(_folder(invitation) + "offer") if _FORM.fullmatch(invitation) else None
        if content is None:
            raise _refused("it is not one of this server")
        uses, expires = _read_offer(content)
        if self._clock() >= expires:
            raise _refused("it has expired")
        for number in range(uses):
            outcome = await self._store.put_new(numbered(_folder(invitation) + "uses/", number), vault)
            if not isinstance(outcome, AlreadyThere) or outcome.digest == hashlib.sha256(vault).digest():
                return
        raise _refused("it has been used")


def _folder(invitation: str) -> str:
    return f"{FOLDER}/{hashlib.sha256(invitation.encode()).hexdigest()}/"


def _read_offer(content: bytes) -> tuple[int, int]:
    try:
        offer = json.loads(content)
        return min(int(offer["uses"]), MAX_USES), int(offer["expires"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise StoreUnavailable("a stored invitation is damaged") from error


def _refused(why: str) -> Problem:
    return Problem("invitation_refused", f"Ask the server's operator for another invitation: {why}.")
