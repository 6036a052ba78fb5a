"""Capture: from a conversation to proposals (lifecycle.md §6)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memseal.capture.drawing import Distiller, Drawn, Found, draw
from memseal.capture.messages import Message
from memseal.capture.sensitive import CATEGORIES
from memseal.errors import CaptureOff
from memseal.index.state import VaultState
from memseal.index.view import View
from memseal.memory.data_class import MEDICAL, SETTING, class_of
from memseal.memory.memory import Draft, draft
from memseal.memory.operations import Operation, Setting
from memseal.memory.proposals import Stored, folded, texts_in
from memseal.recall.nearness import ALIKE, likeness, words_of
from memseal.recall.query import parse_query
from memseal.vault.writes.proposing import is_news, open_ones, stored_of
from memseal.vault.writes.writing import new_id

CAPTURE: Final = "capture"
SOURCE: Final = "capture:"
# So many of the memories that share the most telling words are compared with each fact.
_COMPARED: Final = 30
_WHY: Final = "said in a conversation"


@dataclass(frozen=True)
class Captured:
    """What a capture did: the ids of new proposals, how many facts were known or decided before, and what was refused.

    `refused` counts by category, and has no text; `distiller_failed` says for how many messages the rules had to do.
    """

    proposed: tuple[str, ...]
    known: int
    refused: dict[str, int]
    distiller_failed: int = 0
    trace_id: str | None = None


def check_categories(allow: Iterable[str]) -> list[str]:
    """Return sensitive categories that may be captured; raises `ValueError` for others, and for credentials."""
    if isinstance(allow, str):
        raise TypeError("allow is a list of categories, not one text")
    wanted = sorted(set(allow))
    possible = [each for each in CATEGORIES if each != "credentials"]
    if not set(wanted) <= set(possible):
        raise ValueError(f"only {' and '.join(possible)} can be allowed: credentials are never captured")
    return wanted


def switched(on: bool, allow: Iterable[str], now: int) -> Operation:
    """Return the operation that switches capture on or off."""
    if not isinstance(on, bool):
        raise TypeError(f"on is True or False, not {type(on).__name__}")
    return Setting(new_id(), CAPTURE, {"on": on, "allow": check_categories(allow)}, now)


def allowed(state: VaultState) -> frozenset[str]:
    """Return the sensitive categories that may be captured, for the vault's class too; raises `CaptureOff`."""
    match state.setting(CAPTURE):
        case {"on": True, "allow": allow}:
            of_class = ("medical",) if class_of(state.setting(SETTING)) == MEDICAL else ()
            return frozenset((*texts_in(allow), *of_class))
        case _:
            raise CaptureOff("capture is off in this vault: switch it on with `set_capture(True)`")


def facts_of(messages: Sequence[Message], distiller: Distiller | None, allow: Collection[str]) -> Drawn:
    """Return what a conversation says; needs no open vault, since a distiller may take its time."""
    return draw(messages, distiller, allow)


def news_of(view: View, drawn: Drawn, thread: str | None, name: str, now: int) -> tuple[list[Stored], int]:
    """Return the proposals of what is not known yet, and how many facts were."""
    waiting = {folded(each.operation.draft.content) for each in open_ones(view.state)}
    news, known = dict[bytes, Stored](), 0
    for found in drawn.found:
        stored = stored_of(_draft(found, thread, name), _WHY, now)
        waits = stored.id in news or folded(found.fact.text) in waiting
        if waits or not is_news(view.state, stored) or _is_known(view, found.fact.text):
            known += 1
        else:
            news[stored.id] = stored
    return list(news.values()), known


def _draft(found: Found, thread: str | None, name: str) -> Draft:
    fact = found.fact
    return draft(fact.text, source=SOURCE + name, kind=fact.kind, thread=thread, captured_at=found.at)


def _is_known(view: View, text: str) -> bool:
    """Return whether a memory of any state says nearly this: what was given out must not come back as news."""
    words, terms = words_of(text), parse_query(text, None).terms
    if not terms:
        return False
    best = view.lexical.match(terms).best(_COMPARED, None)
    marks = ",".join("?" * len(best))
    rows = view.state.connection.execute(
        f"SELECT content FROM memories WHERE n IN ({marks})",  # noqa: S608 - our own text
        [int(number) for number in best],
    )
    said = folded(text)
    return any(folded(content) == said or likeness(words, words_of(content)) >= ALIKE for (content,) in rows)
