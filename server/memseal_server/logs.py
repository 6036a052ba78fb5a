"""Write log lines to standard error, as JSON objects or as logfmt; no id, key or address is ever in one."""

import hashlib
import hmac
import json
import logging
import re
import secrets
import sys
import traceback
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

_log = logging.getLogger("memseal_server")
# Drawn anew by each process: lines of one run can be told to be of one vault, and nobody can tell of which.
_stand_in_key = secrets.token_bytes(32)
_STAND_IN_DIGITS = 12
# Kept: computing one lets go of the interpreter, and other threads take their turn.
_STAND_INS = 1_000
_PLAIN = re.compile(r"[^\s\"=\\]+")


def start(level: str, form: str) -> None:
    """Send this program's log lines to standard error, from `level` on, as `json` or `logfmt`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if form == "json" else _LogfmtLines())
    _log.handlers = [handler]
    _log.propagate = False
    _log.setLevel(level.upper())


@lru_cache(_STAND_INS)
def stand_in(vault: str | None) -> str | None:
    """Return what stands for a vault's id in the lines of this process."""
    if vault is None:
        return None
    return hmac.digest(_stand_in_key, vault.encode(), hashlib.sha256).hex()[:_STAND_IN_DIGITS]


def answered(**fields: object) -> None:
    """Log one answered request: the route's template, status, code of a refusal, milliseconds, bytes of both bodies."""
    _log.info("request", extra={"fields": {name: value for name, value in fields.items() if value is not None}})


def told(event: str, **fields: object) -> None:
    """Log something that happened to the server as a whole."""
    _log.info(event, extra={"fields": fields})


def warned(event: str, **fields: object) -> None:
    """Log something that the operator should look at."""
    _log.warning(event, extra={"fields": fields})


def failed(event: str, error: BaseException) -> None:
    """Log a failure by its types and places; an exception's own words could quote a key or an id."""
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(f"{type(cause).__name__} at {_place_of(cause)}")
        cause = cause.__cause__ or cause.__context__
    _log.error(event, extra={"fields": {"causes": "; ".join(causes)}})


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown"


def _line_of(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {"at": at, "level": record.levelname.lower(), "event": record.getMessage(), **fields}


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_line_of(record))


class _LogfmtLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_logfmt(value)}" for name, value in _line_of(record).items())


def _logfmt(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
