"""One HTTP endpoint that takes and gives JSON, asked with care."""

import base64
import http.client
import json
from ipaddress import ip_address
from time import monotonic
from urllib.parse import SplitResult, quote, unquote, urlsplit

from memseal.errors import EmbedderAnswer, EmbedderUnavailable

# Loading a model from disk may take a server most of this.
_TIMEOUT_SECONDS = 60.0
# 64 vectors of 4,096 dimensions in JSON are about 6 MB.
_MAX_ANSWER_BYTES = 32 * 1024 * 1024


class Endpoint:
    """An address to post to; credentials in its URL or an API key never show in a message or a repr.

    Redirects are not followed: they would carry texts to an address that nobody configured.
    """

    def __init__(self, url: str, path: str, api_key: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("an endpoint is an http:// or https:// URL without query and fragment")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = _port(parts)
        self._path = quote(unquote(parts.path).rstrip("/").removesuffix("/v1") + path)
        self._authorization = _authorization(parts, api_key)
        if self._authorization and not self._secure and not _is_loopback(self._host):
            raise ValueError("credentials go over plain HTTP only to this machine; use https://")
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._path}"

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    def post(self, request: object) -> object:
        """Return the JSON that the endpoint answers; raises `EmbedderUnavailable` or `EmbedderAnswer`."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        try:
            raw = self._exchange(connection, json.dumps(request).encode())
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise EmbedderUnavailable(f"{self.shown}: {type(error).__name__}") from error
        finally:
            connection.close()
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            # Not chained: the parser's error holds the answer, which may repeat the texts.
            raise EmbedderAnswer(f"{self.shown} answered something other than JSON") from None

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes) -> bytes:
        deadline = monotonic() + _TIMEOUT_SECONDS
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        connection.request("POST", self._path, body, headers)
        with connection.getresponse() as response:
            if 300 <= response.status < 400:
                raise EmbedderAnswer(f"{self.shown} redirects, which is refused")
            if response.status != http.client.OK:
                raise EmbedderUnavailable(f"{self.shown} answered {response.status}")
            return self._read(response, deadline)

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        answer = bytearray()
        while piece := response.read1(65_536):
            answer += piece
            if len(answer) > _MAX_ANSWER_BYTES:
                raise EmbedderAnswer(f"{self.shown} answered more than 32 MB")
            if monotonic() > deadline:
                raise TimeoutError
        if response.length:  # what was announced and did not come
            raise http.client.IncompleteRead(b"", response.length)
        return bytes(answer)


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        # Not chained: where a password has a slash in it, the standard library's message quotes a part of it.
        raise ValueError("the port of an endpoint is a number") from None


def _authorization(parts: SplitResult, api_key: str | None) -> str | None:
    if api_key is not None:
        # A line end that came along from a file would make http.client quote the key in its message.
        if not api_key.isascii() or not api_key.isprintable() or not api_key:
            raise ValueError("an API key is printable ASCII without line ends")
        return f"Bearer {api_key}"
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
