"""A load balancer that knows nothing: each connection goes to the next server that answers."""

import itertools
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import cast
from urllib.parse import urlsplit


class _Balancer(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.targets: Sequence[str] = ()
        self.turns = itertools.count()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def connect(self) -> socket.socket | None:
        for _ in self.targets:
            target = urlsplit(self.targets[next(self.turns) % len(self.targets)])
            with suppress(ConnectionError):
                return socket.create_connection((target.hostname, target.port))
        return None


class _Connection(BaseRequestHandler):
    def handle(self) -> None:
        target = cast("_Balancer", self.server).connect()
        if target is None:
            return
        with target:
            back = Thread(target=_copy, args=(target, self.request), daemon=True)
            back.start()
            _copy(self.request, target)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def balancing() -> Generator[_Balancer]:
    """Listen; the servers are set as `targets` once they run."""
    with _Balancer() as balancer:
        serving = Thread(target=balancer.serve_forever, daemon=True)
        serving.start()
        yield balancer
        balancer.shutdown()
        serving.join()
