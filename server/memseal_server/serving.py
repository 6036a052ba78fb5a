"""Serve until told to end, and end well."""

import asyncio
import signal
import sys
from types import FrameType

from memseal_server.blobs.opening import open_store
from memseal_server.config import Config
from memseal_server.listening import listen


async def serve(config: Config) -> None:
    """Listen and answer until a signal to end comes (SIGTERM, SIGINT)."""
    ending = _end_on_signals()
    store = await open_store(config.store)
    try:
        host, port = config.listen
        listener = await listen(
            store,
            config.limits,
            host=host,
            port=port,
            identities=tuple(origin for origin, _ in config.urls),
            paths=frozenset(path for _, path in config.urls),
        )
        sys.stdout.write(f"listening on {listener.origin}\n")
        sys.stdout.flush()
        await ending.wait()
        await listener.close()
    finally:
        await store.close()


def _end_on_signals() -> asyncio.Event:
    # signal.signal and not the loop's own method, which Windows does not have.
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ending.set)

    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    return ending
