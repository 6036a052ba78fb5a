"""The part of an open vault that is about memories: write them, find them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from secrets import token_bytes
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
)
from memseal.memory.operations import Operation, Remember, Retraction, Tagging
from memseal.memory.texts import parse_id
from memseal.memory.traits import Location, carried_on
from memseal.recall.late import Effort
from memseal.recall.normaliser import QueryNormaliser
from memseal.recall.packet import Packet
from memseal.recall.query import TimeRule
from memseal.recall.receipt import Receipt
from memseal.recall.rendering import Count
from memseal.vault.answers import recalling, recording
from memseal.vault.answers.considered import considered
from memseal.vault.answers.recalling import Request
from memseal.vault.answers.searching import Hits, counted, find, listed, question_of
from memseal.vault.compaction import erasing
from memseal.vault.compaction.erasing import Erasure
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.tracing import checked_turn
from memseal.vault.held import Held
from memseal.vault.writes import adopting, proposing, writing
from memseal.vault.writes.drafting import memory_of
from memseal.vault.writes.masking import SecretRule, all_checked, checked
from memseal.vault.writes.writing import (
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
        type: str | None = None,  # noqa: A002 - the word of the specification
        tier: str | None = None,
        owner: str | None = None,
        policy: Mapping[str, Any] | None = None,
        location: Location | Mapping[str, Any] | None = None,
        derived_from: Iterable[str] = (),
        secrets: SecretRule = "refuse",
        trusted: bool = True,
    ) -> Memory:
        """Store one memory durably and return it.

        The same content, kind, author, thread and time again is the same memory: the first is returned, with the new
        tags added, and taken back into recall if it was retracted (one that was superseded stays so: what replaced it
        is to be superseded in turn). `kind` is one of
        fact, decision, preference, episode, hazard, note; `captured_at` an aware datetime; `embedding` has shape (d,).
        `type` is one of episodic, semantic, persona, procedural, and found by rules if not given; `tier` is composite
        or affinity for what was made of the memories in `derived_from` (ids), which an erase of these reaches too;
        `location` has `lat` and `lon` in degrees, or a `place`; `policy` is {"access": "owner"}.
        `secrets` says what becomes of a key, token or password in the text: refuse it, redact (put a mark in its
        place) or keep it. What is not `trusted`, or from a source of `held_sources`, is held for review: `proposals`.
        Raises `MemoryInvalid`, `VectorInvalid`, `SecretInMemory` or `TypeError` before anything is written.
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
            type=type,
            tier=tier,
            owner=owner,
            policy=policy,
            location=location,
            derived_from=derived_from,
        )
        vector = None if embedding is None else np.atleast_2d(np.asarray(embedding))
        return self._remember([checked(what, secrets)], vector, trusted)[0]

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        embeddings: ArrayLike | None = None,
        *,
        secrets: SecretRule = "refuse",
        trusted: bool = True,
    ) -> list[Memory]:
        """Store many memories in one durable write, all or none, and return them in order.

        `items` are mappings with `content` and the fields of `remember`; `embeddings` has shape (n, d), or every item
        brings its own. What is there already is not stored twice, also within the items. Raises as `remember` does,
        naming the item.
        """
        plain, matrix = item_embeddings(list(items), embeddings)
        return self._remember(all_checked(read_items(plain), secrets), matrix, trusted)

    def _remember(self, drafts: Sequence[Draft], embeddings: ArrayLike | None, trusted: bool) -> list[Memory]:
        with self._writing() as opened:
            view, now = opened.logbook.view, writing.present()
            given = None if embeddings is None else given_vectors(view, embeddings, len(drafts))
            held = proposing.held_among(view.state, drafts, trusted, now)
            if held:
                free = [place for place in range(len(drafts)) if place not in held]
                drafts = [drafts[place] for place in free]
                given = None if given is None else Vectors(given.model, given.codes[free])
            places, fresh = self._fresh(drafts)
            chosen = [drafts[place] for place in fresh]
            vectors: Vectors | None
            if given is not None:
                vectors = Vectors(given.model, given.codes if len(fresh) == len(drafts) else given.codes[fresh])
            else:
                vectors = embedded_vectors(view, self._embedder, chosen)
            new = new_memories(chosen, now)
            batches = [*remember_batches(view, new, vectors, now), *self._again(drafts, places, now)]
            batches += proposing.batches_for(view.state, held.values())
            if batches:
                self._write(batches)
            moment = from_microseconds(now)
            written = [
                self._known(place) if isinstance(place, bytes) else memory_of(new[place], moment) for place in places
            ]
            return proposing.in_place(view.state, written, held) if held else written

    def adopt(self, items: Iterable[Mapping[str, Any]]) -> int:
        """Take in memories of elsewhere in one durable write, all or none; returns how many were new.

        `items` are as for `remember_many`, each with an `origin`, and may have a `past`
        (`memseal.vault.writes.adopting.Past`): when it was written, what it superseded, whether it was retracted.
        What is here already, or was erased here, is left as it is. Raises `MemoryInvalid` or `TypeError`, naming the
        item.
        """
        given = list(items)
        writing.check_items(given)
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
        secrets: SecretRule = "refuse",
        trusted: bool = True,
        **changes: Any,
    ) -> Memory:
        """Replace a memory by a new one and return that; the old one stays, out of recall.

        Kind, tags, author, thread, position, owner, policy and a type that was named carry over unless they are among
        `changes`. Raises `MemoryUnknown`, `MemoryState` where the memory was superseded already (supersede the newest),
        or as `remember` does.
        """
        with self._writing() as opened:
            old = self._get(memory_id)
            if old.state & State.SUPERSEDED:
                raise MemoryState(f"this memory was superseded by {old.superseded_by}: supersede that one")
            kept = {name: getattr(old, name) for name in ("kind", "tags", "author", "thread", "position")}
            what = draft(content, source=source, **{**kept, **changes})
            handed = {name: value for name, value in carried_on(old.traits).items() if name not in changes}
            what = checked(what._replace(others={**handed, **what.others}), secrets)
            view, now, why = opened.logbook.view, writing.present(), check_reason(reason)
            if held := proposing.held_version(view.state, what, trusted, now, parse_id(old.id), why):
                if batches := proposing.batches_for(view.state, [held]):
                    self._write(batches)
                return proposing.held_memory(view.state, held)
            vectors = (
                embedded_vectors(view, self._embedder, [what])
                if embedding is None
                else given_vectors(view, np.atleast_2d(np.asarray(embedding)), 1)
            )
            new = Remember(new_id(), what, now, of=parse_id(old.id), reason=why)
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
        synchronisation; what cannot be reached now is pending, and done by `sync`. Proposals that say the same, or
        would replace it, go with it. Raises `MemoryUnknown`.
        """
        return self.erase_all([memory_id], reason=reason)

    def erase_all(self, ids: Iterable[str], *, reason: str | None = None) -> Erasure:
        """Remove the content of several memories or proposals for good, in one write; `to_erase` lists them.

        Raises `MemoryUnknown`, and `ValueError` where there is no id.
        """
        targets = [parse_id(each) for each in ids]
        if not targets:
            raise ValueError("nothing to erase: no id was given")
        with self._writing() as opened:
            return erasing.erase(opened, targets, new_id(), writing.present(), check_reason(reason), token_bytes(4))

    def check_erasable(self, ids: Iterable[str]) -> None:
        """Raise `MemoryUnknown` where one of these is neither a memory nor a proposal."""
        with self._reading() as opened:
            erasing.reach(opened.logbook.view.state, [parse_id(each) for each in ids])

    def erasures(self) -> Sequence[Erasure]:
        """Return the receipts of all erasures as they stand now, the earliest first."""
        with self._reading() as opened:
            return erasing.erasures(opened)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        /,
        query: str | None = None,
        *,
        vector: ArrayLike | None = None,
        limit: int = 10,
        effort: Effort = "default",
        turn: str | None = None,
        **filters: Any,
    ) -> Hits:
        """Return at most `limit` memories related to the query, best first; none where nothing is.

        Words and meaning count together; without a model, words alone. `vector` is a ready query vector, shape (d,).
        `effort` is how closely meaning is looked at: "economy" compares one vector a memory, "default" and "best" also
        the words of the first ones, where the embedder gives them (`Contextual`).
        Filters: `kind`, `type`, `tier`, `author`, `thread`, `source`, `origin`, `tags` (all of them), `since` and
        `until` (aware datetimes, half-open; `written_since` and `written_until` on when it was stored), `state`
        (active, superseded, retracted, all). `turn` is a name of yours by which `traces` finds this search again; the
        hits' `trace_id` is its trace. Raises `FilterUnknown`, `VectorInvalid`.
        """
        checked_turn(turn)
        with self._reading() as opened:
            found = find(opened.logbook.view, self._embedder, question_of(query, vector, limit, filters, effort))
            wanted = opened.traces.wanted(opened.device)
            candidates = considered(opened.logbook.view.state, found) if wanted else ()
        model = None if vector is not None or self._embedder is None else self._embedder.name
        return recording.searched(opened, found, candidates, query, turn, model)

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
        effort: Effort = "default",
        show_secrets: bool = False,
        turn: str | None = None,
        **filters: Any,
    ) -> Packet:
        """Return what is related to the query as a packet: text for a model within the budget, hits, gap and receipt.

        `count(packet.text) <= budget` always; `count` is `len`, or a tokenizer's. A time in the query ("last Tuesday")
        is resolved at `now` (aware; its zone counts, and weeks begin on `first_weekday`, 0 for Monday) and lifts the
        memories of then; with `time="only"` all others are left out, with "ignore" it is words alone. `floor` is the
        cosine below which meaning does not count, if not the embedder's. Keys, tokens and the like are masked in the
        text, unless `show_secrets`; hits have them. `effort`, `turn` and filters, and what is raised, as for `search`.
        """
        asked = Request(
            query, budget, count, limit, floor, time, now, first_weekday, normaliser, effort, show_secrets, filters
        )
        checked_turn(turn)
        question = recalling.question_of(asked)
        with self._reading() as opened:
            looked = recalling.look(opened, self._embedder, question)
        return recording.recalled(opened, looked, recalling.answer(asked, looked), turn)

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
