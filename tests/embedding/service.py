"""A real embedding service on this machine, well-behaved or not."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast

Answer = tuple[int, dict[str, str], bytes]


class Service(ThreadingHTTPServer):
    """Answers each request with what `answer(path, request)` returns, and remembers the headers."""

    daemon_threads = True

    def __init__(self, answer: Callable[[str, Any], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.authorizations: list[str | None] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = cast("Service", self.server)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.authorizations.append(self.headers["Authorization"])
        service.paths.append(self.path)
        status, headers, body = service.answer(self.path, request)
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the parameter's name is http.server's
        """Keep the tests' output clean."""


@contextmanager
def serving(answer: Callable[[str, Any], Answer]) -> Generator[Service]:
    """Run a service until the block ends."""
    with Service(answer) as service:
        thread = Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def as_json(value: object) -> Answer:
    """Answer 200 with JSON."""
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def vector_of(text: str) -> list[float]:
    """Return a vector, not of unit length, that differs with the text's length and first letter."""
    return [float(len(text)), float(ord(text[:1] or " ")), 1.0]


def ollama(_path: str, request: Any) -> Answer:
    """Answer as Ollama's `/api/embed`."""
    return as_json({"model": request["model"], "embeddings": [vector_of(text) for text in request["input"]]})


def openai(_path: str, request: Any) -> Answer:
    """Answer as `/v1/embeddings`, last text first."""
    rows = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(request["input"])
    ]
    return as_json({"object": "list", "data": rows[::-1], "model": request["model"]})
