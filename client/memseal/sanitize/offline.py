"""Imports libraries that would open a socket for no more than being imported."""

import importlib
import importlib.util
import socket
import sys
from typing import Any


def load(name: str) -> Any:
    """Import a library of which urllib3 is a part, and return it."""
    _load_urllib3()
    return importlib.import_module(name)


def _load_urllib3() -> None:
    """Import urllib3 without its probe, which binds a socket to learn whether this machine speaks IPv6."""
    if "urllib3" in sys.modules or importlib.util.find_spec("urllib3") is None:
        return
    has_ipv6 = socket.has_ipv6
    socket.has_ipv6 = False
    try:
        connection: Any = importlib.import_module("urllib3.util.connection")
    finally:
        socket.has_ipv6 = has_ipv6
    # What it would have found, but for machines whose IPv6 is switched off: there it now tries both.
    connection.HAS_IPV6 = has_ipv6
