"""Let signed requests in, with their bodies, in the order of checks of sync-protocol §3."""

import asyncio
from dataclasses import dataclass

from aiohttp import web

from memseal_server import auth
from memseal_server.access import Role
from memseal_server.bodies import Body
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.rates import Rates, network_of
from memseal_server.reading import read_body, read_id, too_large
from memseal_server.vaults import Vaults

# Larger bodies are taken a few at a time: 64 of 68 MiB would be 4 GiB of memory.
_LARGE_BODY_BYTES = 1024 * 1024
_LARGE_BODIES = 8


@dataclass(frozen=True)
class Admitted:
    """Who asks: a proven claim, what its key is, and the vault it is for."""

    vault: bytes
    claim: auth.Claim
    role: Role


class Admission:
    """Where signed requests come in; `identities` are the origins that they may be signed for."""

    def __init__(self, vaults: Vaults, limits: Limits, identities: tuple[str, ...]) -> None:
        self._vaults = vaults
        self._limits = limits
        self._freshness = auth.Freshness()
        self._rates = Rates(limits.max_vault_requests)
        self._strangers = Rates(limits.max_pairing_requests)
        self._large_bodies = asyncio.Semaphore(_LARGE_BODIES)
        self.identities = identities

    async def reader(self, request: web.Request, *, provisional: bool = False) -> Admitted:
        """Let in a request that only reads; `provisional` as in `writer`."""
        if request.body_exists:
            raise Problem("request_invalid", "Send no body where something is only read.")
        admitted = await self._admit(request, has_body=False, provisional=provisional)
        self._freshness.check_clock(admitted.claim)
        return admitted

    async def writer(
        self, request: web.Request, *, registers: bool = False, refills: bool = False, provisional: bool = False
    ) -> Admitted:
        """Let in a request that changes something; its body comes by `receive`.

        With `registers` the vault may be one that is not there yet; with `refills` any key may bring a version. With
        `provisional` the keyring is not read anew yet: whatever answers reads it, and looks at the key again.
        """
        return await self._admit(request, has_body=True, registers=registers, refills=refills, provisional=provisional)

    def stranger(self, request: web.Request, channel: str, *, has_body: bool) -> auth.Claim:
        """Let in a request of any key to a pairing's channel; its body, if it has one, comes by `receive`."""
        if request.body_exists and not has_body:
            raise Problem("request_invalid", "Send no body where something is only read.")
        # Before anything is computed: nobody vouches for whoever asks.
        self._strangers.take(("address", network_of(request.remote)))
        self._strangers.take(("channel", channel))
        claim = self._read(request, has_body=has_body)
        auth.prove(claim)
        if not has_body:
            self._freshness.check_clock(claim)
        return claim

    async def receive(self, request: web.Request, claim: auth.Claim, limit: int) -> Body:
        """Return the body that was signed, of at most `limit` bytes."""
        length = request.content_length
        seconds = self._limits.body_seconds
        if length is not None and length > limit:
            raise too_large(limit)
        if length is not None and length <= _LARGE_BODY_BYTES:
            body = await read_body(request, limit, seconds)
        else:
            async with self._large_bodies:
                body = await read_body(request, limit, seconds)
        auth.check_body(claim, body.digest)
        self._freshness.check_clock(claim)
        self._freshness.check_first_time(claim)
        return body

    async def _admit(
        self,
        request: web.Request,
        *,
        has_body: bool,
        registers: bool = False,
        refills: bool = False,
        provisional: bool = False,
    ) -> Admitted:
        vault = read_id(request.match_info["vault"])
        claim = self._read(request, has_body=has_body)
        role = await self._vaults.admit(vault, claim.key, registers=registers, refills=refills, provisional=provisional)
        auth.prove(claim)
        # Any key can be a bearer's, so what these use is not taken from the vault's own devices.
        self._rates.take((vault, role is Role.BEARER))
        return Admitted(vault, claim, role)

    def _read(self, request: web.Request, *, has_body: bool) -> auth.Claim:
        """Return a request's claim, which is for this server and still to be proven."""
        target = request.raw_path
        if not target.startswith("/"):
            raise Problem("request_invalid", "Send the path alone, not a whole URL.")
        lines = {name: request.headers.getall(name, []) for name in auth.SIGNED_HEADERS}
        values = {name: ", ".join(found) for name, found in lines.items() if found}
        claim = auth.read_claim(auth.Headers(request.method, target, values), has_body=has_body)
        if claim.identity not in self.identities:
            raise Problem(
                "server_identity",
                "Sign for one of the server's identities, if this is the server that was meant.",
                identities=list(self.identities),
            )
        return claim
