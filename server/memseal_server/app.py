"""Answer the routes of sync-protocol §2, over the vaults."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from aiohttp import web

from memseal_server.access import Role, require
from memseal_server.admission import Admission
from memseal_server.answering import Answering, Handler, add_headers
from memseal_server.blobs import BlobStore, StoreUnavailable
from memseal_server.checkpoints import MAX_FILE_BYTES, Kind
from memseal_server.limits import Limits
from memseal_server.metrics import Metrics
from memseal_server.observing import observed
from memseal_server.operating import Operating
from memseal_server.pairing import Pairing
from memseal_server.problems import Problem
from memseal_server.reading import is_refill, query_number, read_id, read_number, wanted_range
from memseal_server.relay import Relay
from memseal_server.routes import BINARY, JSON, MAX_WAIT_SECONDS, ROUTES
from memseal_server.streams import MAX_ANSWER_BYTES, read_piece
from memseal_server.vaults import VERSION_ROLES, Vaults, tag_of
from memseal_server.versions import MAX_VERSION_BYTES

_PIECE_BYTES = 1024 * 1024
# Of more than this at once asyncio would copy, again and again, what the network does not take yet.
_WRITTEN_BYTES = 256 * 1024
# For each piece of a log the store is asked several times; most answers are one.
_LOG_PIECE_BYTES = 4 * 1024 * 1024


class Server:
    """What answers requests, whatever they come over; `admission` says for whom they may be signed."""

    def __init__(self, store: BlobStore, limits: Limits, identities: tuple[str, ...]) -> None:
        self.metrics = Metrics()
        self._store = observed(store, self.metrics.count_store)
        self._limits = limits
        self.vaults = Vaults(self._store, limits)
        self.admission = Admission(self.vaults, limits, identities)
        self.answering = Answering(self.metrics)
        self.operating = Operating(self._store, self.metrics, self.vaults.waiters)

    def application(self, paths: Iterable[str]) -> web.Application:
        """Return the application with every route of the table, below each of these paths."""
        app = web.Application(middlewares=[self.answering.observe])
        app.on_response_prepare.append(add_headers)
        handlers: Mapping[str, Handler] = {
            "get_heads": self._get_heads,
            "get_version": self._get_version,
            "put_version": self._put_version,
            "get_log": self._get_log,
            "put_segment": self._put_segment,
            "get_manifest": partial(self._get_checkpoint, Kind.MANIFEST),
            "put_manifest": partial(self._put_checkpoint, Kind.MANIFEST),
            "get_part": partial(self._get_checkpoint, Kind.PART),
            "put_part": partial(self._put_checkpoint, Kind.PART),
            **Pairing(Relay(self._store, self.vaults.waiters), self.admission).handlers(),
            **self.operating.handlers(),
        }
        for path in sorted(paths):
            for route in ROUTES:
                app.router.add_route(route.method, path + route.path, handlers[route.name])
        return app

    async def _get_heads(self, request: web.Request) -> web.StreamResponse:
        admitted = await self.admission.reader(request, provisional=True)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        wait = query_number(request, "wait", default=0, most=MAX_WAIT_SECONDS)
        known = {tag.value for tag in request.if_none_match or ()}
        document: bytes | None
        if wait and known and "*" not in known:
            document = await self.vaults.changed_heads(admitted.vault, admitted.claim.key, known, wait)
        else:
            document = await self.vaults.heads_for(admitted.vault, admitted.claim.key)
        if document is None:
            return _not_modified(min(known))
        tag = tag_of(document)
        if tag in known or "*" in known:
            return _not_modified(tag)
        return web.Response(body=document, content_type=JSON, headers={"ETag": f'"{tag}"'})

    async def _get_version(self, request: web.Request) -> web.StreamResponse:
        text = request.match_info["number"]
        number = None if text == "latest" else read_number(text)
        part = request.query.get("part")
        if part not in (None, "public"):
            raise Problem("request_invalid", "`part` can only be `public`.")
        admitted = await self.admission.reader(request)
        content = await self.vaults.version_bytes(admitted.vault, number, stripped=part == "public")
        return web.Response(body=content, content_type=BINARY)

    async def _put_version(self, request: web.Request) -> web.StreamResponse:
        number = read_number(request.match_info["number"])
        refill = is_refill(request)
        admitted = await self.admission.writer(request, registers=number == 1, refills=refill)
        require(admitted.role, *VERSION_ROLES)
        body = await self.admission.receive(request, admitted.claim, MAX_VERSION_BYTES)
        new = await self.vaults.put_version(
            admitted.vault,
            number,
            body.content,
            admitted.claim.key,
            refill=refill,
            invitation=request.headers.get("Memseal-Invitation"),
        )
        return _stored(new=new)

    async def _get_log(self, request: web.Request) -> web.StreamResponse:
        stream = read_id(request.match_info["stream"])
        start = query_number(request, "from", default=0)
        limit = query_number(request, "limit", default=MAX_ANSWER_BYTES, least=1)
        admitted = await self.admission.reader(request)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        wanted = min(limit, MAX_ANSWER_BYTES)
        first, length = await self.vaults.streams.read(admitted.vault, stream, start, min(wanted, _LOG_PIECE_BYTES))
        stop = min(start + wanted, length)
        response = web.StreamResponse(headers={"Memseal-Log-Length": str(length)})
        response.content_type = BINARY
        response.content_length = stop - start

        async def rest(at: int, end: int) -> bytes:
            return (await self.vaults.streams.read(admitted.vault, stream, at, end - at))[0]

        return await _send(request, response, first, rest, start, stop)

    async def _put_segment(self, request: web.Request) -> web.StreamResponse:
        stream = read_id(request.match_info["stream"])
        seq = read_number(request.match_info["seq"])
        refill = is_refill(request)
        admitted = await self.admission.writer(request, provisional=True)
        require(admitted.role, Role.DEVICE)
        with self.vaults.streams.coming(admitted.vault, stream, seq, admitted.claim.key) as coming:
            body = await self.admission.receive(request, admitted.claim, self._limits.max_object_bytes)
            piece = await read_piece(seq, body)
            await coming.turn()
            new = await self.vaults.streams.put(admitted.vault, stream, piece, admitted.claim.key, refill=refill)
        return _stored(new=new)

    async def _get_checkpoint(self, kind: Kind, request: web.Request) -> web.StreamResponse:
        name = read_id(request.match_info["id"])
        admitted = await self.admission.reader(request)
        require(admitted.role, Role.DEVICE, Role.EPOCH)
        length = await self.vaults.floors.length(admitted.vault, kind, name)
        wanted = wanted_range(request, length)
        start, stop = (0, length) if wanted is None else wanted
        response = web.StreamResponse(status=200 if wanted is None else 206, headers={"Accept-Ranges": "bytes"})
        response.content_type = BINARY
        response.content_length = stop - start
        if wanted is not None:
            response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{length}"
        rest = partial(self.vaults.floors.read, admitted.vault, kind, name)
        first = await rest(start, min(stop, start + _PIECE_BYTES))
        return await _send(request, response, first, rest, start, stop)

    async def _put_checkpoint(self, kind: Kind, request: web.Request) -> web.StreamResponse:
        name = read_id(request.match_info["id"])
        admitted = await self.admission.writer(request)
        require(admitted.role, Role.DEVICE)
        most = min(MAX_FILE_BYTES, self._limits.max_object_bytes)
        body = await self.admission.receive(request, admitted.claim, most)
        new = await self.vaults.floors.put(admitted.vault, kind, name, body, admitted.claim.key)
        return _stored(new=new)


async def _send(
    request: web.Request,
    response: web.StreamResponse,
    first: bytes,
    rest: Callable[[int, int], Awaitable[bytes]],
    start: int,
    stop: int,
) -> web.StreamResponse:
    """Send bytes from `start` up to `stop` in pieces as long as the first: who reads slowly keeps no more in memory."""
    await response.prepare(request)
    await _write(response, first)
    try:
        for at in range(start + len(first), stop, max(1, len(first))):
            await _write(response, await rest(at, min(stop, at + len(first))))
    except (Problem, StoreUnavailable):
        if request.transport is not None:
            request.transport.abort()  # another answer would be taken for the rest of this one
    return response


async def _write(response: web.StreamResponse, content: bytes) -> None:
    view = memoryview(content)
    for at in range(0, len(view), _WRITTEN_BYTES):
        await response.write(view[at : at + _WRITTEN_BYTES])


def _stored(*, new: bool) -> web.Response:
    return web.Response(status=201 if new else 200)


def _not_modified(tag: str) -> web.Response:
    return web.Response(status=304, headers={"ETag": f'"{tag}"'})
