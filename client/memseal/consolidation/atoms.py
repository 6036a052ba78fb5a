"""The memories that are consolidated, what earlier runs made of them, and what is to be made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memseal.memory.significance import DAY_MICROSECONDS

# A group of more is cut into several: a summary of a hundred memories says nothing of any.
MAX_GROUP: Final = 64

Vectors: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Returns the unit vectors of memories by their numbers, shape (n, d); NaN for one that has none."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One active memory: number and id, text, type, author, when it happened (µs since 1970 UTC), telling words.

    `statements` are the telling words of each sentence that says something of the author.
    """

    number: int
    id: bytes
    content: str = field(repr=False)
    type: str
    author: str | None = field(repr=False)
    at: int
    terms: frozenset[str] = field(repr=False)
    statements: tuple[frozenset[str], ...] = field(repr=False)

    @property
    def day(self) -> int:
        """Days since 1970, in UTC."""
        return self.at // DAY_MICROSECONDS


@dataclass(frozen=True, slots=True)
class Made:
    """What an earlier run made: whether it `holds` (undone counts, what is out of date does not), and is `current`."""

    id: bytes
    rule: str
    key: str = field(repr=False)
    sources: frozenset[bytes]
    seen: int
    holds: bool
    current: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Memories of which one is to be made, in the order of their times.

    `seen` is how many there are (of a pattern more than `members` may be), `replaces` the earlier version.
    """

    rule: str
    key: str = field(repr=False)
    tier: str
    type: str
    members: tuple[Atom, ...]
    seen: int
    topic: tuple[str, ...] = field(default=(), repr=False)
    replaces: bytes | None = None


def covered(made: Sequence[Made], rule: str) -> frozenset[bytes]:
    """Return the ids of the memories that a rule has used up."""
    return frozenset[bytes]().union(*(each.sources for each in made if each.rule == rule and each.holds))


def in_order(atoms: Sequence[Atom]) -> list[Atom]:
    """Return atoms by their times, then by their ids: the same on every device."""
    return sorted(atoms, key=lambda atom: (atom.at, atom.id))


def cut(members: Sequence[Atom]) -> list[tuple[Atom, ...]]:
    """Return members in parts of at most `MAX_GROUP`, about equally large."""
    parts = -(-len(members) // MAX_GROUP)
    bounds = [len(members) * part // parts for part in range(parts + 1)]
    return [tuple(members[start:end]) for start, end in pairwise(bounds)]


def by_type(atoms: Sequence[Atom]) -> Mapping[str, list[Atom]]:
    """Return the atoms of each type."""
    groups: dict[str, list[Atom]] = {}
    for atom in atoms:
        groups.setdefault(atom.type, []).append(atom)
    return groups


def togetherness(members: Sequence[Atom], vectors: Vectors) -> float | None:
    """Return the mean cosine of two different members; None where fewer than two have vectors.

    That to their mean, which `likeness` gives, is the higher the fewer there are.
    """
    matrix = vectors(np.array([member.number for member in members], np.int64))
    known = matrix[~np.isnan(matrix).any(axis=1)]
    count = len(known)
    if count < 2:
        return None
    total = known.sum(axis=0, dtype=np.float64)
    return float((total @ total - count) / (count * (count - 1)))


def likeness(members: Sequence[Atom], vectors: Vectors) -> NDArray[np.float32]:
    """Return each member's cosine to the mean of all, shape (n,); NaN for one without a vector."""
    matrix = vectors(np.array([member.number for member in members], np.int64))
    known = ~np.isnan(matrix).any(axis=1)
    cosines = np.full(len(members), np.nan, np.float32)
    if known.any():
        mean = matrix[known].mean(axis=0)
        cosines[known] = matrix[known] @ mean / max(float(np.linalg.norm(mean)), 1e-9)
    return cosines
