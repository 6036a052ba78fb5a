"""Pushing and pulling a vault against copying the same bytes through a bare handler; joining one."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from memseal import Vault
from memseal.format import content
from memseal.vault.folder.logbook import Logbook
from tests.bench.syncing.world import PASSPHRASE, filled, items, program, server, stored_bytes, vectors
from tests.transport.cutting import cutting

PIECE = 4 << 20


def measure(count: int, rounds: int) -> None:
    """Print the ratios."""
    found = [_round(count) for _ in range(rounds)]
    names = ("push", "pull", "bare put", "bare get", "merging")
    push, pull, bare_put, bare_get, merging = (statistics.median(each) for each in zip(*found, strict=True))
    print(f"{count} memories with vectors, medians of {rounds} rounds, MB/s; merging takes seconds of the pull:")
    for name, value in zip(names, (push, pull, bare_put, bare_get), strict=False):
        print(f"  {name:9s} {value:8.1f}")
    print(f"  merging   {merging:8.2f} s")
    print(f"  push / bare {push / bare_put:.2f}, pull without merging / bare {pull / bare_get:.2f}: at least 0.60")


def _round(count: int) -> tuple[float, float, float, float, float]:
    with tempfile.TemporaryDirectory() as name, server(f"{name}/store") as (url, _):
        folder = Path(name)
        with filled(folder / "one", 1) as one:
            one.sync(url)
            with Vault.join(folder / "two", one.emergency_kit, PASSPHRASE, embedder=None) as two:
                one.sync()
                for first in range(1, count, 1_000):
                    _add(one, first, min(1_000, count - first))
                push, pushed = _timed(one.sync)
                merging = _Stopwatch()
                apply, reading = Logbook._apply, vars(content)["decode_map"]
                setattr(Logbook, "_apply", merging.around(apply))  # noqa: B010  a method, which type checkers guard
                # Reading what memories say is the merge's; what proves them is before it.
                setattr(content, "decode_map", merging.around(reading))  # noqa: B010
                try:
                    pull, _ = _timed(two.sync)
                finally:
                    setattr(Logbook, "_apply", apply)  # noqa: B010
                    setattr(content, "decode_map", reading)  # noqa: B010
                if two.count() != count:
                    raise SystemExit("something is missing")
        size = pushed.pushed_bytes
        put, get = asyncio.run(_bare(folder, size))
    return size / push / 1e6, size / (pull - merging.seconds) / 1e6, size / put / 1e6, size / get / 1e6, merging.seconds


def _add(vault: Vault, first: int, count: int) -> None:
    vault.remember_many(items(count, first), vectors(count, first))


class _Stopwatch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Any:
        def timed(*arguments: Any, **named: Any) -> Any:
            before = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - before

        return timed


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    before = time.perf_counter()
    result = work()
    return time.perf_counter() - before, result


async def _bare(folder: Path, size: int) -> tuple[float, float]:
    """Copy as many bytes there and back, in pieces as large, each durable where it arrives."""
    there = folder / "bare"
    there.mkdir()
    random = os.urandom(PIECE)
    pieces = [random[: min(PIECE, size - at)] for at in range(0, size, PIECE)]
    with program(str(Path(__file__).parent / "bare.py"), str(there)) as (url, _):
        async with aiohttp.ClientSession() as session:
            before = time.perf_counter()
            for number, piece in enumerate(pieces):
                async with session.put(f"{url}/{number}", data=piece) as answer:
                    answer.raise_for_status()
            put = time.perf_counter() - before
            before = time.perf_counter()
            for number in range(len(pieces)):
                async with session.get(f"{url}/{number}") as answer:
                    body = await answer.read()
                with (folder / "back").open("ab") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
            get = time.perf_counter() - before
    return put, get


def join(count: int) -> None:
    """Print how long a join takes, and what comes over the wire."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(f"{name}/store") as (first, _):
            port = urlsplit(first).port or 0
        with (
            cutting(port) as relay,
            server(f"{name}/store", "--url", f"http://127.0.0.1:{relay.port}", port=port),
        ):
            url = f"http://127.0.0.1:{relay.port}"
            with filled(folder / "one", count) as one:
                one.sync(url)
                one.compact(thorough=False)
                one.sync()
                size = stored_bytes(url)
                relay.begin()
                seconds, two = _timed(lambda: Vault.join(folder / "two", one.emergency_kit, PASSPHRASE, embedder=None))
                came = relay.count("down")
                with two:
                    if two.state_digest() != one.state_digest():
                        raise SystemExit("something is missing")
    print(f"joining a vault of {count} memories: {seconds:.1f} s, {came / 1e6:.1f} MB came")
    print(f"  bytes on the wire / bytes on the server {came / size:.3f}: at most 1.1")
