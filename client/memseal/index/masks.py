"""The memories that a condition leaves, as masks by `n` that are kept between searches."""

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A byte for each memory.
_KEPT_BYTES = 16 << 20
# Smaller ones take no time: a condition that goes by an index, over few memories.
_KEPT_FROM = 10_000

# What a condition may ask about, and that changes of memories which are there already; own tags come with a memory.
_CHANGES = {
    "memories_altered": "UPDATE OF state, same, superseded_by ON main.memories",
    "memories_deleted": "DELETE ON main.memories",
    "tags_added": "INSERT ON main.tags WHEN NEW.added_by <> NEW.target",
    "tags_deleted": "DELETE ON main.tags",
    "tags_taken": "INSERT ON main.tags_removed",
    "tags_returned": "DELETE ON main.tags_removed",
    "retractions_added": "INSERT ON main.retractions",
    "retractions_altered": "UPDATE ON main.retractions",
}


class Masks:
    """Answers conditions over `memories m`; a kept answer is extended by what was added, and forgotten by a change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take the connection with the state's tables."""
        self._connection = connection
        connection.execute("CREATE TABLE IF NOT EXISTS temp.changes AS SELECT 0 AS times")
        for name, change in _CHANGES.items():
            head = f"CREATE TEMP TRIGGER IF NOT EXISTS {name} AFTER {change}"
            connection.execute(f"{head} BEGIN UPDATE changes SET times = times + 1; END")  # noqa: S608 - our own text
        self._kept: OrderedDict[tuple[str, tuple[Any, ...]], NDArray[np.bool_]] = OrderedDict()
        self._changes = 0
        self._lock = Lock()

    def of(self, where: str, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Return for each `n` whether a condition holds; what is returned cannot be written."""
        key = (where, tuple(values))
        with self._lock:
            size = 1 + (self._one("SELECT max(n) FROM memories") or 0)
            changes = self._one("SELECT times FROM temp.changes")
            if changes != self._changes:
                self._kept.clear()
                self._changes = changes
            mask = self._kept.pop(key, np.empty(0, np.bool_))
            if mask.size < size:
                mask = np.concatenate([mask, self._read(where, values, mask.size, size)])
                mask.setflags(write=False)
            if mask.size >= _KEPT_FROM:
                self._kept[key] = mask
                while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > _KEPT_BYTES:
                    self._kept.popitem(last=False)
            return mask

    def _read(self, where: str, values: Sequence[Any], first: int, end: int) -> NDArray[np.bool_]:
        # As one text: a row for each number would take five times as long.
        query = f"SELECT group_concat(m.n) FROM memories m WHERE ({where})"  # noqa: S608 - our own text
        joined = self._one(f"{query} AND m.n >= ?", (*values, first)) if first else self._one(query, values)
        mask = np.zeros(end - first, np.bool_)
        mask[np.fromstring(joined or "", np.int64, sep=",") - first] = True
        return mask

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(query, values).fetchone()[0]
