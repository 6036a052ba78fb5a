"""What comes again and again: an affinity, with its evidence."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, TypeAlias

from memseal.consolidation.atoms import Atom, Group, Made, Vectors, covered, in_order, togetherness
from memseal.consolidation.topics import holders_of
from memseal.memory.traits import AFFINITY, MAX_SOURCES

RULE: Final = "pattern/1"
# Four times on four days, over two weeks at least: fewer may be chance, or one event told in pieces.
_LEAST: Final = 4
_LEAST_DAYS: Final = 14
# By so much the evidence has to grow before the pattern is put into words again.
_GROWTH: Final = 1.5
# Two words have to meet so many times as often as if they did not know of each other. Of few memories, in which a habit
# may be in all, that cannot be asked.
_LIFT: Final = 2
_MANY: Final = 60
# Two memories of the evidence have at least this cosine, in the mean; and where there are many, by so much more than
# any two of the author's: in a conversation all begin with a name, and speak in one tone.
_ALIKE: Final = 0.3
_CLOSER: Final = 0.15
# So many of an author's memories tell how alike they are.
_SAMPLE: Final = 2_000

Pair: TypeAlias = tuple[str, str]


def patterns(atoms: Sequence[Atom], made: Sequence[Made], vectors: Vectors) -> list[Group]:
    """Return the patterns of each author that are new, or have grown: two words that meet in sentences of several days.

    Instructions are no habits, whoever repeats them; nor is what an author says of, or asks, somebody else.
    """
    groups = list[Group]()
    authors: dict[str, list[Atom]] = {}
    for atom in in_order(atoms):
        if atom.type != "procedural":
            authors.setdefault(atom.author or "", []).append(atom)
    used = covered(made, RULE)
    for author, some in sorted(authors.items()):
        known = _known(made, author)
        groups += _grown(some, author, known, used)
        free = [atom for atom in some if atom.id not in used and not any(_has(atom, pair) for pair in known)]
        # Until nothing is found any more: a second run begins where this one ends, and has to find nothing as well.
        alike = _least_alike(some, vectors)
        while found := list(_new(free, author, vectors, alike)):
            groups += found
            free = [atom for atom in free if not any(_has(atom, (group.topic[0], group.topic[1])) for group in found)]
    return groups


def _known(made: Sequence[Made], author: str) -> dict[Pair, list[Made]]:
    """Return the patterns of an author that earlier runs made, each with its versions."""
    known: dict[Pair, list[Made]] = {}
    for each in made:
        if each.rule == RULE and each.holds and (pair := _pair_of(each.key, author)) is not None:
            known.setdefault(pair, []).append(each)
    return known


def _key(author: str, pair: Pair) -> str:
    return f"{pair[0]}+{pair[1]}/{author}"


def _pair_of(key: str, author: str) -> Pair | None:
    words, _, whose = key.partition("/")
    first, plus, second = words.partition("+")
    return (first, second) if plus and whose == author else None


def _has(atom: Atom, pair: Pair) -> bool:
    return any(pair[0] in statement and pair[1] in statement for statement in atom.statements)


def _grown(
    atoms: Sequence[Atom], author: str, known: dict[Pair, list[Made]], used: frozenset[bytes]
) -> Iterator[Group]:
    for pair, versions in sorted(known.items()):
        own = frozenset[bytes]().union(*(each.sources for each in versions))
        evidence = [atom for atom in atoms if atom.id in own or (atom.id not in used and _has(atom, pair))]
        if len(evidence) >= _GROWTH * max(each.seen for each in versions):
            current = [each.id for each in versions if each.current]
            yield _group(evidence, author, pair, current[0] if current else None)


def _least_alike(atoms: Sequence[Atom], vectors: Vectors) -> float:
    """Return how alike two memories of a pattern are at least, of an author with these."""
    if len(atoms) < _MANY:
        return _ALIKE
    usual = togetherness(atoms[:: -(-len(atoms) // _SAMPLE)], vectors)
    return _ALIKE if usual is None else max(_ALIKE, usual + _CLOSER)


def _new(free: Sequence[Atom], author: str, vectors: Vectors, alike: float) -> Iterator[Group]:
    holders = _evidence(free)
    taken = set[bytes]()
    for pair in sorted(holders, key=lambda words: (-len(holders[words]), words)):
        evidence = [atom for atom in holders[pair] if atom.id not in taken]
        if _is_pattern(evidence, vectors, alike):
            taken |= {atom.id for atom in evidence}
            yield _group(evidence, author, pair, None)


def _evidence(free: Sequence[Atom]) -> dict[Pair, list[Atom]]:
    """Return the atoms of each pair of words that meet often enough, and more often than by chance."""
    stating = [(atom, frozenset[str]().union(*atom.statements)) for atom in free if atom.statements]
    single = holders_of(stating)
    holders: dict[Pair, list[Atom]] = {}
    for atom, _ in stating:
        for pair in dict.fromkeys(pair for each in atom.statements for pair in _pairs(each & single.keys())):
            holders.setdefault(pair, []).append(atom)
    chance = _LIFT / len(stating) if len(stating) >= _MANY else 0.0
    return {
        (one, other): some
        for (one, other), some in holders.items()
        if len(some) >= max(_LEAST, chance * len(single[one]) * len(single[other]))
    }


def _pairs(words: Iterable[str]) -> Iterator[Pair]:
    return combinations(sorted(words), 2)


def _is_pattern(evidence: Sequence[Atom], vectors: Vectors, alike: float) -> bool:
    days = sorted({atom.day for atom in evidence})
    if len(days) < _LEAST or days[-1] - days[0] < _LEAST_DAYS:
        return False
    found = togetherness(evidence, vectors)
    return found is None or found >= alike


def _group(evidence: Sequence[Atom], author: str, pair: Pair, replaces: bytes | None) -> Group:
    members = tuple(evidence[-MAX_SOURCES:])
    return Group(RULE, _key(author, pair), AFFINITY, "persona", members, len(evidence), pair, replaces)
