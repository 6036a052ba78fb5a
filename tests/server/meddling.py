"""Stands between a server and its bucket, as proxies and bad lines do: loses answers, makes some up, rewrites them."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession, web
from yarl import URL

_PIECE = {"Connection", "Transfer-Encoding", "Content-Length", "Content-Encoding", "Date", "Server"}
_XML_TIMES = re.compile(rb"<LastModified>[^<]*</LastModified>")
_XML_TAGS = re.compile(rb"<ETag>[^<]*</ETag>")


@dataclass
class Meddler:
    """What is done to requests, in order of their coming; `port` is where it listens."""

    target: str
    port: int = 0
    # Each is asked whether it takes the next request; the first that does goes.
    lost: list[Callable[[web.BaseRequest], bool]] = field(default_factory=list)
    answered: list[tuple[Callable[[web.BaseRequest], bool], int, str]] = field(default_factory=list)
    cut: list[Callable[[web.BaseRequest], bool]] = field(default_factory=list)
    torn: list[Callable[[web.BaseRequest], bool]] = field(default_factory=list)
    rewrites: bool = False
    holds: bool = False
    seen: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, session: ClientSession, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(request.method)
        if self.holds:
            await asyncio.Event().wait()  # until whoever asked hangs up
        for entry in self.answered:
            takes, status, code = entry
            if takes(request):
                self.answered.remove(entry)
                text = f"<Error><Code>{code}</Code><Message>made up</Message></Error>"
                return web.Response(status=status, text=text, content_type="application/xml")
        for takes_it in self.torn:
            if takes_it(request) and request.transport is not None:
                self.torn.remove(takes_it)
                await self._pass_on_the_head(request)
                request.transport.abort()
                return web.Response()
        url = URL(self.target + request.raw_path, encoded=True)
        async with session.request(request.method, url, headers=request.headers, data=body) as answer:
            content = await answer.read()
            headers = {name: value for name, value in answer.headers.items() if name not in _PIECE}
        for takes_it in self.lost:
            if takes_it(request) and request.transport is not None:
                self.lost.remove(takes_it)
                request.transport.abort()
                return web.Response()
        for takes_it in self.cut:
            if takes_it(request) and request.transport is not None:
                self.cut.remove(takes_it)
                response = web.StreamResponse(status=answer.status, headers=headers)
                response.content_length = len(content)
                await response.prepare(request)
                await response.write(content[: len(content) // 2])
                request.transport.abort()
                return response
        if self.rewrites:
            headers |= {"ETag": '"rewritten"', "Last-Modified": "Thu, 01 Jan 1998 00:00:00 GMT"}
            content = _XML_TIMES.sub(b"<LastModified>2098-01-01T00:00:00.000Z</LastModified>", content)
            content = _XML_TAGS.sub(b"<ETag>&quot;rewritten&quot;</ETag>", content)
        if request.method == "HEAD":
            response = web.StreamResponse(status=answer.status, headers=headers)
            response.content_length = int(answer.headers.get("Content-Length", 0))
            return response
        return web.Response(status=answer.status, body=content, headers=headers)

    async def _pass_on_the_head(self, request: web.BaseRequest) -> None:
        """Send the target a request without its body, and hang up, as one does that is killed between the two."""
        url = URL(self.target)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = [f"{request.method} {request.raw_path} HTTP/1.1"]
        head += [f"{name}: {value}" for name, value in request.headers.items()]
        writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
        await writer.drain()
        writer.write_eof()
        await reader.read()  # until it has noticed
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def meddling(target: str, port: int = 0) -> AsyncGenerator[Meddler]:
    """Listen on a port (0: any free one), and pass everything on to the S3 server at `target`."""
    meddler = Meddler(target)
    async with ClientSession(auto_decompress=False) as session:
        server = web.Server(lambda request: meddler.handle(session, request), handler_cancellation=True)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", port)
        meddler.port = listening.sockets[0].getsockname()[1]
        try:
            yield meddler
        finally:
            listening.close()
            await server.shutdown(1)


def of_method(method: str) -> Callable[[web.BaseRequest], bool]:
    """Take requests of this method."""
    return lambda request: request.method == method


is_put = of_method("PUT")
