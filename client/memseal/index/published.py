"""The documented tables of a vault in an SQLite database of their own, for statements that only read (sql.md).

A copy: what is not documented is not there, so no statement can reach it, and none can change anything.
"""

import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from memseal.errors import SqlLimit, SqlRefused
from memseal.memory.operations import first_place


class Table(NamedTuple):
    """A documented table: its columns, and what gives its rows out of the state; None where that is not the state's."""

    columns: str
    select: str | None = None


def _time(value: str) -> str:
    """Return SQL for an ISO 8601 time of fixed width; NULL beyond the years 0 to 9999."""
    micros = f"(({value}) % 1000000 + 1000000) % 1000000"
    whole = f"(({value}) - {micros}) / 1000000"
    return f"strftime('%Y-%m-%dT%H:%M:%S', {whole}, 'unixepoch') || printf('.%06dZ', {micros})"


def _hex(value: str) -> str:
    return f"lower(hex({value}))"


_STATE: Final = "CASE m.state WHEN 0 THEN 'active' WHEN 1 THEN 'superseded' WHEN 2 THEN 'retracted' ELSE 'both' END"
_TAGS: Final = """(SELECT json_group_array(tag) FROM (
    SELECT DISTINCT t.tag FROM tags t JOIN memories g ON g.id = t.target
    WHERE (g.n = m.n OR g.same = m.n) AND NOT EXISTS (SELECT 1 FROM tags_removed r
        WHERE (r.target, r.tag, r.added_by) = (t.target, t.tag, t.added_by)) ORDER BY t.tag))"""
_MEMORIES: Final = f"""
SELECT {_hex("m.id")}, m.content, m.kind, coalesce(m.type, type_of(m.content)), coalesce(m.tier, 'atom'), m.source,
       m.author, m.thread, m.position, {_TAGS}, m.origin, {_time("m.captured_at")}, {_time("m.written_at")}, {_STATE},
       CASE WHEN m.of IS NULL THEN NULL ELSE {_hex("m.of")} END,
       (SELECT {_hex("c.id")} FROM memories c WHERE c.n = m.superseded_by), m.reason, m.vector IS NOT NULL
FROM memories m WHERE m.same IS NULL
"""  # noqa: S608 - our own text
_VERSIONS: Final = f"""
WITH RECURSIVE chain (n, root, version) AS (
    SELECT n, id, 1 FROM memories WHERE of IS NULL OR of NOT IN (SELECT id FROM memories)
    UNION
    SELECT s.n, chain.root, chain.version + 1 FROM chain JOIN memories p ON p.n = chain.n JOIN memories s ON s.of = p.id
)
SELECT {_hex("m.id")}, {_hex("chain.root")}, chain.version, m.content, {_STATE}, {_time("m.written_at")},
       (SELECT {_hex("c.id")} FROM memories c WHERE c.n = m.superseded_by), m.reason
FROM chain JOIN memories m ON m.n = chain.n
"""  # noqa: S608 - our own text
_OPERATIONS: Final = f"""
SELECT {_hex("id")}, CASE WHEN of IS NULL THEN 'remember' ELSE 'supersede' END,
       CASE WHEN of IS NULL THEN NULL ELSE {_hex("of")} END, stamp, {_time("written_at")}, reason, NULL FROM memories
UNION ALL
SELECT {_hex("id")}, CASE WHEN retracted THEN 'retract' ELSE 'restore' END, {_hex("target")}, stamp, {_time("at")},
       reason, NULL FROM retractions WHERE target NOT IN (SELECT target FROM erased)
UNION ALL
SELECT {_hex("e.id")}, 'erase', {_hex("t.target")}, e.stamp, {_time("e.at")}, e.reason, NULL
FROM erasures e JOIN erased t ON t.erasure = e.id
UNION ALL
SELECT {_hex("added_by")}, 'tag', {_hex("target")}, NULL, NULL, NULL, tag FROM tags WHERE added_by <> target
UNION ALL
SELECT {_hex("substr(stamp, 13)")}, 'setting', NULL, stamp, NULL, NULL, name FROM settings
"""  # noqa: S608 - our own text
TABLES: Final[dict[str, Table]] = {
    "memories": Table(
        "id, content, kind, type, tier, source, author, thread, position, tags, origin, captured_at, written_at, state,"
        " supersedes, superseded_by, reason, has_vector",
        _MEMORIES,
    ),
    "versions": Table("id, root, version, content, state, written_at, superseded_by, reason", _VERSIONS),
    "operations": Table("id, op, target, counter, position, at, reason, detail", _OPERATIONS),
    "traces": Table("id, at, surface, turn, about, query, status, engine, embedder, floor, considered, served, text"),
    "trace_memories": Table("trace, memory, place, served, related, score, lexical, cosine, state, truncated, masked"),
}
# Beside the tables a statement reads the names that it gives itself, and SQLite's table-valued functions. Nothing else
# is in this database; what tells of the library and its files is kept out all the same.
_HIDDEN: Final = re.compile(r"pragma_|sqlite_(?!master$|schema$)|dbstat$|bytecode$|tables_used$")
# These load code, or hand out addresses of the process.
_HIDDEN_FUNCTION: Final = re.compile(r"load_extension$|fts\d+(_tokenizer)?$")
_FIRST_USE: Final = "SELECT 1 FROM json_each('[]'), json_tree('[]')"
_ALLOWED: Final = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE))
_STATEMENT_BYTES: Final = 100_000
_VALUE_BYTES: Final = 16 << 20
_ANSWER_BYTES: Final = 64 << 20  # of all values: many rows of large ones would be more than a machine has
_COLUMNS: Final = 100  # each may be as large as a value, and a row is there as a whole
_STEPS: Final = 10_000  # of SQLite's machine between two looks at the clock: a fraction of a millisecond


class Published:
    """The tables that one statement names, and its answer."""

    def __init__(self, statement: str) -> None:
        """Take a statement; raises `SqlRefused` unless it is one that only reads the documented tables."""
        self._statement = statement
        self.named = set[str]()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        # Also where nobody comes to ask for the answer: it is called once, and then forgets the connection.
        self._end = weakref.finalize(self, self._connection.close)
        # What does not fit in a page cache would go to a file: nothing that is open may reach the disk.
        self._connection.execute("PRAGMA temp_store = MEMORY")
        for name, table in TABLES.items():
            self._connection.execute(f"CREATE TABLE {name} ({table.columns})")
        # These declare a table of their own when they are first used, which no statement may.
        self._connection.execute(_FIRST_USE)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _STATEMENT_BYTES)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, _COLUMNS)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._connection.set_authorizer(self._authorized)
        try:
            self._run(f"EXPLAIN {statement}", lambda cursor: None)
        except BaseException:
            self._end()
            raise
        self._connection.set_authorizer(None)

    def fill(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into a documented table."""
        marks = ", ".join("?" * len(TABLES[name].columns.split(",")))
        self._connection.execute("BEGIN")
        self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608 - our own text
        self._connection.execute("COMMIT")

    def fill_from(self, state: sqlite3.Connection) -> None:
        """Fill the tables that the statement names and that the state has."""
        for name in sorted(self.named & TABLES.keys()):
            select = TABLES[name].select
            if select is None:
                continue
            rows: Iterable[Sequence[Any]] = state.execute(select)
            self.fill(name, map(_operation, rows) if name == "operations" else rows)

    def answer(self, limit: int, seconds: float) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the columns, and at most `limit` + 1 rows; raises `SqlRefused` or `SqlLimit`, and ends this."""
        deadline = time.monotonic() + seconds
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.set_authorizer(self._authorized)
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        try:
            cursor = self._connection.execute(self._statement)
            return _names(cursor), list(_bounded(islice(cursor, limit + 1)))
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
            raise _while_running(error) from None
        finally:
            self._end()

    def _authorized(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first is not None:
            self.named.add(first.lower())
            return sqlite3.SQLITE_DENY if _HIDDEN.match(first.lower()) else sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if _HIDDEN_FUNCTION.match((second or "").lower()) else sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

    def _run(self, statement: str, take: Callable[[sqlite3.Cursor], Any]) -> Any:
        try:
            return take(self._connection.execute(statement))
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _translated(error) from None


def _translated(error: sqlite3.Error | sqlite3.Warning) -> SqlRefused | SqlLimit:
    # Nothing was read yet: what SQLite says names parts of the statement, and no value of a row.
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return SqlLimit("the statement took longer than was allowed: narrow it, or give it more seconds")
    if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM):
        return SqlLimit("a value of the statement is larger than 16 MiB: take less together")
    if code == sqlite3.SQLITE_AUTH or "prohibited" in str(error) or "not authorized" in str(error):
        tables = ", ".join(TABLES)
        return SqlRefused(f"only SELECT over the documented tables is possible: {tables} (format-spec/sql.md)")
    return SqlRefused(f"SQLite does not take the statement: {error}")


def _while_running(error: sqlite3.Error | sqlite3.Warning | MemoryError) -> SqlRefused | SqlLimit:
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, MemoryError):
        return SqlLimit("the answer is larger than this machine's memory: take less together")
    if code in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM):
        return _translated(error)
    # SQLite's own words may quote a row, such as a text that it took for JSON.
    return SqlRefused(
        "a value of the statement cannot be worked out: a text that is no JSON, path or UTF-8, or a number"
    )


def _bounded(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    size = 0
    for row in rows:
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size > _ANSWER_BYTES:
            raise SqlLimit("the answer is larger than 64 MiB: take less together")
        yield row


def _names(cursor: sqlite3.Cursor) -> tuple[str, ...]:
    return tuple(column[0] for column in cursor.description)


def _operation(row: Sequence[Any]) -> Sequence[Any]:
    """Return a row with its stamp as counter and position."""
    id_, op, target, stamp, at, reason, detail = row
    place = (None, None) if stamp is None else first_place(stamp)
    return id_, op, target, *place, at, reason, detail
