"""What a server's answers say, and what of it is not believed."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from memseal.errors import RemoteAnswer, RemoteUnreachable
from memseal.format.keys import SigningKey
from memseal.sync.messages import Absent, Content, GetLog, GetObject, Refused, Request
from memseal.transport.answers import refusal
from memseal.transport.http import HttpTransport
from tests.transport.relays import Handler, serving


def problem(code: str, detail: str = "words") -> bytes:
    return json.dumps({"code": code, "detail": detail}).encode()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, 0), ("10", 10), ("0", 0), ("999999999", 3600), ("-1", 0), ("1.5", 0), ("Tue, 01 Dec 2026 08:00:00 GMT", 0)],
)
def test_a_server_may_ask_for_patience_within_reason(header: str | None, seconds: float) -> None:
    assert refusal(429, problem("rate"), header) == Refused("rate", 429, "words", seconds)


@pytest.mark.parametrize("status", [407, 502, 503, 504])
def test_a_proxys_answer_is_no_servers(status: int) -> None:
    with pytest.raises(RemoteUnreachable, match="proxy"):
        refusal(status, b"<html>Bad Gateway</html>")


def test_a_servers_refusal_is_told_from_a_strangers() -> None:
    assert refusal(503, problem("store_unavailable")) == Refused("store_unavailable", 503, "words")
    assert refusal(404, problem("vault_unknown")) == Absent()
    for content in (b"<html>", b"[]", b'{"code": 7}', problem("No Code"), b"[" * 100_000):
        with pytest.raises(RemoteAnswer):
            refusal(404, content)


# ── ranges ──────────────────────────────────────────────────────────────────────────────────────────


def scripted(*lines: str, body: bytes = b"", cut: int | None = None) -> Handler:
    """A server that gives one answer, and ends the connection, perhaps before all of it is there."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
        writer.write(head + body[:cut])
        await writer.drain()

    return answer


def asked(handler: Handler, request: Request) -> object:
    key = SigningKey(bytes(32))
    with serving(handler) as port, closing(HttpTransport(f"http://127.0.0.1:{port}", bytes(16), key)) as transport:
        return transport.send(request)


PIECE = GetObject("parts", bytes(16), 4)


def test_a_piece_of_an_object_says_how_long_the_whole_is() -> None:
    handler = scripted("HTTP/1.1 206 Partial Content", "Content-Range: bytes 4-7/12", body=b"4567")
    assert asked(handler, PIECE) == Content(b"4567", 12)


def test_of_a_piece_that_breaks_off_what_came_counts() -> None:
    handler = scripted("HTTP/1.1 206 Partial Content", "Content-Range: bytes 4-7/12", body=b"4567", cut=2)
    assert asked(handler, PIECE) == Content(b"45", 12)
    handler = scripted("HTTP/1.1 200 OK", body=b"0123456789", cut=7)
    assert asked(handler, GetLog(bytes(16), 0, 100)) == Content(b"0123456")


def test_a_server_without_ranges_gives_all_or_nothing() -> None:
    assert asked(scripted("HTTP/1.1 200 OK", body=b"0123456789"), PIECE) == Content(b"456789", 10)
    with pytest.raises(RemoteUnreachable, match="broke off"):
        asked(scripted("HTTP/1.1 200 OK", body=b"0123456789", cut=7), PIECE)


@pytest.mark.parametrize("place", ["bytes 0-3/12", "bytes 5-8/12", "bytes 4-7/*", "bytes 4-7", "4-7/12", ""])
def test_another_range_than_was_asked_for_is_refused(place: str) -> None:
    with pytest.raises(RemoteAnswer, match="range"):
        asked(scripted("HTTP/1.1 206 Partial Content", f"Content-Range: {place}", body=b"4567"), PIECE)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    visited = list[bytes]()

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visited.append(await reader.readline())

    with serving(elsewhere) as port, pytest.raises(RemoteAnswer):
        asked(scripted("HTTP/1.1 307 Temporary Redirect", f"Location: http://127.0.0.1:{port}/"), PIECE)
    assert visited == []


def test_what_is_sent_after_it_was_broken_off_fails_at_once() -> None:
    transport = HttpTransport("http://127.0.0.1:9", bytes(16), SigningKey(bytes(32)))
    transport.break_off()
    with pytest.raises(RemoteUnreachable, match="closed here"):
        transport.send(PIECE)
    transport.close()
    transport.break_off()
