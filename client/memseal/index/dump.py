"""The state as operations: all that has an effect, each with its stamp, so that applying them gives the state again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from memseal.format.values import decode_value
from memseal.index.view import View
from memseal.memory.memory import Draft
from memseal.memory.operations import (
    Dismiss,
    Embed,
    Erase,
    Operation,
    Remember,
    Retraction,
    Setting,
    Stamp,
    Tagging,
    first_place,
    make_stamp,
)
from memseal.memory.texts import ID_SIZE

_PAGE = 500  # memories at a time: a page is all that is held of them
_REMOVALS = 10_000  # of one operation
_COUNTED = (
    "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM memories WHERE vector <> stamp)"
    " + (SELECT count(*) FROM early_vectors) + (SELECT count(*) FROM retractions) + (SELECT count(*) FROM settings)"
)
_MEMORIES = """
SELECT n, id, stamp, content, kind, source, author, thread, position, captured_at, written_at, origin, of, reason,
       others, vector
FROM memories WHERE n IN ({marks}) ORDER BY stamp
"""
# The state keeps of tags, and of records that were given up, what they say and not when: it does not matter. Tags take
# the place of their memory.
_TAGS = """
SELECT coalesce(m.stamp, zeroblob(28)) AS stamp, t.target, t.added_by, t.tag
FROM tags t LEFT JOIN memories m ON m.id = t.target WHERE t.added_by <> t.target OR m.id IS NULL
ORDER BY 1, 2, 3, 4
"""
_REMOVED = """
SELECT coalesce(m.stamp, zeroblob(28)) AS stamp, r.target, r.tag, r.added_by
FROM tags_removed r LEFT JOIN memories m ON m.id = r.target ORDER BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation, its stamp, and the float16 vector that comes with it, if one does."""

    operation: Operation
    stamp: Stamp
    code: bytes | None = None


class Dump:
    """A view's state, to be gone through; the view does not change meanwhile.

    `at` stands for the times that the state does not keep, `new_id` for the ids: of operations that take tags away or
    give up records. Neither matters to what they say.
    """

    def __init__(self, view: View, at: int, new_id: Callable[[], bytes]) -> None:
        self._view = view
        self._connection = view.state.connection
        self._at = at
        self._new_id = new_id

    def count(self) -> int:
        """Return about how many entries there are: those of tags are not counted."""
        return int(self._connection.execute(_COUNTED).fetchone()[0])

    def settings(self) -> Iterator[Entry]:
        """Yield the settings in the order of their stamps."""
        for name, value, stamp in self._connection.execute("SELECT name, value, stamp FROM settings ORDER BY stamp"):
            yield Entry(Setting(_id_of(stamp), name, decode_value(value), self._at), stamp)

    def others(self) -> Iterator[Entry]:
        """Yield all that is not a setting, in the order of stamps."""
        return merge(
            self._memories(), self._embeddings(), self._early(), self._retractions(), self._tags(), self._removed(),
            self._erasures(), self._dismissed(), key=attrgetter("stamp"),
        )  # fmt: skip

    def _memories(self) -> Iterator[Entry]:
        numbers = [row[0] for row in self._connection.execute("SELECT n FROM memories ORDER BY stamp")]
        for start in range(0, len(numbers), _PAGE):
            page = numbers[start : start + _PAGE]
            marks = ",".join("?" * len(page))
            rows = self._connection.execute(_MEMORIES.format(marks=marks), page).fetchall()
            codes = self._codes([row[0] for row in rows if row[15] == row[2]])
            tags = self._own_tags([row[1] for row in rows])
            for row in rows:
                yield Entry(_remember(row, tags.get(row[1], ())), row[2], codes.get(row[0]))

    def _own_tags(self, ids: list[bytes]) -> dict[bytes, tuple[str, ...]]:
        marks = ",".join("?" * len(ids))
        query = f"SELECT target, tag FROM tags WHERE target IN ({marks}) AND added_by = target ORDER BY 1, 2"  # noqa: S608
        rows = self._connection.execute(query, ids)
        return {target: tuple(tag for _, tag in some) for target, some in groupby(rows, itemgetter(0))}

    def _codes(self, numbers: list[int]) -> dict[int, bytes]:
        if self._view.vectors is None or not numbers:
            return {}
        codes = self._view.vectors.vectors(np.array(numbers, np.int64)).astype("<f2")
        return {number: code.tobytes() for number, code in zip(numbers, codes, strict=True) if not np.isnan(code[0])}

    def _embeddings(self) -> Iterator[Entry]:
        query = "SELECT n, id, vector FROM memories WHERE vector <> stamp ORDER BY vector"
        for number, target, stamp in self._connection.execute(query):
            code = self._codes([number]).get(number)
            if code is not None:
                yield Entry(Embed(_id_of(stamp), target, 0), stamp, code)

    def _early(self) -> Iterator[Entry]:
        for target, stamp, code in self._connection.execute("SELECT * FROM early_vectors ORDER BY stamp"):
            yield Entry(Embed(_id_of(stamp), target, 0), stamp, code)

    def _retractions(self) -> Iterator[Entry]:
        query = "SELECT id, target, retracted, at, reason, stamp FROM retractions ORDER BY stamp"
        for operation_id, target, retracted, at, reason, stamp in self._connection.execute(query):
            yield Entry(Retraction(operation_id, target, bool(retracted), at, reason), stamp)

    def _tags(self) -> Iterator[Entry]:
        rows = self._connection.execute(_TAGS)
        for (stamp, target, added_by), some in groupby(rows, itemgetter(0, 1, 2)):
            operation = Tagging(added_by, target, self._at, tuple(row[3] for row in some))
            yield Entry(operation, _stamp_beside(stamp, added_by))

    def _removed(self) -> Iterator[Entry]:
        rows = self._connection.execute(_REMOVED)
        for (stamp, target), some in groupby(rows, itemgetter(0, 1)):
            removed = [(tag, added_by) for _, _, tag, added_by in some]
            for start in range(0, len(removed), _REMOVALS):
                operation_id = self._new_id()
                part = tuple(removed[start : start + _REMOVALS])
                yield Entry(Tagging(operation_id, target, self._at, (), part), _stamp_beside(stamp, operation_id))

    def _erasures(self) -> Iterator[Entry]:
        query = "SELECT id, at, reason, stamp FROM erasures ORDER BY stamp"
        for operation_id, at, reason, stamp in self._connection.execute(query):
            targets = tuple(self._view.state.erasures.targets_of(operation_id))
            yield Entry(Erase(operation_id, targets, at, reason), stamp)

    def _dismissed(self) -> Iterator[Entry]:
        rows = self._connection.execute("SELECT stream, record FROM dismissed ORDER BY 1, 2")
        for stream, some in groupby(rows, itemgetter(0)):
            operation_id = self._new_id()
            operation = Dismiss(operation_id, stream, tuple(record for _, record in some), self._at)
            yield Entry(operation, make_stamp(0, 0, operation_id))


def _remember(row: tuple[Any, ...], tags: tuple[str, ...]) -> Remember:
    _, memory_id, _, content, kind, source, author, thread, position, captured_at, written_at, origin, of, reason = row[
        :14
    ]
    others: dict[str, Any] = {} if row[14] is None else decode_value(row[14])
    draft = Draft(content, source, kind, tags, author, thread, position, captured_at, origin, others)
    return Remember(memory_id, draft, written_at, of=of, reason=reason)


def _id_of(stamp: Stamp) -> bytes:
    return stamp[-ID_SIZE:]


def _stamp_beside(stamp: Stamp, operation_id: bytes) -> Stamp:
    counter, position = first_place(stamp)
    return make_stamp(counter, position, operation_id)
