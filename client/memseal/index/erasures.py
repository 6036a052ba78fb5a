"""What was erased for good, and which records were given up: rows of the open state (vault-format §10)."""

import sqlite3
from collections.abc import Iterable

from memseal.index.doubles import Doubles
from memseal.memory.operations import Dismiss, Erase, Stamp

_SURVIVORS = """
SELECT n FROM memories WHERE id IN (
    SELECT m.id FROM memories m JOIN erased e ON e.target = m.of WHERE e.erasure = ?
    UNION SELECT s.derived FROM sources s JOIN erased e ON e.target = s.source WHERE e.erasure = ?
) ORDER BY stamp
"""


class Erasures:
    """The ids that were erased, by which operation, and whether the floor's checkpoint knows it."""

    def __init__(self, connection: sqlite3.Connection, doubles: Doubles) -> None:
        """Take the state's connection, and what decides between two operations with one id."""
        self._connection = connection
        self._doubles = doubles
        self.ids = {row[0] for row in connection.execute("SELECT target FROM erased")}

    def add(self, operation: Erase, stamp: Stamp, covered: bool) -> set[bytes]:
        """Note an `erase`, which with `covered` came from a checkpoint; returns the ids that are erased only now."""
        row = self._connection.execute("SELECT stamp FROM erasures WHERE id = ?", (operation.id,)).fetchone()
        earlier = True if row is None else None if row[0] == stamp else stamp < row[0]
        if self._doubles.counts(b"erase" + operation.id, operation, earlier):
            self._connection.execute(
                "INSERT INTO erasures VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
                " SET stamp = excluded.stamp, at = excluded.at, reason = excluded.reason",
                (operation.id, stamp, operation.at, operation.reason, covered),
            )
        if covered:
            self._connection.execute("UPDATE erasures SET covered = 1 WHERE id = ?", (operation.id,))
        rows = [(target, operation.id) for target in operation.targets]
        self._connection.executemany("INSERT OR IGNORE INTO erased VALUES (?, ?)", rows)
        fresh = set(operation.targets) - self.ids
        self.ids |= fresh
        return fresh

    def note_reappeared(self, memory_ids: Iterable[bytes]) -> None:
        """Note that a log brought the content of erased memories: it lies there until that log is cut."""
        self._connection.executemany("INSERT OR IGNORE INTO reappeared VALUES (?)", [(each,) for each in memory_ids])

    def is_due(self) -> bool:
        """Return whether content may still lie where the next checkpoint can take it from."""
        query = "SELECT EXISTS (SELECT 1 FROM erasures WHERE NOT covered) OR EXISTS (SELECT 1 FROM reappeared)"
        return bool(self._connection.execute(query).fetchone()[0])

    def note_covered(self) -> None:
        """Note that a checkpoint without the erased content was made, and every log cut at its end."""
        self._connection.execute("UPDATE erasures SET covered = 1")
        self._connection.execute("DELETE FROM reappeared")

    def listed(self) -> list[tuple[bytes, int, str | None, bool]]:
        """Return id, time (µs since 1970 UTC), reason and whether it is in the checkpoint, the earliest first."""
        rows = self._connection.execute("SELECT id, at, reason, covered FROM erasures ORDER BY stamp").fetchall()
        return [(erasure, at, reason, bool(covered)) for erasure, at, reason, covered in rows]

    def targets_of(self, erasure: bytes) -> list[bytes]:
        """Return the ids that one erasure names."""
        query = "SELECT target FROM erased WHERE erasure = ? ORDER BY target"
        return [row[0] for row in self._connection.execute(query, (erasure,))]

    def reappeared(self, erasure: bytes) -> bool:
        """Return whether content that this erasure names turned up in a log after it."""
        query = "SELECT 1 FROM erased e JOIN reappeared r ON r.target = e.target WHERE e.erasure = ? LIMIT 1"
        return self._connection.execute(query, (erasure,)).fetchone() is not None

    def survivors_of(self, erasure: bytes) -> list[int]:
        """Return the `n` of memories that supersede an erased one, or were derived from one, and were not erased:
        written elsewhere meanwhile.
        """
        rows = self._connection.execute(_SURVIVORS, (erasure, erasure))
        return [row[0] for row in rows]

    def orphans(self) -> set[bytes]:
        """Return the ids of what jobs made of erased memories, and nobody erased: made elsewhere meanwhile."""
        query = (
            "SELECT m.id FROM memories m JOIN sources s ON s.derived = m.id JOIN erased e ON e.target = s.source"
            " WHERE m.tier IS NOT NULL"
        )
        return {row[0] for row in self._connection.execute(query)}

    def dismiss(self, operation: Dismiss) -> None:
        """Note records that were given up."""
        rows = [(operation.stream, record) for record in operation.records]
        self._connection.executemany("INSERT OR IGNORE INTO dismissed VALUES (?, ?)", rows)

    def dismissed(self) -> set[tuple[bytes, int]]:
        """Return (stream id, record) of all that were given up."""
        return set(self._connection.execute("SELECT stream, record FROM dismissed"))
