"""Run a server of one's own for as long as it is needed."""

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from memseal.errors import RemoteUnreachable

_READY = "listening on "
_START_SECONDS = 30
_END_SECONDS = 20


def is_server_installed() -> bool:
    """Return whether this Python has the server."""
    return importlib.util.find_spec("memseal_server") is not None


@contextmanager
def running_server(store: Path, log: Path) -> Generator[str]:
    """Start `memseal-server` on a free port of this machine, yield its address, and end it."""
    command = [sys.executable, "-m", "memseal_server", "--store", str(store), "--listen", "127.0.0.1:0"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8")  # noqa: S603
    try:
        yield _address(process, log)
    finally:
        _end(process)


def _address(process: "subprocess.Popen[str]", log: Path) -> str:
    # Reading a line cannot time out; a server that is killed ends it.
    watch = threading.Timer(_START_SECONDS, process.kill)
    watch.start()
    line = process.stdout.readline() if process.stdout is not None else ""
    watch.cancel()
    if not line.startswith(_READY):
        raise RemoteUnreachable(f"the server did not start: {log} says why")
    return line.removeprefix(_READY).strip()


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
