"""Read files of other programs as memories to import.

Every reader yields the keywords of `Vault.remember`. `origin` says where an item came from and stays the
same when the file is read again, so an import that was broken off is safe to repeat. What cannot be read is
an `ImportRowError`: raised, or given to `on_error` and skipped. Fields that a reader does not know are left
out and counted in `unknown_fields`.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

from memseal.errors import DiskError, ImportRowError, MemoryInvalid
from memseal.memory.memory import DEFAULT_KIND, draft

OnError = Callable[[ImportRowError], None]
_Row = TypeVar("_Row")


class ImportItem(TypedDict):
    """The keywords of `Vault.remember` for one memory; `captured_at` is aware, in UTC."""

    content: str
    source: str
    kind: str
    tags: list[str]
    author: str | None
    thread: str | None
    position: int | None
    captured_at: datetime | None
    origin: str


EXPORT_MARK = "memseal"
"""The field by which a row says that `memseal export` wrote it."""
EXPORT_VERSION = 1
"""Its value: the version of the row's form."""
_JSONL_FIELDS = frozenset({"id", "content", "source", "kind", "tags", "author", "thread", "position", "captured_at"})
_EXPORT_FIELDS = _JSONL_FIELDS | {EXPORT_MARK, "origin", "state", "written_at"}
_TURN_FIELDS = frozenset({"speaker", "dia_id", "text", "blip_caption"})
_JSONL_SUFFIXES = frozenset({".jsonl", ".ndjson"})
# 128 bits: rows without an id must not collide in any file a person could own.
_DIGEST_HEX_DIGITS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SESSION = re.compile(r"session_([1-9][0-9]{0,8})")
_SESSION_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}) ([ap])m on ([0-9]{1,2}) ([a-z]+), ([0-9]{4})", re.IGNORECASE)
# Written out because the names that strptime knows change with the locale.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def open_import(
    path: Path, *, on_error: OnError | None = None, unknown_fields: Counter[str] | None = None
) -> tuple[str, Iterator[ImportItem], int]:
    """Return the format's name (`jsonl` or `locomo`), the items, and the number of rows, bad ones included.

    JSON Lines are streamed, in one pass to count and one to read. A name that ends in .jsonl or .ndjson
    decides, otherwise the content does. The path is of a regular file, since it is read more than once.
    A file that is neither raises `ImportRowError`, one that cannot be read `DiskError`.
    """
    # A file name that is not UTF-8 reaches Python as lone surrogates, which no memory may hold.
    origin = _SURROGATE.sub("?", path.stem)
    if _holds_json_lines(path):
        rows = sum(1 for line in _lines(path) if _is_row(line))
        items = read_jsonl(_lines(path), origin, on_error=on_error, unknown_fields=unknown_fields)
        return "jsonl", items, rows
    document = _parse_document(path)
    items = read_locomo(document, origin, on_error=on_error, unknown_fields=unknown_fields)
    return "locomo", items, sum(1 for _ in _turns(document, origin))


def read_jsonl(
    lines: Iterable[str],
    origin: str,
    *,
    on_error: OnError | None = None,
    unknown_fields: Counter[str] | None = None,
) -> Iterator[ImportItem]:
    """Yield one item for each line, a JSON object; blank lines and a byte order mark are passed over.

    `content` is needed; `source`, `kind`, `tags`, `author`, `thread`, `position`, `captured_at` and `id` may
    be missing or null, and empty labels count as missing. `captured_at` is ISO 8601, in UTC where it names no
    offset, or a number of seconds since 1970. Rows without an id are named by a digest of what they say.
    A row of an export keeps its `origin`, and is refused unless its memory was active.
    """
    rows = ((number, line) for number, line in enumerate(lines, start=1) if _is_row(line))
    return _items(rows, lambda line: _item_of_line(line, origin, unknown_fields), on_error)


def read_locomo(
    document: object,
    origin: str,
    *,
    on_error: OnError | None = None,
    unknown_fields: Counter[str] | None = None,
) -> Iterator[ImportItem]:
    """Yield one item for each turn of a parsed LoCoMo document, which is a sample or a list of samples.

    A session's time is taken as UTC, and turn n lies n seconds after it, so that the order is kept. A photo's
    caption follows the text. The line of an error is the turn's number, counted from 1 through the whole
    document. `origin` stands in where a sample has no id.
    """
    rows = enumerate(_turns(document, origin), start=1)
    return _items(rows, lambda turn: _item_of_turn(turn, origin, unknown_fields), on_error)


class _BadRow(Exception):
    """The reason why a row cannot be read."""


def _items(
    rows: Iterable[tuple[int, _Row]], item_of: Callable[[_Row], ImportItem], on_error: OnError | None
) -> Iterator[ImportItem]:
    for number, row in rows:
        try:
            item = item_of(row)
        except _BadRow as problem:
            reason = str(problem)
        else:
            yield item
            continue
        # Made outside the handler: the JSON parser's error holds the row's text and would stay attached.
        error = ImportRowError(number, reason)
        if on_error is None:
            raise error
        on_error(error)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def _lines(path: Path) -> Iterator[str]:
    try:
        # Bytes that are not UTF-8 become lone surrogates: they spoil their row, not the whole file.
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            yield from file
    except OSError as error:
        raise DiskError(f"{path.name} cannot be read: {error.strerror}") from error


def _is_row(line: str) -> bool:
    return bool(line.strip("\ufeff \t\r\n"))


def _holds_json_lines(path: Path) -> bool:
    first = next((line for line in _lines(path) if _is_row(line)), "")
    if path.suffix.lower() in _JSONL_SUFFIXES or not first:
        return True
    try:
        row = _parse(first)
    except _BadRow:
        return False
    return isinstance(row, dict) and "conversation" not in row


def _parse_document(path: Path) -> object:
    try:
        document = _parse("".join(_lines(path)))
    except _BadRow:
        document = None
    if not any(isinstance(sample, dict) and "conversation" in sample for sample in _samples(document)):
        raise ImportRowError(1, "the file holds neither JSON Lines nor a LoCoMo document")
    return document


def _parse(text: str) -> object:
    """Parse strict JSON: no NaN, no infinity."""
    if _SURROGATE.search(text):
        raise _BadRow("the row is not valid UTF-8")
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # ValueError: also numbers of more digits than Python converts
        raise _BadRow("the row is not valid JSON") from None


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


# ── JSON Lines ──────────────────────────────────────────────────────────────────────────────────────


def _item_of_line(line: str, origin: str, unknown_fields: Counter[str] | None) -> ImportItem:
    row = _object(_parse(line), "the row")
    said: dict[str, object] = {
        "content": row.get("content"),
        "source": _label(row, "source") or f"import:{origin}",
        "kind": _label(row, "kind") or DEFAULT_KIND,
        "tags": _tags(row),
        "author": _label(row, "author"),
        "thread": _label(row, "thread"),
        "position": row.get("position"),
        "captured_at": _captured_at(row),
    }
    is_export = row.get(EXPORT_MARK) == EXPORT_VERSION
    kept = _exported_origin(row) if is_export else None
    item = _checked(said, kept or f"jsonl:{origin}/{_row_id(row) or _digest(said)}")
    _count_unknown(row, _EXPORT_FIELDS if is_export else _JSONL_FIELDS, unknown_fields)
    return item


def _exported_origin(row: Mapping[str, object]) -> str | None:
    """Return the origin of an exported row; other programs mean other things by these fields."""
    state, origin = row.get("state", "active"), _label(row, "origin")
    if state != "active":
        # As an active memory it would say again what its owner took back.
        raise _BadRow("the exported memory was superseded or retracted: take `state` out of the row to bring it")
    if not isinstance(origin, str | None):
        raise _BadRow("origin is not a text")
    return origin


def _object(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _BadRow(f"{name} is not a JSON object")
    return cast("Mapping[str, object]", value)


def _label(row: Mapping[str, object], name: str) -> object:
    """Return a field's value, None where it is empty; only a text can be."""
    value = row.get(name)
    return None if value == "" else value


def _tags(row: Mapping[str, object]) -> list[object]:
    value = row.get("tags")
    if value is None:
        return []
    if not isinstance(value, list):
        raise _BadRow("tags is not a list")
    return cast("list[object]", value)


def _captured_at(row: Mapping[str, object]) -> datetime | None:
    value = row.get("captured_at")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _BadRow("captured_at is neither a text nor a number")
    try:
        return _instant(value)
    except OverflowError:
        # Milliseconds since 1970 end up here: a guess at the unit could be wrong and nobody would notice.
        raise _BadRow("captured_at is outside the years 1 to 9999 (a number is seconds since 1970)") from None
    except ValueError:
        raise _BadRow("captured_at is not a time in ISO 8601") from None


def _instant(value: str | float) -> datetime:
    if not isinstance(value, str):
        return _EPOCH + timedelta(seconds=value)
    instant = datetime.fromisoformat(value)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _row_id(row: Mapping[str, object]) -> str | None:
    value = _label(row, "id")
    # True is an integer to Python, but not to the person who wrote it.
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise _BadRow("id is neither a text nor an integer")
    return None if value is None else str(value)


def _digest(said: Mapping[str, object]) -> str:
    """Name a row that has no id by what it says, however its JSON was written."""
    canonical = json.dumps(said, sort_keys=True, default=datetime.isoformat)
    return f"sha256-{hashlib.sha256(canonical.encode()).hexdigest()[:_DIGEST_HEX_DIGITS]}"


def _checked(said: Mapping[str, object], origin: str) -> ImportItem:
    """Return what a row says as an item that a vault will take."""
    if said["content"] is None:
        raise _BadRow("content is missing")
    fields: dict[str, Any] = {**said, "origin": origin}
    try:
        draft(**fields)
    except (MemoryInvalid, TypeError) as problem:
        raise _BadRow(str(problem)) from None
    return cast("ImportItem", fields)


def _count_unknown(row: Mapping[str, object], known: frozenset[str], unknown_fields: Counter[str] | None) -> None:
    if unknown_fields is not None:
        # The names are for people to read, so a terminal's control codes must not get through.
        unknown = (name for name in row if name not in known)
        unknown_fields.update(name if name.isprintable() else "(unprintable)" for name in unknown)


# ── LoCoMo ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Turn:
    """Where a turn stands, and the turn as it was found; session 0 is a sample without a conversation."""

    sample: str
    session: int = 0
    time: object = None
    position: int = 0
    fields: object = None


def _samples(document: object) -> list[object]:
    return cast("list[object]", document) if isinstance(document, list) else [document]


def _turns(document: object, origin: str) -> Iterator[_Turn]:
    """Yield all turns in order; a sample or session of another shape is one turn that cannot be read."""
    for number, sample in enumerate(_samples(document), start=1):
        fields: Mapping[str, object] = cast("Mapping[str, object]", sample) if isinstance(sample, dict) else {}
        sample_id = fields.get("sample_id")
        name = sample_id if isinstance(sample_id, str) and sample_id else f"{origin}-{number}"
        conversation = fields.get("conversation")
        if not isinstance(conversation, dict):
            yield _Turn(name)
        else:
            yield from _turns_of_sample(cast("Mapping[str, object]", conversation), name)


def _turns_of_sample(conversation: Mapping[str, object], sample: str) -> Iterator[_Turn]:
    sessions = sorted(int(match[1]) for match in map(_SESSION.fullmatch, conversation) if match)
    for session in sessions:
        turns = conversation[f"session_{session}"]
        found = cast("list[object]", turns) if isinstance(turns, list) else [None]
        time = conversation.get(f"session_{session}_date_time")
        for position, turn in enumerate(found, start=1):
            yield _Turn(sample, session, time, position, turn)


def _item_of_turn(turn: _Turn, origin: str, unknown_fields: Counter[str] | None) -> ImportItem:
    if not turn.session:
        raise _BadRow("the sample has no conversation")
    fields = _object(turn.fields, "the turn")
    said: dict[str, object] = {
        "content": _spoken(fields),
        "source": f"import:{origin}",
        "kind": "episode",
        "tags": [],
        "author": _label(fields, "speaker"),
        "thread": f"{turn.sample}/session_{turn.session}",
        "position": turn.position,
        "captured_at": _turn_time(turn),
    }
    dialogue_id = _label(fields, "dia_id") or f"D{turn.session}:{turn.position}"
    item = _checked(said, f"locomo:{turn.sample}/{dialogue_id}")
    _count_unknown(fields, _TURN_FIELDS, unknown_fields)
    return item


def _spoken(fields: Mapping[str, object]) -> object:
    text, caption = fields.get("text"), _label(fields, "blip_caption")
    if caption is None:
        return text
    if not isinstance(caption, str) or not isinstance(text, str | None):
        raise _BadRow("text or blip_caption is not a text")
    return f"{text or ''} [shared a photo of {caption.removeprefix('a photo of ')}]".strip()


def _turn_time(turn: _Turn) -> datetime | None:
    if turn.time is None:
        return None
    name = f"session_{turn.session}_date_time"
    match = _SESSION_TIME.fullmatch(turn.time.strip()) if isinstance(turn.time, str) else None
    try:
        return _session_time(match) + timedelta(seconds=turn.position)
    except (ValueError, OverflowError):
        raise _BadRow(f"{name} is not a time like 1:56 pm on 8 May, 2023") from None


def _session_time(match: re.Match[str] | None) -> datetime:
    if match is None:
        raise ValueError("another form")
    hour, minute, half, day, month, year = match.groups()
    if not 1 <= int(hour) <= 12:
        raise ValueError("no hour of a twelve-hour clock")
    hour_of_day = int(hour) % 12 + (12 if half.lower() == "p" else 0)
    return datetime(int(year), _MONTHS.index(month.lower()) + 1, int(day), hour_of_day, int(minute), tzinfo=UTC)
