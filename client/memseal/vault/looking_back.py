"""The part of an open vault that is about what it gave out, and about asking it in SQL."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memseal.format.trace import Trace
from memseal.recall.packet import Packet
from memseal.vault.answers import recording, sql
from memseal.vault.answers.explaining import Explanation, Lookup, explained
from memseal.vault.answers.sql import Rows
from memseal.vault.folder.device import Retention
from memseal.vault.folder.tracing import checked_turn
from memseal.vault.held import Held


class LookingBack(Held):
    """What was given out is looked up, and told."""

    def traces(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        memory: str | None = None,
        turn: str | None = None,
        limit: int = 100,
    ) -> Sequence[Trace]:
        """Return what this device gave out, the newest first: searches, recalls, injections, captures, proposals.

        `since` and `until` are aware datetimes, half-open; `memory` an id that a trace names; `turn` the name that the
        caller gave. Traces are kept for 30 days and up to 64 MiB, unless `keep_traces` says otherwise.
        """
        if type(limit) is not int or limit < 1:
            raise ValueError("limit is a whole number from 1")
        with self._reading() as opened:
            wanted = Lookup(opened, since=since, until=until, memory=memory, turn=turn)
        return wanted.found()[:limit]

    def explain(self, trace_id: str) -> Explanation:
        """Return why something was given out: the exact text, every memory that was considered, scores, times.

        Raises `TraceUnknown`.
        """
        with self._reading() as opened:
            wanted = Lookup(opened)
        trace = wanted.one(trace_id)
        with self._reading() as opened:
            return explained(opened.logbook.view.state, trace)

    def note_injection(self, text: str, *, packet: Packet | None = None, turn: str | None = None) -> str | None:
        """Note that a text went to a model, and return the id of its trace; None where none is kept.

        `text` is all that was put into the prompt, with the packet's text in it: so it can be told from the trace, byte
        for byte. Raises `ValueError` where the packet's text is not in it.
        """
        if not isinstance(text, str):
            raise TypeError(f"what was injected is a text, not {type(text).__name__}")
        if packet is not None and not isinstance(packet, Packet):
            raise TypeError(f"packet is what recall returned, not {type(packet).__name__}")
        if packet is not None and packet.text not in text:
            raise ValueError("the packet's text is not in what was injected: give all that went to the model")
        checked_turn(turn)
        with self._reading() as opened:
            return recording.injected(opened, text, None if packet is None else packet.trace_id, turn)

    @property
    def traces_kept(self) -> Retention:
        """For how many days, and up to how many MiB, this device keeps traces."""
        with self._reading() as opened:
            return opened.device.marks.traces

    def keep_traces(self, *, days: int, megabytes: int = Retention().megabytes) -> None:
        """Set for how many days, and up to how many MiB, this device keeps traces; 0 keeps none, and removes them."""
        if (
            type(days) is not int
            or type(megabytes) is not int
            or not (0 <= days <= 36_500 and 0 <= megabytes <= 1 << 20)
        ):
            raise ValueError("days are a whole number up to 36500, megabytes up to 1048576")
        with self._writing() as opened:
            kept = Retention(days, megabytes)
            if kept != opened.device.marks.traces:
                opened.device = opened.device.with_marks(replace(opened.device.marks, traces=kept))
                opened.device.save(opened.folder)
            opened.traces.sweep(opened.device)

    def sql(self, statement: str, *, limit: int = 1_000, seconds: float = 10.0) -> Rows:
        """Return the rows of a `SELECT` over the tables of format-spec/sql.md: memories, versions, traces and others.

        It reads a copy in memory, so nothing can be changed. At most `limit` rows come (`truncated` says whether there
        are more), within `seconds`. Raises `SqlRefused` for anything that does not only read, or `SqlLimit`.
        """
        sql.check(limit, seconds)
        asked = sql.Statement.read(statement, seconds)
        with self._reading() as opened:
            asked.fill(opened)
            kept = Lookup(opened)
        asked.fill_traces(kept)
        return asked.rows(limit)
