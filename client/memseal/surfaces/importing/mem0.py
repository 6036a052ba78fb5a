"""mem0: what `get_all` returns (`results`), what its platform exports (`memories`), or an array of the same rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    Reading,
    Said,
    as_list,
    as_object,
    checked,
    count_unknown,
    given,
    items_of,
    label,
    moment_of,
    name_of,
)

NAME: Final = "mem0"
_ROWS = ("results", "memories")
_FIELDS = frozenset(
    """
    id memory data text hash score created_at updated_at user_id agent_id run_id actor_id role categories metadata
    expiration_date
    """.split()
)


def rows_of(document: object) -> list[object] | None:
    """Return the rows of a parsed document, None where it is not mem0's."""
    fields: Mapping[str, object] = cast("Mapping[str, object]", document) if isinstance(document, dict) else {}
    found = next((fields[name] for name in _ROWS if isinstance(fields.get(name), list)), None)
    return None if found is None else cast("list[object]", found)


def is_row(value: object) -> bool:
    """Return whether a parsed item looks like one of mem0's memories."""
    return isinstance(value, dict) and "memory" in value and "id" in value


def read_mem0(rows: Iterable[object], reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each row, a memory; an error's line is the row's number."""
    return items_of(enumerate(rows, start=1), lambda row: _item_of(row, reading), reading.on_error)


def _item_of(value: object, reading: Reading) -> ImportItem:
    row = as_object(value, "the row")
    memory_id = name_of(row, "id")
    if memory_id is None:
        raise BadRow("id is missing")
    run = name_of(row, "run_id")
    said = Said(
        content=row.get("memory"),
        source=NAME,
        kind="fact",
        tags=as_list(row.get("categories"), "categories"),
        author=_author(row),
        thread=None if run is None else f"{NAME}/{run}",
        captured_at=moment_of(row, "created_at"),
    )
    item = checked(said, f"{NAME}:{memory_id}")
    count_unknown(given(row), _FIELDS, reading.unknown_fields)
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        count_unknown(given(cast("Mapping[str, object]", metadata)), frozenset(), reading.unknown_fields)
    return item


def _author(row: Mapping[str, object]) -> object:
    """Return who said it: mem0 lists what the assistant said under its user too."""
    if row.get("role") == "assistant":
        return label(row, "agent_id") or "assistant"
    return label(row, "actor_id") or label(row, "user_id") or label(row, "agent_id")
