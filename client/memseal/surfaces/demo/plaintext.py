"""Look for plaintext in everything that a folder holds."""

import base64
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Sight:
    """What a search saw: the texts it found, and how many files, database values and bytes it read."""

    found: tuple[str, ...]
    files: int
    values: int
    size_bytes: int


def look_for(texts: Sequence[str], folder: Path) -> Sight:
    """Look for texts in all files under a folder, byte by byte, and in all values of its SQLite databases.

    A large value is scattered over a database's pages, so the raw bytes of the file alone would hide it.
    """
    forms = {text: forms_of(text) for text in texts}
    found = dict.fromkeys(texts, False)
    files = values = size_bytes = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        pieces = [raw]
        if raw.startswith(_SQLITE):
            pieces += database_values(path)
        files, values, size_bytes = files + 1, values + len(pieces) - 1, size_bytes + len(raw)
        for text, wanted in forms.items():
            found[text] = found[text] or any(form in piece for piece in pieces for form in wanted)
    return Sight(tuple(text for text, is_there in found.items() if is_there), files, values, size_bytes)


def forms_of(text: str) -> list[bytes]:
    """Return a text as UTF-8, UTF-16 of both byte orders, and base64 at each of the three places it can begin."""
    raw = text.encode()
    return [raw, text.encode("utf-16-le"), text.encode("utf-16-be"), *(_base64(raw, shift) for shift in range(3))]


def _base64(raw: bytes, shift: int) -> bytes:
    """Return the letters that are the same whatever stands before and after."""
    padded = bytes(shift) + raw
    whole = len(padded) - len(padded) % 3
    return base64.b64encode(padded[:whole])[(0, 2, 3)[shift] :]


def database_values(path: Path) -> list[bytes]:
    """Return every text and blob in a SQLite database, names of tables and columns included."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.text_factory = bytes
        return list(_values(database))


def _values(database: sqlite3.Connection) -> Iterator[bytes]:
    tables = [name.decode() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in ("sqlite_master", *tables):
        quoted = table.replace('"', '""')
        for row in database.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  a name out of the database itself
            yield from (value for value in row if isinstance(value, bytes))
