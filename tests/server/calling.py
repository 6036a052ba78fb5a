"""Sends signed requests to a server, and reads its answers."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from typing import Any

from aiohttp import ClientSession
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from multidict import CIMultiDictProxy
from yarl import URL

from tests.server.building import Draft, Log, Signing, manifest, object_id, part, private_key

_PAUSE_SECONDS = 0.1


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
    patience_seconds: float = 0
    """For how long it asks again, as every client does, where the store does not answer: a bucket may be slow."""

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
        patient_until, again = time.monotonic() + self.patience_seconds, False
        while True:
            headers = Signing(signer, method=method, path=path, query=query, body=body, **signing).headers()
            answer = await self.send_as_is(
                method,
                path + (f"?{query}" if query else ""),
                {**headers, **(more_headers or {})},
                body if sent_body is None else sent_body,
            )
            if answer.status != 503 or time.monotonic() >= patient_until:
                # What was put before the store gave no answer can be there by now.
                return replace(answer, status=201) if again and (method, answer.status) == ("PUT", 200) else answer
            await asyncio.sleep(_PAUSE_SECONDS)
            again = True

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

    async def put_manifest(self, vault: bytes, name: str, content: bytes, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("PUT", _object_path(vault, "checkpoints", name), key, content, **signing)

    async def get_manifest(self, vault: bytes, name: str, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("GET", _object_path(vault, "checkpoints", name), key, **signing)

    async def put_part(self, vault: bytes, name: str, content: bytes, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("PUT", _object_path(vault, "parts", name), key, content, **signing)

    async def get_part(self, vault: bytes, name: str, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("GET", _object_path(vault, "parts", name), key, **signing)

    async def put_checkpoint(self, vault: bytes, name: str, *parts: str) -> None:
        """Put the checkpoint of this name, as far as it is not there."""
        for part_name in parts:
            assert (await self.put_part(vault, part_name, part(vault, part_name))).status in (200, 201)
        assert (await self.put_manifest(vault, name, manifest(vault, name))).status in (200, 201)

    async def commit(self, draft: Draft, name: str, parts: Sequence[str] = (), *rows: list[Any]) -> Draft:
        """Put a checkpoint, and the version after this one with a floor at these rows."""
        await self.put_checkpoint(draft.vault, name, *parts)
        floor = draft.next("alice").floor(name, parts, rows)
        assert (await self.put_version(floor)).outcome == (201, "")
        return floor

    async def there(self, vault: bytes, *names: str) -> list[str]:
        """Which of these manifests and parts are there."""
        answers = [(name, await self.get_manifest(vault, name), await self.get_part(vault, name)) for name in names]
        return [name for name, *found in answers if 200 in [answer.status for answer in found]]

    async def push(self, log: Log, bounds: Sequence[int], key: str = "alice", **signing: Any) -> None:
        """Put a log in segments that are cut at these records."""
        for seq, (start, stop) in enumerate(pairwise(bounds)):
            assert (await self.put_segment(log, seq, log.segment(start, stop), key, **signing)).status == 201

    async def get_heads(self, vault: bytes, key: str = "alice", **signing: Any) -> Answer:
        return await self.send("GET", f"/v1/vaults/{vault.hex()}/heads", key, **signing)

    async def end_of(self, log: Log, key: str = "alice") -> Any:
        """Where a log ends, as the heads say."""
        return (await self.get_heads(log.vault, key)).json["logs"][log.stream.hex()]


def _object_path(vault: bytes, folder: str, name: str) -> str:
    return f"/v1/vaults/{vault.hex()}/{folder}/{object_id(name).hex()}"
