"""Stands between a client and a server, and changes what the server answers."""

import http.client
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

_OF_ONE_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"})


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


# From a request's method and target and the true answer to the one that is given.
Lie = Callable[[str, str, Answer], Answer]


@contextmanager
def lying_proxy(origin: str, lie: Lie) -> Generator[str]:
    """Run a proxy before the server at `origin`; yield where it listens."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline()
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            length = self.headers.get("Content-Length")
            body = None if length is None else self.rfile.read(int(length))
            answer = lie(self.command, self.path, _ask(origin, self.command, self.path, dict(self.headers), body))
            self._give(answer)

        def _give(self, answer: Answer) -> None:
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != http.client.NOT_MODIFIED:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _ask(origin: str, method: str, target: str, headers: dict[str, str], body: bytes | None) -> Answer:
    parts = urlsplit(origin)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        kept = {name: value for name, value in response.getheaders() if name.lower() not in _OF_ONE_CONNECTION}
        return Answer(response.status, kept, response.read())
    finally:
        connection.close()
