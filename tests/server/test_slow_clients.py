"""Clients that send or take next to nothing, and very many that wait: all of it is bounded."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, TCPConnector

from memseal_server.limits import Limits
from memseal_server.serving import allow_connections
from tests.server.building import Draft, Log, Signing, first_version, private_key
from tests.server.calling import Answer, Caller

# Far longer than any of these servers waits, and shorter than one without limits would.
BOUND_SECONDS = 50
MIB = 1024 * 1024


async def connect(caller: Caller) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(caller.origin)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def figure(caller: Caller, name: str) -> float:
    lines = (await caller.send_as_is("GET", "/metrics")).body.decode().splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith(name + " ")]
    return float(value)


async def end_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection."""
    async with asyncio.timeout(BOUND_SECONDS):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


class TestSlowHeads:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(idle_seconds=0.3)

    @pytest.mark.parametrize("begin", [b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-More: a"])
    async def test_connection_on_which_no_whole_head_comes_is_closed(self, caller: Caller, begin: bytes) -> None:
        reader, writer = await connect(caller)
        writer.write(begin)
        assert await end_of(reader) == b""
        writer.close()

    async def test_head_that_comes_in_drips_is_given_no_more_time(self, caller: Caller) -> None:
        reader, writer = await connect(caller)
        closed = asyncio.create_task(end_of(reader))
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * 2_000:
            writer.write(bytes([byte]))
            if closed.done():
                break
            await asyncio.wait([closed], timeout=0.02)
        assert await closed == b""
        writer.close()


@pytest.mark.parametrize(
    "begin",
    [b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nX-Long: ", b"GET /", b""],
    ids=["lines", "one line", "target", "method"],
)
async def test_head_without_an_end_is_cut_off(caller: Caller, begin: bytes) -> None:
    reader, writer = await connect(caller)
    writer.write(begin)
    more = b"X-More: " + b"a" * 1_000 + b"\r\n" if begin.endswith(b"\r\n") else b"A" * 1_000
    answer, sent = asyncio.create_task(end_of(reader)), 0
    while not answer.done():
        assert sent < 4 * MIB
        writer.write(more)
        sent += len(more)
        await asyncio.sleep(0)
    assert (await answer)[:13] in (b"", b"HTTP/1.1 400 ")  # what was still on its way can push the answer out
    writer.close()


class TestSlowReaders:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(body_seconds=0.5)

    @pytest.fixture
    async def large(self, caller: Caller, first: Draft) -> Log:
        await caller.register(first)
        log = Log(first.vault, private_key("alice"), 1, first.digest()).append(8, MIB)
        await caller.push(log, [0, 4, 8])
        return log

    def ask(self, caller: Caller, log: Log, buffer_bytes: int) -> socket.socket:
        """Ask for the log over a connection with a small buffer, of which nothing is read yet."""
        path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}"
        headers = Signing(private_key("alice"), caller.origin, "GET", path).headers()
        lines = [f"GET {path} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        asking = socket.socket()
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        parts = urlsplit(caller.origin)
        asking.connect((str(parts.hostname), int(parts.port or 0)))
        asking.sendall("\r\n".join(lines).encode())
        return asking

    async def test_reader_who_takes_nothing_is_let_go(self, caller: Caller, large: Log) -> None:
        before = await figure(caller, "memseal_connections")
        with self.ask(caller, large, 4096) as asking:
            await asyncio.to_thread(asking.recv, 1, socket.MSG_PEEK)  # it is being answered
            async with asyncio.timeout(BOUND_SECONDS):
                while await figure(caller, "memseal_connections") > before:
                    pass

    async def test_reader_who_takes_little_by_little_gets_everything(self, caller: Caller, large: Log) -> None:
        loop = asyncio.get_running_loop()
        with self.ask(caller, large, 64 * 1024) as asking:
            asking.setblocking(False)
            received = 0
            async with asyncio.timeout(BOUND_SECONDS):
                while received < len(large.content()):
                    piece = await loop.sock_recv(asking, 256 * 1024)
                    assert piece
                    received += len(piece)


class TestManyConnections:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_connections=3)

    async def test_connection_beyond_the_limit_is_told_to_come_again(self, caller: Caller) -> None:
        held = [await connect(caller) for _ in range(2)]
        assert await figure(caller, "memseal_connections") == 3
        reader, writer = await connect(caller)
        head, _, body = (await end_of(reader)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 10" in head
        assert json.loads(body)["code"] == "busy"
        for _, other in (*held, (reader, writer)):
            other.close()
        async with asyncio.timeout(BOUND_SECONDS):
            while await figure(caller, "memseal_connections") > 1:
                pass
        assert await figure(caller, "memseal_connections_refused_total") == 1


class TestHalfOpenConnections:
    """Who comes and then does nothing takes a place, but not for long."""

    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_connections=7, idle_seconds=1.0, body_seconds=1.0)

    @pytest.mark.parametrize(
        "begin",
        [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-", b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200],
        ids=["says nothing", "sends half a head", "reads no answer"],
    )
    async def test_they_take_all_places_and_are_gone_in_time(self, caller: Caller, begin: bytes) -> None:
        parts = urlsplit(caller.origin)
        before = await figure(caller, "memseal_connections_refused_total")
        with ExitStack() as held:
            for _ in range(10):
                peer = held.enter_context(socket.socket())
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                peer.connect((str(parts.hostname), int(parts.port or 0)))
                peer.sendall(begin)
            async with asyncio.timeout(BOUND_SECONDS):
                while await figure(caller, "memseal_connections_refused_total") < before + 4:
                    pass  # six have a place beside the one that asks
                while await figure(caller, "memseal_connections") > 1:
                    pass
            assert (await caller.send_as_is("GET", "/healthz")).body == b"ok"


class TestManyPolls:
    VAULTS, POLLS_OF_EACH = 20, 50

    @pytest.fixture
    def limits(self) -> Limits:
        allow_connections(3 * self.VAULTS * self.POLLS_OF_EACH)  # both ends are in this process
        return Limits(max_waiters=self.VAULTS * self.POLLS_OF_EACH)

    @pytest.fixture
    async def session(self) -> AsyncIterator[ClientSession]:
        async with ClientSession(connector=TCPConnector(limit=0)) as opened:
            yield opened

    async def poll(self, caller: Caller, draft: Draft, key: str, tag: str) -> Answer:
        return await caller.get_heads(draft.vault, key, query="wait=60", more_headers={"If-None-Match": tag})

    async def test_thousand_polls_wait_and_only_those_who_are_concerned_wake(self, caller: Caller) -> None:
        people = [f"person {number}" for number in range(self.VAULTS)]
        drafts = [first_version(name) for name in people]
        polls: list[list[asyncio.Task[Answer]]] = []
        for name, draft in zip(people, drafts, strict=True):
            await caller.register(draft, key=name)
            tag = (await caller.get_heads(draft.vault, name)).headers["ETag"]
            new = range(self.POLLS_OF_EACH)
            polls.append([asyncio.create_task(self.poll(caller, draft, name, tag)) for _ in new])
        async with asyncio.timeout(3 * BOUND_SECONDS):
            while await figure(caller, "memseal_waiters") < self.VAULTS * self.POLLS_OF_EACH:
                pass
        # One more than may wait is told so, and does not have to hang up.
        tag = (await caller.get_heads(drafts[1].vault, people[1])).headers["ETag"]
        refused = await self.poll(caller, drafts[1], people[1], tag)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
        await caller.register(drafts[0].next(people[0]).add("bob"), key=people[0])
        assert [answer.status for answer in await asyncio.gather(*polls[0])] == [200] * self.POLLS_OF_EACH
        assert not any(task.done() for others in polls[1:] for task in others)
        for task in (task for others in polls[1:] for task in others):
            task.cancel()
