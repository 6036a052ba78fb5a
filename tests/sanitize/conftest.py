"""Nothing in the sanitizer opens a socket: every test of this folder says so."""

import socket
from typing import NoReturn

import pytest


@pytest.fixture(autouse=True)
def no_sockets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "with_sockets" in request.fixturenames:
        return

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the sanitizer opened a socket")

    for name in ("connect", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def with_sockets() -> None:
    """For the tests that have a server of their own."""
