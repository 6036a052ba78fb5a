"""Around every request: problems become answers, and each answer is counted and logged."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from memseal_server import logs
from memseal_server.blobs import StoreUnavailable
from memseal_server.metrics import Metrics
from memseal_server.problems import Problem

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
# What is signed for one device is no shared cache's to keep.
EVERY_ANSWER = {"Server": "memseal-server", "Cache-Control": "no-store"}


class Answering:
    """The middleware of all routes."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._count = 0
        self._done: asyncio.Event | None = None

    async def finished(self) -> None:
        """Wait until no request is being answered; connections are closed from now on as they are answered."""
        self._done = asyncio.Event()
        if self._count:
            await self._done.wait()

    @web.middleware
    async def observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request by its handler, count it and log it."""
        self._count += 1
        try:
            response = await self._observe(request, handler)
        finally:
            self._count -= 1
            if self._done is not None and not self._count:
                self._done.set()
        if self._done is not None:
            response.force_close()
        return response

    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        response, code = await _answer(request, handler)
        seconds = time.perf_counter() - started
        method = request.method if request.method in _METHODS else "OTHER"
        resource = request.match_info.route.resource
        route = "unmatched" if resource is None else resource.canonical
        received, sent = request.content.total_bytes, response.content_length or 0
        self._metrics.count(method, route, response.status, seconds, code)
        self._metrics.count_bytes(received, sent)
        logs.answered(
            method=method,
            route=route,
            status=response.status,
            code=code,
            vault=logs.stand_in(request.match_info.get("vault")),
            ms=round(seconds * 1000, 2),
            received_bytes=received,
            sent_bytes=sent,
        )
        return response


def problem_response(problem: Problem) -> web.Response:
    """Return a problem as an answer."""
    return web.Response(
        status=problem.status,
        body=json.dumps(problem.document()).encode(),
        content_type="application/problem+json",
        headers=problem.headers,
    )


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Give an answer the headers that each one has."""
    response.headers.update(EVERY_ANSWER)


async def _answer(request: web.Request, handler: Handler) -> tuple[web.StreamResponse, str | None]:
    """Return the answer, and the code of the problem that it is."""
    try:
        return await handler(request), None
    except Problem as refusal:
        problem = refusal
    except web.HTTPMethodNotAllowed as error:
        allow = {"Allow": error.headers.get("Allow", "")}
        problem = Problem("method_unknown", "Use a method that `Allow` names.", headers=allow)
    except web.HTTPNotFound:
        problem = Problem("route_unknown", "Use a path of the sync protocol.")
    except StoreUnavailable as error:
        logs.failed("store_unavailable", error)
        problem = Problem("store_unavailable", "Try again later.")
    except Exception as error:  # noqa: BLE001  the last place where it can become an answer
        logs.failed("server_error", error)
        problem = Problem("server_error", "Tell the server's operator.")
    return problem_response(problem), problem.code
