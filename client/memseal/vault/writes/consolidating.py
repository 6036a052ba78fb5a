"""Make memories of many memories: plan it, put it into words, write it, undo it (memory-model §4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memseal.consolidation.atoms import Atom, Group, Made, Vectors
from memseal.consolidation.planning import plan
from memseal.consolidation.terms import statements_of, terms_of
from memseal.consolidation.weeks import week_of
from memseal.consolidation.wording import MAX_ANSWER, by_template
from memseal.errors import MemoryInvalid
from memseal.format.values import decode_value
from memseal.index.filters import STALE, STATES
from memseal.index.view import View
from memseal.memory.memory import Draft, State, draft, from_microseconds
from memseal.memory.operations import Operation, Remember, Retraction, Setting
from memseal.memory.traits import Derivation, read_traits
from memseal.vault.folder.batch import Batch
from memseal.vault.writes.masking import covered
from memseal.vault.writes.writing import new_id

SOURCE: Final = "memseal:consolidation"
"""The source of every memory that the job makes."""
WEEK: Final = "consolidated"
"""The setting that names the week of the newest run, so that all devices together make one a week where it is due."""
_KIND: Final = "note"
_GROWN: Final = "the pattern was seen more often since"
_UNDONE: Final = "the consolidation was undone"
_NO_VECTORS: Final = np.full((1, 1), np.nan, np.float32)

# Where several speak in a thread, it is a conversation.
_ATOMS: Final = f"""
WITH conversations AS (
    SELECT thread FROM memories WHERE thread IS NOT NULL GROUP BY thread HAVING count(DISTINCT author) > 1
)
SELECT m.n, m.id, m.content, coalesce(m.type, type_of(m.content)), m.author, coalesce(m.captured_at, m.written_at),
    m.thread IN (SELECT thread FROM conversations)
FROM memories m WHERE m.same IS NULL AND m.tier IS NULL AND {STATES["active"]} ORDER BY m.n
"""  # noqa: S608 - our own text
_DERIVED: Final = f"""
SELECT m.id, m.others, m.state, {STALE} FROM memories m WHERE m.tier IS NOT NULL AND m.same IS NULL ORDER BY m.stamp
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class Planned:
    """A memory that a run would make, or made: of how many others (`seen`), which (`derived_from`, ids), and its text.

    `replaces` is the id of the earlier version of a pattern that has grown. `id` is None in a plan.
    """

    rule: str
    key: str = field(repr=False)
    tier: str
    type: str
    seen: int
    since: datetime
    until: datetime
    derived_from: tuple[str, ...] = field(repr=False)
    replaces: str | None
    content: str = field(repr=False)
    id: str | None = None


@dataclass(frozen=True)
class Consolidation:
    """One run: its id (32 hex digits; None where it made nothing), and what it made."""

    run: str | None
    made: tuple[Planned, ...]


def groups_of(view: View, now: int) -> list[Group]:
    """Return what a run would make of the memories as they are; `now` in µs since 1970 UTC."""
    rows = view.state.connection.execute(_ATOMS).fetchall()
    atoms = [
        Atom(
            number,
            memory_id,
            content,
            memory_type,
            author,
            at,
            terms_of(content),
            statements_of(content, spoken=bool(spoken)),
        )
        for number, memory_id, content, memory_type, author, at, spoken in rows
    ]
    return plan(atoms, made_before(view), now, vectors_of(view))


def is_due(view: View, now: int) -> bool:
    """Return whether no device, as far as is known here, has made a run in this week; `now` in µs since 1970 UTC."""
    newest: object = view.state.setting(WEEK)
    return newest != week_of(now)


def noted(view: View, now: int) -> list[Batch]:
    """Return what notes that a run was made in this week, if that is not known."""
    return [Batch([Setting(new_id(), WEEK, week_of(now), now)])] if is_due(view, now) else []


def made_before(view: View) -> list[Made]:
    """Return what earlier runs made, on any device, the earliest first."""
    made = list[Made]()
    for memory_id, others, state, stale in view.state.connection.execute(_DERIVED).fetchall():
        traits = read_traits(decode_value(others))
        if (how := traits.derivation) is not None:
            sources = frozenset(map(bytes.fromhex, traits.derived_from))
            holds = bool(state & State.RETRACTED) or not stale
            current = state == State.ACTIVE and not stale
            made.append(Made(memory_id, how.rule, how.key, sources, how.count, holds, current))
    return made


def vectors_of(view: View) -> Vectors:
    """Return how to get the vectors of memories."""
    index = view.vectors
    if index is None or not len(index):
        return lambda numbers: np.repeat(_NO_VECTORS, numbers.size, axis=0)

    def vectors(numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        return index.vectors(numbers)

    return vectors


def worded(view: View, group: Group) -> str:
    """Return the text of a group by template."""
    return covered(by_template(group, vectors_of(view)))


def checked_answer(answer: Any) -> str:
    """Return what a caller's function wrote, where it can be a memory; raises `TypeError` or `MemoryInvalid`."""
    if not isinstance(answer, str):
        raise TypeError(f"wording returns a text, not {type(answer).__name__}")
    text = answer.strip()
    if not text or len(text) > MAX_ANSWER:
        raise MemoryInvalid(f"wording returned no text, or more than {MAX_ANSWER} characters")
    return covered(text)


def planned(group: Group, content: str) -> Planned:
    """Return a group as apps see it."""
    return Planned(
        rule=group.rule,
        key=group.key,
        tier=group.tier,
        type=group.type,
        seen=group.seen,
        since=from_microseconds(group.members[0].at),
        until=from_microseconds(group.members[-1].at),
        derived_from=tuple(member.id.hex() for member in group.members),
        replaces=None if group.replaces is None else group.replaces.hex(),
        content=content,
    )


def operations_of(view: View, wanted: Sequence[Planned], run: bytes, now: int) -> tuple[list[Remember], list[Planned]]:
    """Return the operations that write what was planned, and what they make."""
    drafts = [_draft(view, each, run) for each in wanted]
    operations, made = list[Remember](), list[Planned]()
    for each, what, same in zip(wanted, drafts, view.state.same_as(drafts), strict=True):
        of = None if each.replaces is None else bytes.fromhex(each.replaces)
        if of is None and same is not None:
            continue  # another device made the very same
        operation = Remember(new_id(), what, now, of=of, reason=None if of is None else _GROWN)
        operations.append(operation)
        made.append(replace(each, id=operation.id.hex()))
    return operations, made


def _draft(view: View, each: Planned, run: bytes) -> Draft:
    numbers = [number for each_id in each.derived_from if (number := view.state.number_of(bytes.fromhex(each_id)))]
    authors = {memory.author for memory in view.state.memories(numbers)}
    return draft(
        each.content,
        source=SOURCE,
        kind=_KIND,
        author=authors.pop() if len(authors) == 1 else None,
        captured_at=each.until,
        type=each.type,
        tier=each.tier,
        derived_from=each.derived_from,
        derivation=Derivation(each.rule, each.key, run.hex(), each.seen),
    )


def undo_of(view: View, run: str, now: int) -> tuple[list[Operation], int]:
    """Return the operations that take back what a run made, and how many memories that is.

    Where one replaced the version before, that one's text is written again after it: a retraction alone would leave
    the pattern without any.
    """
    operations, count = list[Operation](), 0
    for memory_id, others, state, _ in view.state.connection.execute(_DERIVED).fetchall():
        how = read_traits(decode_value(others)).derivation
        if how is None or how.run != run or state & State.RETRACTED:
            continue
        count += 1
        operations.append(Retraction(new_id(), memory_id, True, now, _UNDONE))
        if state == State.ACTIVE and (before := _before(view, memory_id)) is not None:
            operations.append(Remember(new_id(), before, now, of=memory_id, reason=_UNDONE))
    return operations, count


def _before(view: View, memory_id: bytes) -> Draft | None:
    """Return the fields of the version that a memory replaced."""
    row = view.state.connection.execute(
        "SELECT b.content, b.source, b.kind, b.author, b.thread, b.position, b.captured_at, b.origin, b.others"
        " FROM memories m JOIN memories b ON b.id = m.of WHERE m.id = ?",
        (memory_id,),
    ).fetchone()
    if row is None:
        return None
    content, source, kind, author, thread, position, captured_at, origin, others = row
    return Draft(content, source, kind, (), author, thread, position, captured_at, origin, decode_value(others))
