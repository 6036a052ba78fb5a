"""When each memory was believed, as SQL over `memories` (lifecycle.md §2)."""

from typing import Final, NamedTuple

from memseal.index.state import VaultState

_START: Final = "coalesce({0}.captured_at, {0}.written_at)"
# Each line begins at a memory without ancestor: what lost a conflict is on none, though it has a successor, the winner.
_LINES: Final = f"""
WITH RECURSIVE line (n, start, following) AS (
    SELECT r.n, {_START.format("r")}, r.superseded_by FROM memories r
    WHERE r.state <> 0 AND r.superseded_by IS NOT NULL AND r.same IS NULL
        AND NOT EXISTS (SELECT 1 FROM memories t WHERE t.id = r.of)
    UNION ALL
    SELECT s.n, max(line.start, {_START.format("s")}), s.superseded_by FROM line JOIN memories s ON s.n = line.following
)
"""  # noqa: S608 - our own text
# A memory without line is its own; all others count in their windows.
_BELIEVED: Final = f"""(
    (m.superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM memories t WHERE t.id = m.of) AND {_START.format("m")} <= ?)
    OR m.n IN ({_LINES} SELECT line.n FROM line LEFT JOIN line later ON later.n = line.following
        WHERE line.start <= ? AND (later.start IS NULL OR later.start > ?))
)"""  # noqa: S608


class Window(NamedTuple):
    """The half-open time in which a memory was believed, in µs since 1970 UTC; no end where nothing replaced it."""

    number: int
    start: int
    end: int | None


def believed(moment: int) -> tuple[str, tuple[int, ...]]:
    """Return the condition, over `memories m`, of what was believed at a moment (µs since 1970 UTC), with its values.

    What was retracted is among it: whether that counts is another condition.
    """
    return _BELIEVED, (moment, moment, moment)


def line_of(state: VaultState, number: int) -> list[Window]:
    """Return the windows of a memory's line, the oldest first; one that lies beside a line is led to it."""
    windows, seen = list[Window](), set[int]()
    following: int | None = _oldest(state, number)
    while following is not None and following not in seen:  # a forged circle ends where it began
        seen.add(following)
        own, after = state.connection.execute(
            f"SELECT {_START.format('m')}, superseded_by FROM memories m WHERE n = ?",  # noqa: S608 - our own text
            (following,),
        ).fetchone()
        start = max(windows[-1].start, own) if windows else own
        if windows:
            windows[-1] = windows[-1]._replace(end=start)
        windows.append(Window(following, start, None))
        following = after
    return windows


def _oldest(state: VaultState, number: int) -> int:
    """Return the `n` of the oldest ancestor that is here."""
    seen = {number}
    while (before := _parent(state, number)) is not None and before not in seen:
        seen.add(before)
        number = before
    return number


def _parent(state: VaultState, number: int) -> int | None:
    row = state.connection.execute(
        "SELECT coalesce(t.same, t.n) FROM memories m JOIN memories t ON t.id = m.of WHERE m.n = ?", (number,)
    ).fetchone()
    return None if row is None else row[0]


def tip_of(state: VaultState, number: int) -> int:
    """Return the `n` of the newest version of a memory's line."""
    return line_of(state, number)[-1].number
