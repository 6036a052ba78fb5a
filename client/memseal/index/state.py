"""The state of a vault as an SQLite database in memory: what all operations say together (vault-format §10).

Nothing here depends on the order in which operations arrive: rows are kept by id with their stamps, and what follows
from them (`same`, `state`, `superseded_by`) is computed anew for whatever an operation touches.
"""

import contextlib
import hashlib
import sqlite3
import weakref
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memseal.errors import FormatError
from memseal.format.values import decode_value, encode_value
from memseal.index.doubles import Doubles
from memseal.index.erasures import Erasures
from memseal.index.schema import IMAGE_VERSION, MEMORY, SCHEMA, WHOLE, insert_of
from memseal.memory.doubles import order, ordered
from memseal.memory.memory import Draft, Memory, State, from_microseconds
from memseal.memory.operations import Erase, Remember, Retraction, Setting, Stamp, Tagging
from memseal.memory.proposals import PROPOSAL, proposed_id
from memseal.memory.traits import PLAIN, read_traits, seen_of, sources_of, tier_of
from memseal.memory.types import type_of
from memseal.recall.words import indexed

# Twice `?` and not `?1`: Python 3.12.0 to 3.12.3 warn of a numbered one.
_GROUP = "SELECT id FROM memories WHERE n = ? OR same = ?"
_TEXT = "SELECT n, indexed(content), indexed(coalesce(author, '')) FROM memories WHERE n = ?"
_PARENTS = "SELECT coalesce(p.same, p.n) FROM memories m JOIN memories p ON p.id = m.of WHERE m.id = ?"
_CHILDREN = "SELECT coalesce(same, n) FROM memories WHERE of = ?"
_QUERY_LIMIT = 500  # ids in one IN (…); SQLite allows 32,766


class Stamped(NamedTuple):
    """A `remember` or `supersede` operation with its stamp, and whether its vector goes into the index."""

    operation: Remember
    stamp: Stamp
    has_vector: bool = False


class VaultState:
    """The open state; every method sees all that was applied before."""

    def __init__(self, image: bytes | memoryview | None = None) -> None:
        """Begin empty, or from the image that `image()` gave."""
        self.connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        # A state that nobody closed (an opening that failed, a forgotten bundle) is let go of all the same.
        weakref.finalize(self, self.connection.close)
        if image is None:
            self.connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        else:
            self.connection.deserialize(image)
            if self._one("PRAGMA user_version") != IMAGE_VERSION:
                raise FormatError("record_content", "an image of other tables, or of words split by other rules")
        self.connection.create_function("indexed", 1, indexed, deterministic=True)
        self.connection.create_function("type_of", 1, type_of, deterministic=True)
        # Nothing may reach the disk: temporary tables and sorts stay in memory too.
        self.connection.execute("PRAGMA temp_store = MEMORY")
        self.connection.execute("PRAGMA synchronous = OFF")
        self._next = 1 + (self._one("SELECT max(n) FROM memories") or 0)
        self.doubles = Doubles(self.connection)
        self.erasures = Erasures(self.connection, self.doubles)
        self._early = self._early_targets()
        self._dropped = list[int]()
        self._taken = list[bytes]()
        self._episodic = dict[int, bool]()

    def close(self) -> None:
        """Forget everything."""
        self.connection.close()

    def image(self) -> bytes:
        """Return the whole state as bytes, to be sealed."""
        return self.connection.serialize()

    @contextlib.contextmanager
    def transaction(self) -> Generator[None]:
        """Apply what is inside as one: faster, and all or nothing."""
        self.connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    # ── applying operations ─────────────────────────────────────────────────────────────────────────

    def remember(self, batch: Sequence[Stamped]) -> list[int]:
        """Apply new memories; returns the `n` of each whose vector counts now, 0 where another operation came first."""
        lowest = _lowest(batch)
        known = self._known([item.operation.id for item in batch])
        numbers: list[int] = []
        rows: list[tuple[Any, ...]] = []
        prints: list[int] = []
        first = self._next
        lost: list[tuple[Remember, Stamp]] = []
        tied: dict[bytes, int] = {}
        for item in batch:
            operation = item.operation
            if operation.id in self.erasures.ids:
                numbers.append(0)
                continue
            if lowest is not None and lowest[operation.id] is not item:
                numbers.append(0)
                lost.append((operation, item.stamp))
                continue
            if operation.id in known:
                numbers.append(self._take(item) if item.stamp < known[operation.id] else 0)
                if item.stamp == known[operation.id]:
                    tied[operation.id] = len(numbers) - 1
                elif not numbers[-1]:
                    lost.append((operation, item.stamp))
                continue
            fingerprint = _fingerprint(operation.draft) if operation.of is None else 0
            rows.append(_row(self._next, fingerprint, item))
            prints.append(fingerprint)
            numbers.append(self._next)
            self._next += 1
        self._insert(rows)
        new = [item.operation for item, number in zip(batch, numbers, strict=True) if number >= first]
        # By value: INSERT … SELECT costs the time of five rows before the first.
        self.connection.executemany(
            "INSERT INTO memories_text (rowid, content, author) VALUES (?, ?, ?)",
            [
                (first + offset, indexed(each.draft.content), indexed(each.draft.author or ""))
                for offset, each in enumerate(new)
            ],
        )
        self._add_tags(new)
        self._add_sources(new)
        self._unite(prints, first)
        self._follow(new)
        for operation in self.doubles.different([batch[place].operation for place in tied.values()]):
            place = tied[operation.id]
            if self.doubles.comes_first(operation):
                numbers[place] = self._take(batch[place])
            else:
                lost.append((operation, batch[place].stamp))
        bare = [batch[place] for place in tied.values() if batch[place].has_vector and not numbers[place]]
        held = self.stamps_of([item.operation.id for item in bare])
        for item in bare:
            # The same again, with the vector that it had: it may have come without.
            if held[item.operation.id] == (item.stamp, None) and self.doubles.holds(item.operation):
                number = self.number_with(item.operation.id) or 0
                self.note_vector(number, item.stamp)
                numbers[tied[item.operation.id]] = number
        if lost:
            self._taken += [each.id for each in self.doubles.note_lost(lost)]
        return numbers

    def _take(self, item: Stamped) -> int:
        """Let a memory count instead of the one with its id, which is kept if it says something else."""
        if self.doubles.note_held(item.operation):
            self._taken.append(item.operation.id)
        return self._lower(item)

    def take_taken(self) -> list[bytes]:
        """Return and forget the ids that came with other content than before: both are kept (§10)."""
        taken, self._taken = self._taken, []
        return taken

    def retract(self, operation: Retraction, stamp: Stamp) -> None:
        """Apply a `retract` or `restore`."""
        before = self.connection.execute(
            "SELECT target, stamp FROM retractions WHERE id = ?", (operation.id,)
        ).fetchone()
        earlier = True if before is None else None if before[1] == stamp else stamp < before[1]
        if not self.doubles.counts(b"retract" + operation.id, operation, earlier):
            return
        self.connection.execute(
            "INSERT OR REPLACE INTO retractions (id, target, stamp, retracted, at, reason) VALUES (?, ?, ?, ?, ?, ?)",
            (operation.id, operation.target, stamp, operation.retracted, operation.at, self._kept_reason(operation)),
        )
        for target in {operation.target} if before is None else {operation.target, before[0]}:
            self._refresh_target(target)

    def _kept_reason(self, operation: Retraction) -> str | None:
        # The row stays even so: of two operations with one id the lower counts, whatever became of its memory.
        return None if operation.target in self.erasures.ids else operation.reason

    def tag(self, operation: Tagging) -> None:
        """Apply added and removed tags."""
        if operation.target in self.erasures.ids:
            return
        added = [(operation.target, tag, operation.id) for tag in operation.add]
        removed = [(operation.target, tag, added_by) for tag, added_by in operation.remove]
        self.connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", added)
        self.connection.executemany("INSERT OR IGNORE INTO tags_removed VALUES (?, ?, ?)", removed)

    def apply_setting(self, operation: Setting, stamp: Stamp) -> None:
        """Apply a setting: the highest stamp counts; a proposal that was erased has no effect."""
        if operation.name.startswith(PROPOSAL) and proposed_id(operation.name) in self.erasures.ids:
            return
        before = self._one("SELECT stamp FROM settings WHERE name = ?", (operation.name,))
        later = True if before is None else None if before == stamp else stamp > before
        if self.doubles.counts(b"setting" + operation.name.encode(), operation, later):
            value = encode_value(ordered(operation.value))
            self.connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", (operation.name, value, stamp))

    def note_vector(self, number: int, stamp: Stamp) -> None:
        """Remember that a memory's vector in the index is the one of this stamp."""
        self.connection.execute("UPDATE memories SET vector = ? WHERE n = ?", (stamp, number))

    def place_vector(self, target: bytes, stamp: Stamp, code: bytes) -> int | None:
        """Return the `n` that gets this vector, or None: it is older, or for a memory yet to come (then kept)."""
        if target in self.erasures.ids:
            return None
        row = self.connection.execute("SELECT n, vector, stamp FROM memories WHERE id = ?", (target,)).fetchone()
        if row is None:
            self.connection.execute(
                "INSERT INTO early_vectors VALUES (?, ?, ?) ON CONFLICT (target) DO UPDATE"
                " SET stamp = excluded.stamp, code = excluded.code"
                " WHERE excluded.stamp > stamp OR excluded.stamp = stamp AND excluded.code < code",
                (target, stamp, code),
            )
            self._early.add(target)
            return None
        number, since, own = row
        # A memory's own vector gives way without a look at its stamp: who embeds has seen the memory, so only one that
        # came under its id with a higher stamp, and will not count, can seem to be newer.
        return number if since is None or since == own or stamp > since else None

    def take_early_vectors(self, ids: Iterable[bytes]) -> list[tuple[bytes, Stamp, bytes]]:
        """Return and forget the vectors that came before their memories: (id, stamp, code)."""
        taken = list[tuple[bytes, Stamp, bytes]]()
        for memory_id in ids:
            if memory_id in self._early:
                taken += self.connection.execute(
                    "DELETE FROM early_vectors WHERE target = ? RETURNING target, stamp, code", (memory_id,)
                ).fetchall()
        return taken

    def take_dropped_vectors(self) -> list[int]:
        """Return and forget the `n` whose vector in the index came with an operation that does not count any more."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def erase(self, operation: Erase, stamp: Stamp, covered: bool) -> bool:
        """Apply an `erase`; returns whether content went, so that `scrub` is due."""
        gone = [self._forget(memory_id) for memory_id in self.erasures.add(operation, stamp, covered)]
        return any(gone)

    def _forget(self, memory_id: bytes) -> bool:
        """Remove a memory and all that was said of it; returns whether it was there."""
        for table in ("tags", "tags_removed", "early_vectors"):
            self.connection.execute(f"DELETE FROM {table} WHERE target = ?", (memory_id,))  # noqa: S608 - our own text
        self.connection.execute("UPDATE retractions SET reason = NULL WHERE target = ?", (memory_id,))
        self.doubles.forget(memory_id)
        name = PROPOSAL + memory_id.hex()
        proposed = self.connection.execute("DELETE FROM settings WHERE name = ?", (name,)).rowcount
        row = self.connection.execute("SELECT n, of FROM memories WHERE id = ?", (memory_id,)).fetchone()
        if row is None:
            return proposed > 0
        number, of = row
        identity = self._identity(number)
        self._remove_row(number)
        self._dropped.append(number)
        self._unite_one(*identity)
        if of is not None:
            self._refresh_target(of)
        for (rival,) in self.connection.execute("SELECT n FROM memories WHERE of = ?", (memory_id,)).fetchall():
            self._refresh(rival)
        return True

    def family(self, number: int) -> set[bytes]:
        """Return the ids that an erase of a memory names: all that are the same, its ancestors, its descendants, and
        what was derived from any of these.
        """
        return self.with_derived(self._related(number, _PARENTS) | self._related(number, _CHILDREN))

    def with_derived(self, ids: set[bytes]) -> set[bytes]:
        """Return ids, and those of all that was derived from one of them, through any number of steps."""
        found, due = set(ids), list(ids)
        while due:
            query = "SELECT coalesce(m.same, m.n) FROM sources s JOIN memories m ON m.id = s.derived WHERE s.source = ?"
            for (derived,) in self.connection.execute(query, (due.pop(),)).fetchall():
                more = self._related(derived, _CHILDREN) - found
                found |= more
                due += more
        return found

    def _related(self, number: int, step: str) -> set[bytes]:
        found, due = set[bytes](), [number]
        while due:
            number = due.pop()
            ids = {row[0] for row in self.connection.execute(_GROUP, (number, number))} - found
            found |= ids
            for memory_id in ids:
                due += [row[0] for row in self.connection.execute(step, (memory_id,))]
        return found

    def scrub(self) -> None:
        """Leave nothing of erased memories in the database's bytes: index segments and free pages keep deleted text."""
        self.connection.execute("INSERT INTO memories_text (memories_text) VALUES ('optimize')")
        self.connection.execute("VACUUM")

    # ── asking ──────────────────────────────────────────────────────────────────────────────────────

    def count(self, where: str = "same IS NULL", values: Sequence[Any] = ()) -> int:
        """Return how many memories there are that a condition holds for."""
        return int(self._one(f"SELECT count(*) FROM memories m WHERE {where}", values) or 0)  # noqa: S608 - our own text

    def mask(self, where: str, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Return for each `n` whether a condition over `memories m` holds."""
        # As one text: a row for each number would take five times as long.
        joined = self._one(f"SELECT group_concat(m.n) FROM memories m WHERE {where}", values)  # noqa: S608 - our own text
        mask = np.zeros(self._next, np.bool_)
        mask[np.fromstring(joined or "", np.int64, sep=",")] = True
        return mask

    def is_episodic(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each `n` whether its memory tells of one time; the rules run once for each that is asked for."""
        unknown = [number for number in numbers.tolist() if number not in self._episodic]
        for some in _chunks(unknown):
            query = f"SELECT n, coalesce(type, type_of(content)) FROM memories WHERE n IN ({','.join('?' * len(some))})"  # noqa: S608
            self._episodic.update((n, kind == "episodic") for n, kind in self.connection.execute(query, some))
        return np.array([self._episodic.get(number, False) for number in numbers.tolist()], np.bool_)

    def setting(self, name: str) -> Any:
        """Return a setting's value, or None."""
        value = self._one("SELECT value FROM settings WHERE name = ?", (name,))
        return None if value is None else decode_value(value)

    def settings_named(self, beginning: str) -> list[tuple[str, Any]]:
        """Return (name, value) of all settings whose names begin so, in the order of their names."""
        query = "SELECT name, value FROM settings WHERE name >= ? AND name < ? ORDER BY name"
        rows = self.connection.execute(query, (beginning, beginning + "\U0010ffff"))
        return [(name, decode_value(value)) for name, value in rows]

    def setting_stamp(self, name: str) -> Stamp | None:
        """Return the stamp of the setting that counts under a name, or None."""
        stamp: Stamp | None = self._one("SELECT stamp FROM settings WHERE name = ?", (name,))
        return stamp

    def number_of(self, memory_id: bytes) -> int | None:
        """Return the `n` that an id leads to: its own, or that of the memory it is the same as."""
        number: int | None = self._one("SELECT coalesce(same, n) FROM memories WHERE id = ?", (memory_id,))
        return number

    def ids_of(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the ids of memories by `n`."""
        found: dict[int, bytes] = {}
        for some in _chunks(numbers):
            marks = ",".join("?" * len(some))
            found.update(self.connection.execute(f"SELECT n, id FROM memories WHERE n IN ({marks})", some))  # noqa: S608
        return found

    def number_with(self, memory_id: bytes) -> int | None:
        """Return the `n` of the memory with this id itself."""
        number: int | None = self._one("SELECT n FROM memories WHERE id = ?", (memory_id,))
        return number

    def stamps_of(self, ids: Sequence[bytes]) -> dict[bytes, tuple[Stamp, Stamp | None]]:
        """Return of each memory that is there its stamp, and that of its vector in the index."""
        known: dict[bytes, tuple[Stamp, Stamp | None]] = {}
        for some in _chunks(ids):
            marks = ",".join("?" * len(some))
            rows = self.connection.execute(f"SELECT id, stamp, vector FROM memories WHERE id IN ({marks})", some)  # noqa: S608
            known.update((memory_id, (stamp, vector)) for memory_id, stamp, vector in rows)
        return known

    def vector_stamp(self, memory_id: bytes) -> Stamp | None:
        """Return the stamp of a memory's vector in the index; None where it has none, or the memory is not here."""
        stamp: Stamp | None = self._one("SELECT vector FROM memories WHERE id = ?", (memory_id,))
        return stamp

    def without_vector(self, limit: int) -> list[tuple[bytes, str, str | None]]:
        """Return (id, content, author) of memories that have no vector in the index."""
        return self.connection.execute(
            "SELECT id, content, author FROM memories WHERE vector IS NULL AND same IS NULL ORDER BY n LIMIT ?",
            (limit,),
        ).fetchall()

    def same_as(self, drafts: Sequence[Draft]) -> list[bytes | None]:
        """Return for each draft the id of the memory that it would be the same as."""
        prints = [_fingerprint(each) for each in drafts]
        known = set[int]()
        for some in _chunks(prints):
            query = f"SELECT fingerprint FROM memories WHERE fingerprint IN ({','.join('?' * len(some))})"  # noqa: S608
            known.update(row[0] for row in self.connection.execute(query, some))
        if not known:
            return [None] * len(drafts)
        return [
            self._same_id(fingerprint, each) if fingerprint in known else None
            for fingerprint, each in zip(prints, drafts, strict=True)
        ]

    def _same_id(self, fingerprint: int, draft: Draft) -> bytes | None:
        numbers = self._same_numbers(fingerprint, draft)
        memory_id: bytes | None = self._one("SELECT id FROM memories WHERE n = ?", numbers[:1]) if numbers else None
        return memory_id

    def has_origin(self, origin: str) -> bool:
        """Return whether a memory was imported from there."""
        return self._one("SELECT 1 FROM memories WHERE origin = ?", (origin,)) is not None

    def memories(self, numbers: Sequence[int]) -> list[Memory]:
        """Return memories by `n`, in the order given."""
        found = dict(self._select(numbers))
        return [found[number] for number in numbers if number in found]

    def tags_of(self, memory_n: int) -> list[tuple[str, bytes, bytes]]:
        """Return the tags on a memory as (tag, target, added_by), removed ones left out."""
        return self.connection.execute(
            f"SELECT tag, target, added_by FROM tags t WHERE target IN ({_GROUP}) AND NOT EXISTS ("  # noqa: S608
            " SELECT 1 FROM tags_removed r WHERE (r.target, r.tag, r.added_by) = (t.target, t.tag, t.added_by))"
            " ORDER BY tag",
            (memory_n, memory_n),
        ).fetchall()

    def conflicts(self) -> list[tuple[int, list[int]]]:
        """Return (superseded `n`, the `n` of all that supersede it, current first) where there are several."""
        rows = self.connection.execute(
            "SELECT coalesce(t.same, t.n) AS target, s.n FROM memories s JOIN memories t ON t.id = s.of"
            " ORDER BY target, s.stamp DESC"
        )
        groups: dict[int, list[int]] = {}
        for target, number in rows:
            groups.setdefault(target, []).append(number)
        return [(target, rivals) for target, rivals in groups.items() if len(rivals) > 1]

    def digest(self) -> bytes:
        """Return a hash that is equal for equal states, whatever the order of arrival."""
        digest = hashlib.sha256()
        queries = (
            WHOLE,
            "SELECT * FROM retractions WHERE target NOT IN (SELECT target FROM erased) ORDER BY id",
            "SELECT * FROM tags ORDER BY target, tag, added_by",
            "SELECT * FROM tags_removed ORDER BY target, tag, added_by",
            "SELECT * FROM settings ORDER BY name",
            "SELECT * FROM early_vectors ORDER BY target",
            "SELECT id, stamp, at, reason FROM erasures ORDER BY id",
            "SELECT * FROM erased ORDER BY target, erasure",
            "SELECT * FROM dismissed ORDER BY stream, record",
        )
        for query in queries:
            for row in self.connection.execute(query):
                digest.update(encode_value(list(row)))
        return digest.digest()

    # ── what follows from what ──────────────────────────────────────────────────────────────────────

    def _known(self, ids: Sequence[bytes]) -> dict[bytes, Stamp]:
        known: dict[bytes, Stamp] = {}
        for some in _chunks(ids):
            marks = ",".join("?" * len(some))
            query = f"SELECT id, stamp FROM memories WHERE id IN ({marks})"  # noqa: S608 - our own text
            known.update(self.connection.execute(query, [*map(bytearray, some)]))  # see `_insert`
        return known

    def _lower(self, item: Stamped) -> int:
        """Take an operation for one with the same id and a higher stamp; returns `n` if its vector counts now."""
        memory_id, of = item.operation.id, item.operation.of
        number, stamp, of_before, vector = self.connection.execute(
            "SELECT n, stamp, of, vector FROM memories WHERE id = ?", (memory_id,)
        ).fetchone()
        before = self._identity(number)
        self._replace(number, item)
        embedded = vector is not None and vector != stamp
        if vector is not None and embedded:
            self.note_vector(number, vector)
        elif vector is not None and not item.has_vector:
            self._dropped.append(number)
        self._unite_one(*before)
        self._unite_one(*self._identity(number))
        for target in {memory_id, of or memory_id, of_before or memory_id}:
            self._refresh_target(target)
        return 0 if embedded else number

    def _replace(self, number: int, item: Stamped) -> None:
        """Put another operation's fields, text and tags in the place of a memory's."""
        self._remove_row(number)
        self.connection.execute("DELETE FROM tags WHERE target = ? AND added_by = ?", (item.operation.id,) * 2)
        fingerprint = _fingerprint(item.operation.draft) if item.operation.of is None else 0
        self._insert([_row(number, fingerprint, item)])
        self.connection.execute(f"INSERT INTO memories_text (rowid, content, author) {_TEXT}", (number,))
        self._add_tags([item.operation])
        self._add_sources([item.operation])

    def _remove_row(self, number: int) -> None:
        """Remove a memory's row and its words."""
        self._episodic.pop(number, None)
        self.connection.execute(
            f"INSERT INTO memories_text (memories_text, rowid, content, author) SELECT 'delete', * FROM ({_TEXT})",  # noqa: S608
            (number,),
        )
        self.connection.execute("DELETE FROM sources WHERE derived = (SELECT id FROM memories WHERE n = ?)", (number,))
        self.connection.execute("DELETE FROM memories WHERE n = ?", (number,))

    def _insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert memories, each with the columns that it has a value for.

        sqlite3 looks for an adapter of each None and each bytes, in vain, which takes as long as all else that it does
        with a row; of a bytearray it knows that there is none.
        """
        alike = dict[tuple[bool, ...], list[list[Any]]]()
        for row in rows:
            absent = tuple([value is None for value in row])
            alike.setdefault(absent, []).append([value for value in row if value is not None])
        for absent, values in alike.items():
            self.connection.executemany(insert_of(absent), values)

    def _add_tags(self, operations: Iterable[Remember]) -> None:
        rows = [(operation.id, tag, operation.id) for operation in operations for tag in operation.draft.tags]
        self.connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", rows)

    def _add_sources(self, operations: Iterable[Remember]) -> None:
        derived = [each for each in operations if each.draft.others]
        rows = [(source, each.id) for each in derived for source in sources_of(each.draft.others)]
        if rows:
            self.connection.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?)", rows)

    def _unite(self, prints: Sequence[int], first: int) -> None:
        """Find among new memories those that are the same as another."""
        doubles: set[int] = set()
        for some in _chunks([value for value in prints if value]):
            marks = ",".join("?" * len(some))
            query = f"SELECT fingerprint FROM memories WHERE fingerprint IN ({marks}) GROUP BY 1 HAVING count(*) > 1"  # noqa: S608
            doubles.update(row[0] for row in self.connection.execute(query, some))
        united = set[tuple[Any, ...]]()
        for offset, fingerprint in enumerate(prints):
            if fingerprint in doubles:
                what = self._identity(first + offset)[1]
                key = (what.content, what.kind, what.author, what.thread, what.captured_at)
                if key not in united:
                    united.add(key)
                    self._unite_one(fingerprint, what)

    def _identity(self, number: int) -> tuple[int, Draft]:
        """Return a memory's fingerprint (0 for one that supersedes another) and what makes it the same as others."""
        row = self.connection.execute(
            "SELECT fingerprint, content, kind, author, thread, captured_at FROM memories WHERE n = ?", (number,)
        ).fetchone()
        return row[0], Draft(row[1], "", row[2], author=row[3], thread=row[4], captured_at=row[5])

    def _unite_one(self, fingerprint: int, what: Draft) -> None:
        """Let all memories that are the same lead to the one with the lowest stamp."""
        numbers = self._same_numbers(fingerprint, what) if fingerprint else []
        for other in numbers:
            same = None if other == numbers[0] else numbers[0]
            self.connection.execute(
                "UPDATE memories SET same = ?, state = 0, superseded_by = NULL WHERE n = ?", (same, other)
            )
        if numbers:
            self._refresh(numbers[0])

    def _same_numbers(self, fingerprint: int, draft: Draft) -> list[int]:
        """Return the `n` of all memories that are the same as a draft, the one with the lowest stamp first."""
        rows = self.connection.execute(
            "SELECT n FROM memories WHERE fingerprint = ? AND of IS NULL AND content = ? AND kind = ? AND author IS ?"
            " AND thread IS ? AND captured_at IS ? ORDER BY stamp",
            (fingerprint, draft.content, draft.kind, draft.author, draft.thread, draft.captured_at),
        )
        return [row[0] for row in rows]

    def _follow(self, new: Sequence[Remember]) -> None:
        """Refresh what new memories supersede, and new memories that operations named before they came."""
        targets = {operation.of for operation in new if operation.of is not None}
        targets.update(operation.id for operation in new if operation.id in self._early)
        for target in targets:
            self._refresh_target(target)

    def _refresh_target(self, target: bytes) -> None:
        number = self.number_of(target)
        if number is None:
            self._early.add(target)
        else:
            self._refresh(number)

    def _refresh(self, number: int) -> None:
        """Compute state and successor of a memory, and of all that supersede it, anew."""
        rivals = self._rivals(number)
        self._set_state(number, rivals[0] if rivals else self._lost_to(number))
        for each in rivals:
            lost_to = None if each == rivals[0] else rivals[0]
            self._set_state(each, next(iter(self._rivals(each)), lost_to))

    def _set_state(self, number: int, successor: int | None) -> None:
        retracted = self._one(
            f"SELECT retracted FROM retractions WHERE target IN ({_GROUP}) ORDER BY stamp DESC LIMIT 1",  # noqa: S608
            (number, number),
        )
        state = (State.SUPERSEDED if successor else 0) | (State.RETRACTED if retracted else 0)
        self.connection.execute(
            "UPDATE memories SET state = ?, superseded_by = ? WHERE n = ?", (state, successor, number)
        )

    def _rivals(self, number: int) -> list[int]:
        """Return the `n` of all memories that supersede this one, the current one first."""
        query = f"SELECT n FROM memories WHERE of IN ({_GROUP}) ORDER BY stamp DESC"  # noqa: S608
        return [row[0] for row in self.connection.execute(query, (number, number))]

    def _lost_to(self, number: int) -> int | None:
        """Return the memory that won the conflict which this one lost, or None."""
        target = self._one(
            "SELECT coalesce(t.same, t.n) FROM memories m JOIN memories t ON t.id = m.of WHERE m.n = ?", (number,)
        )
        winner = None if target is None else self._rivals(target)[0]
        return None if winner == number else winner

    def _early_targets(self) -> set[bytes]:
        rows = self.connection.execute(
            "SELECT target FROM retractions UNION SELECT of FROM memories WHERE of IS NOT NULL"
            " UNION SELECT target FROM early_vectors"
        ).fetchall()
        return {row[0] for row in rows if self.number_of(row[0]) is None}

    def _select(self, numbers: Sequence[int]) -> Iterator[tuple[int, Memory]]:
        for some in _chunks(numbers):
            query = f"{MEMORY} WHERE m.n IN ({','.join('?' * len(some))})"
            for row in self.connection.execute(query, some).fetchall():
                yield row[12], self._memory(row)

    def _memory(self, row: tuple[Any, ...]) -> Memory:
        number, state = row[12], State(row[10])
        return Memory(
            id=row[0].hex(),
            content=row[1],
            kind=row[2],
            source=row[3],
            written_at=from_microseconds(row[4]),
            captured_at=None if row[5] is None else from_microseconds(row[5]),
            tags=tuple(dict.fromkeys(tag for tag, _, _ in self.tags_of(number))),
            author=row[6],
            thread=row[7],
            position=row[8],
            origin=row[9],
            state=state,
            reason=self._reason(number, state),
            supersedes=None if row[11] is None else row[11].hex(),
            superseded_by=None if row[13] is None else row[13].hex(),
            traits=PLAIN if row[14] is None else read_traits(decode_value(row[14])),
        )

    def _reason(self, number: int, state: State) -> str | None:
        """Return why a memory is not active: of the retraction, else of what superseded it."""
        reason: str | None = None
        if state & State.RETRACTED:
            query = f"SELECT reason FROM retractions WHERE target IN ({_GROUP}) ORDER BY stamp DESC LIMIT 1"  # noqa: S608
            reason = self._one(query, (number, number))
        elif state & State.SUPERSEDED:
            query = "SELECT reason FROM memories WHERE n = (SELECT superseded_by FROM memories WHERE n = ?)"
            reason = self._one(query, (number,))
        return reason

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """Return the first value of the first row, or None; its type is the column's."""
        row = self.connection.execute(query, values).fetchone()
        return None if row is None else row[0]


def _fingerprint(draft: Draft) -> int:
    """Return 64 bits over what makes two memories the same, never 0; those with equal bits are compared in full."""
    rest = "\0".join((draft.kind, draft.author or "", draft.thread or "", str(draft.captured_at)))
    high = zlib.crc32(draft.content.encode("utf-8", "surrogatepass"))
    return ((high << 32 | zlib.crc32(rest.encode("utf-8", "surrogatepass"))) or 1) - (1 << 63)


def _lowest(batch: Sequence[Stamped]) -> dict[bytes, Stamped] | None:
    """Return of each id the operation with the lowest stamp; None where no id comes twice."""
    if len({item.operation.id for item in batch}) == len(batch):
        return None
    lowest: dict[bytes, Stamped] = {}
    for item in batch:
        before = lowest.setdefault(item.operation.id, item)
        tie = item.stamp == before.stamp and order(item.operation) < order(before.operation)
        if tie or item.stamp < before.stamp:
            lowest[item.operation.id] = item
    return lowest


def _row(number: int, fingerprint: int, item: Stamped) -> tuple[Any, ...]:
    """Return the values of a memory for `COLUMNS`."""
    memory_id, draft, written_at, _, of, reason = item.operation
    content, source, kind, _, author, thread, position, captured_at, origin, others = draft
    stamp = bytearray(item.stamp)
    return (
        *(number, bytearray(memory_id), stamp, fingerprint, content, kind, source, written_at),
        *(author, thread, position, captured_at, origin, of, reason),
        encode_value(others) if others else None,
        stamp if item.has_vector else None,
        *((others.get("type"), tier_of(others), seen_of(others)) if others else (None, None, None)),
    )


def _chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _QUERY_LIMIT):
        yield values[start : start + _QUERY_LIMIT]
