"""A server that lies: it asks a real one, and answers what the test says instead."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import ClientSession, DummyCookieJar, web
from yarl import URL

_PASSED_ON = ("Memseal-Log-Length", "ETag", "Content-Type", "Content-Range")


@dataclass(frozen=True)
class Asked:
    """One request: its method, its path below the vault's, its query, who asked."""

    method: str
    path: str
    query: dict[str, str]
    keyid: str

    def is_(self, method: str, *beginnings: str) -> bool:
        return self.method == method and self.path.startswith(beginnings)


@dataclass(frozen=True)
class Reply:
    """One answer; an endless one repeats its body for as long as anybody reads."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])
    endless: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: Any) -> "Reply":
        return replace(self, body=json.dumps(value).encode())


Lie: TypeAlias = Callable[[Asked, Reply], Reply]


def honest(_: Asked, reply: Reply) -> Reply:
    return reply


def nothing(_: Asked) -> bool:
    return False


def problem(status: int, code: str, detail: str = "no", **members: Any) -> Reply:
    """A problem document."""
    return Reply(status, json.dumps({"code": code, "status": status, "detail": detail, **members}).encode())


class HostileServer:
    """Listens on loopback, relays to the server at `target`, and lets `lie` rewrite each answer."""

    def __init__(self) -> None:
        self.target = ""
        self.lie: Lie = honest
        self.swallows: Callable[[Asked], bool] = nothing
        """What is not passed on: confirmed, and forgotten."""
        self.asked: list[Asked] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    @contextmanager
    def lying(self, lie: Lie = honest, swallows: Callable[[Asked], bool] = nothing) -> Generator[None]:
        """Lie for a while."""
        self.lie, self.swallows = lie, swallows
        self.asked.clear()
        try:
            yield
        finally:
            self.lie, self.swallows = honest, nothing

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> str:
        self._session = ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False)
        application = web.Application(client_max_size=1 << 28)
        application.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0]
        return f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        keyid = request.headers.get("Signature-Input", "").partition('keyid="')[2][:64]
        path = request.path.removeprefix("/v1/vaults/")[32:] if "/vaults/" in request.path else request.path
        asked = Asked(request.method, path, dict(request.query), keyid)
        self.asked.append(asked)
        true = Reply(201, b"") if self.swallows(asked) else await self._relay(request, body)
        reply = self.lie(asked, true)
        if not reply.endless:
            return web.Response(status=reply.status, body=reply.body, headers=reply.headers)
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        while True:  # ends with ConnectionResetError, when the client has read enough
            await response.write(reply.body)

    async def _relay(self, request: web.Request, body: bytes) -> Reply:
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        url = URL(self.target + request.raw_path, encoded=True)
        async with self._session.request(
            request.method, url, data=BytesIO(body) if body else None, headers=headers
        ) as answer:
            passed_on = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
            return Reply(answer.status, await answer.read(), passed_on)


@contextmanager
def hostile_server(folder: Path) -> Generator[HostileServer]:
    """Run a real server, as a process, behind one that can lie; `folder` is for its store and log."""
    front = HostileServer()
    command = [sys.executable, "-m", "memseal_server", "--store", str(folder / "store"), "--listen", "127.0.0.1:0"]
    with (
        (folder / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen([*command, "--url", front.url], stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        front.target = process.stdout.readline().split()[2]
        try:
            yield front
        finally:
            process.terminate()
            front.close()
