"""Memories of elsewhere, taken in with what became of them there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memseal.embedding import Embedder
from memseal.format.primitives import sha256
from memseal.index.state import VaultState
from memseal.index.view import View
from memseal.memory.memory import Draft, check_reason, to_microseconds
from memseal.memory.operations import Operation, Remember, Retraction, Tagging
from memseal.memory.texts import ID_SIZE
from memseal.vault.folder.batch import Batch
from memseal.vault.writes.writing import embedded_vectors, new_id, remember_batches

_NO_REASON = "retracted where it was imported from"


@dataclass(frozen=True)
class Past:
    """What is known of an imported memory beside its fields.

    `id` is its own where it comes from a vault, `replaces` the id of the memory that it superseded, and `reason` why.
    """

    id: bytes | None = None
    written_at: datetime | None = None
    replaces: bytes | None = None
    reason: str | None = None
    retracted: bool = False
    retract_reason: str | None = None


def derived_id(origin: str, content: str) -> bytes:
    """Return the id of an imported memory: the same on every device, so that it is not doubled, and erased for good.

    Another text of the same origin is another memory: neither replaces the other.
    """
    return sha256(b"memseal/v1/import", sha256(_encoded(origin)), _encoded(content))[:ID_SIZE]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def adopt(
    view: View, embedder: Embedder | None, arrivals: Sequence[tuple[Draft, Past]], now: int
) -> tuple[list[Batch], int]:
    """Return the batches of one write that take in what is not there, and how many memories these are."""
    new, again = _new(view.state, arrivals, now)
    # Whoever supersedes another is embedded with the rest, whatever its place.
    vectors = embedded_vectors(view, embedder, [operation.draft for operation, _ in new])
    batches = remember_batches(view, [operation for operation, _ in new], vectors, now)
    retractions = [
        Retraction(new_id(), operation.id, True, now, check_reason(past.retract_reason) or _NO_REASON)
        for operation, past in new
        if past.retracted
    ]
    operations: list[Operation] = [*retractions, *again]
    return [*batches, Batch(operations)] if operations else batches, len(new)


def _new(
    state: VaultState, arrivals: Sequence[tuple[Draft, Past]], now: int
) -> tuple[list[tuple[Remember, Past]], list[Tagging]]:
    """Return what is new, and the tags that memories get which are there already."""
    new: dict[bytes, tuple[Remember, Past]] = {}
    first = dict[tuple[Any, ...], bytes]()
    again = list[Tagging]()
    for (what, past), same in zip(arrivals, state.same_as([each for each, _ in arrivals]), strict=True):
        memory_id = past.id or derived_id(what.origin or "", what.content)
        # A memory that superseded another is never the same as one that did not.
        if past.replaces is None:
            key = (what.content, what.kind, what.author, what.thread, what.captured_at)
            same = same or first.setdefault(key, memory_id)
            if same != memory_id:
                again += _more_tags(state, same, what, now)
                continue
        if memory_id not in new and not _is_known(state, memory_id):
            written_at = now if past.written_at is None else to_microseconds(past.written_at)
            new[memory_id] = (
                Remember(memory_id, what, written_at, of=past.replaces, reason=check_reason(past.reason)),
                past,
            )
    return list(new.values()), again


def _is_known(state: VaultState, memory_id: bytes) -> bool:
    return memory_id in state.erasures.ids or state.number_of(memory_id) is not None


def _more_tags(state: VaultState, memory_id: bytes, what: Draft, now: int) -> list[Tagging]:
    number = state.number_of(memory_id)
    there = set[str]() if number is None else {tag for tag, _, _ in state.tags_of(number)}
    more = tuple(tag for tag in what.tags if tag not in there)
    return [Tagging(new_id(), memory_id, now, more)] if more else []
