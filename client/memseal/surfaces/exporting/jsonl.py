"""Memories as JSON Lines: all that is known of each, as `memseal import` reads it."""

import contextlib
from collections.abc import Iterator
from typing import Any

from memseal.errors import MemoryUnknown
from memseal.memory.memory import Memory, State
from memseal.surfaces.cli.documents import of_export
from memseal.surfaces.exporting.reading import oldest_first
from memseal.surfaces.importing.jsonl import SUPERSEDE_REASON
from memseal.vault.vault import Vault


def rows(vault: Vault, state: str) -> Iterator[dict[str, Any]]:
    """Yield the memories of a state as rows, the oldest first."""
    for memory in oldest_first(vault, state):
        yield of_export(memory) | _replaced(vault, memory)


def _replaced(vault: Vault, memory: Memory) -> dict[str, Any]:
    """Return what a memory superseded, by the id that is exported too, and why."""
    if memory.supersedes is None:
        return {}
    with contextlib.suppress(MemoryUnknown):  # it is not here, or was erased
        before = vault.get(memory.supersedes)
        row = {"supersedes": before.id}
        if before.superseded_by == memory.id and before.state == State.SUPERSEDED and before.reason:
            row[SUPERSEDE_REASON] = before.reason
        return row
    return {}
