"""What a state must be (vault-format §10), in dicts and sets: everything is worked out anew from all operations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memseal.memory.doubles import double_id, order, print_of
from memseal.memory.memory import State
from memseal.memory.operations import Embed, Erase, Operation, Remember, Retraction, Setting, Stamp, Tagging

Stamped = tuple[Operation, Stamp]
Kind = TypeVar("Kind", Remember, Retraction, Tagging, Embed, Setting, Erase)


@dataclass(frozen=True)
class Told:
    """What a state says of one memory."""

    content: str
    tags: tuple[str, ...]
    state: State
    reason: str | None
    supersedes: bytes | None
    superseded_by: bytes | None
    vector: Stamp | None


@dataclass
class Reference:
    """All operations that were applied; the order and number of times do not matter."""

    operations: list[Stamped] = field(default_factory=list[Stamped])

    def apply(self, operations: Iterable[Stamped]) -> None:
        self.operations += operations

    # ── what is there ───────────────────────────────────────────────────────────────────────────────

    def memories(self) -> dict[bytes, tuple[Remember, Stamp]]:
        """Of those with one id the one with the lowest stamp counts, then print, tags and time; nothing erased does."""
        erased = {target for operation, _ in self._all(Erase) for target in operation.targets}
        return {memory_id: row for memory_id, row in self._first(Remember).items() if memory_id not in erased}

    def same(self, memory_id: bytes) -> set[bytes]:
        """The ids of all memories that are the same as one, itself included."""
        memories = self.memories()
        what = _identity(memories[memory_id][0])
        if what is None:
            return {memory_id}
        return {other for other, (operation, _) in memories.items() if _identity(operation) == what}

    def leads_to(self, memory_id: bytes) -> bytes:
        """The id of same memories is the one with the lowest stamp."""
        memories = self.memories()
        return min(self.same(memory_id), key=lambda other: memories[other][1])

    # ── what was said of it ─────────────────────────────────────────────────────────────────────────

    def told(self, memory_id: bytes) -> Told:
        operation = self.memories()[memory_id][0]
        retraction, successor = self.retraction(memory_id), self.superseded_by(memory_id)
        retracted = retraction is not None and retraction.retracted
        state = (State.RETRACTED if retracted else 0) | (State.SUPERSEDED if successor else 0)
        reason = None
        if retracted and retraction is not None:
            reason = retraction.reason
        elif successor is not None:
            reason = self.memories()[successor][0].reason
        return Told(
            content=operation.draft.content,
            tags=tuple(sorted({tag for tag, _, _ in self.tags(memory_id)})),
            state=State(state),
            reason=reason,
            supersedes=operation.of,
            superseded_by=successor,
            vector=self.vector(memory_id),
        )

    def retraction(self, memory_id: bytes) -> Retraction | None:
        """Of the operations that retract or restore a memory, the one with the highest stamp counts."""
        same = self.same(memory_id)
        said = [row for row in self._first(Retraction).values() if row[0].target in same]
        return max(said, key=_stamp)[0] if said else None

    def rivals(self, memory_id: bytes) -> list[bytes]:
        """All memories that supersede a memory, the current one first."""
        same = self.same(memory_id)
        named = [(stamp, other) for other, (operation, stamp) in self.memories().items() if operation.of in same]
        return [other for _, other in sorted(named, reverse=True)]

    def superseded_by(self, memory_id: bytes) -> bytes | None:
        """What superseded a memory, or won the conflict that it lost."""
        rivals = self.rivals(memory_id)
        if rivals:
            return rivals[0]
        target = self.memories()[memory_id][0].of
        if target is None or target not in self.memories():
            return None
        winner = self.rivals(target)[0]
        return None if winner == memory_id else winner

    def conflicts(self) -> set[tuple[bytes, ...]]:
        groups = {tuple(self.rivals(memory_id)) for memory_id in self.memories()}
        return {rivals for rivals in groups if len(rivals) > 1}

    def tags(self, memory_id: bytes) -> set[tuple[str, bytes, bytes]]:
        """A tag is there while one operation that added it was not named by a removal."""
        added = {
            (tag, other, other) for other, (operation, _) in self.memories().items() for tag in operation.draft.tags
        }
        removed = set[tuple[str, bytes, bytes]]()
        for operation, _ in self._all(Tagging):
            added |= {(tag, operation.target, operation.id) for tag in operation.add}
            removed |= {(tag, operation.target, added_by) for tag, added_by in operation.remove}
        same = self.same(memory_id)
        return {row for row in added - removed if row[1] in same}

    def vector(self, memory_id: bytes) -> Stamp | None:
        """The stamp of the vector with the highest one."""
        counted = self.memories()[memory_id]
        stamps = [stamp for embed, stamp in self._all(Embed) if embed.target == memory_id]
        rows = [
            operation.row
            for operation, stamp in self._all(Remember)
            if (operation._replace(row=None), stamp) == (counted[0]._replace(row=None), counted[1])
        ]
        return max([*stamps, *([counted[1]] if rows.count(None) < len(rows) else [])], default=None)

    def setting(self, name: str) -> Any:
        said = [row for row in self._all(Setting) if row[0].name == name]
        return min(said, key=lambda row: (_inverse(row[1]), print_of(row[0])))[0].value if said else None

    # ── operations of one kind ──────────────────────────────────────────────────────────────────────

    def _all(self, kind: type[Kind]) -> list[tuple[Kind, Stamp]]:
        return [(operation, stamp) for operation, stamp in self.operations if isinstance(operation, kind)]

    def _first(self, kind: type[Kind]) -> dict[bytes, tuple[Kind, Stamp]]:
        first: dict[bytes, tuple[Kind, Stamp]] = {}
        for operation, stamp in sorted(self._all(kind), key=_order):
            first.setdefault(operation.id, (operation, stamp))
        return first

    def doubles(self) -> set[tuple[bytes, Stamp]]:
        """The ids that contents get which do not count under theirs, and their lowest stamps."""
        lost = dict[bytes, Stamp]()
        memories = self.memories()
        for operation, stamp in self._all(Remember):
            if operation.id in memories and print_of(operation) != print_of(memories[operation.id][0]):
                again = double_id(operation)
                lost[again] = min(stamp, lost.get(again, stamp))
        return set(lost.items())


_stamp: Callable[[tuple[Any, Stamp]], Stamp] = lambda row: row[1]  # noqa: E731 - a key, used by name


def _order(row: tuple[Any, Stamp]) -> tuple[Any, ...]:
    operation, stamp = row
    return (stamp, *(order(operation) if isinstance(operation, Remember) else (print_of(operation),)))


def _inverse(stamp: Stamp) -> bytes:
    return bytes(255 - each for each in stamp)


def _identity(operation: Remember) -> tuple[Any, ...] | None:
    what = operation.draft
    return None if operation.of else (what.content, what.kind, what.author, what.thread, what.captured_at)
