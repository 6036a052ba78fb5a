"""Read values out of a request; what is not of its form is `request_invalid`."""

import asyncio
import hashlib
import re

from aiohttp import web

from memseal_server.blobs import MAX_NUMBER
from memseal_server.bodies import Body
from memseal_server.problems import Problem

_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


def read_id(text: str) -> bytes:
    """Return the id that 32 hexadecimal digits name."""
    if not _ID.fullmatch(text):
        raise Problem("request_invalid", "Ids are 32 lower-case hexadecimal digits.")
    return bytes.fromhex(text)


def read_number(text: str) -> int:
    """Return the number of a version or segment in a path."""
    if not _NUMBER.fullmatch(text) or int(text) > MAX_NUMBER:
        raise Problem("request_invalid", "Numbers are decimal, without leading zeros, of at most ten digits.")
    return int(text)


def is_refill(request: web.Request) -> bool:
    """Return whether the request puts back what the server once had."""
    value = request.query.get("refill", "false")
    if value not in ("true", "false"):
        raise Problem("request_invalid", "`refill` is `true` or `false`.")
    return value == "true"


def query_number(request: web.Request, name: str, *, default: int, least: int = 0, most: int | None = None) -> int:
    """Return a number of the query within its bounds."""
    values = request.query.getall(name, [])
    if not values:
        return default
    if len(values) > 1 or not _NUMBER.fullmatch(values[0]):
        raise Problem("request_invalid", f"`{name}` is one decimal number.")
    number = int(values[0])
    if number < least or (most is not None and number > most):
        raise Problem("request_invalid", f"`{name}` is out of range.")
    return number


def wanted_range(request: web.Request, length: int) -> tuple[int, int] | None:
    """Return where the one range that is asked for starts and stops, or None where the whole is."""
    try:
        asked = request.http_range
    except ValueError:
        return None  # several ranges, or another unit: a server may pass over them (RFC 9110)
    if "Range" not in request.headers or "If-Range" in request.headers:
        return None
    start, stop, _ = asked.indices(length)
    if start >= stop:
        raise Problem("log_range", "Ask for a range within the object.", headers={"Content-Range": f"bytes */{length}"})
    return start, stop


async def read_body(request: web.Request, limit: int, seconds: float) -> Body:
    """Return the body, of at most `limit` bytes, if it is here within a time."""
    chunks: list[bytes] = []
    size = 0
    # Hashed as it comes, while the network brings more: of a chunk it takes a fraction of a millisecond.
    digest = hashlib.sha256()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > limit:
                    raise too_large(limit)
                chunks.append(chunk)
                digest.update(chunk)
    except TimeoutError:
        raise Problem("timeout", "Send the body faster, or in smaller segments.") from None
    except (web.RequestPayloadError, ConnectionError):
        raise Problem("content_digest", "Send the whole body.") from None
    return Body(b"".join(chunks), digest.digest())


def too_large(limit: int) -> Problem:
    """Return the refusal of a body of more than `limit` bytes."""
    return Problem("too_large", f"Objects have at most {limit} bytes here: send smaller segments.")
