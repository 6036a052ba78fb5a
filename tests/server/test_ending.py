"""How the program ends: it says so, answers who waits, finishes what was begun, and not for longer than it may."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from tests.server.building import Draft, Log, Signing, private_key
from tests.server.calling import Caller
from tests.server.running import Running, end_all, start, start_process

pytestmark = [
    pytest.mark.usefixtures("nothing_left_running"),
    pytest.mark.skipif(os.name == "nt", reason="Windows ends processes otherwise"),
]
# Sooner than the server would end by itself.
BOUND_SECONDS = 50


@pytest.fixture
async def nothing_left_running() -> AsyncIterator[None]:
    yield
    await end_all()


async def begin_put(caller: Caller, log: Log) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Begin to put a segment: the head and half of the body; return what is still to be sent."""
    path, body = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/0", log.segment(0, 3)
    parts = urlsplit(caller.origin)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    headers = Signing(private_key("alice"), caller.origin, "PUT", path, body=body).headers()
    lines = [f"PUT {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", "Expect: 100-continue"]
    head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
    writer.write(head.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(body[:1_000])
    return reader, writer, body[1_000:]


async def code_of(server: Running) -> int:
    async with asyncio.timeout(BOUND_SECONDS):
        return await server.process.wait()


async def not_ready(caller: Caller) -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        while (await caller.send_as_is("GET", "/readyz")).status == 200:
            pass


async def nobody_is_let_in(server: Running) -> None:
    parts = urlsplit(server.origin)
    async with asyncio.timeout(BOUND_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection(parts.hostname, parts.port)
            except ConnectionError:
                return
            writer.close()
            await writer.wait_closed()


async def test_server_says_that_it_is_not_ready_before_it_refuses_anybody(
    tmp_path: Path, session: ClientSession, first: Draft
) -> None:
    server = await start(tmp_path / "store", "--drain-seconds", "60")
    caller = Caller(session, server.origin)
    server.process.send_signal(signal.SIGTERM)
    await not_ready(caller)
    refused = await caller.send_as_is("GET", "/readyz")
    assert refused.outcome == (503, "busy")
    assert (await caller.send_as_is("GET", "/healthz")).status == 200
    await caller.register(first)
    server.process.send_signal(signal.SIGTERM)  # who does not want to wait says it again
    assert await code_of(server) == 0


async def test_request_that_was_begun_is_finished(
    tmp_path: Path, session: ClientSession, first: Draft, log: Log
) -> None:
    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    await caller.register(first)
    reader, writer, rest = await begin_put(caller, log)
    server.process.send_signal(signal.SIGTERM)
    await nobody_is_let_in(server)
    writer.write(rest)
    assert (await reader.readline()).startswith(b"HTTP/1.1 201")
    assert await code_of(server) == 0
    writer.close()
    await writer.wait_closed()


async def test_request_that_does_not_come_to_an_end_is_broken_off(
    tmp_path: Path, session: ClientSession, first: Draft, log: Log
) -> None:
    server = await start(tmp_path / "store", "--shutdown-seconds", "0.2")
    caller = Caller(session, server.origin)
    await caller.register(first)
    reader, writer, _ = await begin_put(caller, log)
    server.process.send_signal(signal.SIGTERM)
    assert await code_of(server) == 0
    assert b" 201" not in await reader.read()
    writer.close()
    await writer.wait_closed()
    again = await start(tmp_path / "store")
    assert (await Caller(session, again.origin).get_heads(first.vault)).json["logs"] == {}


async def test_port_that_is_taken_ends_the_program_with_a_sentence(tmp_path: Path) -> None:
    server = await start(tmp_path / "store")
    address = server.origin.removeprefix("http://")
    second = await start_process("--store", str(tmp_path / "other"), "--listen", address)
    _, errors = await second.communicate()
    assert second.returncode == 1
    said = [line for line in errors.decode().splitlines() if not line.startswith("{")]
    assert len(said) == 1
    assert said[0].startswith("memseal-server: cannot start: ")
    assert "address already in use" in said[0]


async def test_lines_can_be_logfmt_and_name_nobody(tmp_path: Path, session: ClientSession, first: Draft) -> None:
    server = await start(tmp_path / "store", "--log-format", "logfmt")
    caller = Caller(session, server.origin)
    await caller.register(first)
    await caller.get_heads(first.vault, "stranger")
    code, errors = await server.end(signal.SIGTERM)
    assert code == 0
    assert first.vault.hex() not in errors
    put, get, *_ = errors.splitlines()
    assert " event=request method=PUT route=/v1/vaults/{vault}/keyring/{number} status=201 vault=" in put
    assert " status=401 code=key_unknown vault=" in get
    assert put.partition("vault=")[2].split()[0] == get.partition("vault=")[2].split()[0]


async def test_vault_has_another_name_in_the_lines_of_each_process(
    tmp_path: Path, session: ClientSession, first: Draft
) -> None:
    names: set[str] = set()
    for _ in range(2):
        server = await start(tmp_path / "store")
        await Caller(session, server.origin).get_heads(first.vault)
        _, errors = await server.end(signal.SIGTERM)
        names |= {line["vault"] for line in map(json.loads, errors.splitlines()) if "vault" in line}
    assert len(names) == 2
