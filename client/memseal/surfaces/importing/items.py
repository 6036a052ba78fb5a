"""One memory to import, and the checks that all readers share."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NotRequired, TypedDict, TypeVar, cast

from memseal.errors import ImportRowError, MemoryInvalid
from memseal.memory.memory import draft
from memseal.vault.writes.adopting import Past

OnError = Callable[[ImportRowError], None]
_Row = TypeVar("_Row")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SURROGATE = re.compile("[\ud800-\udfff]")


class ImportItem(TypedDict):
    """The keywords of `Vault.remember` for one memory; `captured_at` is aware, in UTC.

    `past` is there where more is known of it than what a new memory has.
    """

    content: str
    source: str
    kind: str
    tags: list[str]
    author: str | None
    thread: str | None
    position: int | None
    captured_at: datetime | None
    origin: str
    type: NotRequired[str]
    tier: NotRequired[str]
    owner: NotRequired[str]
    policy: NotRequired[Mapping[str, Any]]
    location: NotRequired[Mapping[str, Any]]
    derived_from: NotRequired[Sequence[str]]
    derivation: NotRequired[Mapping[str, Any]]
    past: NotRequired[Past]


@dataclass
class Reading:
    """Where a reader's items come from, and what it tells beside them."""

    origin: str
    """The file's name, for what has no better one."""
    on_error: OnError | None = None
    unknown_fields: Counter[str] | None = None


@dataclass(frozen=True)
class Said:
    """What a row says of a memory, not yet checked."""

    content: object
    source: object
    kind: object = "note"
    tags: list[object] = field(default_factory=list[object])
    author: object = None
    thread: object = None
    position: object = None
    captured_at: datetime | None = None
    traits: Mapping[str, object] = field(default_factory=dict[str, object])
    """The rarer keywords, as far as the row has them."""

    def fields(self) -> dict[str, Any]:
        """Return the keywords."""
        return {
            "content": self.content,
            "source": self.source,
            "kind": self.kind,
            "tags": self.tags,
            "author": self.author,
            "thread": self.thread,
            "position": self.position,
            "captured_at": self.captured_at,
            **self.traits,
        }


class BadRow(Exception):
    """The reason why a row cannot be read."""


def items_of(
    rows: Iterable[tuple[int, _Row]], item_of: Callable[[_Row], ImportItem | None], on_error: OnError | None
) -> Iterator[ImportItem]:
    """Yield the item of each numbered row that has one; a row that cannot be read is told to `on_error`, or raised."""
    for number, row in rows:
        try:
            item = item_of(row)
        except BadRow as problem:
            reason = str(problem)
        else:
            if item is not None:
                yield item
            continue
        # Made outside the handler: the JSON parser's error holds the row's text and would stay attached.
        error = ImportRowError(number, reason)
        if on_error is None:
            raise error
        on_error(error)


def checked(said: Said, origin: str, past: Past | None = None) -> ImportItem:
    """Return what a row says as an item that a vault will take."""
    if said.content is None:
        raise BadRow("content is missing")
    fields: dict[str, Any] = {**said.fields(), "origin": origin}
    try:
        draft(**fields)
    except (MemoryInvalid, TypeError) as problem:
        raise BadRow(str(problem)) from None
    return cast("ImportItem", fields if past is None else {**fields, "past": past})


def count_unknown(row: Mapping[str, object], known: frozenset[str], unknown_fields: Counter[str] | None) -> None:
    """Count the fields that a reader leaves out."""
    if unknown_fields is not None:
        # The names are for people to read, so a terminal's control codes must not get through.
        unknown = (name for name in row if name not in known)
        unknown_fields.update(name if name.isprintable() else "(unprintable)" for name in unknown)


def given(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields that say something: programs that write all that they have leave many empty."""
    return {name: value for name, value in row.items() if value not in (None, "", [], {}, False)}


# ── values ──────────────────────────────────────────────────────────────────────────────────────────


def parse(text: str) -> object:
    """Parse strict JSON: no NaN, no infinity."""
    if _SURROGATE.search(text):
        raise BadRow("the row is not valid UTF-8")
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=refuse_constant)
    except (ValueError, RecursionError):  # ValueError: also numbers of more digits than Python converts
        raise BadRow("the row is not valid JSON") from None


def refuse_constant(name: str) -> object:
    """Refuse NaN and infinity, for `parse_constant`."""
    raise ValueError(name)


def without_surrogates(text: str) -> str:
    """Return a text that a memory may hold; a file name that is not UTF-8 reaches Python as lone surrogates."""
    return _SURROGATE.sub("?", text)


def as_object(value: object, name: str) -> Mapping[str, object]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise BadRow(f"{name} is not a JSON object")
    return cast("Mapping[str, object]", value)


def as_list(value: object, name: str) -> list[object]:
    """Return a JSON array, empty where there is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRow(f"{name} is not a list")
    return cast("list[object]", value)


def label(row: Mapping[str, object], name: str) -> object:
    """Return a field's value, None where it is empty; only a text can be."""
    value = row.get(name)
    return None if value == "" else value


def text_label(row: Mapping[str, object], name: str) -> str | None:
    """Return a field that is a text, None where it is empty or missing."""
    value = label(row, name)
    if not isinstance(value, str | None):
        raise BadRow(f"{name} is not a text")
    return value


def name_of(row: Mapping[str, object], name: str) -> str | None:
    """Return a field that names something: a text or an integer."""
    value = label(row, name)
    # True is an integer to Python, but not to the person who wrote it.
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise BadRow(f"{name} is neither a text nor an integer")
    return None if value is None else str(value)


def moment_of(row: Mapping[str, object], name: str) -> datetime | None:
    """Return a time: ISO 8601, in UTC where it names no offset, or a number of seconds since 1970."""
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadRow(f"{name} is neither a text nor a number")
    try:
        return _instant(value)
    except OverflowError:
        # Milliseconds since 1970 end up here: a guess at the unit could be wrong and nobody would notice.
        raise BadRow(f"{name} is outside the years 1 to 9999 (a number is seconds since 1970)") from None
    except ValueError:
        raise BadRow(f"{name} is not a time in ISO 8601") from None


def _instant(value: str | float) -> datetime:
    if not isinstance(value, str):
        return _EPOCH + timedelta(seconds=value)
    instant = datetime.fromisoformat(value)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
