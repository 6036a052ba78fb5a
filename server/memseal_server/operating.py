"""Answer what operators and their tools ask: health, readiness, figures, and the description of the routes."""

import json
from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from memseal_server import invitations, openapi, relay
from memseal_server.answering import Handler
from memseal_server.blobs import BlobStore, Totals
from memseal_server.metrics import CONTENT_TYPE, Metrics
from memseal_server.problems import Problem
from memseal_server.routes import JSON, ROUTES
from memseal_server.waiting import Waiters

_RETRY_SECONDS = "5"


class Operating:
    """The routes that need no signature; while `ending`, the server says that it is not ready."""

    def __init__(self, store: BlobStore, metrics: Metrics, waiters: Waiters) -> None:
        self._store = store
        self._metrics = metrics
        self._waiters = waiters
        self._description = json.dumps(openapi.document(ROUTES)).encode()
        self.ending = False

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by the names of their routes."""
        return {
            "get_health": self._get_health,
            "get_ready": self._get_ready,
            "get_metrics": self._get_metrics,
            "get_openapi": self._get_openapi,
        }

    async def _get_health(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _get_ready(self, request: web.Request) -> web.StreamResponse:
        if self.ending:
            raise Problem("busy", "The server is about to end.", headers={"Retry-After": _RETRY_SECONDS})
        await self._store.check()
        return web.Response(text="ok")

    async def _get_metrics(self, request: web.Request) -> web.StreamResponse:
        text = self._metrics.render(await self._totals(), len(self._waiters))
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _totals(self) -> Totals | None:
        """Return what the store holds, with vaults alone among its folders."""
        totals = await self._store.totals()
        if totals is None:
            return None
        others = [await self._store.usage(f"{name}/") for name in (invitations.FOLDER, relay.FOLDER)]
        return replace(totals, folders=totals.folders - sum(each.objects > 0 for each in others))

    async def _get_openapi(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._description, content_type=JSON)
