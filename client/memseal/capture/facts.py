"""Durable statements of a user about themselves, found by rules (lifecycle.md §6)."""

from typing import Final, NamedTuple

from memseal.capture.patterns import EXPLICIT, OPENING, PASSING, STATE, STATEMENTS, TALK

# A statement of fewer words says too little, one of more is a story.
_LEAST_WORDS: Final = 3
_MOST_WORDS: Final = 40
_NO_STATEMENT: Final = ("?", "\uff1f", ":", "…")


class Fact(NamedTuple):
    """A sentence worth keeping, and the kind of memory it would be."""

    text: str
    kind: str


def fact_in(sentence: str) -> Fact | None:
    """Return the durable statement that a sentence makes about its speaker, or None.

    A question, a wish, a condition, a mood and what holds for today only are none.
    """
    plain = OPENING.sub("", sentence.replace("\u2019", "'")).strip()
    told = EXPLICIT.sub("", plain).strip()
    explicit, statement = told != plain, OPENING.sub("", told).strip()
    words = statement.split()
    if statement.endswith(_NO_STATEMENT) or not _LEAST_WORDS <= len(words) <= _MOST_WORDS:
        return None
    if PASSING.search(statement) or TALK.search(statement):
        return None
    if not explicit and STATE.search(statement):
        return None
    kind = next((kind for kind, pattern in STATEMENTS if pattern.search(statement)), "note" if explicit else None)
    return None if kind is None else Fact(statement[0].upper() + statement[1:], kind)
