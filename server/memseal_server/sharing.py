"""Let requests that ask for the same share one answer, where it is looked for after the last of them came."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Sharing(Generic[Key, Value]):
    """For each key at most one look at a time, and one that waits for it; whoever comes meanwhile joins that one."""

    def __init__(self) -> None:
        self._begun: dict[Key, asyncio.Task[Value]] = {}
        self._next: dict[Key, asyncio.Task[Value]] = {}

    async def run(self, key: Key, look: Callable[[], Awaitable[Value]]) -> Value:
        """Return what a look has found that began after this call."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._look(key, look))
        # Of those who wait, one may go; the others want it still.
        return await asyncio.shield(task)

    async def _look(self, key: Key, look: Callable[[], Awaitable[Value]]) -> Value:
        before = self._begun.get(key)
        if before is not None:
            await asyncio.wait([before])
        task = self._next.pop(key)
        self._begun[key] = task
        task.add_done_callback(lambda done: self._end(key, done))
        return await look()

    def _end(self, key: Key, task: asyncio.Task[Value]) -> None:
        if self._begun.get(key) is task:
            del self._begun[key]
        if not task.cancelled():
            task.exception()  # it may be that nobody waits for it any more
