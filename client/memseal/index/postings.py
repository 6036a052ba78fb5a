"""The memories in which a word occurs, and how often: read from the full-text index, and kept for frequent words."""

import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memseal.recall.words import indexed

# FTS5 gives out an occurrence in 0.2 µs: a word that a tenth of a million memories has takes 20 ms. Few words are so
# frequent, and most questions have some of them.
_KEPT_FROM = 2_000
# Six bytes each.
_KEPT_LIMIT = 4_000_000
# After so many new memories, reading frequent words anew costs less than reading the words of all those.
_TAIL_LIMIT = 2_000
_MOST = np.iinfo(np.uint16).max

_SCHEMA = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.memories_words USING fts5vocab(main, memories_text, instance)",
    "CREATE TABLE IF NOT EXISTS temp.memories_gone AS SELECT 0 AS times",
    """
    CREATE TEMP TRIGGER IF NOT EXISTS memories_go AFTER DELETE ON main.memories
    BEGIN UPDATE memories_gone SET times = times + 1; END
    """,
)


@dataclass(frozen=True)
class Occurrences:
    """The numbers of the memories with a word, ascending, and how often each has it."""

    numbers: NDArray[np.int32]
    counts: NDArray[np.uint16]


class Postings:
    """Reads the tables `memories` and `memories_text`; what is kept follows every change of them."""

    def __init__(self, connection: sqlite3.Connection, words: "Words") -> None:
        """Take the connection, and what splits texts as `memories_text` does."""
        self._connection = connection
        for statement in _SCHEMA:
            connection.execute(statement)
        self._words = words
        self._kept: OrderedDict[str, Occurrences] = OrderedDict()
        self._size = 0
        self._until = 0
        self._gone = 0
        self._lock = Lock()

    def of(self, words: Iterable[str]) -> list[Occurrences]:
        """Return where each of some words occurs, as they are indexed."""
        with self._lock:
            self._follow()
            return [self._kept_of(word) for word in words]

    def _kept_of(self, word: str) -> Occurrences:
        known = self._kept.get(word)
        if known is not None:
            self._kept.move_to_end(word)
            return known
        row = self._connection.execute("SELECT group_concat(doc) FROM temp.memories_words WHERE term = ?", (word,))
        joined: str | None = row.fetchone()[0]
        found = counted(np.fromstring(joined or "", np.int32, sep=","))
        if found.numbers.size >= _KEPT_FROM:
            self._keep(word, found)
        return found

    def _keep(self, word: str, found: Occurrences) -> None:
        before = self._kept.pop(word, None)
        self._size += found.numbers.size - (0 if before is None else before.numbers.size)
        self._kept[word] = found
        while self._size > _KEPT_LIMIT and len(self._kept) > 1:
            self._size -= self._kept.popitem(last=False)[1].numbers.size

    def _follow(self) -> None:
        """Bring what is kept up to date: forget it where a memory went or has other words, or many came."""
        (gone,) = self._connection.execute("SELECT times FROM temp.memories_gone").fetchone()
        newest = self._connection.execute("SELECT max(n) FROM memories").fetchone()[0] or 0
        if gone != self._gone or newest - self._until > _TAIL_LIMIT:
            self._kept.clear()
            self._size = 0
        elif newest > self._until and self._kept:
            self._extend()
        self._gone, self._until = gone, newest

    def _extend(self) -> None:
        """Add the memories that came since."""
        query = "SELECT n, content, author FROM memories WHERE n > ? ORDER BY n"
        rows = self._connection.execute(query, (self._until,)).fetchall()
        places: dict[str, list[int]] = {}
        texts = [(number, f"{indexed(content)}\n{indexed(author or '')}") for number, content, author in rows]
        for word, number in self._words.places(texts):
            if word in self._kept:
                places.setdefault(word, []).append(number)
        for word, numbers in places.items():
            known, more = self._kept[word], counted(np.array(numbers, np.int32))
            numbers_of_both = np.concatenate([known.numbers, more.numbers])
            self._keep(word, Occurrences(numbers_of_both, np.concatenate([known.counts, more.counts])))


class Words:
    """Splits texts as a tokenizer of SQLite does, by letting it do it."""

    def __init__(self, tokenizer: str) -> None:
        """Open an index of its own in memory."""
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._connection.close)
        # Nothing of a text may reach the disk, not even a temporary file.
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = "{tokenizer}")')
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance)")
        self._lock = Lock()

    def places(self, texts: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
        """Return the words of numbered texts, each time that they occur, in their order."""
        with self._lock:
            try:
                self._connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", texts)
                return self._connection.execute("SELECT term, doc FROM words ORDER BY doc, offset").fetchall()
            finally:
                self._connection.execute("DELETE FROM texts")

    def close(self) -> None:
        """Let go of the tokenizer."""
        self._connection.close()


def counted(occurrences: NDArray[np.int32]) -> Occurrences:
    """Return each number once; FTS5 lists the occurrences of a word in the order of the numbers."""
    starts = np.flatnonzero(np.diff(occurrences, prepend=-1))
    counts = np.diff(starts, append=occurrences.size)
    return Occurrences(occurrences[starts], np.minimum(counts, _MOST).astype(np.uint16))
