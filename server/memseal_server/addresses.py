"""Read the addresses that an operator writes down; each refusal says what would do."""

import re
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535
# A name as the DNS has it, or an address of IP.
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f.]*:[0-9a-f:.]*", re.ASCII)
# Letters that need no escape, so that the path that was signed and the one that comes are the same bytes.
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
# Two letters or more: a folder of Windows begins with one.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+", re.ASCII)


class Refusal(Exception):
    """A text that cannot be used; the message says why, and what would do."""


def read_store(text: str) -> str:
    """Return the address of a store: a folder, or `s3://bucket/prefix`."""
    match = _SCHEME.match(text)
    if not text:
        raise Refusal("it is empty: name a folder, or s3://bucket/prefix")
    if text.startswith("~"):
        raise Refusal(f"{text!r} begins with what only a shell knows: write the folder's whole path")
    if match is not None and not re.match(r"s3://[a-z0-9]", text):
        raise Refusal(f"{text!r} is neither a folder nor of the form s3://bucket/prefix")
    return text


def read_listen(text: str) -> tuple[str, int]:
    """Return host and port."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not re.fullmatch("[0-9]{1,9}", port):
        raise Refusal(f"{text!r} is not host:port, like 127.0.0.1:8420 or [::1]:8420")
    if int(port) > _MAX_PORT:
        raise Refusal(f"port {port} is too large: ports go up to {_MAX_PORT}")
    return host, int(port)


def read_url(text: str) -> tuple[str, str]:
    """Return the origin that requests are signed for, and the path below it, which is mostly empty."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise Refusal(f"{text!r} is not an address like https://host: ports go up to {_MAX_PORT}") from None
    host = parts.hostname
    if parts.scheme not in _DEFAULT_PORTS or not host or not _HOST.fullmatch(host):
        raise Refusal(f"{text!r} is not an address like https://host, https://host:port or https://host/path")
    if parts.username is not None or parts.query or parts.fragment:
        raise Refusal("an address has no user, query or fragment")
    path = parts.path.rstrip("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        raise Refusal(f"the path {parts.path!r} may have letters, digits and . _ ~ - between single slashes alone")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"), path
