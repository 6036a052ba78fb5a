"""Rules for every test: no connection leaves this machine, and properties give the same answer each run."""

import os
import signal
import sys
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from hypothesis import HealthCheck, settings

from tests.server.seaweed import seaweed, seaweed_bucket

__all__ = ["seaweed", "seaweed_bucket"]  # fixtures of several folders: one server for each process

# `ci` is what everybody runs; `pytest --hypothesis-profile=explore` looks for new examples.
# No deadline, and no look at how long the making of examples takes: that depends on what else the machine is doing.
UNTIMED = (HealthCheck.too_slow,)
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=UNTIMED)
settings.register_profile("explore", deadline=None, max_examples=2_000, suppress_health_check=UNTIMED)
settings.load_profile("ci")

# A shell that begins a run in the background lets it ignore Ctrl-C. The programs that tests start would inherit that,
# and those that wait for the signal would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes share the tests: many of these wait for servers and disks."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


# The position of the address or host among the arguments of each audit event.
_ADDRESS_POSITION = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}

_refused: list[str] = []


class OutsideConnection(AssertionError):
    """A test tried to reach something that is not on this machine."""


def _refuse_outside(event: str, arguments: tuple[object, ...]) -> None:
    position = _ADDRESS_POSITION.get(event)
    if position is None or _is_local(arguments[position]):
        return
    _refused.append(f"{event} {arguments[position]!r}")
    raise OutsideConnection(_refused[-1])


def _is_local(address: object) -> bool:
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, bytes):
        host = host.decode("utf-8", "replace")
    # None and "" are this machine, a path is a Unix socket.
    if not isinstance(host, str) or host in ("", "localhost") or host.startswith(("/", "\0")):
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


# An audit hook sees every socket of this process, whoever opens it and through whatever reference to
# the socket module. It stays until the process ends, and does not reach programs that a test starts.
sys.addaudithook(_refuse_outside)


@pytest.fixture(autouse=True)
def refused_connections() -> Iterator[list[str]]:
    """Fail a test that tried to leave this machine, also where the code under test swallowed the refusal."""
    _refused.clear()
    yield _refused
    assert not _refused
