"""What is about one thing: words propose it, meaning confirms it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from memseal.consolidation.atoms import Atom, Group, Made, Vectors, by_type, covered, cut, in_order, likeness
from memseal.memory.traits import COMPOSITE

RULE: Final = "topic/1"
_LEAST: Final = 4
# A word that so large a part of all memories has names no topic; below so many memories the part says nothing.
_COMMON: Final = 0.2
_COMMON_FROM: Final = 12
# Two memories of one topic have a cosine of 0.3 to 0.6 with MiniLM, so each has at least this with their mean.
_LIKENESS: Final = 0.5


def topics(atoms: Sequence[Atom], made: Sequence[Made], vectors: Vectors) -> list[Group]:
    """Return the groups of memories, each of one type, that share a telling word and are about the same."""
    used = covered(made, RULE)
    groups = list[Group]()
    for memory_type, some in sorted(by_type(atoms).items()):
        free = [atom for atom in in_order(some) if atom.id not in used]
        # Until nothing is found any more: a second run begins where this one ends, and has to find nothing as well.
        while found := _found(free, memory_type, vectors):
            groups += found
            taken = {atom.id for group in found for atom in group.members}
            free = [atom for atom in free if atom.id not in taken]
    return groups


def _found(free: Sequence[Atom], memory_type: str, vectors: Vectors) -> list[Group]:
    groups, taken = list[Group](), set[bytes]()
    holders = holders_of((atom, atom.terms) for atom in free)
    for term in sorted(holders, key=lambda word: (-_weight(len(holders[word]), len(free)), word)):
        members = _alike([atom for atom in holders[term] if atom.id not in taken], term, vectors)
        if len(members) >= _LEAST:
            taken |= {atom.id for atom in members}
            groups += [
                Group(RULE, f"{term}/{memory_type}", COMPOSITE, memory_type, part, len(part), (term,))
                for part in cut(members)
            ]
    return groups


def holders_of(words: Iterable[tuple[Atom, Iterable[str]]]) -> dict[str, list[Atom]]:
    """Return the atoms of each word that enough have, and not too many; `words` are those of each atom."""
    holders, count = dict[str, list[Atom]](), 0
    for atom, terms in words:
        count += 1
        for term in terms:
            holders.setdefault(term, []).append(atom)
    most = max(_COMMON_FROM, _COMMON * count)
    return {term: some for term, some in holders.items() if _LEAST <= len(some) <= most}


def _weight(having: int, total: int) -> float:
    return having * math.log(1 + total / having)


def _alike(members: list[Atom], term: str, vectors: Vectors) -> list[Atom]:
    """Return the members that are near their mean; of those without a vector, the ones that share a second word."""
    if len(members) < _LEAST:
        return []
    cosines = likeness(members, vectors)
    second = Counter(word for member in members for word in member.terms if word != term)
    return [
        member
        for member, cosine in zip(members, cosines, strict=True)
        if (any(second[word] > 1 for word in member.terms) if np.isnan(cosine) else cosine >= _LIKENESS)
    ]
