"""Memories and other operations that came again under a known id with something else to say (vault-format §10)."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from memseal.format.values import decode_value, encode_value
from memseal.memory.doubles import double_id, order, ordered, print_of
from memseal.memory.memory import Draft
from memseal.memory.operations import (
    Erase,
    Remember,
    Retraction,
    Setting,
    Stamp,
    decode_operation,
    encode_operation,
    first_place,
)

_TABLES = """
CREATE TABLE IF NOT EXISTS doubles (id BLOB, print BLOB, stamp BLOB NOT NULL, value BLOB NOT NULL,
                                    PRIMARY KEY (id, print)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prints (what BLOB PRIMARY KEY, print BLOB NOT NULL) WITHOUT ROWID;
"""
_HELD = """
SELECT id, stamp, content, source, kind, author, thread, position, captured_at, origin, others, written_at, of, reason
FROM memories WHERE id
"""
_TAGS = "SELECT tag FROM tags WHERE target = ? AND added_by = ? ORDER BY tag"
_QUERY_LIMIT = 500

Row: TypeAlias = tuple[Any, ...]


class Double(NamedTuple):
    """A memory that does not count under its id, its first stamp, and the same under an id of its own."""

    lost: Remember
    stamp: Stamp
    again: Remember


class Doubles:
    """What came under one id with other content: kept here until it is written again under an id of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take the state's connection."""
        self._connection = connection
        connection.executescript(_TABLES)

    # ── memories ────────────────────────────────────────────────────────────────────────────────────

    def different(self, operations: Sequence[Remember]) -> list[Remember]:
        """Return of memories that came with a known id and stamp those that are not what is held: hardly ever any."""
        held, tags = self._held([operation.id for operation in operations]), dict[bytes, set[str]]()
        for start in range(0, len(operations), _QUERY_LIMIT):
            some = [operation.id for operation in operations[start : start + _QUERY_LIMIT]]
            query = f"SELECT target, tag FROM tags WHERE target IN ({','.join('?' * len(some))}) AND added_by = target"  # noqa: S608
            for target, tag in self._connection.execute(query, some):
                tags.setdefault(target, set()).add(tag)
        return [
            operation
            for operation in operations
            if not _says_the_same(operation, held[operation.id])
            or operation.written_at != held[operation.id][11]
            or set(operation.draft.tags) != tags.get(operation.id, set())
        ]

    def comes_first(self, operation: Remember) -> bool:
        """Return whether a memory counts instead of the one that is held with its id and stamp."""
        held = self._held_one(operation.id)
        return held is not None and order(operation) < order(held)

    def note_lost(self, lost: Sequence[tuple[Remember, Stamp]]) -> list[Remember]:
        """Keep those of memories that do not count which differ from the held ones; returns those that are no same."""
        held = self._held(list(dict.fromkeys(operation.id for operation, _ in lost)))
        return [
            operation
            for operation, stamp in lost
            if (row := held.get(operation.id)) is not None
            and not _says_the_same(operation, row)
            and self._keep(operation, stamp, _memory(row))
        ]

    def note_held(self, item: Remember) -> bool:
        """Keep the memory that is held before another takes its id; returns whether they are no same memory."""
        row = self._connection.execute(f"{_HELD} = ?", (item.id,)).fetchone()
        if row is None or _says_the_same(item, row):
            return False
        held = self._with_tags(_memory(row))
        return self._keep(held, row[1], item)

    def due(self) -> list[Double]:
        """Return the memories that do not count, in the order of their stamps."""
        listed = list[Double]()
        rows = self._connection.execute("SELECT stamp, value FROM doubles ORDER BY stamp, print").fetchall()
        for stamp, value in rows:
            counter, position = first_place(stamp)
            operation, _ = decode_operation(decode_value(value), counter, position)
            if isinstance(operation, Remember) and not self.holds(operation):
                listed.append(Double(operation, stamp, operation._replace(id=double_id(operation))))
        return listed

    def settle(self, done: Sequence[Double]) -> None:
        """Forget those that were written again."""
        keys = [(each.lost.id, print_of(each.lost)) for each in done]
        self._connection.executemany("DELETE FROM doubles WHERE id = ? AND print = ?", keys)

    def forget(self, memory_id: bytes) -> None:
        """Forget all that came with an id that was erased."""
        self._connection.execute("DELETE FROM doubles WHERE id = ?", (memory_id,))

    def holds(self, operation: Remember) -> bool:
        """Return whether the state has a memory with this id, which says the same."""
        row = self._connection.execute(f"{_HELD} = ?", (operation.id,)).fetchone()
        return row is not None and _says_the_same(operation, row)

    def _keep(self, lost: Remember, stamp: Stamp, counts: Remember) -> bool:
        tags = tuple(sorted(set(lost.draft.tags)))
        value = encode_value(encode_operation(lost._replace(row=None, draft=lost.draft._replace(tags=tags))))
        self._connection.execute(
            "INSERT INTO doubles VALUES (?, ?, ?, ?) ON CONFLICT (id, print) DO UPDATE"
            " SET stamp = excluded.stamp, value = excluded.value"
            " WHERE excluded.stamp < stamp OR excluded.stamp = stamp AND excluded.value < value",
            (lost.id, print_of(lost), stamp, value),
        )
        return not (lost.of is None and counts.of is None and _identity(lost) == _identity(counts))

    def _held(self, ids: Sequence[bytes]) -> dict[bytes, Row]:
        held = dict[bytes, Row]()
        for start in range(0, len(ids), _QUERY_LIMIT):
            some = ids[start : start + _QUERY_LIMIT]
            rows = self._connection.execute(f"{_HELD} IN ({','.join('?' * len(some))})", some)
            held.update((row[0], row) for row in rows)
        return held

    def _held_one(self, memory_id: bytes) -> Remember | None:
        row = self._connection.execute(f"{_HELD} = ?", (memory_id,)).fetchone()
        return None if row is None else self._with_tags(_memory(row))

    def _with_tags(self, held: Remember) -> Remember:
        tags = tuple(row[0] for row in self._connection.execute(_TAGS, (held.id, held.id)))
        return held._replace(draft=held.draft._replace(tags=tags))

    # ── operations of which one counts ──────────────────────────────────────────────────────────────

    def counts(self, what: bytes, operation: Retraction | Setting | Erase, earlier: bool | None) -> bool:
        """Return whether an operation counts, given that its stamp wins (or loses: False) or is the same (None)."""
        mark, wins = print_of(operation), earlier
        if wins is None:
            row = self._connection.execute("SELECT print FROM prints WHERE what = ?", (what,)).fetchone()
            wins = row is not None and mark < row[0]
        if wins:
            self._connection.execute("INSERT OR REPLACE INTO prints VALUES (?, ?)", (what, mark))
        return wins


def _says_the_same(operation: Remember, row: Row) -> bool:
    draft = operation.draft
    return (
        (draft.content, draft.source, draft.kind, draft.author, draft.thread, draft.position) == row[2:8]
        and (draft.captured_at, draft.origin, operation.of, operation.reason) == (row[8], row[9], row[12], row[13])
        and (encode_value(ordered(draft.others)) if draft.others else None)
        == (None if row[10] is None else encode_value(ordered(decode_value(row[10]))))
    )


def _memory(row: Row) -> Remember:
    others: dict[str, Any] = {} if row[10] is None else decode_value(row[10])
    draft = Draft(row[2], row[3], row[4], (), row[5], row[6], row[7], row[8], row[9], others)
    return Remember(row[0], draft, row[11], None, row[12], row[13])


def _identity(operation: Remember) -> tuple[Any, ...]:
    draft = operation.draft
    return draft.content, draft.kind, draft.author, draft.thread, draft.captured_at
