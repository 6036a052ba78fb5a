"""A server as a remote (sync-protocol §2)."""

import asyncio
import json
import re
import secrets
import ssl
import threading
import time
from collections.abc import Coroutine
from io import BytesIO
from typing import Any, TypeVar, cast

import aiohttp
from yarl import URL

from memseal.errors import RemoteAnswer, RemoteUnreachable
from memseal.format.keys import SigningKey
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE
from memseal.sync.messages import (
    Absent,
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    GetObject,
    Heads,
    PutKeyring,
    PutObject,
    PutSegment,
    Refused,
    RemoteLog,
    Request,
    Stored,
)
from memseal.transport.signing import RequestSigner, server_identity

# No answer may be larger: a record of 64 MiB with its overhead, or the heads of very many logs.
_ANSWER_MOST = 80 << 20
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)
# The year 10000, which no clock of Python's can show.
_CLOCK_MOST = 253_402_300_800
# A code reaches screens and logs: it is one of the protocol's words, or none.
_CODE = re.compile("[a-z_]{1,40}")
Result = TypeVar("Result")


class HttpTransport:
    """One vault on one server, over one kept connection; works also in programs that run an event loop themselves."""

    carries_keys = True

    def __init__(self, url: str, vault_id: bytes, key: SigningKey) -> None:
        """Take the server's address, the vault, and the key to sign with; nothing is sent yet."""
        self.address = server_identity(url)
        self._base = f"{self.address}/v1/vaults/{vault_id.hex()}"
        self._signer = RequestSigner(key, self.address, time.time, secrets.token_bytes)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memseal-http", daemon=True)
        self._thread.start()
        self._session: aiohttp.ClientSession | None = None

    def send(self, request: Request) -> Answer:
        """Carry a request to the server and return its answer."""
        return self._wait(self._send(request))

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._wait(self._session.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _send(self, request: Request) -> Answer:
        match request:
            case GetHeads():
                return await self._call("GET", "/heads", None, _read_heads)
            case GetKeyring(version, public):
                path = f"/keyring/{'latest' if version is None else version}"
                return await self._call("GET", path + ("?part=public" if public else ""), None, Content)
            case PutKeyring(version, content, refill):
                return await self._call("PUT", f"/keyring/{version}{_refill(refill)}", content, _stored)
            case GetLog(stream_id, start, limit):
                return await self._call("GET", f"/logs/{stream_id.hex()}?from={start}&limit={limit}", None, Content)
            case PutSegment(stream_id, number, content, refill):
                return await self._call("PUT", f"/logs/{stream_id.hex()}/{number}{_refill(refill)}", content, _stored)

            case GetObject(shelf, object_id):
                return await self._call("GET", f"/{shelf}/{object_id.hex()}", None, Content)
            case PutObject(shelf, object_id, content):
                return await self._call("PUT", f"/{shelf}/{object_id.hex()}", content, _stored)

    async def _call(self, method: str, path: str, body: bytes | None, read: Any) -> Answer:
        status, content = await self._exchange(method, path, body)
        if status == 401 and (now := _clock_of(content)) is not None:
            self._signer.learn_clock(now)
            status, content = await self._exchange(method, path, body)
        if status in (200, 201):
            answer: Answer = read(content)
            return answer
        return _refusal(status, content)

    async def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send one signed request; redirects are not followed, so that nothing goes where the user did not say."""
        if self._session is None:
            # trust_env: HTTPS_PROXY and the like are the user's own configuration.
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True, auto_decompress=False)
        url = self._base + path
        headers = self._signer.headers(method, url, body)
        # A file: bytes of more than a megabyte would hold up the loop, and aiohttp warns of them.
        data = None if body is None else BytesIO(body)
        try:
            async with self._session.request(
                method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            ) as response:
                return response.status, await _bounded(response)
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as error:
            raise RemoteUnreachable("the server's certificate is not trusted") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RemoteUnreachable(f"the server cannot be reached ({type(error).__name__}): try again") from error


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for piece in response.content.iter_chunked(1 << 18):
        content += piece
        if len(content) > _ANSWER_MOST:
            raise RemoteAnswer("the server's answer is larger than any it may give")
    return bytes(content)


def _refill(refill: bool) -> str:
    return "?refill=true" if refill else ""


def _stored(_: bytes) -> Stored:
    return Stored()


def _read_heads(content: bytes) -> Heads:
    try:
        value = _json(content)
        keyring = (_count(value["keyring"]["version"]), _hex(value["keyring"]["digest"], 32))
        logs = {
            _hex(name, ID_SIZE): RemoteLog(
                End(_count(log["length"]), _count(log["records"]), _hex(log["chain"], 32)), _count(log["next"])
            )
            for name, log in value["logs"].items()
        }
        floor_whole = value.get("floor") is None or value["floor"].get("whole") is not False
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RemoteAnswer("the server's heads are not what the protocol says") from None
    return Heads(keyring, logs, whole=value["keyring"].get("whole") is not False, floor_whole=floor_whole)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a count")
    return value


def _hex(value: Any, size: int) -> bytes:
    raw = bytes.fromhex(value)
    if len(raw) != size:
        raise ValueError("not of this size")
    return raw


def _json(content: bytes) -> Any:
    """Return the value that JSON holds; `ValueError` for all else."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _problem(content: bytes) -> dict[str, Any]:
    try:
        value = _json(content)
    except ValueError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _clock_of(content: bytes) -> float | None:
    problem = _problem(content)
    now = problem.get("now")
    if problem.get("code") == "clock" and isinstance(now, int | float) and 0 <= now < _CLOCK_MOST:
        return float(now)
    return None


def _refusal(status: int, content: bytes) -> Answer:
    problem = _problem(content)
    code = problem.get("code")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise RemoteAnswer(f"the server answered {status} without saying why: is this a memseal server?")
    if code == "vault_unknown":
        return Absent()
    return Refused(code, status, _sentence(problem.get("detail")))


def _sentence(detail: Any) -> str:
    """Return a server's words so that they cannot draw on a terminal."""
    text = detail if isinstance(detail, str) else "the server refused"
    return "".join(character for character in text[:300] if character.isprintable())
