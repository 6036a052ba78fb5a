"""The part of an open vault that is about what becomes of memories: believed, proposed, in conflict, captured."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from memseal.capture.drawing import Distiller
from memseal.capture.messages import messages_of
from memseal.errors import MemoryState, MemoryUnknown, ProposalUnknown
from memseal.format.trace import Given
from memseal.index.state import VaultState
from memseal.index.validity import line_of, tip_of
from memseal.memory.memory import Draft, Memory, State, check_reason, to_microseconds
from memseal.memory.operations import Operation, Remember, Setting
from memseal.memory.proposals import conflict_id, decision_name
from memseal.memory.texts import check_text, parse_id
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.tracing import note
from memseal.vault.memories import Memories
from memseal.vault.writes import auditing, capturing, histories, proposing, writing
from memseal.vault.writes.auditing import Exposed
from memseal.vault.writes.capturing import Captured
from memseal.vault.writes.drafting import draft_of
from memseal.vault.writes.histories import Difference, History, Version
from memseal.vault.writes.proposing import HELD_SOURCES, Proposal
from memseal.vault.writes.writing import embedded_vectors, new_id, remember_batches

_ID: Final = re.compile("[0-9a-f]{32}")


class Lifecycle(Memories):
    """What was believed when; what waits for a decision; what two devices disagree on."""

    # ── time ────────────────────────────────────────────────────────────────────────────────────────

    def believed(self, /, about: str, *, at: datetime, limit: int = 10, **filters: Any) -> list[Version]:
        """Return what was believed at a time, each with its window: since when, and until when.

        `about` is an id (the version of its line that held then, or nothing), or a query. What was retracted is left
        out, unless `state` says otherwise. Raises `MemoryUnknown`, or as `search` does.
        """
        moment = to_microseconds(at)
        if not _ID.fullmatch(about):
            hits = self.search(about, limit=limit, as_of=at, **filters)
            with self._reading() as opened:
                state = opened.logbook.view.state
                numbers = [state.number_of(parse_id(hit.memory.id)) for hit in hits]
                windows = [histories.window_of(state, number) for number in numbers if number is not None]
                return list(histories.versions_of(state, [each for each in windows if each is not None]))
        with self._reading() as opened:
            state = opened.logbook.view.state
            window = histories.at_moment(state, self._number(state, about), moment)
            versions = histories.versions_of(state, [] if window is None else [window])
            return [each for each in versions if filters.get("state") or not each.memory.state & State.RETRACTED]

    def history(self, memory_id: str) -> History:
        """Return all versions of a memory with their windows, and all that was done to it; raises `MemoryUnknown`."""
        with self._reading() as opened:
            state = opened.logbook.view.state
            return histories.history(state, self._number(state, memory_id))

    def diff(self, since: datetime, until: datetime) -> Difference:
        """Return what was done from `since` on and before `until` (aware), by the clocks of the devices that did it.

        Raises `ValueError`.
        """
        with self._reading() as opened:
            return histories.difference(opened.logbook.view.state, since, until)

    def search_by_time(
        self, /, since: datetime, until: datetime, *, limit: int = 100, **filters: Any
    ) -> Sequence[Memory]:
        """Return memories of a time, half-open: when they happened, or were written; newest first, filters as ever."""
        return self.list(limit=limit, since=since, until=until, **filters)

    def revert(self, memory_id: str, *, reason: str) -> Memory:
        """Undo a supersede: the text of the version before this one is written as the newest version, and returned.

        `memory_id` is any version that superseded another. Raises `MemoryUnknown`, or `MemoryState` for one that did
        not, or whose version before is gone.
        """
        with self._writing() as opened:
            state = opened.logbook.view.state
            line = [window.number for window in line_of(state, self._number(state, memory_id))]
            number = self._number(state, memory_id)
            place = line.index(number) if number in line else 0
            if place == 0:
                raise MemoryState("this memory replaced none that is here: there is nothing to go back to")
            what = draft_of(state.memories([line[place - 1]])[0])._replace(captured_at=None)
            return self._written(what, line[-1], reason, [])

    # ── proposals ───────────────────────────────────────────────────────────────────────────────────

    def proposals(self, *, limit: int = 100) -> list[Proposal]:
        """Return what waits for `accept` or `reject`: held and captured texts, and near-duplicates that are there."""
        with self._reading() as opened:
            return proposing.proposals(opened.logbook.view, limit)

    def accept(self, proposal_id: str, *, reason: str | None = None) -> Memory:
        """Do what a proposal says, and return the memory that stands then; `retract` or `revert` undo it.

        Raises `ProposalUnknown` for what is no open proposal, `MemoryUnknown` where the memory to be replaced went.
        """
        with self._writing() as opened:
            accepted = proposing.accept(opened.logbook.view, self._embedder, proposal_id, reason, writing.present())
            self._write(accepted.batches)
            memory = self._known(accepted.memory_id)
        note(opened, "proposal", about=proposal_id, served=[Given(memory.id, int(memory.state))])
        return memory

    def reject(self, proposal_id: str, *, reason: str | None = None) -> None:
        """Decide against a proposal for good: it is not made again. Raises `ProposalUnknown`."""
        with self._writing() as opened:
            self._write(proposing.reject(opened.logbook.view, proposal_id, reason, writing.present()))
        note(opened, "proposal", about=proposal_id)

    def held_sources(self) -> tuple[str, ...]:
        """Return the sources whose writes are held for review."""
        with self._reading() as opened:
            return proposing.held_sources(opened.logbook.view.state)

    def hold_sources(self, sources: Iterable[str]) -> None:
        """Hold what these sources write for review, instead of those before; `*` at the end stands for any ending.

        Raises `MemoryInvalid` or `TypeError`.
        """
        if isinstance(sources, str):
            raise TypeError("sources is a list of texts, not one text")
        named = sorted({check_text("source", each) for each in sources})
        with self._writing():
            self._write([Batch([Setting(new_id(), HELD_SOURCES, named, writing.present())])])

    # ── conflicts ───────────────────────────────────────────────────────────────────────────────────

    def conflicts(self) -> Sequence[Sequence[Memory]]:
        """Return, for each memory that several others supersede, those others: the current one first.

        Those that `resolve` decided are left out.
        """
        with self._reading() as opened:
            state = opened.logbook.view.state
            found = [state.memories(rivals) for _, rivals in state.conflicts()]
            return [rivals for rivals in found if state.setting_stamp(decision_name(_conflict(rivals))) is None]

    def resolve(self, memory_id: str, *, reason: str | None = None) -> Memory:
        """Settle a conflict in favour of one of its memories, and return the memory that stands then.

        Where it is not the current one, its text becomes the newest version; all sides stay in the history. Raises
        `ProposalUnknown` where no open conflict has this memory.
        """
        with self._writing() as opened:
            state = opened.logbook.view.state
            rivals = next((each for each in self.conflicts() if memory_id in [rival.id for rival in each]), None)
            if rivals is None:
                raise ProposalUnknown("no open conflict has this memory: `conflicts` lists them")
            chosen = next(rival for rival in rivals if rival.id == memory_id)
            why, now, key = check_reason(reason), writing.present(), _conflict(rivals)
            newest = tip_of(state, self._number(state, rivals[0].id))
            if chosen.id == rivals[0].id:
                kept = state.memories([newest])[0]
                self._write([Batch(proposing.decide_conflict(key, why, now, parse_id(kept.id)))])
                return kept
            decided = proposing.decide_conflict(key, why, now, parse_id(chosen.id))
            # It counts from when it was said: where that is earlier, the other side's window becomes empty.
            said = to_microseconds(chosen.captured_at or chosen.written_at)
            what = draft_of(chosen)._replace(captured_at=said)
            return self._written(what, newest, why or "a conflict was settled", decided)

    # ── capture ─────────────────────────────────────────────────────────────────────────────────────

    def set_capture(self, on: bool, *, allow: Iterable[str] = ()) -> None:
        """Switch capture from conversations on or off, on all devices; `allow` may name financial and medical facts.

        Raises `ValueError` or `TypeError`.
        """
        with self._writing():
            self._write([Batch([capturing.switched(on, allow, writing.present())])])

    def capture(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        name: str = "chat",
        thread: str | None = None,
        distiller: Distiller | None = None,
        turn: str | None = None,
    ) -> Captured:
        """Propose what the user of a conversation says about themselves; nothing becomes a memory by itself.

        `messages` are maps with `role`, `content` and maybe an aware `at`; only the user's are read, without recalled
        text, code and quotations. `name` becomes the source `capture:NAME`. `distiller` takes a text, secrets covered,
        and returns the facts in it; where it fails, rules count. Raises `CaptureOff` until `set_capture(True)`.
        """
        given = messages_of(messages)
        source = check_text("name", name)
        with self._reading() as opened:
            allow = capturing.allowed(opened.logbook.view.state)
        drawn = capturing.facts_of(given, distiller, allow)
        with self._writing() as opened:
            view = opened.logbook.view
            news, known = capturing.news_of(view, drawn, thread, source, writing.present())
            if batches := proposing.batches_for(view.state, news):
                self._write(batches)
        ids = tuple(each.id.hex() for each in news)
        trace_id = note(opened, "capture", turn=turn, served=[Given(each, int(State.HELD)) for each in ids])
        return Captured(ids, known, dict[str, int](drawn.refused.items()), drawn.failures, trace_id)

    # ── secrets, and what is to go ──────────────────────────────────────────────────────────────────

    def audit(self) -> list[Exposed]:
        """Return the ids of memories and proposals that have credentials in them, with counts and never values."""
        with self._reading() as opened:
            return auditing.audit(opened.logbook.view.state)

    def to_erase(self, /, query: str | None = None, *, limit: int = 1_000, **filters: Any) -> Sequence[Memory]:
        """Return what a later `erase_all` of these ids would be about, and change nothing.

        By words (`query`) or filters (`source`, `author`, `thread`, …), of any state; proposals of that source or
        author are among them. Raises as `search` does.
        """
        wanted: dict[str, Any] = {"state": "all", **filters}
        if query is not None:
            return [hit.memory for hit in self.search(query, limit=limit, **wanted)]
        with self._reading() as opened:
            state = opened.logbook.view.state
            held = [proposing.held_memory(state, each) for each in proposing.open_ones(state)]
            found = self.list(limit=limit, **wanted)
        equal = {name: filters[name] for name in ("kind", "author", "thread", "source") if filters.get(name)}
        if set(filters) - set(equal):
            return found
        return [*found, *(each for each in held if all(getattr(each, name) == equal[name] for name in equal))]

    def _written(self, what: Draft, of: int, reason: str | None, others: list[Operation]) -> Memory:
        """Write a version that supersedes the memory with this `n`, and return it."""
        view, now = self._opened.logbook.view, writing.present()
        before = parse_id(view.state.memories([of])[0].id)
        new = Remember(new_id(), what, now, of=before, reason=check_reason(reason))
        batches = remember_batches(view, [new], embedded_vectors(view, self._embedder, [what]), now)
        self._write([*batches, Batch(others)] if others else batches)
        return self._known(new.id)

    def _number(self, state: VaultState, memory_id: str) -> int:
        number = state.number_of(parse_id(memory_id))
        if number is None:
            raise MemoryUnknown("no memory has this id: `list` shows what is there")
        return number


def _conflict(rivals: Sequence[Memory]) -> bytes:
    return conflict_id(parse_id(rival.id) for rival in rivals)
