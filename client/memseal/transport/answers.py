"""What a server's answers say (sync-protocol §2, §5): read with distrust, without the network."""

import json
import re
from typing import Any, cast

from memseal.errors import RemoteAnswer, RemoteUnreachable
from memseal.format.log import End
from memseal.format.preamble import ID_SIZE
from memseal.sync.messages import Absent, Answer, Heads, Refused, RemoteLog

# The year 10000, which no clock of Python's can show.
_CLOCK_MOST = 253_402_300_800
# A code reaches screens and logs: it is one of the protocol's words, or none.
_CODE = re.compile("[a-z_]{1,40}")
# A server that asks for more patience than this is not believed.
_PATIENCE_MOST_SECONDS = 3600
_PROXY_PASSWORD = 407
_GATEWAY = (502, 503, 504)
PROXY_PASSWORD = "the proxy asks for a name and password: set HTTPS_PROXY=http://name:password@proxy:port"  # noqa: S105  no password


def read_heads(content: bytes) -> Heads:
    """Return the heads that a document says; raises `RemoteAnswer`."""
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


def clock_of(content: bytes) -> float | None:
    """Return the server's time from a problem document that is about the clock, or None."""
    problem = _problem(content)
    now = problem.get("now")
    if problem.get("code") == "clock" and isinstance(now, int | float) and 0 <= now < _CLOCK_MOST:
        return float(now)
    return None


def refusal(status: int, content: bytes, retry_after: str | None = None) -> Answer:
    """Return what an answer other than success says; raises `RemoteUnreachable` for a proxy's, else `RemoteAnswer`."""
    problem = _problem(content)
    code = problem.get("code")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        if status == _PROXY_PASSWORD:
            raise RemoteUnreachable(PROXY_PASSWORD)
        if status in _GATEWAY:
            raise RemoteUnreachable(f"a proxy answered {status} in the server's place: try again")
        raise RemoteAnswer(f"the server answered {status} without saying why: is this a memseal server?")
    if code == "vault_unknown":
        return Absent()
    return Refused(code, status, _sentence(problem.get("detail")), _patience(retry_after))


def _patience(retry_after: str | None) -> float:
    """Return the seconds of a `Retry-After` header; a date, which servers of this protocol never send, is none."""
    if retry_after is None or not retry_after.isascii() or not retry_after.isdigit() or len(retry_after) > 9:
        return 0.0
    return float(min(int(retry_after), _PATIENCE_MOST_SECONDS))


def _sentence(detail: Any) -> str:
    """Return a server's words so that they cannot draw on a terminal."""
    text = detail if isinstance(detail, str) else "the server refused"
    return "".join(character for character in text[:300] if character.isprintable())
