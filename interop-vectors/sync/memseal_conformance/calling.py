"""Send requests to a server and take its answers, exactly as they are written."""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 120.0  # a waiting request may take 60 (sync-protocol §2)
_FIRST_REFUSAL = 400


class Unreachable(Exception):
    """No answer came; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What a server answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any] | None:
        """The problem document, or None where the answer has none."""
        if self.headers.get("content-type", "").partition(";")[0].strip() != "application/problem+json":
            return None
        return self.document

    @property
    def document(self) -> dict[str, Any] | None:
        """The JSON object in the body, or None where there is none."""
        try:
            document = json.loads(self.body)
        except ValueError:
            return None
        return cast("dict[str, Any]", document) if isinstance(document, dict) else None

    @property
    def code(self) -> str:
        """The code of the problem document, or nothing."""
        return str((self.problem or {}).get("code", ""))


class Origin:
    """Where a server listens."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ValueError("it is not http(s)://host or http(s)://host:port")
        self.scheme, self.host, self.port = parts.scheme, parts.hostname, parts.port

    @property
    def identity(self) -> str:
        """The server identity that requests are signed for, unless the server has another."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port in (None, {"http": 80, "https": 443}[self.scheme]) else f":{self.port}"
        return f"{self.scheme}://{host.lower()}{port}"

    def connect(self) -> "Connection":
        """Return a new connection, which is opened with the first request."""
        if self.scheme == "https":
            context = ssl.create_default_context()
            return Connection(
                http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT_SECONDS, context=context)
            )
        return Connection(http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT_SECONDS))


class Connection:
    """One connection to a server: requests and answers take turns."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._sent_body = False

    def begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> None:
        """Send a request."""
        self._sent_body = body is not None
        try:
            self._connection.request(method, target, body, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            return  # refused before the body was through: the answer may be there
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(_reason(error)) from error

    def finish(self) -> Answer:
        """Return the answer to the request that was sent."""
        try:
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(_reason(error)) from error
        # A server may hang up on a body that it did not read.
        if self._sent_body and response.status >= _FIRST_REFUSAL:
            self.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def close(self) -> None:
        """Hang up; the next request connects again."""
        self._connection.close()


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
