"""Count what a store is asked, by looking over its shoulder."""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from memseal_server.blobs import BlobStore, StoreUnavailable


class Count(Protocol):
    """Takes note of one operation of a store."""

    def __call__(self, operation: str, seconds: float, *, failed: bool) -> None:
        """Note an operation's name, its time, and whether it failed."""
        ...


def observed(store: BlobStore, count: Count) -> BlobStore:
    """Return the store, each of whose operations is counted."""
    return cast("BlobStore", _Observed(store, count))


class _Observed:
    # By name, and not method by method: nothing here depends on what a store can do.
    def __init__(self, store: BlobStore, count: Count) -> None:
        self._store = store
        self._count = count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counted(name, found) if inspect.iscoroutinefunction(found) else found

    def _counted(self, name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            failed = False
            try:
                return await work(*arguments, **named)
            except StoreUnavailable:
                failed = True
                raise
            finally:
                self._count(name, time.perf_counter() - started, failed=failed)

        return call
