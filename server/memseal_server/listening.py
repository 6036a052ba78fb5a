"""Take connections, and let go of them."""

import asyncio
import logging
from http import HTTPStatus
from typing import cast

from aiohttp import web

from memseal_server.answering import EVERY_ANSWER, problem_response
from memseal_server.app import Server
from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.vaults import Vaults

# A signed request's head has some 700 bytes.
_MAX_HEADER_BYTES = 4096
# Also ends a connection on which a request's head does not arrive. Longer than proxies keep theirs (60 s mostly).
_IDLE_SECONDS = 75.0
# After a refusal, how long the rest of a body is thrown away before the connection is closed.
_LINGERING_SECONDS = 2.0
_SHUTDOWN_SECONDS = 10.0

# For aiohttp's own lines, which carry addresses and request heads.
_silent = logging.getLogger("memseal_server.silent")
_silent.disabled = True


class Listener:
    """A server that listens; `origin` is where, with the real port."""

    def __init__(self, sockets: asyncio.Server, runner: web.AppRunner, vaults: Vaults, origin: str) -> None:
        self._sockets = sockets
        self._runner = runner
        self._vaults = vaults
        self.origin = origin

    async def close(self) -> None:
        """Stop listening, let waiting requests answer, and finish those that are being answered."""
        self._vaults.waiters.close()
        self._sockets.close()
        await self._runner.cleanup()


async def listen(
    store: BlobStore,
    limits: Limits,
    *,
    host: str,
    port: int,
    identities: tuple[str, ...] = (),
    paths: frozenset[str] = frozenset(),
) -> Listener:
    """Listen on a host and port (0: any free one); without identities the origin is the only one.

    `paths` are those below which the routes are found, beside the root.
    """
    server = Server(store, limits, identities)
    runner = web.AppRunner(
        server.application(paths | {""}),
        handler_cancellation=True,  # a device that hangs up waits no longer
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    requests = cast("web.Server", runner.server)  # there from `setup` to `cleanup`
    loop = asyncio.get_running_loop()
    sockets = await loop.create_server(lambda: _Connection(requests, loop), host, port)
    real_port = sockets.sockets[0].getsockname()[1]
    origin = f"http://[{host}]:{real_port}" if ":" in host else f"http://{host}:{real_port}"
    if not identities:
        server.admission.identities = (origin.removesuffix(":80"),)
    return Listener(sockets, runner, server.vaults, origin)


class _Connection(web.RequestHandler):
    def __init__(self, requests: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            requests,
            loop=loop,
            access_log=_silent,
            logger=_silent,
            auto_decompress=False,  # digests are over the bytes as sent, and a gzip could be a bomb
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=_LINGERING_SECONDS,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP; the parser's `message` quotes it, and is left out."""
        answer = super().handle_error(request, status, exc)
        if status == HTTPStatus.BAD_REQUEST:
            answer = problem_response(Problem("request_invalid", "Send an HTTP/1.1 request with a smaller head."))
            answer.force_close()
        answer.headers.update(EVERY_ANSWER)
        return answer
