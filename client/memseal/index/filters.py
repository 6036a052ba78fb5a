"""Which memories a question is about, as an SQL condition over `memories m`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memseal.errors import FilterUnknown
from memseal.memory.memory import State, to_microseconds

STATES: Mapping[str, str] = {
    "active": f"m.state = {int(State.ACTIVE)}",
    "superseded": f"m.state & {int(State.SUPERSEDED)}",
    "retracted": f"m.state & {int(State.RETRACTED)}",
    "all": "1",
}
_EQUAL = ("kind", "author", "thread", "source", "origin")
_TAGGED = (
    "EXISTS (SELECT 1 FROM tags t JOIN memories g ON g.id = t.target WHERE t.tag = ? AND (g.n = m.n OR g.same = m.n)"
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
NAMES = frozenset((*_EQUAL, *_TIMES, "tags", "state"))


@dataclass(frozen=True)
class Condition:
    """An SQL condition and its values; `narrow` is False where it only leaves out what is not active."""

    where: str
    values: tuple[Any, ...]
    narrow: bool


def condition(filters: Mapping[str, Any]) -> Condition:
    """Return the condition of filters: equal `kind`, `author`, `thread`, `source`, `origin`; all of `tags`; `since` and
    `until` (aware datetimes, half-open, on `captured_at` or else `written_at`), `written_since` and `written_until` (on
    `written_at`); `state` (default `active`).

    Raises `FilterUnknown`, `TypeError` or `ValueError`.
    """
    unknown = set(filters) - NAMES
    if unknown:
        raise FilterUnknown(f"unknown filter {sorted(unknown)[0]!r}: known are {', '.join(sorted(NAMES))}")
    given = {name: value for name, value in filters.items() if value is not None}
    state = given.pop("state", "active")
    if state not in STATES:
        raise ValueError(f"state is one of {', '.join(STATES)}")
    parts, values = ["m.same IS NULL", STATES[state]], list[Any]()
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
    if name in _TIMES:
        if not isinstance(value, datetime):
            raise TypeError(f"{name} is an aware datetime, not {type(value).__name__}")
        return [_TIMES[name]], [to_microseconds(value)]
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {type(value).__name__}")
    _check_unicode(name, value)
    return [f"m.{name} = ?"], [value]


def _check_unicode(name: str, *texts: str) -> None:
    # The database's own error would carry the text.
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise ValueError(f"{name} has a lone surrogate: it is not valid Unicode text")
