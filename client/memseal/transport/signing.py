"""Signs requests (RFC 9421, RFC 9530; sync-protocol §3)."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from http_message_signatures import algorithms
from http_message_signatures.digests import ContentDigest
from http_message_signatures.signatures import HTTPMessageSigner

from memseal.errors import RemoteUnknown
from memseal.format.keys import SigningKey
from memseal.format.primitives import public_signing_key, sign

IDENTITY_HEADER = "Memseal-Server"
_COVERED = ("@method", "@path", "@query", "memseal-server")
# A name as the DNS has it, or an address of IP; what else a URL may hold would fail later, in the midst of a request.
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?|[0-9a-f.]*:[0-9a-f:.]*(%[a-z0-9]+)?")
# What needs no escape, so that what is signed and what is sent are the same bytes.
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_PORT = "this is not the address of a server: its port is no number from 1 to 65535"
_PORTS = {"http": 80, "https": 443}


def server_identity(url: str) -> str:
    """Return `scheme://host[:port]`, lower case, without a default port; `RemoteUnknown` for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        if "port" in str(error).lower():
            raise RemoteUnknown(_PORT) from None
        raise RemoteUnknown("this is not the address of a server") from None
    if port == 0:
        raise RemoteUnknown(_PORT)
    if parts.scheme not in _PORTS or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise RemoteUnknown("a server's address is https://host, https://host:port or https://host/path, no more")
    if not _HOST.fullmatch(parts.hostname):
        raise RemoteUnknown("a server's name has letters of ASCII, digits, points and hyphens: write others as xn--…")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")


def server_path(url: str) -> str:
    """Return the path below which a server's address says that it is found, mostly none; `RemoteUnknown` for others."""
    path = urlsplit(url).path.rstrip("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        raise RemoteUnknown("the path in a server's address has letters, digits and . _ ~ - between single slashes")
    return path


def content_digest(body: bytes) -> str:
    """Return what stands in a request's `Content-Digest`."""
    return ContentDigest.create(body)


@dataclass
class Message:
    """A request as the signing library reads it."""

    method: str
    url: str
    headers: dict[str, str]


class RequestSigner:
    """Signs requests to one server with one key; the clock's offset is learned from the server."""

    def __init__(
        self, key: SigningKey, identity: str, now: Callable[[], float], random: Callable[[int], bytes]
    ) -> None:
        """Take the key, the server's identity, the time in seconds and a source of random bytes."""
        self._key = key
        self._identity = identity
        self._now = now
        self._random = random
        # The library ships no types for what is used here; all of it is behind `headers`.
        self._signer: Any = HTTPMessageSigner(signature_algorithm=algorithms.ED25519)  # pyright: ignore[reportPrivateImportUsage]
        self.offset_seconds = 0.0

    def headers(self, method: str, url: str, digest: str | None) -> dict[str, str]:
        """Return the headers that sign a request, given its body's `content_digest`, if it has a body."""
        digested = {} if digest is None else {"Content-Digest": digest}
        message = Message(method, url, {IDENTITY_HEADER: self._identity, **digested})
        prepared = self._signer.prepare(
            message,
            key_id=public_signing_key(self._key).hex(),
            created=datetime.fromtimestamp(self._now() + self.offset_seconds, UTC),
            nonce=base64.b64encode(self._random(16)).decode("ascii"),
            label="memseal",
            tag="memseal/1",
            covered_component_ids=_COVERED if digest is None else (*_COVERED, "content-digest"),
            use_existing_digest=digest is not None,
        )
        self._signer.apply(message, prepared, sign(self._key, prepared.signature_base))
        return message.headers

    def learn_clock(self, server_seconds: float) -> None:
        """Sign from now on with the server's time."""
        self.offset_seconds = server_seconds - self._now()
