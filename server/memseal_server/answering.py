"""Around every request: problems become answers, and each answer is counted and logged."""

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

    @web.middleware
    async def observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request by its handler, count it and log it."""
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


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Problem as problem:
        return problem_response(problem)
    except web.HTTPMethodNotAllowed as error:
        allow = {"Allow": error.headers.get("Allow", "")}
        return problem_response(Problem("method_unknown", "Use a method that `Allow` names.", headers=allow))
    except web.HTTPNotFound:
        return problem_response(Problem("route_unknown", "Use a path of the sync protocol."))
    except StoreUnavailable as error:
        logs.failed("store_unavailable", error)
        return problem_response(Problem("store_unavailable", "Try again later."))
    except Exception as error:  # noqa: BLE001  the last place where it can become an answer
        logs.failed("server_error", error)
        return problem_response(Problem("server_error", "Tell the server's operator."))
