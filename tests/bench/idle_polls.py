"""What many devices cost that only wait: memory and CPU of a real server with so many idle long polls (Linux).

    python tests/bench/idle_polls.py [--polls 10000] [--seconds 50]

The polls are renewed as clients do it, every 25 seconds or so, so that the figures hold their price as well.
"""

import argparse
import asyncio
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

sys.path[:0] = [str(Path(__file__).parent.parent.parent)]

from aiohttp import ClientSession, TCPConnector  # noqa: E402  after the path

from tests.server.building import Draft, first_version  # noqa: E402
from tests.server.calling import Caller  # noqa: E402

POLLS_OF_A_VAULT = 10
WAIT_SECONDS, MOST_WAIT_SECONDS = 25, 60
_MOST_OF_THEM = 0.95  # a few are just being renewed


async def main() -> None:
    options = _options()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        server = _start(Path(folder) / "store", options.polls)
        try:
            assert server.stdout is not None
            await _measure(server.stdout.readline().split()[-1], options.polls, options.seconds)
        finally:
            server.terminate()
            server.wait()


async def _measure(origin: str, polls: int, seconds: float) -> None:
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        caller = Caller(session, origin)
        names = [f"person {number}" for number in range(-(-polls // POLLS_OF_A_VAULT))]
        drafts = [first_version(name) for name in names]
        tags: list[str] = []
        for name, draft in zip(names, drafts, strict=True):
            await caller.register(draft, key=name)
            tags.append((await caller.get_heads(draft.vault, name)).headers["ETag"])
        empty = await _figures(caller)
        vaults = list(zip(drafts, names, tags, strict=True))
        tasks: list[asyncio.Task[None]] = []
        for number in range(polls):
            tasks.append(asyncio.create_task(_wait(caller, *vaults[number % len(vaults)])))
            await asyncio.sleep(0)  # one connection after the other
        while True:
            await asyncio.sleep(1)
            if (await _figures(caller))["memseal_waiters"] >= _MOST_OF_THEM * polls:
                break
        await asyncio.sleep(MOST_WAIT_SECONDS)  # from here on they are renewed as they would be
        before, began = await _figures(caller), monotonic()
        await asyncio.sleep(seconds)
        after, took = await _figures(caller), monotonic() - began
        for task in tasks:
            task.cancel()
        memory = after["process_resident_memory_bytes"] - empty["process_resident_memory_bytes"]
        busy = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / took
        answers = (after["memseal_request_seconds_count"] - before["memseal_request_seconds_count"]) / took
        print(
            f"{polls} idle polls of {len(names)} vaults, renewed every {WAIT_SECONDS} s: {answers:.0f} answers a second"
        )
        print(f"memory: {memory / 2**20:.0f} MiB, {memory / polls / 1024:.1f} KiB for each")
        print(f"CPU: {busy * 100:.0f} % of one core")


async def _wait(caller: Caller, draft: Draft, name: str, tag: str) -> None:
    wait = random.randint(WAIT_SECONDS, MOST_WAIT_SECONDS)  # else all of them come back at one moment, again and again
    while True:
        answer = await caller.get_heads(draft.vault, name, query=f"wait={wait}", more_headers={"If-None-Match": tag})
        assert answer.status == 304, answer.outcome
        wait = WAIT_SECONDS


async def _figures(caller: Caller) -> dict[str, float]:
    lines = (await caller.send_as_is("GET", "/metrics")).body.decode().splitlines()
    figures: dict[str, float] = {}
    for line in lines:
        if not line.startswith("#"):
            name, value = line.split()[0].partition("{")[0], float(line.split()[1])
            figures[name] = figures.get(name, 0.0) + value  # of all methods and routes
    return figures


def _start(store: Path, polls: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "memseal_server", "--store", str(store), "--listen", "127.0.0.1:0"]
    options = ["--log-level", "error", "--max-waiters", str(polls), "--max-connections", str(polls + 100)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--polls", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=50.0)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
