"""Draw the facts of a conversation: by a caller's function on covered text, or by rules (lifecycle.md §6)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memseal.capture.facts import Fact, fact_in
from memseal.capture.messages import Message, own_words, sentences
from memseal.capture.sensitive import CATEGORIES, COVER, Category, categories_of, covered
from memseal.recall.given import without_given

Distiller = Callable[[str], Iterable[str]]
"""A caller's function: the user's words of one message, secrets covered, to the facts in it, one sentence each."""

# A distiller that answers with a book is not followed; a fact is a sentence.
MAX_FACTS = 50
MAX_FACT_CHARS = 500


@dataclass(frozen=True)
class Found:
    """A fact, and when its message was sent, if that is known."""

    fact: Fact
    at: datetime | None


@dataclass
class Drawn:
    """What a conversation gave: facts, how many were refused by category, and how often a distiller failed."""

    found: list[Found] = field(default_factory=list[Found])
    refused: Counter[Category] = field(default_factory=Counter[Category])
    failures: int = 0


def draw(messages: Sequence[Message], distiller: Distiller | None, allowed: Collection[str]) -> Drawn:
    """Return the facts of the user's own words that may be proposed; `allowed` names sensitive categories that may.

    A distiller that fails, whatever it raises, is passed over for that message: the rules count.
    """
    drawn = Drawn()
    for message in messages:
        shown, _ = covered(own_words(message))
        if shown.strip():
            for fact in _facts(shown, distiller, drawn):
                if _can_be_stored(fact.text) and _may_be_proposed(fact.text, allowed, drawn):
                    drawn.found.append(Found(fact, message.at))
    return drawn


def _facts(shown: str, distiller: Distiller | None, drawn: Drawn) -> Iterator[Fact]:
    if distiller is not None:
        answer = _distilled(shown, distiller)
        if answer is not None:
            yield from answer
            return
        drawn.failures += 1
    for sentence in sentences(shown):
        if COVER in sentence:
            # Counted whether or not it is a statement: the report is how a person learns what was kept out.
            drawn.refused["credentials"] += 1
        elif fact := fact_in(sentence):
            yield fact


def _distilled(shown: str, distiller: Distiller) -> list[Fact] | None:
    """Return a distiller's facts, or None where it failed: it may be a model out of reach, and raise anything."""
    try:
        given = distiller(shown)
        answer = None if isinstance(given, str) else list(given)  # the letters of one text are no facts
    except Exception:  # noqa: BLE001  a stranger's function; capture goes on without it, and the report counts it
        return None
    if answer is None:
        return None
    facts = list[Fact]()
    for each in answer[:MAX_FACTS]:
        if not isinstance(each, str):
            return None
        text = " ".join(without_given(each).split())
        if text and len(text) <= MAX_FACT_CHARS:
            # The kind is ours: a rule's where one matches, else a note.
            known = fact_in(text)
            facts.append(Fact(text, "note" if known is None else known.kind))
    return facts


def _can_be_stored(text: str) -> bool:
    """Whether a text is valid Unicode: a message cut within a pair of surrogates must not cost the others."""
    return text == text.encode("utf-8", "replace").decode("utf-8")


def _may_be_proposed(text: str, allowed: Collection[str], drawn: Drawn) -> bool:
    refused: list[Category] = [
        category
        for category in CATEGORIES
        if category in categories_of(text) and (category == "credentials" or category not in allowed)
    ]
    drawn.refused.update(refused)
    return not refused
