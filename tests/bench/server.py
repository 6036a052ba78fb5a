"""Measure what HTTP, signatures and rules cost over the bare store: 2 KiB segments from 64 clients.

Run it as `python tests/bench/server.py [rounds]`. The server is a process of its own on this machine; the
requests are signed before the clock starts, and sent over plain sockets, so that the client costs little.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "server")]

from memseal_server.blobs import Stored  # noqa: E402  after the path
from memseal_server.blobs.sqlite import SqliteStore  # noqa: E402
from tests.server.building import Draft, Log, Signing, first_version, private_key  # noqa: E402
from tests.server.running import start  # noqa: E402

CLIENTS = 64
PUTS_EACH = 50
SEGMENT_BYTES = 2_048
RECORD_BODY = SEGMENT_BYTES - 52 - 12


@dataclass(frozen=True)
class Put:
    """One segment: its key in the store, its bytes, and the signed request that carries it."""

    key: str
    content: bytes
    request: bytes


def log_of(first: Draft, client: int) -> Log:
    return Log(first.vault, private_key("alice"), 1, first.digest(), b"%04d" % client).append(PUTS_EACH, RECORD_BODY)


def request_of(origin: str, path: str, body: bytes) -> bytes:
    headers = Signing(private_key("alice"), origin, "PUT", path, body=body).headers()
    headers |= {"Host": urlsplit(origin).netloc, "Content-Length": str(len(body))}
    lines = [f"PUT {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def puts_of(origin: str, log: Log) -> list[Put]:
    vault, stream = log.vault.hex(), log.stream.hex()
    puts: list[Put] = []
    for seq in range(PUTS_EACH):
        content = log.segment(seq, seq + 1)
        request = request_of(origin, f"/v1/vaults/{vault}/logs/{stream}/{seq}", content)
        puts.append(Put(f"{vault}/logs/{stream}/{seq:010d}", content, request))
    return puts


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 201"):
        raise SystemExit(f"the server answered {head[:60]!r}")


async def push(origin: str, puts: Sequence[Put], barrier: asyncio.Barrier) -> None:
    parts = urlsplit(origin)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    await barrier.wait()
    for put in puts:
        await exchange(reader, writer, put.request)
    writer.close()
    await writer.wait_closed()


async def put_bare(store: SqliteStore, puts: Sequence[Put], barrier: asyncio.Barrier) -> None:
    await barrier.wait()
    for put in puts:
        if await store.put_new(put.key, put.content) != Stored():
            raise SystemExit("the store had the object already")


async def through_server(folder: Path) -> tuple[float, list[list[Put]]]:
    server = await start(folder, "--log-level", "error", "--max-vault-requests", "0")
    first = first_version()
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.origin).port)
    path = f"/v1/vaults/{first.vault.hex()}/keyring/1"
    await exchange(reader, writer, request_of(server.origin, path, first.build()))
    writer.close()
    await writer.wait_closed()
    puts = [puts_of(server.origin, log_of(first, client)) for client in range(CLIENTS)]
    barrier = asyncio.Barrier(CLIENTS + 1)
    clients = [asyncio.create_task(push(server.origin, each, barrier)) for each in puts]
    await barrier.wait()
    started = time.perf_counter()
    await asyncio.gather(*clients)
    seconds = time.perf_counter() - started
    await server.kill()
    return CLIENTS * PUTS_EACH / seconds, puts


async def through_store(folder: Path, puts: Sequence[Sequence[Put]]) -> float:
    store = await SqliteStore.open(folder)
    barrier = asyncio.Barrier(CLIENTS + 1)
    clients = [asyncio.create_task(put_bare(store, each, barrier)) for each in puts]
    await barrier.wait()
    started = time.perf_counter()
    await asyncio.gather(*clients)
    seconds = time.perf_counter() - started
    await store.close()
    return CLIENTS * PUTS_EACH / seconds


async def measure(rounds: int) -> None:
    served: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            rate, puts = await through_server(Path(folder) / "served")
            served.append(rate)
            bare.append(await through_store(Path(folder) / "bare", puts))
    print(f"{CLIENTS} clients, {CLIENTS * PUTS_EACH} puts of {SEGMENT_BYTES} bytes, medians of {rounds} rounds")
    print(f"through the server  {statistics.median(served):8.0f} puts/s")
    print(f"bare store          {statistics.median(bare):8.0f} puts/s")
    ratios = [one / other for one, other in zip(served, bare, strict=True)]
    print(f"ratio               {statistics.median(ratios):8.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
