"""Go through a vault's memories from the oldest on."""

from collections.abc import Iterator
from datetime import datetime

from memseal.memory.memory import Memory
from memseal.vault.vault import Vault

_PAGE = 4_096


def oldest_first(vault: Vault, state: str) -> Iterator[Memory]:
    """Yield the memories of a state by their time."""
    # The vault lists the newest first; a file that is read from the top should begin with the oldest.
    for end in range(vault.count(state=state), 0, -_PAGE):
        start = max(0, end - _PAGE)
        yield from reversed(vault.list(limit=end - start, offset=start, state=state))


def moment_of(memory: Memory) -> datetime:
    """Return when it happened, or else when it was written down."""
    return memory.captured_at or memory.written_at
