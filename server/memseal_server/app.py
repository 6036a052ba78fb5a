"""Answer HTTP requests: the routes of sync-protocol §2, over the vaults."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import cast

from aiohttp import web

from memseal_server import auth, logs
from memseal_server.access import Role, require
from memseal_server.blobs import BlobStore, StoreUnavailable
from memseal_server.checkpoints import MAX_FILE_BYTES, Kind
from memseal_server.limits import Limits
from memseal_server.metrics import CONTENT_TYPE, Metrics
from memseal_server.objects import MAX_NUMBER
from memseal_server.problems import Problem
from memseal_server.streams import MAX_ANSWER_BYTES
from memseal_server.vaults import VERSION_ROLES, Vaults, tag_of
from memseal_server.versions import MAX_VERSION_BYTES

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_VAULT = "/v1/vaults/{vault}"
_HEADS = _VAULT + "/heads"
_VERSION = _VAULT + "/keyring/{number}"
_LOG = _VAULT + "/logs/{stream}"
_SEGMENT = _VAULT + "/logs/{stream}/{seq}"
_MANIFEST = _VAULT + "/checkpoints/{id}"
_PART = _VAULT + "/parts/{id}"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})

_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_BYTES = "application/octet-stream"
# What is signed for one device is no shared cache's to keep.
_EVERY_ANSWER = {"Server": "memseal-server", "Cache-Control": "no-store"}
_MAX_WAIT_SECONDS = 60

# Larger bodies are taken a few at a time: 64 of 68 MiB would be 4 GiB of memory.
_LARGE_BODY_BYTES = 1024 * 1024
_LARGE_BODIES = 8
_PIECE_BYTES = 1024 * 1024

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


@dataclass(frozen=True)
class _Admitted:
    """Who asks: a proven claim, what its key is, and the vault it is for."""

    vault: bytes
    claim: auth.Claim
    role: Role


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
    store: BlobStore, limits: Limits, *, host: str, port: int, identities: tuple[str, ...] = ()
) -> Listener:
    """Listen on a host and port (0: any free one); without identities the origin is the only one."""
    server = _Server(store, limits, identities)
    runner = web.AppRunner(
        server.application(),
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
        server.identities = (origin.removesuffix(":80"),)
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
            answer = _problem_response(Problem("request_invalid", "Send an HTTP/1.1 request with a smaller head."))
            answer.force_close()
        answer.headers.update(_EVERY_ANSWER)
        return answer


class _Server:
    def __init__(self, store: BlobStore, limits: Limits, identities: tuple[str, ...]) -> None:
        self._store = store
        self._limits = limits
        self.identities = identities
        self.vaults = Vaults(store, limits)
        self._freshness = auth.Freshness()
        self._metrics = Metrics()
        self._large_bodies = asyncio.Semaphore(_LARGE_BODIES)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._observe])
        app.on_response_prepare.append(_add_headers)
        routes: Mapping[tuple[str, str], Handler] = {
            ("GET", _HEADS): self._get_heads,
            ("GET", _VERSION): self._get_version,
            ("PUT", _VERSION): self._put_version,
            ("GET", _LOG): self._get_log,
            ("PUT", _SEGMENT): self._put_segment,
            ("GET", _MANIFEST): partial(self._get_checkpoint, Kind.MANIFEST),
            ("PUT", _MANIFEST): partial(self._put_checkpoint, Kind.MANIFEST),
            ("GET", _PART): partial(self._get_checkpoint, Kind.PART),
            ("PUT", _PART): partial(self._put_checkpoint, Kind.PART),
            ("GET", "/healthz"): self._get_health,
            ("GET", "/readyz"): self._get_ready,
            ("GET", "/metrics"): self._get_metrics,
        }
        for (method, path), handler in routes.items():
            app.router.add_route(method, path, handler)
        return app

    # Routes.

    async def _get_heads(self, request: web.Request) -> web.StreamResponse:
        admitted = await self._admit_reader(request)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        wait = _query_number(request, "wait", default=0, most=_MAX_WAIT_SECONDS)
        known = {tag.value for tag in request.if_none_match or ()}
        document: bytes | None
        if wait and known and "*" not in known:
            document = await self.vaults.changed_heads(admitted.vault, admitted.claim.key, known, wait)
        else:
            document = (await self.vaults.heads(admitted.vault)).to_json()
        if document is None:
            return _not_modified(min(known))
        tag = tag_of(document)
        if tag in known or "*" in known:
            return _not_modified(tag)
        return web.Response(body=document, content_type="application/json", headers={"ETag": f'"{tag}"'})

    async def _get_version(self, request: web.Request) -> web.StreamResponse:
        text = request.match_info["number"]
        number = None if text == "latest" else _number(text)
        part = request.query.get("part")
        if part not in (None, "public"):
            raise Problem("request_invalid", "`part` can only be `public`.")
        admitted = await self._admit_reader(request)
        content = await self.vaults.version_bytes(admitted.vault, number, stripped=part == "public")
        return web.Response(body=content, content_type=_BYTES)

    async def _put_version(self, request: web.Request) -> web.StreamResponse:
        number = _number(request.match_info["number"])
        refill = _refill(request)
        admitted = await self._admit(request, has_body=True, registers=number == 1, refills=refill)
        require(admitted.role, *VERSION_ROLES)
        body = await self._receive(request, admitted.claim, MAX_VERSION_BYTES)
        new = await self.vaults.put_version(admitted.vault, number, body, admitted.claim.key, refill=refill)
        return web.Response(status=201 if new else 200)

    async def _get_log(self, request: web.Request) -> web.StreamResponse:
        stream = _id(request.match_info["stream"])
        start = _query_number(request, "from", default=0)
        limit = _query_number(request, "limit", default=MAX_ANSWER_BYTES, least=1)
        admitted = await self._admit_reader(request)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        content, length = await self.vaults.streams.read(admitted.vault, stream, start, min(limit, MAX_ANSWER_BYTES))
        return web.Response(body=content, content_type=_BYTES, headers={"Memseal-Log-Length": str(length)})

    async def _put_segment(self, request: web.Request) -> web.StreamResponse:
        stream = _id(request.match_info["stream"])
        seq = _number(request.match_info["seq"])
        refill = _refill(request)
        admitted = await self._admit(request, has_body=True)
        require(admitted.role, Role.DEVICE)
        body = await self._receive(request, admitted.claim, self._limits.max_object_bytes)
        new = await self.vaults.streams.put(admitted.vault, stream, seq, body, admitted.claim.key, refill=refill)
        return web.Response(status=201 if new else 200)

    async def _get_checkpoint(self, kind: Kind, request: web.Request) -> web.StreamResponse:
        name = _id(request.match_info["id"])
        admitted = await self._admit_reader(request)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        length = await self.vaults.floors.length(admitted.vault, kind, name)
        wanted = _wanted_range(request, length)
        start, stop = (0, length) if wanted is None else wanted
        response = web.StreamResponse(status=200 if wanted is None else 206, headers={"Accept-Ranges": "bytes"})
        response.content_type = _BYTES
        response.content_length = stop - start
        if wanted is not None:
            response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{length}"
        # Piece by piece: whoever reads slowly would keep 64 MiB in memory.
        try:
            for at in range(start, stop, _PIECE_BYTES):
                piece = await self.vaults.floors.read(admitted.vault, kind, name, at, min(stop, at + _PIECE_BYTES))
                if not response.prepared:
                    await response.prepare(request)
                await response.write(piece)
        except (Problem, StoreUnavailable):
            if not response.prepared or request.transport is None:
                raise
            request.transport.abort()  # another answer would be taken for the rest of this one
        return response

    async def _put_checkpoint(self, kind: Kind, request: web.Request) -> web.StreamResponse:
        name = _id(request.match_info["id"])
        admitted = await self._admit(request, has_body=True)
        require(admitted.role, Role.DEVICE)
        body = await self._receive(request, admitted.claim, min(MAX_FILE_BYTES, self._limits.max_object_bytes))
        new = await self.vaults.floors.put(admitted.vault, kind, name, body, admitted.claim.key)
        return web.Response(status=201 if new else 200)

    async def _get_health(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _get_ready(self, request: web.Request) -> web.StreamResponse:
        await self._store.totals()
        return web.Response(text="ok")

    async def _get_metrics(self, request: web.Request) -> web.StreamResponse:
        text = self._metrics.render(await self._store.totals(), len(self.vaults.waiters))
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    # Signatures and bodies, in the order of sync-protocol §3.

    async def _admit_reader(self, request: web.Request) -> _Admitted:
        if request.body_exists:
            raise Problem("request_invalid", "Send no body where something is only read.")
        admitted = await self._admit(request, has_body=False)
        self._freshness.check_clock(admitted.claim)
        return admitted

    async def _admit(
        self, request: web.Request, *, has_body: bool, registers: bool = False, refills: bool = False
    ) -> _Admitted:
        vault = _id(request.match_info["vault"])
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
        role = await self.vaults.admit(vault, claim.key, registers=registers, refills=refills)
        auth.prove(claim)
        return _Admitted(vault, claim, role)

    async def _receive(self, request: web.Request, claim: auth.Claim, limit: int) -> bytes:
        length = request.content_length
        if length is not None and length > limit:
            raise _too_large(limit)
        if length is not None and length <= _LARGE_BODY_BYTES:
            body = await self._read_body(request, limit)
            auth.check_body(claim, body)
        else:
            async with self._large_bodies:
                body = await self._read_body(request, limit)
            # In a thread: hashing 68 MiB takes some 50 ms.
            await asyncio.to_thread(auth.check_body, claim, body)
        self._freshness.check_clock(claim)
        self._freshness.check_first_time(claim)
        return body

    async def _read_body(self, request: web.Request, limit: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for chunk in request.content.iter_any():
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
                    chunks.append(chunk)
        except TimeoutError:
            raise Problem("timeout", "Send the body faster, or in smaller segments.") from None
        except (web.RequestPayloadError, ConnectionError):
            raise Problem("content_digest", "Send the whole body.") from None
        return b"".join(chunks)

    # Around every request.

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        response = await _answer(request, handler)
        seconds = time.perf_counter() - started
        method = request.method if request.method in _METHODS else "OTHER"
        resource = request.match_info.route.resource
        route = "unmatched" if resource is None else resource.canonical
        sent = response.content_length or 0
        self._metrics.count(method, route, response.status, seconds)
        logs.answered(method, route, response.status, seconds, request.content.total_bytes, sent)
        return response


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Problem as problem:
        return _problem_response(problem)
    except web.HTTPMethodNotAllowed as error:
        allow = {"Allow": error.headers.get("Allow", "")}
        return _problem_response(Problem("method_unknown", "Use a method that `Allow` names.", headers=allow))
    except web.HTTPNotFound:
        return _problem_response(Problem("route_unknown", "Use a path of the sync protocol."))
    except StoreUnavailable as error:
        logs.failed("store_unavailable", error)
        return _problem_response(Problem("store_unavailable", "Try again later."))
    except Exception as error:  # noqa: BLE001  the last place where it can become an answer
        logs.failed("server_error", error)
        return _problem_response(Problem("server_error", "Tell the server's operator."))


def _problem_response(problem: Problem) -> web.Response:
    return web.Response(
        status=problem.status,
        body=json.dumps(problem.document()).encode(),
        content_type="application/problem+json",
        headers=problem.headers,
    )


def _not_modified(tag: str) -> web.Response:
    return web.Response(status=304, headers={"ETag": f'"{tag}"'})


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_EVERY_ANSWER)


def _id(text: str) -> bytes:
    if not _ID.fullmatch(text):
        raise Problem("request_invalid", "Ids are 32 lower-case hexadecimal digits.")
    return bytes.fromhex(text)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > MAX_NUMBER:
        raise Problem("request_invalid", "Numbers are decimal, without leading zeros, of at most ten digits.")
    return int(text)


def _refill(request: web.Request) -> bool:
    value = request.query.get("refill", "false")
    if value not in ("true", "false"):
        raise Problem("request_invalid", "`refill` is `true` or `false`.")
    return value == "true"


def _query_number(request: web.Request, name: str, *, default: int, least: int = 0, most: int | None = None) -> int:
    values = request.query.getall(name, [])
    if not values:
        return default
    if len(values) > 1 or not _NUMBER.fullmatch(values[0]):
        raise Problem("request_invalid", f"`{name}` is one decimal number.")
    number = int(values[0])
    if number < least or (most is not None and number > most):
        raise Problem("request_invalid", f"`{name}` is out of range.")
    return number


def _wanted_range(request: web.Request, length: int) -> tuple[int, int] | None:
    """Return where the one range that is asked for starts and stops, or None where the whole is."""
    try:
        asked = request.http_range
    except ValueError:
        return None  # several ranges, or another unit: a server may pass over them (RFC 9110)
    if "Range" not in request.headers or "If-Range" in request.headers:
        return None
    start, stop, _ = asked.indices(length)
    if start >= stop:
        raise Problem("log_range", "Ask for a range within the object.", headers={"Content-Range": f"bytes */{length}"})
    return start, stop


def _too_large(limit: int) -> Problem:
    return Problem("too_large", f"Objects have at most {limit} bytes here: send smaller segments.")
