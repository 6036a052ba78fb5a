"""Write log lines as JSON objects to standard error; no id, key or address is ever in one."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LEVELS = ("debug", "info", "warning", "error")

_log = logging.getLogger("memseal_server")


def start(level: str) -> None:
    """Send this program's log lines to standard error, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    _log.handlers = [handler]
    _log.propagate = False
    _log.setLevel(level.upper())


def answered(method: str, route: str, status: int, seconds: float, received: int, sent: int) -> None:
    """Log one answered request: route template, status, milliseconds, bytes of both bodies."""
    fields = {
        "method": method,
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "received_bytes": received,
        "sent_bytes": sent,
    }
    _log.info("request", extra={"fields": fields})


def failed(event: str, error: BaseException) -> None:
    """Log a failure by its types and places; an exception's own words could quote a key or an id."""
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(f"{type(cause).__name__} at {_place_of(cause)}")
        cause = cause.__cause__ or cause.__context__
    _log.error(event, extra={"fields": {"causes": causes}})


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown"


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname.lower(), "event": record.getMessage(), **fields}
        return json.dumps(line)
