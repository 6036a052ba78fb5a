"""JSON Lines: what `memseal export` writes, and what other programs may write."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from memseal.memory.memory import DEFAULT_KIND
from memseal.memory.texts import ID_SIZE
from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    OnError,
    Reading,
    Said,
    as_list,
    as_object,
    checked,
    count_unknown,
    items_of,
    label,
    moment_of,
    name_of,
    parse,
    text_label,
)
from memseal.vault.writes.adopting import Past

EXPORT_MARK: Final = "memseal"
"""The field by which a row says that `memseal export` wrote it."""
EXPORT_VERSION: Final = 1
"""Its value: the version of the row's form."""
SUPERSEDE_REASON: Final = "supersede_reason"
"""Why a row's memory replaced the one that it names in `supersedes`."""
_FIELDS = frozenset({"id", "content", "source", "kind", "tags", "author", "thread", "position", "captured_at"})
TRAITS: Final = ("type", "tier", "owner", "policy", "location", "derived_from", "derivation")
"""The rarer fields of a memory, of which a row has those that were given."""
_EXPORT_FIELDS = _FIELDS | {
    *TRAITS,
    *(EXPORT_MARK, "origin", "state", "written_at"),
    *("reason", "supersedes", "superseded_by", SUPERSEDE_REASON),
}
_STATES: Final = {"active": False, "superseded": False, "retracted": True, "both": True}
"""Whether a memory of this state was retracted."""
# 128 bits: rows without an id must not collide in any file a person could own.
_DIGEST_HEX_DIGITS = 32


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
    A row of an export keeps its id, `origin` and `written_at`, its rarer fields, what it supersedes, and whether it
    was retracted.
    """
    reading = Reading(origin, on_error, unknown_fields)
    rows = ((number, line) for number, line in enumerate(lines, start=1) if is_row(line))
    return items_of(rows, lambda line: _item_of(line, reading), on_error)


def is_row(line: str) -> bool:
    """Return whether a line is not blank."""
    return bool(line.strip("\ufeff \t\r\n"))


def _item_of(line: str, reading: Reading) -> ImportItem:
    row = as_object(parse(line), "the row")
    is_export = row.get(EXPORT_MARK) == EXPORT_VERSION
    said = Said(
        content=row.get("content"),
        source=label(row, "source") or f"import:{reading.origin}",
        kind=label(row, "kind") or DEFAULT_KIND,
        tags=as_list(row.get("tags"), "tags"),
        author=label(row, "author"),
        thread=label(row, "thread"),
        position=row.get("position"),
        captured_at=moment_of(row, "captured_at"),
        # Other programs mean other things by these names.
        traits={name: row[name] for name in TRAITS if row.get(name) is not None} if is_export else {},
    )
    kept = text_label(row, "origin") if is_export else None
    past = _past(row) if is_export else None
    item = checked(said, kept or f"jsonl:{reading.origin}/{name_of(row, 'id') or _digest(said)}", past)
    count_unknown(row, _EXPORT_FIELDS if is_export else _FIELDS, reading.unknown_fields)
    return item


def _past(row: Mapping[str, object]) -> Past:
    """Return what an exported row says of its memory's past; other programs mean other things by these fields."""
    state = row.get("state", "active")
    if not isinstance(state, str) or state not in _STATES:
        raise BadRow(f"state is none of {', '.join(_STATES)}")
    return Past(
        id=_id(row, "id"),
        written_at=moment_of(row, "written_at"),
        replaces=_id(row, "supersedes"),
        reason=text_label(row, SUPERSEDE_REASON),
        retracted=_STATES[state],
        retract_reason=text_label(row, "reason") if _STATES[state] else None,
    )


def _id(row: Mapping[str, object], name: str) -> bytes | None:
    value = text_label(row, name)
    try:
        raw = None if value is None else bytes.fromhex(value)
    except ValueError:
        raw = b""
    if raw is not None and (len(raw) != ID_SIZE or value != raw.hex()):
        raise BadRow(f"{name} is not an id of 32 hex digits")
    return raw


def _digest(said: Said) -> str:
    """Name a row that has no id by what it says, however its JSON was written."""
    canonical = json.dumps(said.fields(), sort_keys=True, default=datetime.isoformat)
    return f"sha256-{hashlib.sha256(canonical.encode()).hexdigest()[:_DIGEST_HEX_DIGITS]}"
