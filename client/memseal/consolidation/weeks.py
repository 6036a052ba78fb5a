"""What happened in a week: one composite for each type."""

from collections.abc import Sequence
from typing import Final

from memseal.consolidation.atoms import Atom, Group, Made, covered, cut, in_order
from memseal.memory.memory import from_microseconds
from memseal.memory.traits import COMPOSITE

RULE: Final = "week/1"
# Of fewer the memories themselves are as short.
_LEAST: Final = 3


def weeks(atoms: Sequence[Atom], made: Sequence[Made], now: int) -> list[Group]:
    """Return the groups of the weeks (ISO 8601, in UTC) that were over at `now` (µs since 1970 UTC)."""
    used, this_week = covered(made, RULE), week_of(now)
    found: dict[tuple[str, str], list[Atom]] = {}
    for atom in in_order(atoms):
        week = week_of(atom.at)
        if atom.id not in used and week < this_week:
            found.setdefault((week, atom.type), []).append(atom)
    return [
        Group(RULE, f"{week}/{memory_type}", COMPOSITE, memory_type, part, len(part))
        for (week, memory_type), members in sorted(found.items())
        if len(members) >= _LEAST
        for part in cut(members)
    ]


def week_of(at: int) -> str:
    """Return the ISO 8601 week, in UTC, of a time in µs since 1970."""
    year, week, _ = from_microseconds(at).isocalendar()
    return f"{year:04}-W{week:02}"
