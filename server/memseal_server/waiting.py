"""Hold the requests that wait for a vault to change."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from memseal_server.problems import Problem

# More than one device per vault and a few processes on each; a vault has no use for more.
_MAX_OF_A_VAULT = 64
_RETRY_SECONDS = "10"
# What others change in the store is heard of by looking, at 1 ms a look; so much of a core may go into it.
_LOOKS_PER_SECOND = 100


class Waiters:
    """One event for each waiting request, set when its vault changes through this process."""

    def __init__(self, bound: int) -> None:
        """Hold at most `bound` requests."""
        self._bound = bound
        self._count = 0
        self._closed = False
        self._of_vault: dict[bytes, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def closed(self) -> bool:
        """Whether the server is ending, and nothing should wait any more."""
        return self._closed

    @contextmanager
    def waiting(self, vault: bytes) -> Generator[asyncio.Event]:
        """Give an event that is set at each change of the vault; `rate` or `busy` where too many wait already."""
        events = self._of_vault.setdefault(vault, set())
        if self._count >= self._bound or len(events) >= _MAX_OF_A_VAULT:
            code = "rate" if events else "busy"
            if not events:
                del self._of_vault[vault]
            raise Problem(
                code, "Too many requests wait here: ask again later.", headers={"Retry-After": _RETRY_SECONDS}
            )
        event = asyncio.Event()
        events.add(event)
        self._count += 1
        try:
            yield event
        finally:
            self._count -= 1
            events.discard(event)
            if not events and self._of_vault.get(vault) is events:
                del self._of_vault[vault]

    def pause(self, least_seconds: float) -> float:
        """Return how long a request waits before it looks by itself: the longer, the more there are that look."""
        return max(least_seconds, self._count / _LOOKS_PER_SECOND)

    def wake(self, vault: bytes) -> None:
        """Let the vault's waiting requests look again."""
        for event in self._of_vault.get(vault, ()):
            event.set()

    def close(self) -> None:
        """Let all waiting requests answer now."""
        self._closed = True
        for events in self._of_vault.values():
            for event in events:
                event.set()
