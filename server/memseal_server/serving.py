"""Serve until told to end, and end well."""

import asyncio
import contextlib
import signal
import sys
from dataclasses import replace
from types import FrameType

from memseal_server import logs
from memseal_server.blobs.opening import open_store
from memseal_server.config import Config
from memseal_server.listening import Listener, listen

# Standard input, output and error, the store's files, and what comes and goes.
_OTHER_FILES = 200


async def serve(config: Config) -> int:
    """Listen and answer until a signal to end comes (SIGTERM, SIGINT); end in good order, and return the exit code."""
    signals = _Signals()
    limits = replace(config.limits, max_connections=allow_connections(config.limits.max_connections))
    store = await open_store(config.store)
    try:
        host, port = config.listen
        listener = await listen(
            store,
            limits,
            host=host,
            port=port,
            identities=tuple(dict.fromkeys(origin for origin, _ in config.urls)),
            paths=frozenset(path for _, path in config.urls),
            shutdown_seconds=config.shutdown_seconds,
        )
        sys.stdout.write(f"listening on {listener.origin}\n")
        sys.stdout.flush()
        await signals.first.wait()
        await _end(listener, config, signals)
    finally:
        await store.close()
    return 0


async def _end(listener: Listener, config: Config, signals: "_Signals") -> None:
    logs.told("ending")
    listener.begin_to_end()
    # What shares the load has to see that this process is not ready, before its connections are refused.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(config.drain_seconds):
            await signals.second.wait()
    await listener.close()
    logs.told("ended")


class _Signals:
    """The first signal to end, and the next one, by somebody who does not want to wait."""

    def __init__(self) -> None:
        # signal.signal and not the loop's own method, which Windows does not have.
        self.first, self.second = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._come)

    def _come(self, number: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def allow_connections(count: int) -> int:
    """Let this process have as many connections as that; return how many the system lets it have."""
    try:
        import resource  # Windows has none, and no such limit
    except ImportError:
        return count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        logs.warned("few_files", wanted=wanted, allowed=most)
    return min(count, max(1, most - _OTHER_FILES))
