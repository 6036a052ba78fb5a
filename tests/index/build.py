"""A small store of memories in RAM, with the tables that the index reads."""

import sqlite3
from collections.abc import Sequence

from memseal.index.lexical import TOKENIZER

Row = tuple[str, str | None, str | None, int | None]


class Database(sqlite3.Connection):
    """A connection that ends with the test which holds it; from Python 3.13 on an open one is a warning."""

    def __del__(self) -> None:
        self.close()


def memories(rows: Sequence[Row]) -> sqlite3.Connection:
    """Return a database of memories numbered from 1: (content, author, thread, position)."""
    connection = sqlite3.connect(":memory:", factory=Database)
    connection.executescript(
        f"""
        CREATE TABLE memories (
            n INTEGER PRIMARY KEY, content TEXT, author TEXT, thread TEXT, position INTEGER,
            captured_at INTEGER, written_at INTEGER DEFAULT 1000, tier TEXT, seen INTEGER
        );
        CREATE INDEX memories_thread ON memories (thread, position);
        CREATE VIRTUAL TABLE memories_text USING fts5(
            content, author, content = 'memories', content_rowid = 'n', tokenize = "{TOKENIZER}"
        );
        """
    )
    connection.executemany("INSERT INTO memories (content, author, thread, position) VALUES (?, ?, ?, ?)", rows)
    connection.execute("INSERT INTO memories_text (memories_text) VALUES ('rebuild')")
    connection.commit()
    return connection


def texts(*contents: str) -> sqlite3.Connection:
    """Return a database of memories that are only text."""
    return memories([(content, None, None, None) for content in contents])
