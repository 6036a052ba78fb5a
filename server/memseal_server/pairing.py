"""Answer the routes of a pairing, over the relay (sync-protocol, *Pairing*)."""

import re
from collections.abc import Mapping

from aiohttp import web

from memseal_server.access import Role, require
from memseal_server.admission import Admission, Admitted
from memseal_server.answering import Handler
from memseal_server.problems import Problem
from memseal_server.reading import query_number
from memseal_server.relay import MAX_MESSAGE_BYTES, MESSAGES, Relay
from memseal_server.routes import BINARY, MAX_WAIT_SECONDS

_CHANNEL = re.compile(r"[0-9]{5}")


class Pairing:
    """The four requests of the two devices."""

    def __init__(self, relay: Relay, admission: Admission) -> None:
        self._relay = relay
        self._admission = admission

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by the names of their routes."""
        return {
            "put_shown": self._put_shown,
            "get_answered": self._get_answered,
            "put_answer": self._put_answer,
            "get_shown": self._get_shown,
        }

    async def _put_shown(self, request: web.Request) -> web.StreamResponse:
        channel, number = _place(request)
        admitted = await self._admission.writer(request)
        require(admitted.role, Role.DEVICE)
        body = await self._admission.receive(request, admitted.claim, MAX_MESSAGE_BYTES)
        vault, key = _device(admitted)
        if number == 1:
            new = await self._relay.open(channel, vault, key, body.content)
        else:
            new = await self._relay.say(channel, vault, key, number, body.content)
        return web.Response(status=201 if new else 200)

    async def _get_answered(self, request: web.Request) -> web.StreamResponse:
        channel, number = _place(request)
        wait = query_number(request, "wait", default=0, most=MAX_WAIT_SECONDS)
        admitted = await self._admission.reader(request)
        require(admitted.role, Role.DEVICE)
        content = await self._relay.hear(channel, *_device(admitted), number, wait)
        return web.Response(body=content, content_type=BINARY)

    async def _put_answer(self, request: web.Request) -> web.StreamResponse:
        channel, number = _place(request)
        claim = self._admission.stranger(request, channel, has_body=True)
        body = await self._admission.receive(request, claim, MAX_MESSAGE_BYTES)
        new = await self._relay.answer(channel, claim.key, number, body.content)
        return web.Response(status=201 if new else 200)

    async def _get_shown(self, request: web.Request) -> web.StreamResponse:
        channel, number = _place(request)
        wait = query_number(request, "wait", default=0, most=MAX_WAIT_SECONDS)
        claim = self._admission.stranger(request, channel, has_body=False)
        content = await self._relay.said(channel, claim.key, number, wait)
        return web.Response(body=content, content_type=BINARY)


def _device(admitted: Admitted) -> tuple[bytes, bytes]:
    return admitted.vault, admitted.claim.key


def _place(request: web.Request) -> tuple[str, int]:
    """Return the channel and the number of a message that a path names."""
    channel, number = request.match_info["channel"], request.match_info["number"]
    if not _CHANNEL.fullmatch(channel):
        raise Problem("request_invalid", "A channel is five digits.")
    if number not in [str(each) for each in range(1, MESSAGES + 1)]:
        raise Problem("request_invalid", f"Each side has messages 1 to {MESSAGES}.")
    return channel, int(number)
