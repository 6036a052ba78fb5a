"""Bodies that are too large, too slow, or cut off."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from memseal_server.vaults import Vaults
from tests.server.building import Draft, Log, Signing, private_key, public
from tests.server.calling import Caller

MIB = 1024 * 1024


def put_path(log: Log, seq: int = 0) -> str:
    return f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/{seq}"


def signed_head(caller: Caller, log: Log, body: bytes, *, length: int | None) -> bytes:
    """The head of a signed PUT, to be sent by hand; without a length the body is chunked."""
    path = put_path(log)
    headers = Signing(private_key("alice"), caller.origin, "PUT", path, body=body).headers()
    headers["Host"] = urlsplit(caller.origin).netloc
    if length is None:
        headers["Transfer-Encoding"] = "chunked"
    else:
        headers["Content-Length"] = str(length)
    lines = [f"PUT {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


async def connect(caller: Caller) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(caller.origin)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def status_of(reader: asyncio.StreamReader) -> int:
    return int((await reader.readline()).split()[1])


class TestSmallLimits:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_object_bytes=100_000)

    async def test_body_as_large_as_the_limit_is_taken(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        size = 100_000 - 52 - 64 - 12
        log = Log(first.vault, private_key("alice"), 1, first.digest()).append(1, size)
        assert len(log.segment(0, 1)) == 100_000
        assert (await caller.put_segment(log, 0, log.segment(0, 1))).status == 201

    async def test_body_one_byte_larger_is_refused(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        log = Log(first.vault, private_key("alice"), 1, first.digest()).append(1, 100_001 - 128)
        assert (await caller.put_segment(log, 0, log.segment(0, 1))).outcome == (413, "too_large")
        assert (await caller.get_log(log)).outcome == (404, "not_found")

    async def test_declared_length_is_refused_before_the_body_comes(
        self, caller: Caller, first: Draft, log: Log
    ) -> None:
        await caller.register(first)
        reader, writer = await connect(caller)
        writer.write(signed_head(caller, log, b"x", length=10**12))
        assert await status_of(reader) == 413
        writer.close()
        await writer.wait_closed()

    async def test_body_without_a_length_is_cut_at_the_limit(self, caller: Caller, first: Draft, log: Log) -> None:
        await caller.register(first)
        reader, writer = await connect(caller)
        writer.write(signed_head(caller, log, b"x", length=None))
        for _ in range(2):
            writer.write(b"%x\r\n%s\r\n" % (60_000, bytes(60_000)))
        assert await status_of(reader) == 413
        writer.close()
        await writer.wait_closed()

    async def test_body_without_a_length_is_taken_up_to_the_limit(self, caller: Caller, first: Draft, log: Log) -> None:
        await caller.register(first)
        content = log.segment(0, 3)
        reader, writer = await connect(caller)
        writer.write(signed_head(caller, log, content, length=None))
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
        assert await status_of(reader) == 201
        writer.close()
        await writer.wait_closed()

    async def test_body_that_is_cut_off_is_not_stored(self, caller: Caller, first: Draft, log: Log) -> None:
        await caller.register(first)
        content = log.segment(0, 3)
        for cut in (0, 1, 51, 52, 116, len(content) - 1):
            _, writer = await connect(caller)
            writer.write(signed_head(caller, log, content, length=len(content)) + content[:cut])
            writer.close()
            await writer.wait_closed()
        assert (await caller.get_log(log)).outcome == (404, "not_found")
        assert (await caller.put_segment(log, 0, content)).status == 201


class TestLittleTime:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(body_seconds=0.2)

    async def test_slow_body_times_out(self, store: BlobStore, caller: Caller, first: Draft, log: Log) -> None:
        # Not through the server, for which a busy machine could be too slow with this body too.
        alice = public(private_key("alice"))
        await Vaults(store, Limits()).put_version(first.vault, 1, first.build(), alice, refill=False)
        content = log.segment(0, 3)
        reader, writer = await connect(caller)
        writer.write(signed_head(caller, log, content, length=len(content)) + content[:-1])
        assert await status_of(reader) == 408
        writer.close()
        await writer.wait_closed()
        assert (await caller.get_log(log)).outcome == (404, "not_found")


class TestSegmentsThatComeTogether:
    """The first segment of a log is on its way, but for its last byte."""

    @pytest.fixture
    async def begun(
        self, caller: Caller, first: Draft, second: Draft, log: Log
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        await caller.register(first, second)
        content = log.segment(0, 1)
        reader, writer = await connect(caller)
        writer.write(signed_head(caller, log, content, length=len(content)) + content[:-1])
        await writer.drain()
        await caller.get_heads(first.vault)  # by then it has arrived
        yield reader, writer
        writer.close()
        await writer.wait_closed()

    async def test_the_next_one_is_taken_after_it(
        self, caller: Caller, first: Draft, log: Log, begun: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        reader, writer = begun
        following = [asyncio.create_task(caller.put_segment(log, seq, log.segment(seq, seq + 1))) for seq in (1, 2)]
        await caller.get_heads(first.vault)
        writer.write(log.segment(0, 1)[-1:])
        assert await status_of(reader) == 201
        assert [answer.status for answer in await asyncio.gather(*following)] == [201, 201]

    async def test_another_devices_does_not_wait_for_it(
        self, caller: Caller, log: Log, begun: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        answer = await caller.put_segment(log, 1, log.segment(1, 2), "bob", query="refill=true")
        assert answer.outcome == (409, "segment_order")

    async def test_the_next_one_is_refused_where_it_is(
        self, caller: Caller, first: Draft, log: Log, begun: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        reader, writer = begun
        following = asyncio.create_task(caller.put_segment(log, 1, log.segment(1, 2)))
        await caller.get_heads(first.vault)
        writer.write(b"x" if log.segment(0, 1)[-1:] != b"x" else b"y")
        assert await status_of(reader) == 400
        assert (await following).outcome == (409, "segment_order")


async def test_keyring_version_over_4_mib_is_refused(caller: Caller, first: Draft) -> None:
    first.fields["large"] = bytes(4 * MIB)
    assert (await caller.put_version(first)).outcome == (413, "too_large")


async def test_refused_body_is_not_held_in_memory(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    reader, writer = await connect(caller)
    block = bytes(MIB)
    tracemalloc.start()
    writer.write(signed_head(caller, log, b"x", length=200 * MIB))
    for _ in range(64):
        writer.write(block)
        await writer.drain()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert await status_of(reader) == 413
    assert peak < 8 * MIB
    writer.close()
    await writer.wait_closed()


async def test_compressed_body_is_not_expanded(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    packed = gzip.compress(log.segment(0, 3))
    answer = await caller.send("PUT", put_path(log), body=packed, more_headers={"Content-Encoding": "gzip"})
    assert answer.outcome == (422, "segment_invalid")


async def test_header_that_is_too_large_is_refused(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    answer = await caller.send_as_is("GET", "/healthz", {"X-Long": "x" * 5_000})
    assert answer.status == 400
    answer = await caller.send_as_is("GET", "/" + "x" * 5_000)
    assert answer.status == 400
