"""Ports for servers that a test starts again, or that have to be named before anybody listens.

A port that the system gave out is free for everybody as soon as its server has ended: on its way back the server can
find another test's, or one end of a connection, there. These are of a range that no system gives out by itself, and
each process of a run has a part of it.
"""

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

# Linux gives out ports from 32,768 on, other systems from 49,152 on.
_FIRST, _END = 20_000, 32_000
_EACH = 600
_PARTS = (_END - _FIRST) // _EACH


def _own() -> Iterator[int]:
    """Go round the part of this process; runs beside each other begin at different places."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = _FIRST + (worker + os.getppid()) % _PARTS * _EACH
    return cycle(range(first, first + _EACH))


_ports = _own()


def own_port() -> int:
    """Return a port of 127.0.0.1 that is free, and that no other process of this run will take."""
    for port in _ports:
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is always a next one")


@contextmanager
def silent_port() -> Generator[int]:
    """Hold a port on which nobody listens: whoever connects to it is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
