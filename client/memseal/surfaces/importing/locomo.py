"""LoCoMo: a benchmark's conversations over many sessions."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    OnError,
    Said,
    as_object,
    checked,
    count_unknown,
    items_of,
    label,
)

_TURN_FIELDS = frozenset({"speaker", "dia_id", "text", "blip_caption"})
_SESSION = re.compile(r"session_([1-9][0-9]{0,8})")
_SESSION_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}) ([ap])m on ([0-9]{1,2}) ([a-z]+), ([0-9]{4})", re.IGNORECASE)
# Written out because the names that strptime knows change with the locale.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


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
    rows = enumerate(turns(document, origin), start=1)
    return items_of(rows, lambda turn: _item_of_turn(turn, origin, unknown_fields), on_error)


@dataclass(frozen=True)
class _Turn:
    """Where a turn stands, and the turn as it was found; session 0 is a sample without a conversation."""

    sample: str
    session: int = 0
    time: object = None
    position: int = 0
    fields: object = None


def samples(document: object) -> list[object]:
    """Return the samples of a document, which is one or a list of them."""
    return cast("list[object]", document) if isinstance(document, list) else [document]


def turns(document: object, origin: str) -> Iterator[_Turn]:
    """Yield all turns in order; a sample or session of another shape is one turn that cannot be read."""
    for number, sample in enumerate(samples(document), start=1):
        fields: Mapping[str, object] = cast("Mapping[str, object]", sample) if isinstance(sample, dict) else {}
        sample_id = fields.get("sample_id")
        name = sample_id if isinstance(sample_id, str) and sample_id else f"{origin}-{number}"
        conversation = fields.get("conversation")
        if not isinstance(conversation, dict):
            yield _Turn(name)
        else:
            yield from _turns_of(cast("Mapping[str, object]", conversation), name)


def _turns_of(conversation: Mapping[str, object], sample: str) -> Iterator[_Turn]:
    sessions = sorted(int(match[1]) for match in map(_SESSION.fullmatch, conversation) if match)
    for session in sessions:
        turns = conversation[f"session_{session}"]
        found = cast("list[object]", turns) if isinstance(turns, list) else [None]
        time = conversation.get(f"session_{session}_date_time")
        for position, turn in enumerate(found, start=1):
            yield _Turn(sample, session, time, position, turn)


def _item_of_turn(turn: _Turn, origin: str, unknown_fields: Counter[str] | None) -> ImportItem:
    if not turn.session:
        raise BadRow("the sample has no conversation")
    fields = as_object(turn.fields, "the turn")
    said = Said(
        content=_spoken(fields),
        source=f"import:{origin}",
        kind="episode",
        author=label(fields, "speaker"),
        thread=f"{turn.sample}/session_{turn.session}",
        position=turn.position,
        captured_at=_turn_time(turn),
    )
    dialogue_id = label(fields, "dia_id") or f"D{turn.session}:{turn.position}"
    item = checked(said, f"locomo:{turn.sample}/{dialogue_id}")
    count_unknown(fields, _TURN_FIELDS, unknown_fields)
    return item


def _spoken(fields: Mapping[str, object]) -> object:
    text, caption = fields.get("text"), label(fields, "blip_caption")
    if caption is None:
        return text
    if not isinstance(caption, str) or not isinstance(text, str | None):
        raise BadRow("text or blip_caption is not a text")
    return f"{text or ''} [shared a photo of {caption.removeprefix('a photo of ')}]".strip()


def _turn_time(turn: _Turn) -> datetime | None:
    if turn.time is None:
        return None
    name = f"session_{turn.session}_date_time"
    match = _SESSION_TIME.fullmatch(turn.time.strip()) if isinstance(turn.time, str) else None
    try:
        return _session_time(match) + timedelta(seconds=turn.position)
    except (ValueError, OverflowError):
        raise BadRow(f"{name} is not a time like 1:56 pm on 8 May, 2023") from None


def _session_time(match: re.Match[str] | None) -> datetime:
    if match is None:
        raise ValueError("another form")
    hour, minute, half, day, month, year = match.groups()
    if not 1 <= int(hour) <= 12:
        raise ValueError("no hour of a twelve-hour clock")
    hour_of_day = int(hour) % 12 + (12 if half.lower() == "p" else 0)
    return datetime(int(year), _MONTHS.index(month.lower()) + 1, int(day), hour_of_day, int(minute), tzinfo=UTC)
