"""The tables of the open state, and its longer statements."""

from functools import cache

from memseal.index.lexical import TOKENIZER
from memseal.recall.words import VERSION

# An image of other tables, or of words that were split otherwise, is of no use: 2 is the version of the tables below.
IMAGE_VERSION = 2 << 16 | VERSION

SCHEMA = f"""
PRAGMA user_version = {IMAGE_VERSION};
CREATE TABLE memories (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    stamp BLOB NOT NULL,
    fingerprint INTEGER NOT NULL,   -- 64 bits over what makes two memories the same
    content TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    author TEXT,
    thread TEXT,
    position INTEGER,
    captured_at INTEGER,            -- µs since 1970 UTC
    written_at INTEGER NOT NULL,
    origin TEXT,
    of BLOB,                        -- the memory that this one supersedes
    reason TEXT,                    -- why it was superseded
    others BLOB,                    -- the rarer fields, and those of newer software, msgpack
    type TEXT,                      -- as its writer named it
    tier TEXT,                      -- NULL: an atom
    seen INTEGER,                   -- of a derived memory: from how many others it was made
    same INTEGER,                   -- n of the memory that this one is the same as, if that is another
    state INTEGER NOT NULL DEFAULT 0,
    superseded_by INTEGER,          -- n
    vector BLOB                     -- stamp of the vector in the index, if there is one
);
CREATE INDEX memories_fingerprint ON memories (fingerprint);
CREATE INDEX memories_time ON memories (coalesce(captured_at, written_at));
CREATE INDEX memories_thread ON memories (thread, position) WHERE thread IS NOT NULL;
CREATE INDEX memories_of ON memories (of) WHERE of IS NOT NULL;
CREATE INDEX memories_origin ON memories (origin) WHERE origin IS NOT NULL;
CREATE INDEX memories_same ON memories (same) WHERE same IS NOT NULL;
CREATE INDEX memories_derived ON memories (tier) WHERE tier IS NOT NULL;
CREATE INDEX memories_inactive ON memories (state) WHERE state <> 0 OR same IS NOT NULL;
CREATE VIRTUAL TABLE memories_text USING fts5 (
    content, author, content = 'memories', content_rowid = 'n',
    tokenize = "{TOKENIZER}"
);
CREATE TABLE sources (source BLOB, derived BLOB, PRIMARY KEY (source, derived)) WITHOUT ROWID;
CREATE INDEX sources_derived ON sources (derived);
CREATE TABLE retractions (
    id BLOB PRIMARY KEY, target BLOB NOT NULL, stamp BLOB NOT NULL, retracted INTEGER NOT NULL, at INTEGER NOT NULL,
    reason TEXT
) WITHOUT ROWID;
CREATE INDEX retractions_target ON retractions (target, stamp);
CREATE TABLE tags (target BLOB, tag TEXT, added_by BLOB, PRIMARY KEY (target, tag, added_by)) WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);
CREATE TABLE tags_removed (target BLOB, tag TEXT, added_by BLOB, PRIMARY KEY (target, tag, added_by)) WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL, stamp BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE early_vectors (target BLOB PRIMARY KEY, stamp BLOB NOT NULL, code BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE erasures (
    id BLOB PRIMARY KEY, stamp BLOB NOT NULL, at INTEGER NOT NULL, reason TEXT,
    covered INTEGER NOT NULL        -- whether it came from a checkpoint, which then holds nothing of what it names
) WITHOUT ROWID;
CREATE TABLE erased (target BLOB, erasure BLOB, PRIMARY KEY (target, erasure)) WITHOUT ROWID;
CREATE INDEX erased_by ON erased (erasure);
CREATE TABLE reappeared (target BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dismissed (stream BLOB, record INTEGER, PRIMARY KEY (stream, record)) WITHOUT ROWID;
"""

COLUMNS = (
    *("n", "id", "stamp", "fingerprint", "content", "kind", "source", "written_at"),
    *("author", "thread", "position", "captured_at", "origin", "of", "reason", "others", "vector"),
    *("type", "tier", "seen"),
)


@cache
def insert_of(absent: tuple[bool, ...]) -> str:
    """Return the statement that inserts a memory, given which of `COLUMNS` it has no value for."""
    names = [name for name, without in zip(COLUMNS, absent, strict=True) if not without]
    return f"INSERT INTO memories ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - our own text


MEMORY = """
SELECT m.id, m.content, m.kind, m.source, m.written_at, m.captured_at, m.author, m.thread, m.position, m.origin,
       m.state, m.of, m.n, (SELECT id FROM memories WHERE n = m.superseded_by), m.others
FROM memories m
"""

WHOLE = """
SELECT m.id, m.stamp, content, kind, source, author, thread, position, captured_at, written_at, origin, of, reason,
       others, state, vector, (SELECT id FROM memories c WHERE c.n = m.same),
       (SELECT id FROM memories c WHERE c.n = m.superseded_by)
FROM memories m ORDER BY id
"""
