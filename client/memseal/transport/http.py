"""A server as a remote (sync-protocol §2)."""

import asyncio
import concurrent.futures
import contextlib
import re
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from memseal.errors import RemoteAnswer, RemoteRefused, RemoteUnreachable
from memseal.format.keys import SigningKey
from memseal.sync.messages import (
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    GetObject,
    PutKeyring,
    PutObject,
    PutSegment,
    Request,
    Stored,
)
from memseal.sync.relaying import Hear, Say
from memseal.transport import Heard
from memseal.transport.answers import PROXY_PASSWORD, clock_of, read_heads, refusal
from memseal.transport.network import CERTIFICATE, Proxy, proxy_for, trust
from memseal.transport.signing import RequestSigner, content_digest, server_identity, server_path

# No answer may be larger: a record of 64 MiB with its overhead, or the heads of very many logs.
_ANSWER_MOST = 80 << 20
# Of a body: as much as asyncio reads at once on the other side.
_WRITTEN_AT_ONCE = 256 << 10
# Of an object: as much as of a log, so that little is lost where one breaks off.
_OBJECT_PIECE = 8 << 20
_CONNECT_SECONDS, _READ_SECONDS = 20, 60
# A server waits a minute for a body; whoever accepts none for so long is not there.
_UPLOAD_SECONDS = 180
_INVITATION = re.compile(r"[A-Za-z0-9_-]{1,128}")
Result = TypeVar("Result")
Reader = Callable[["_Reply"], Answer]


@dataclass(frozen=True)
class _Reply:
    """An HTTP answer; `whole` is False where it broke off."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    whole: bool = True


@dataclass(frozen=True)
class _Sent:
    """A request that the transport's own thread is sending."""

    future: concurrent.futures.Future[Answer]

    def answer(self) -> Answer:
        """Wait for its answer."""
        try:
            return self.future.result()
        except concurrent.futures.CancelledError:
            raise RemoteUnreachable("the connection was closed here") from None

    def drop(self) -> None:
        """Break it off."""
        self.future.cancel()


class HttpTransport:
    """One vault on one server, over kept connections; works also in programs that run an event loop themselves."""

    carries_keys = True

    def __init__(self, url: str, vault_id: bytes, key: SigningKey, invitation: str | None = None) -> None:
        """Take the server's address, the vault, and the key to sign with; nothing is sent yet.

        An invitation goes along where a new vault is registered; raises `RemoteRefused` for what is none. The joiner
        of a pairing knows no vault yet (an empty id): it can relay, and nothing else.
        """
        identity = server_identity(url)
        self.address = identity + server_path(url)
        self._proxy: Proxy | None = proxy_for(self.address)
        self._trust: ssl.SSLContext | bool = trust() if self.address.startswith("https:") else True
        self._base = f"{self.address}/v1" + (f"/vaults/{vault_id.hex()}" if vault_id else "")
        self._signer = RequestSigner(key, identity, time.time, secrets.token_bytes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memseal-http", daemon=True)
        self._thread.start()
        self._session: aiohttp.ClientSession | None = None
        # Bodies go and logs come one after the other: on a slow line two at once would take too long for both.
        self._uploads, self._downloads = asyncio.Lock(), asyncio.Lock()
        self._invited = {} if invitation is None else {"Memseal-Invitation": _invitation(invitation)}
        self._broken_off = self._closing = False

    def send(self, request: Request) -> Answer:
        """Carry a request to the server and return its answer."""
        return self.begin(request).answer()

    def begin(self, request: Request) -> _Sent:
        """Send a request, and do not wait; another may be on its way already, over another connection."""
        # Hashed in the thread of who asks: the transport's own is busy with the body before it.
        body = _Body.of(request.content) if isinstance(request, PutKeyring | PutSegment | PutObject) else None
        return _Sent(self._begin(self._send(request, body)))

    def relay(self, message: Say | Hear) -> Answer:
        """Carry a message of a pairing, or wait for one; without a vault as the joiner, else as the shower."""
        return self._begin(self._relay(message)).result()

    def listen(self, tag: str, seconds: int) -> concurrent.futures.Future[Heard]:
        """Ask for heads other than those with this tag (empty: any); the server may hold the answer for so long."""
        return self._begin(self._listen(tag, seconds))

    def break_off(self) -> None:
        """Let whatever is being sent or listened to fail at once, and all that is sent later."""
        self._broken_off = True
        with contextlib.suppress(RuntimeError):  # it was closed already
            self._loop.call_soon_threadsafe(self._cancel_all)

    def close(self) -> None:
        """Close the connection."""
        self._broken_off = self._closing = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _cancel_all(self) -> None:
        if not self._closing:  # that cancels what there is, and must not be cancelled itself
            for task in asyncio.all_tasks(self._loop):
                task.cancel()

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # one of them may be about to open the session
        if self._session is not None:
            await self._session.close()

    def _begin(self, work: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        if self._broken_off:
            work.close()
            raise RemoteUnreachable("the connection was closed here")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _send(self, request: Request, body: "_Body | None") -> Answer:
        match request:
            case GetHeads():
                return await self._call("GET", "/heads", None, _heads)
            case GetKeyring(version, public):
                path = f"/keyring/{'latest' if version is None else version}"
                return await self._call("GET", path + ("?part=public" if public else ""), None, _content)
            case PutKeyring(version, _, refill):
                return await self._call("PUT", f"/keyring/{version}{_refill(refill)}", body, _stored, self._invited)
            case GetLog(stream_id, start, limit):
                async with self._downloads:
                    return await self._call("GET", f"/logs/{stream_id.hex()}?from={start}&limit={limit}", None, _begun)
            case PutSegment(stream_id, number, _, refill):
                return await self._call("PUT", f"/logs/{stream_id.hex()}/{number}{_refill(refill)}", body, _stored)
            case GetObject(shelf, object_id, start):
                wanted = {"Range": f"bytes={start}-{start + _OBJECT_PIECE - 1}"}
                return await self._call("GET", f"/{shelf}/{object_id.hex()}", None, _piece(start), wanted)
            case PutObject(shelf, object_id, _):
                return await self._call("PUT", f"/{shelf}/{object_id.hex()}", body, _stored)

    async def _relay(self, message: Say | Hear) -> Answer:
        path = f"/pairing/{message.channel:05d}/{message.number}"
        if isinstance(message, Say):
            return await self._call("PUT", path, _Body.of(message.content), _stored)
        reply = await self._signed("GET", f"{path}?wait={message.wait_seconds}", None, {}, message.wait_seconds)
        return _answer(reply, _content)

    async def _listen(self, tag: str, seconds: int) -> Heard:
        query, known = (f"?wait={seconds}", {"If-None-Match": f'"{tag}"'}) if tag else ("", {})
        reply = await self._signed("GET", f"/heads{query}", None, known, seconds)
        if reply.status == 304:
            return Heard(None, tag)
        return Heard(_answer(reply, _heads), reply.headers.get("ETag", "").strip('"'))

    async def _call(
        self, method: str, path: str, body: "_Body | None", read: Reader, more: Mapping[str, str] | None = None
    ) -> Answer:
        return _answer(await self._signed(method, path, body, more or {}), read)

    async def _signed(
        self, method: str, path: str, body: "_Body | None", more: Mapping[str, str], held_seconds: int = 0
    ) -> _Reply:
        """Exchange a request; where the clocks differ, a second one that is signed with the server's time."""
        reply = await self._exchange(method, path, body, more, held_seconds)
        if reply.status == 401 and (now := clock_of(reply.content)) is not None:
            self._signer.learn_clock(now)
            reply = await self._exchange(method, path, body, more, held_seconds)
        return reply

    async def _exchange(
        self, method: str, path: str, body: "_Body | None", more: Mapping[str, str], held_seconds: int
    ) -> _Reply:
        """Send one signed request; redirects are not followed, so that nothing goes where the user did not say."""
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        url, pass_on = self._base + path, {} if self._proxy is None else self._proxy.headers
        refused, upload = 0, None if body is None else await _Upload.begin(body.content, self._uploads)
        digest = None if body is None else body.digest
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                data=upload,
                headers={
                    **self._signer.headers(method, url, digest),
                    **more,
                    **(pass_on if self._trust is True else {}),
                },
                allow_redirects=False,
                timeout=_patience(body is not None, held_seconds),
                ssl=self._trust,
                proxy=None if self._proxy is None else self._proxy.address,
                proxy_headers=pass_on,  # to open a tunnel; where there is none they go with the request itself
            ) as response:
                return await _bounded(response)
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as error:
            raise RemoteUnreachable(CERTIFICATE) from error
        except aiohttp.ClientHttpProxyError as error:
            refused = error.status
        except aiohttp.ClientProxyConnectionError as error:
            raise RemoteUnreachable(f"the proxy cannot be reached ({type(error.os_error).__name__})") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RemoteUnreachable(f"the server cannot be reached ({type(error).__name__}): try again") from error
        finally:
            if upload is not None:
                upload.end()
        # Here and not above, where it would keep that error, which holds the proxy's password, as its context.
        what = f"the proxy refused ({refused}): is it the right one?"
        raise RemoteUnreachable(PROXY_PASSWORD if refused == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else what)


@dataclass(frozen=True)
class _Body:
    """What a request carries, and the digest that it is signed under."""

    content: bytes
    digest: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return a body of these bytes."""
        return cls(content, content_digest(content))


class _Upload(aiohttp.Payload):
    """A body that has the line to itself until it is written, and not until it is answered.

    Written as it lies in memory: the library's own payloads copy it, or hold up the loop with all of it at once.
    """

    @classmethod
    async def begin(cls, body: bytes, line: asyncio.Lock) -> Self:
        """Wait for the line."""
        await line.acquire()
        return cls(body, line)

    def __init__(self, body: bytes, line: asyncio.Lock) -> None:
        super().__init__(body)
        self._size = len(body)
        self._line: asyncio.Lock | None = line

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body, and let the next one have the line."""
        view = memoryview(self._value)
        for at in range(0, len(view), _WRITTEN_AT_ONCE):
            await writer.write(view[at : at + _WRITTEN_AT_ONCE])
        self.end()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Raise `TypeError`: what is sent is no text."""
        raise TypeError("a sealed body is no text")

    def end(self) -> None:
        """Let go of the line; twice is harmless."""
        line, self._line = self._line, None
        if line is not None:
            line.release()


def _invitation(text: str) -> str:
    if not _INVITATION.fullmatch(text.strip()):
        raise RemoteRefused("invitation_refused", 0, "this is no invitation: it has letters, digits, - and _ alone")
    return text.strip()


def _patience(has_body: bool, held_seconds: int) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=_UPLOAD_SECONDS if has_body else None,
        sock_connect=_CONNECT_SECONDS,
        sock_read=_READ_SECONDS + held_seconds,
    )


async def _bounded(response: aiohttp.ClientResponse) -> _Reply:
    """Return an answer; what came of one that broke off is worth something where it is a part anyway."""
    pieces, size, whole = list[bytes](), 0, True
    try:
        async for piece in response.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > _ANSWER_MOST:
                raise RemoteAnswer("the server's answer is larger than any it may give")
    except (aiohttp.ClientError, OSError, TimeoutError):
        if not size:
            raise
        whole = False
    return _Reply(response.status, response.headers, b"".join(pieces), whole)


def _answer(reply: _Reply, read: Reader) -> Answer:
    if reply.status in (200, 201, 206):
        return read(reply)
    return refusal(reply.status, reply.content, reply.headers.get("Retry-After"))


def _refill(refill: bool) -> str:
    return "?refill=true" if refill else ""


def _stored(_: _Reply) -> Answer:
    return Stored()


def _heads(reply: _Reply) -> Answer:
    return read_heads(_all_of(reply))


def _content(reply: _Reply) -> Answer:
    return Content(_all_of(reply))


def _begun(reply: _Reply) -> Answer:
    """Return bytes of a log: those that came before an answer broke off count, the rest is asked for again."""
    return Content(reply.content)


def _piece(start: int) -> Reader:
    """Return what reads a piece of an object that begins at `start`, from a server that may not know ranges."""

    def read(reply: _Reply) -> Answer:
        if reply.status == 206:
            place, _, total = reply.headers.get("Content-Range", "").partition("/")
            if not place.startswith(f"bytes {start}-") or not (total.isascii() and total.isdigit()):
                raise RemoteAnswer("the server gave another range than was asked for")
            return Content(reply.content, int(total[:12]))
        content = _all_of(reply)
        return Content(content[start:], len(content))

    return read


def _all_of(reply: _Reply) -> bytes:
    if not reply.whole:
        raise RemoteUnreachable("the answer broke off: try again")
    return reply.content
