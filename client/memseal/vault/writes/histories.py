"""What became of a memory, and what was done between two times (lifecycle.md §2, §3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from memseal.index.state import VaultState
from memseal.index.validity import Window, line_of
from memseal.memory.memory import Memory, from_microseconds, to_microseconds
from memseal.memory.operations import Stamp

ChangeKind = Literal["written", "superseded", "retracted", "restored"]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory and its window, half-open in UTC: no `valid_until` where nothing replaced it.

    What lost a conflict, or supersedes what did, has no window: both ends are None, and `on_line` is False.
    """

    memory: Memory
    valid_from: datetime | None
    valid_until: datetime | None
    on_line: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was done to a memory: when (by the clock of the device that did it), why, and by what memory."""

    what: ChangeKind
    memory_id: str
    at: datetime
    reason: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class History:
    """All versions of a memory, the line first and the oldest first, and all changes in the order of stamps."""

    versions: tuple[Version, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Difference:
    """What was done from `since` on and before `until`: ids, in the order of stamps; `superseded` pairs old and new."""

    since: datetime
    until: datetime
    written: tuple[str, ...]
    superseded: tuple[tuple[str, str], ...]
    retracted: tuple[str, ...]
    restored: tuple[str, ...]
    erased: tuple[str, ...]


def history(state: VaultState, number: int) -> History:
    """Return all versions of a memory, from the oldest ancestor that is here."""
    windows = line_of(state, number)
    ids = sorted(state.family(windows[0].number))
    on_line = {window.number for window in windows}
    led = {state.number_of(each) for each in ids} - on_line - {None}
    beside = list(state.memories(sorted(each for each in led if each is not None)))
    versions = versions_of(state, windows)
    changes = sorted([*_writings(state, ids), *_retractions(state, ids)], key=lambda pair: pair[0])
    return History(
        (*versions, *(Version(memory, None, None, on_line=False) for memory in beside)),
        tuple(change for _, change in changes),
    )


def versions_of(state: VaultState, windows: Sequence[Window]) -> tuple[Version, ...]:
    """Return memories with their windows."""
    memories = state.memories([window.number for window in windows])
    return tuple(
        Version(memory, from_microseconds(window.start), None if window.end is None else from_microseconds(window.end))
        for memory, window in zip(memories, windows, strict=True)
    )


def window_of(state: VaultState, number: int) -> Window | None:
    """Return the window of one memory; None for what lies beside its line."""
    return next((window for window in line_of(state, number) if window.number == number), None)


def at_moment(state: VaultState, number: int, moment: int) -> Window | None:
    """Return the window of a memory's line that has a moment (µs since 1970 UTC) in it."""
    return next(
        (
            window
            for window in line_of(state, number)
            if window.start <= moment and (window.end is None or moment < window.end)
        ),
        None,
    )


def _writings(state: VaultState, ids: Sequence[bytes]) -> Iterable[tuple[Stamp, Change]]:
    for row in _rows(state, "SELECT stamp, id, of, written_at, reason FROM memories WHERE id IN ({})", ids):
        stamp, memory_id, of, written_at, reason = row
        at = from_microseconds(written_at)
        yield stamp, Change("written", memory_id.hex(), at)
        if of is not None:
            yield stamp, Change("superseded", of.hex(), at, reason, by=memory_id.hex())


def _retractions(state: VaultState, ids: Sequence[bytes]) -> Iterable[tuple[Stamp, Change]]:
    query = "SELECT stamp, target, retracted, at, reason FROM retractions WHERE target IN ({})"
    for stamp, target, retracted, at, reason in _rows(state, query, ids):
        what: ChangeKind = "retracted" if retracted else "restored"
        yield stamp, Change(what, target.hex(), from_microseconds(at), reason)


def _rows(state: VaultState, query: str, ids: Sequence[bytes]) -> list[tuple[Any, ...]]:
    found = list[tuple[Any, ...]]()
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        found += state.connection.execute(query.format(",".join("?" * len(some))), some).fetchall()
    return found


def difference(state: VaultState, since: datetime, until: datetime) -> Difference:
    """Return what was done between two times; `ValueError` for naive ones, or an end before the beginning."""
    bounds = to_microseconds(since), to_microseconds(until)
    if bounds[1] < bounds[0]:
        raise ValueError("until lies before since")
    rows = state.connection.execute(
        "SELECT id, of FROM memories WHERE written_at >= ? AND written_at < ? AND same IS NULL ORDER BY stamp", bounds
    ).fetchall()
    moves = state.connection.execute(
        "SELECT target, retracted FROM retractions WHERE at >= ? AND at < ?"
        " AND target NOT IN (SELECT target FROM erased) ORDER BY stamp",
        bounds,
    ).fetchall()
    gone = state.connection.execute(
        "SELECT t.target FROM erasures e JOIN erased t ON t.erasure = e.id WHERE e.at >= ? AND e.at < ?"
        " ORDER BY e.stamp, t.target",
        bounds,
    ).fetchall()
    return Difference(
        since=since,
        until=until,
        written=tuple(memory_id.hex() for memory_id, _ in rows),
        superseded=tuple((of.hex(), memory_id.hex()) for memory_id, of in rows if of is not None),
        retracted=tuple(target.hex() for target, retracted in moves if retracted),
        restored=tuple(target.hex() for target, retracted in moves if not retracted),
        erased=tuple(dict.fromkeys(row[0].hex() for row in gone)),
    )
