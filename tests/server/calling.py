"""Sends signed requests to a server, and reads its answers."""

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from aiohttp import ClientSession
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from multidict import CIMultiDictProxy
from yarl import URL

from tests.server.building import Draft, Log, Signing, private_key


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def outcome(self) -> tuple[int, str]:
        """Status and code; a problem's other members are checked on the way."""
        if self.status < 400:
            return self.status, ""
        problem = self.json
        assert self.headers["Content-Type"] == "application/problem+json"
        assert problem["type"] == f"urn:memseal:error:{problem['code']}"
        assert problem["status"] == self.status
        assert problem["title"]
        assert problem["detail"]
        return self.status, problem["code"]


@dataclass(frozen=True)
class Caller:
    """One client of one server."""

    session: ClientSession
    origin: str

    async def send(
        self,
        method: str,
        path: str,
        key: str | Ed25519PrivateKey = "alice",
        body: bytes | None = None,
        *,
        query: str = "",
        sent_body: bytes | None = None,
        more_headers: dict[str, str] | None = None,
        **signing: Any,
    ) -> Answer:
        """Send a signed request; `signing` breaks the signature, `sent_body` is sent in place of the signed one."""
        signer = private_key(key) if isinstance(key, str) else key
        signing = {"identity": self.origin, **signing}
        headers = Signing(signer, method=method, path=path, query=query, body=body, **signing).headers()
        return await self.send_as_is(
            method,
            path + (f"?{query}" if query else ""),
            {**headers, **(more_headers or {})},
            body if sent_body is None else sent_body,
        )

    async def send_as_is(
        self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        url = URL(self.origin + target, encoded=True)
        data = None if body is None else BytesIO(body)
        async with self.session.request(method, url, headers=headers, data=data) as response:
            return Answer(response.status, response.headers, await response.read())

    async def register(self, *drafts: Draft, key: str = "alice") -> None:
        for draft in drafts:
            assert (await self.put_version(draft, key)).status == 201

    async def put_version(self, draft: Draft | bytes, key: str = "alice", **signing: Any) -> Answer:
        content = draft if isinstance(draft, bytes) else draft.build()
        vault, number = content[16:32].hex(), int.from_bytes(content[40:48], "big")
        return await self.send("PUT", f"/v1/vaults/{vault}/keyring/{number}", key, content, **signing)

    async def get_version(self, draft: Draft, number: int | str, query: str = "", key: str = "alice") -> Answer:
        path = f"/v1/vaults/{draft.vault.hex()}/keyring/{number}"
        return await self.send("GET", path, key, query=query)

    async def put_segment(self, log: Log, seq: int, content: bytes, key: str = "alice", **signing: Any) -> Answer:
        path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/{seq}"
        return await self.send("PUT", path, key, content, **signing)

    async def get_log(self, log: Log, query: str = "", key: str = "alice") -> Answer:
        path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}"
        return await self.send("GET", path, key, query=query)

    async def get_heads(self, vault: bytes, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("GET", f"/v1/vaults/{vault.hex()}/heads", key, **signing)
