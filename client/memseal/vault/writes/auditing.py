"""Look through a vault for credentials that were stored (lifecycle.md §7)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from memseal.index.state import VaultState
from memseal.memory.proposals import PROPOSAL, stored_from
from memseal.vault.writes.masking import secrets_in


@dataclass(frozen=True, slots=True)
class Exposed:
    """A memory or proposal that has credentials in it: its id, and how many by the names of the rules.

    `sure` are refused today at every write; `possible` may be what people keep a memory for. No value is in it.
    """

    id: str
    sure: dict[str, int]
    possible: dict[str, int]


def audit(state: VaultState) -> list[Exposed]:
    """Return what has a credential in it, of any state, the surest and then the oldest first."""
    found = [each for each in _looked_through(state) if each.sure or each.possible]
    return sorted(found, key=lambda each: not each.sure)


def _looked_through(state: VaultState) -> Iterator[Exposed]:
    for memory_id, content, source, author in state.connection.execute(
        "SELECT id, content, source, author FROM memories ORDER BY stamp"
    ):
        yield _exposed(memory_id, secrets_in(content, source, author))
    for name, value in state.settings_named(PROPOSAL):
        if stored := stored_from(name, value):
            what = stored.operation.draft
            yield _exposed(stored.id, secrets_in(what.content, what.source, what.author))


def _exposed(memory_id: bytes, found: tuple[Counter[str], Counter[str]]) -> Exposed:
    return Exposed(memory_id.hex(), dict(sorted(found[0].items())), dict(sorted(found[1].items())))
