"""The part of an open vault that is about memories: write them, find them."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memseal.errors import (
    MemoryState,
    MemoryUnknown,
)
from memseal.memory.memory import (
    Draft,
    Memory,
    State,
    check_reason,
    draft,
    from_microseconds,
    parse_id,
)
from memseal.memory.operations import Operation, Remember, Retraction, Tagging
from memseal.recall.normaliser import QueryNormaliser
from memseal.recall.packet import Packet
from memseal.recall.query import TimeRule
from memseal.recall.receipt import Receipt
from memseal.recall.rendering import Count
from memseal.vault import (
    adopting,
    erasing,
    recalling,
    writing,
)
from memseal.vault.batch import Batch
from memseal.vault.erasing import Erasure
from memseal.vault.held import Held
from memseal.vault.recalling import Request
from memseal.vault.searching import Hit, counted, listed, search
from memseal.vault.writing import (
    Vectors,
    embedded_vectors,
    given_vectors,
    item_embeddings,
    new_id,
    new_memories,
    read_items,
    remember_batches,
)


class Memories(Held):
    """Memories are written and found; times are aware."""

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    def remember(
        self,
        content: str,
        *,
        source: str,
        kind: str = "note",
        tags: Iterable[str] = (),
        author: str | None = None,
        thread: str | None = None,
        position: int | None = None,
        captured_at: datetime | None = None,
        origin: str | None = None,
        embedding: ArrayLike | None = None,
    ) -> Memory:
        """Store one memory durably and return it.

        The same content, kind, author, thread and time again is the same memory: the first is returned, with the new
        tags added, and taken back into recall if it was retracted (one that was superseded stays so: what replaced it
        is to be superseded in turn). `kind` is one of
        fact, decision, preference, episode, hazard, note; `captured_at` an aware datetime; `embedding` has shape (d,).
        Raises `MemoryInvalid`, `VectorInvalid` or `TypeError` before anything is written.
        """
        what = draft(
            content,
            source=source,
            kind=kind,
            tags=tags,
            author=author,
            thread=thread,
            position=position,
            captured_at=captured_at,
            origin=origin,
        )
        return self._remember([what], None if embedding is None else np.atleast_2d(np.asarray(embedding)))[0]

    def remember_many(self, items: Iterable[Mapping[str, Any]], embeddings: ArrayLike | None = None) -> list[Memory]:
        """Store many memories in one durable write, all or none, and return them in order.

        `items` are mappings with `content` and the keywords of `remember`; `embeddings` has shape (n, d), or every item
        brings its own. What is there already is not stored twice, also within the items. Raises as `remember` does,
        naming the item.
        """
        plain, matrix = item_embeddings(list(items), embeddings)
        return self._remember(read_items(plain), matrix)

    def _remember(self, drafts: Sequence[Draft], embeddings: ArrayLike | None) -> list[Memory]:
        with self._writing() as opened:
            view = opened.logbook.view
            given = None if embeddings is None else given_vectors(view, embeddings, len(drafts))
            places, fresh = self._fresh(drafts)
            chosen = [drafts[place] for place in fresh]
            vectors: Vectors | None
            if given is not None:
                vectors = Vectors(given.model, given.codes if len(fresh) == len(drafts) else given.codes[fresh])
            else:
                vectors = embedded_vectors(view, self._embedder, chosen)
            now = writing.present()
            new = new_memories(chosen, now)
            again = self._again(drafts, places, now)
            if new or again:
                self._write([*remember_batches(view, new, vectors, now), *again])
            moment = from_microseconds(now)
            return [self._known(place) if isinstance(place, bytes) else _memory(new[place], moment) for place in places]

    def adopt(self, items: Iterable[Mapping[str, Any]]) -> int:
        """Take in memories of elsewhere in one durable write, all or none; returns how many were new.

        `items` are as for `remember_many`, each with an `origin`, and may have a `past`
        (`memseal.vault.adopting.Past`): when it was written, what it superseded, whether it was retracted. What is here
        already, or was erased here, is left as it is. Raises `MemoryInvalid` or `TypeError`, naming the item.
        """
        given = list(items)
        drafts = read_items([{name: item[name] for name in item if name != "past"} for item in given])
        pasts = [item.get("past") or adopting.Past() for item in given]
        with self._writing() as opened:
            arrivals = list(zip(drafts, pasts, strict=True))
            batches, new = adopting.adopt(opened.logbook.view, self._embedder, arrivals, writing.present())
            if batches:
                self._write(batches)
            return new

    def _fresh(self, drafts: Sequence[Draft]) -> tuple[list[bytes | int], list[int]]:
        """Return for each draft the id of the memory it is the same as, or its place among the new; and who is new."""
        state = self._opened.logbook.view.state
        first: dict[tuple[Any, ...], int] = {}
        places, fresh = list[bytes | int](), list[int]()
        for number, (each, known) in enumerate(zip(drafts, state.same_as(drafts), strict=True)):
            if known is not None:
                places.append(known)
                continue
            what = (each.content, each.kind, each.author, each.thread, each.captured_at)
            place = first.setdefault(what, len(fresh))
            if place == len(fresh):
                fresh.append(number)
            places.append(place)
        return places, fresh

    def _again(self, drafts: Sequence[Draft], places: Sequence[bytes | int], now: int) -> list[Batch]:
        """Return what changes on memories that are remembered again: back into recall, and tags they did not have."""
        wanted: dict[bytes, set[str]] = {}
        for what, place in zip(drafts, places, strict=True):
            if isinstance(place, bytes):
                wanted.setdefault(place, set()).update(what.tags)
        operations = list[Operation]()
        for target, tags in wanted.items():
            memory = self._known(target)
            if memory.state & State.RETRACTED:
                operations.append(Retraction(new_id(), target, False, now, "remembered again"))
            if more := sorted(tags.difference(memory.tags)):
                operations.append(Tagging(new_id(), target, now, tuple(more)))
        return [Batch(operations)] if operations else []

    def supersede(
        self,
        /,
        memory_id: str,
        content: str,
        *,
        source: str,
        reason: str | None = None,
        embedding: ArrayLike | None = None,
        **changes: Any,
    ) -> Memory:
        """Replace a memory by a new one and return that; the old one stays, out of recall.

        Kind, tags, author, thread and position carry over unless they are among `changes`. Raises `MemoryUnknown`,
        `MemoryState` where the memory was superseded already (supersede the newest), or as `remember` does.
        """
        with self._writing() as opened:
            old = self._get(memory_id)
            if old.state & State.SUPERSEDED:
                raise MemoryState(f"this memory was superseded by {old.superseded_by}: supersede that one")
            kept = {name: getattr(old, name) for name in ("kind", "tags", "author", "thread", "position")}
            what = draft(content, source=source, **{**kept, **changes})
            view = opened.logbook.view
            vectors = (
                embedded_vectors(view, self._embedder, [what])
                if embedding is None
                else given_vectors(view, np.atleast_2d(np.asarray(embedding)), 1)
            )
            now = writing.present()
            new = Remember(new_id(), what, now, of=parse_id(old.id), reason=check_reason(reason))
            self._write(remember_batches(view, [new], vectors, now))
            return self._known(new.id)

    def retract(self, memory_id: str, *, reason: str) -> Memory:
        """Take a memory out of recall, reversibly; retracting it again keeps the first reason.

        Raises `MemoryUnknown`.
        """
        return self._retract(memory_id, retracted=True, reason=reason)

    def restore(self, memory_id: str, *, reason: str | None = None) -> Memory:
        """Undo a retraction; a memory that is not retracted is returned as it is.

        Raises `MemoryUnknown`.
        """
        return self._retract(memory_id, retracted=False, reason=reason)

    def _retract(self, memory_id: str, *, retracted: bool, reason: str | None) -> Memory:
        with self._writing():
            memory = self._get(memory_id)
            if bool(memory.state & State.RETRACTED) == retracted:
                return memory
            target = parse_id(memory.id)
            self._write([Batch([Retraction(new_id(), target, retracted, writing.present(), check_reason(reason))])])
            return self._known(target)

    def tag(self, memory_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Memory:
        """Add and remove tags of a memory and return it; a tag added elsewhere at the same time stays.

        Raises `MemoryUnknown`, `MemoryInvalid` or `TypeError`.
        """
        with self._writing() as opened:
            memory = self._get(memory_id)
            state, target = opened.logbook.view.state, parse_id(memory.id)
            added = draft("x", source="x", tags=add).tags
            unwanted = set(draft("x", source="x", tags=remove).tags)
            removed = [row for row in state.tags_of(state.number_of(target) or 0) if row[0] in unwanted]
            operations: list[Operation] = []
            for where in dict.fromkeys((target, *(each for _, each, _ in removed))):
                gone = tuple((tag, by) for tag, each, by in removed if each == where)
                operations.append(Tagging(new_id(), where, writing.present(), added if where == target else (), gone))
            self._write([Batch(operations)])
            return self._known(target)

    def erase(self, memory_id: str, *, reason: str | None = None) -> Erasure:
        """Remove a memory's content for good, with its earlier and later versions, and say where it is gone.

        Here at once, on the server with a new epoch and a checkpoint without it, on other devices at their next
        synchronisation; what cannot be reached now is pending, and done by `sync`. Raises `MemoryUnknown`.
        """
        with self._writing() as opened:
            number = opened.logbook.view.state.number_of(parse_id(memory_id))
            if number is None:
                raise MemoryUnknown(f"no memory has the id {memory_id}")
            return erasing.erase(
                opened, number, new_id(), writing.present(), check_reason(reason), secrets.token_bytes(4)
            )

    def erasures(self) -> Sequence[Erasure]:
        """Return the receipts of all erasures as they stand now, the earliest first."""
        with self._reading() as opened:
            return erasing.erasures(opened)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def search(
        self, /, query: str | None = None, *, vector: ArrayLike | None = None, limit: int = 10, **filters: Any
    ) -> list[Hit]:
        """Return at most `limit` memories related to the query, best first; none where nothing is.

        Words and meaning count together; without a model, words alone. `vector` is a ready query vector, shape (d,).
        Filters: `kind`, `author`, `thread`, `source`, `origin`, `tags` (all of them), `since` and `until` (aware
        datetimes, half-open; `written_since` and `written_until` on when it was stored), `state` (active, superseded,
        retracted, all). Raises `FilterUnknown`, `VectorInvalid`.
        """
        with self._reading() as opened:
            return search(opened.logbook.view, self._embedder, query, vector, limit, filters)

    def recall(
        self,
        /,
        query: str,
        budget: int = 4_000,
        *,
        count: Count = len,
        limit: int = 10,
        floor: float | None = None,
        time: TimeRule = "prefer",
        now: datetime | None = None,
        first_weekday: int = 0,
        normaliser: QueryNormaliser | None = None,
        show_secrets: bool = False,
        **filters: Any,
    ) -> Packet:
        """Return what is related to the query as a packet: text for a model within the budget, hits, gap and receipt.

        `count(packet.text) <= budget` always; `count` is `len`, or a tokenizer's. A time in the query ("last Tuesday")
        is resolved at `now` (aware; its zone counts, and weeks begin on `first_weekday`, 0 for Monday) and lifts the
        memories of then; with `time="only"` all others are left out, with "ignore" it is words alone. `floor` is the
        cosine below which meaning does not count, if not the embedder's. Keys, tokens and the like are masked in the
        text, unless `show_secrets`; hits have them. Filters, and what is raised, as for `search`.
        """
        asked = Request(query, budget, count, limit, floor, time, now, first_weekday, normaliser, show_secrets, filters)
        question = recalling.question_of(asked)
        with self._reading() as opened:
            looked = recalling.look(opened, self._embedder, question)
        return recalling.answer(asked, looked)

    def is_own_receipt(self, receipt: Receipt | Mapping[str, Any]) -> bool:
        """Return whether this device made a receipt (or its `to_value()`) for this vault, and nobody changed it."""
        with self._reading() as opened:
            return recalling.is_own(opened, receipt)

    def get(self, memory_id: str) -> Memory:
        """Return a memory by its id, whatever its state; raises `MemoryUnknown`."""
        with self._reading():
            return self._get(memory_id)

    def list(self, /, *, limit: int = 100, offset: int = 0, **filters: Any) -> Sequence[Memory]:
        """Return memories by time, newest first; filters as for `search`."""
        with self._reading() as opened:
            return listed(opened.logbook.view, limit, offset, filters)

    def count(self, /, **filters: Any) -> int:
        """Return how many memories there are; filters as for `search`."""
        with self._reading() as opened:
            return counted(opened.logbook.view, filters)

    def conflicts(self) -> Sequence[Sequence[Memory]]:
        """Return, for each memory that several others supersede, those others: the current one first."""
        with self._reading() as opened:
            state = opened.logbook.view.state
            return [state.memories(rivals) for _, rivals in state.conflicts()]

    def has_origin(self, origin: str) -> bool:
        """Return whether a memory with this `origin` is there: what an import has brought already."""
        with self._reading() as opened:
            return opened.logbook.view.state.has_origin(origin)

    def _get(self, memory_id: str) -> Memory:
        return self._known(parse_id(memory_id))

    def _known(self, memory_id: bytes) -> Memory:
        state = self._opened.logbook.view.state
        number = state.number_of(memory_id)
        if number is None:
            raise MemoryUnknown("no memory has this id: `list` shows what is there")
        return state.memories([number])[0]


def _memory(operation: Remember, written_at: datetime) -> Memory:
    """Return a memory that was just written: as the state has it, without asking."""
    what = operation.draft
    return Memory(
        id=operation.id.hex(),
        content=what.content,
        kind=what.kind,
        source=what.source,
        written_at=written_at,
        captured_at=None if what.captured_at is None else from_microseconds(what.captured_at),
        tags=tuple(sorted(what.tags)),
        author=what.author,
        thread=what.thread,
        position=what.position,
        origin=what.origin,
    )
