"""Take connections, and let go of them."""

import asyncio
import contextlib
import logging
import socket
from http import HTTPStatus
from typing import cast

from aiohttp import web

from memseal_server.answering import EVERY_ANSWER, problem_response
from memseal_server.app import Server
from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from memseal_server.metrics import Metrics
from memseal_server.problems import Problem

# A signed request's head has some 700 bytes.
_MAX_HEADER_BYTES = 4096
# After a refusal, how long the rest of a body is thrown away before the connection is closed.
_LINGERING_SECONDS = 2.0
_BACKLOG = 1024
# At the end, for the last answer to be written, and for what is broken off to notice.
_BREAKING_OFF_SECONDS = 1.0
# For connections beyond the limit: without a look at what they ask.
_TURNED_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: memseal-server\r\nRetry-After: 10\r\nConnection: close\r\n"
    b"Content-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n%s"
)

# For aiohttp's own lines, which carry addresses and request heads.
_silent = logging.getLogger("memseal_server.silent")
_silent.disabled = True


class Listener:
    """A server that listens; `origin` is where, with the real port."""

    def __init__(
        self, sockets: asyncio.Server, runner: web.AppRunner, server: Server, origin: str, finish_seconds: float
    ) -> None:
        self._sockets = sockets
        self._finish_seconds = finish_seconds
        self._runner = runner
        self._server = server
        self.origin = origin

    def begin_to_end(self) -> None:
        """Say from now on that the server is not ready, and go on."""
        self._server.operating.ending = True

    async def close(self) -> None:
        """Stop listening, let waiting requests answer, and finish those that are being answered, or break them off."""
        self.begin_to_end()
        self._sockets.close()
        self._server.vaults.waiters.close()
        # Not left to aiohttp: once it shuts down, it reads no more of a body that is still coming.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._finish_seconds):
                await self._server.answering.finished()
        await self._runner.cleanup()


async def listen(
    store: BlobStore,
    limits: Limits,
    *,
    host: str,
    port: int,
    identities: tuple[str, ...] = (),
    paths: frozenset[str] = frozenset(),
    shutdown_seconds: float = 10.0,
) -> Listener:
    """Listen on a host and port (0: any free one); without identities the origin is the only one.

    `paths` are those below which the routes are found, beside the root.
    """
    server = Server(store, limits, identities)
    runner = web.AppRunner(
        server.application(paths | {""}),
        handler_cancellation=True,  # a device that hangs up waits no longer
        shutdown_timeout=_BREAKING_OFF_SECONDS,
    )
    await runner.setup()
    requests = cast("web.Server", runner.server)  # there from `setup` to `cleanup`
    loop = asyncio.get_running_loop()

    places = _Places(server.metrics, limits.max_connections)

    def take() -> asyncio.Protocol:
        return _Connection(requests, loop, limits, places) if places.are_free() else _TurnedAway(places)

    sockets = await loop.create_server(take, host, port, backlog=_BACKLOG)
    real_port = sockets.sockets[0].getsockname()[1]
    origin = f"http://[{host}]:{real_port}" if ":" in host else f"http://{host}:{real_port}"
    if not identities:
        server.admission.identities = (origin.removesuffix(":80"),)
    return Listener(sockets, runner, server, origin, shutdown_seconds)


class _Places:
    """How many connections there are, and may be."""

    def __init__(self, metrics: Metrics, most: int) -> None:
        self._metrics = metrics
        self._most = most
        self._taken = 0

    def are_free(self) -> bool:
        return self._taken < self._most

    def change(self, by: int) -> None:
        self._taken += by
        self._metrics.connected(by)

    def turned_away(self) -> None:
        self._metrics.turned_away()


class _TurnedAway(asyncio.Protocol):
    def __init__(self, places: _Places) -> None:
        self._places = places

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._places.turned_away()
        body = problem_response(Problem("busy", "Too many connections: come again later.")).body
        writing = cast("asyncio.Transport", transport)
        writing.write(_TURNED_AWAY % (len(cast("bytes", body)), body))
        writing.close()


class _Connection(web.RequestHandler):
    # aiohttp's class has slots; so has this one.
    __slots__ = ("_places", "_stall", "_stall_seconds", "_unread_bytes")

    def __init__(self, requests: web.Server, loop: asyncio.AbstractEventLoop, limits: Limits, places: _Places) -> None:
        super().__init__(
            requests,
            loop=loop,
            access_log=_silent,
            logger=_silent,
            auto_decompress=False,  # digests are over the bytes as sent, and a gzip could be a bomb
            keepalive_timeout=limits.idle_seconds,
            lingering_time=_LINGERING_SECONDS,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        self._places = places
        self._stall_seconds = limits.body_seconds
        self._stall: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._places.are_free():
            # Many that come at one moment were all taken before the first of them counted.
            refusing = _TurnedAway(self._places)
            transport.set_protocol(refusing)
            refusing.connection_made(transport)
            return
        super().connection_made(transport)
        self._places.change(1)
        _end_with_silent_peers(transport, self._stall_seconds)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._places.change(-1)
        self._forget_stall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Watch an answer that is taken more slowly than it is written: its bytes lie in memory."""
        super().pause_writing()
        self._unread_bytes = self._waiting_bytes()
        self._stall = self._loop.call_later(self._stall_seconds, self._look_at_stall)

    def resume_writing(self) -> None:
        """Stop watching."""
        self._forget_stall()
        super().resume_writing()

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

    def _look_at_stall(self) -> None:
        before, self._unread_bytes = self._unread_bytes, self._waiting_bytes()
        if self._unread_bytes >= before and isinstance(self.transport, asyncio.Transport):
            self.transport.abort()  # nothing was taken for so long
        else:
            self._stall = self._loop.call_later(self._stall_seconds, self._look_at_stall)

    def _waiting_bytes(self) -> int:
        return self.transport.get_write_buffer_size() if isinstance(self.transport, asyncio.Transport) else 0

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


def _end_with_silent_peers(transport: asyncio.BaseTransport, seconds: float) -> None:
    # What is left of an answer lies in buffers that a close waits for. Linux alone can end a connection whose other
    # side takes nothing; elsewhere that is for the system's own, longer, time.
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    found = transport.get_extra_info("socket")
    if option is not None and found is not None:
        found.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
