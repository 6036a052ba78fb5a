"""Which memories a question is about, as an SQL condition over `memories m`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memseal.errors import FilterUnknown
from memseal.index.validity import believed
from memseal.memory.memory import State, to_microseconds
from memseal.memory.traits import ATOM

STALE = "EXISTS (SELECT 1 FROM sources s JOIN memories o ON o.id = s.source WHERE s.derived = m.id AND o.state <> 0)"
"""Whether a memory was made of one that is not active any more."""
STATES: Mapping[str, str] = {
    # What was made of memories speaks for them no longer where one of them was replaced or taken back.
    "active": f"m.state = {int(State.ACTIVE)} AND (m.tier IS NULL OR NOT {STALE})",
    "superseded": f"m.state & {int(State.SUPERSEDED)}",
    "retracted": f"m.state & {int(State.RETRACTED)}",
    "all": "1",
}
# Of a day, what was superseded since counts, and what was never true does not.
_BELIEVED = f"m.state & {int(State.RETRACTED)} = 0"
_EQUAL: Mapping[str, str] = {name: f"m.{name}" for name in ("kind", "author", "thread", "source", "origin")} | {
    # The rules run over the memories that the other filters leave: nothing derived is stored.
    "type": "coalesce(m.type, type_of(m.content))",
    "tier": f"coalesce(m.tier, '{ATOM}')",
}
_TAGGED = (
    # Once for all memories: as a question about each, a million of them took half a minute.
    "m.n IN (SELECT coalesce(g.same, g.n) FROM tags t JOIN memories g ON g.id = t.target WHERE t.tag = ?"
    " AND NOT EXISTS (SELECT 1 FROM tags_removed r"
    " WHERE (r.target, r.tag, r.added_by) = (t.target, t.tag, t.added_by)))"
)
_HAPPENED, _WRITTEN = "coalesce(m.captured_at, m.written_at)", "m.written_at"
_TIMES: Mapping[str, str] = {
    "since": f"{_HAPPENED} >= ?",
    "until": f"{_HAPPENED} < ?",
    "written_since": f"{_WRITTEN} >= ?",
    "written_until": f"{_WRITTEN} < ?",
}
NAMES = frozenset((*_EQUAL, *_TIMES, "tags", "state", "as_of"))


@dataclass(frozen=True)
class Condition:
    """An SQL condition and its values; `narrow` is False where it only leaves out what is not active."""

    where: str
    values: tuple[Any, ...]
    narrow: bool


def condition(filters: Mapping[str, Any]) -> Condition:
    """Return the condition of filters: equal `kind`, `type`, `tier`, `author`, `thread`, `source`, `origin`; all of
    `tags`; `since` and `until` (aware datetimes, half-open, on `captured_at` or else `written_at`), `written_since` and
    `written_until` (on `written_at`); `state` (default `active`); `as_of` (aware datetime: what was believed then, of
    any state but retracted if `state` is not given).

    Raises `FilterUnknown`, `TypeError` or `ValueError`.
    """
    unknown = set(filters) - NAMES
    if unknown:
        raise FilterUnknown(f"unknown filter {sorted(unknown)[0]!r}: known are {', '.join(sorted(NAMES))}")
    given = {name: value for name, value in filters.items() if value is not None}
    state = given.pop("state", "active")
    if state not in STATES:
        raise ValueError(f"state is one of {', '.join(STATES)}")
    standing = _BELIEVED if "as_of" in given and filters.get("state") is None else STATES[state]
    parts, values = ["m.same IS NULL", standing], list[Any]()
    for name, value in given.items():
        more, bound = _part(name, value)
        parts += more
        values += bound
    return Condition(" AND ".join(parts), tuple(values), narrow=bool(given) or state != "active")


def _part(name: str, value: Any) -> tuple[Sequence[str], Sequence[Any]]:
    if name == "tags":
        if isinstance(value, str):
            raise TypeError("tags is a list of texts, not one text")
        tags = list(value)
        if not all(isinstance(tag, str) for tag in tags):
            raise TypeError("tags is a list of texts")
        _check_unicode(name, *tags)
        return [_TAGGED] * len(tags), tags
    if name in _TIMES or name == "as_of":
        if not isinstance(value, datetime):
            raise TypeError(f"{name} is an aware datetime, not {type(value).__name__}")
        moment = to_microseconds(value)
        if name == "as_of":
            where, bound = believed(moment)
            return [where], bound
        return [_TIMES[name]], [moment]
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {type(value).__name__}")
    _check_unicode(name, value)
    return [f"{_EQUAL[name]} = ?"], [value]


def _check_unicode(name: str, *texts: str) -> None:
    # The database's own error would carry the text.
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise ValueError(f"{name} has a lone surrogate: it is not valid Unicode text")
