"""provenmem: its database, schema 1, with what superseded what, and what was retracted.

`meta` and the vectors (of whatever model) are left out.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from memseal.errors import ImportRowError
from memseal.memory.memory import KINDS
from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    Reading,
    Said,
    as_list,
    checked,
    count_unknown,
    given,
    items_of,
    moment_of,
)
from memseal.vault.writes.adopting import Past, derived_id

NAME: Final = "provenmem"
MAGIC: Final = b"SQLite format 3\0"
_SCHEMA = 1
# The second where SQLite's message quotes a damaged name.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
_COLUMNS = "id, kind, text, source, tags, meta, created_at, supersedes, retracted, retract_reason"
_QUERY = f"SELECT {_COLUMNS} FROM records ORDER BY id"  # noqa: S608 - our own text
_TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'records' AND type = 'table'"
_NOT_OURS = "the file is a database, but not one of provenmem, or it is damaged"
_REPLACED = "SELECT id, created_at FROM records WHERE id = ?"


def count_rows(path: Path) -> int:
    """Return how many records there are; raises `ImportRowError` where the file is no database of provenmem."""
    with closing(_connect(path)) as connection:
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            # A view of that name could go on for ever.
            if connection.execute(_TABLES).fetchone()[0] != 1:
                raise ImportRowError(1, _NOT_OURS)
            count: int = connection.execute("SELECT count(*) FROM records").fetchone()[0]
        except _DAMAGED:
            raise ImportRowError(1, _NOT_OURS) from None
    if version > _SCHEMA:
        raise ImportRowError(1, "the database was written by a newer provenmem than this version can read")
    return count


def read_provenmem(path: Path, reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each record, superseded and retracted ones too; an error's line is the record's number."""
    with closing(_connect(path)) as connection:
        rows = ((row["id"], row) for row in _rows(connection))
        yield from items_of(rows, lambda row: _item_of(row, connection, reading), reading.on_error)


def _connect(path: Path) -> sqlite3.Connection:
    # Read as it lies there: a read-only connection to a database in WAL mode would write files beside it. Where its
    # program has left a log behind, what is in that counts too, and there is no other way.
    log = path.with_name(path.name + "-wal")
    options = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(path.absolute().as_posix())}?{options}", uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = _text
    return connection


def _text(raw: bytes) -> str:
    # What is not UTF-8 spoils its row, not the file.
    return raw.decode("utf-8", "surrogateescape")


def _rows(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    try:
        yield from map(dict, connection.execute(_QUERY))
    except _DAMAGED:
        raise ImportRowError(1, "the database is damaged: what was read before is brought, the rest is not") from None


def _item_of(fields: Mapping[str, Any], connection: sqlite3.Connection, reading: Reading) -> ImportItem:
    said = Said(
        content=fields["text"],
        source=fields["source"],
        kind=fields["kind"] if fields["kind"] in KINDS else "note",
        tags=as_list(_json(fields, "tags"), "tags"),
        captured_at=moment_of(fields, "created_at"),
    )
    past = Past(
        id=_id(fields),
        written_at=moment_of(fields, "created_at"),
        replaces=_replaced(fields, connection),
        retracted=bool(fields["retracted"]),
        retract_reason=fields["retract_reason"] or None,
    )
    item = checked(said, _origin(fields), past)
    meta = _json(fields, "meta")
    if isinstance(meta, dict):
        count_unknown(given(cast("Mapping[str, object]", meta)), frozenset(), reading.unknown_fields)
    return item


def _origin(fields: Mapping[str, Any]) -> str:
    # Every database counts from 1; with its time an id is one of its own.
    return f"{NAME}:mem-{fields['id']}@{fields['created_at']}"


def _id(fields: Mapping[str, Any]) -> bytes:
    # Of the name alone: records never change, and one names another.
    return derived_id(_origin(fields), "")


def _replaced(fields: Mapping[str, Any], connection: sqlite3.Connection) -> bytes | None:
    if fields["supersedes"] is None:
        return None
    try:
        row = connection.execute(_REPLACED, (fields["supersedes"],)).fetchone()
    except _DAMAGED:
        raise BadRow("the record that it replaces cannot be read") from None
    return None if row is None else _id(dict(row))


def _json(fields: Mapping[str, Any], name: str) -> object:
    try:
        return json.loads(fields[name] or "null")
    except (TypeError, ValueError, RecursionError):
        raise BadRow(f"{name} is not valid JSON") from None
