"""All that one run makes."""

from collections.abc import Sequence
from dataclasses import replace

from memseal.consolidation.atoms import Atom, Group, Made, Vectors
from memseal.consolidation.patterns import patterns
from memseal.consolidation.topics import topics
from memseal.consolidation.weeks import weeks
from memseal.recall.words import split


def plan(atoms: Sequence[Atom], made: Sequence[Made], now: int, vectors: Vectors) -> list[Group]:
    """Return the groups of which memories are to be made, given those that earlier runs made; `now` in µs since 1970.

    Deterministic; nothing is changed or taken away, and after a run there is nothing left to do.
    """
    names = frozenset(word for author in {atom.author for atom in atoms if atom.author} for word in split(author))
    # A name is no topic where each of the memories is by its bearer, or speaks to them.
    nameless = [_without(atom, names) for atom in atoms]
    return [*weeks(nameless, made, now), *topics(nameless, made, vectors), *patterns(nameless, made, vectors)]


def _without(atom: Atom, names: frozenset[str]) -> Atom:
    statements = tuple(filter(None, (statement - names for statement in atom.statements)))
    return replace(atom, terms=atom.terms - names, statements=statements)
