"""A provider on this machine: it answers with what it was told, in the manner that the model's name asks for."""

import json
import re
import textwrap
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

_NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")
MANNERS: dict[str, Callable[[str], str]] = {
    "quotes": lambda said: f"You wrote: “{said}”",
    "inflects": lambda said: _NAME.sub(lambda name: f"{name[0]}'s friend", said),
    "shouts": lambda said: re.sub(r"\b[A-Z][a-z]+\b", lambda word: word[0].upper(), said),
    "whispers": lambda said: re.sub(r"\b[A-Z][a-z]+\b", lambda word: word[0].lower(), said),
    "wraps": lambda said: textwrap.fill(said, 24, break_long_words=False, break_on_hyphens=False),
    "marks up": lambda said: _NAME.sub(lambda name: "**" + name[0].replace(" ", "** *") + "*", said),
    "escapes": lambda said: said.replace("_", "\\_"),
    "writes HTML": lambda said: _NAME.sub(lambda name: f"<b>{name[0]}</b>", said),
    "writes JSON": lambda said: json.dumps({"answer": said, "names": _NAME.findall(said)}),
    "calls by last name": lambda said: _NAME.sub(lambda name: "Ms. " + name[0].split()[1], said),
    "calls by first name": lambda said: _NAME.sub(lambda name: name[0].split()[0], said),
}
PIECE = 5


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        provider = self.server
        assert isinstance(provider, _Provider)
        provider.received.append(body.decode())
        request = json.loads(body)
        answer = MANNERS[request["model"]](request["messages"][-1]["content"])
        self.send_response(200)
        self.end_headers()
        for start in range(0, len(answer), PIECE):
            choice = {"index": 0, "delta": {"content": answer[start : start + PIECE]}, "finish_reason": None}
            self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        self.wfile.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name in the base class
        """Write no log."""


class _Provider(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[str] = []


class Client:
    """As much of a provider's client as the tests need."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **request: Any) -> Iterator[dict[str, Any]]:
        connection = HTTPConnection("127.0.0.1", self._port)
        connection.request("POST", "/v1/chat/completions", json.dumps(request))
        with connection.getresponse() as response:
            for line in response:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])
        connection.close()


@contextmanager
def provider() -> Generator[tuple[Client, list[str]]]:
    """Lend a client, and what the provider receives."""
    server = _Provider()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Client(server.server_port), server.received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
