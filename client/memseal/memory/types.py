"""What type of memory a text is, by rules alone (memory-model §1)."""

import re
import unicodedata
from itertools import pairwise
from typing import Final

TYPES: Final = ("episodic", "semantic", "persona", "procedural")
TYPE_RULES: Final = 1
"""The version of the rules below."""
# A type shows early in a text, and a long document must cost no more than a note.
_CHARS: Final = 2_000

_WORD: Final = re.compile(r"\w+")
FIRST_PERSON: Final = frozenset("i me my mine myself we us our ours ourselves".split())
_HABIT: Final = frozenset(
    """
    always usually often never typically normally generally regularly rarely seldom daily weekly
    habit habits routine routines tend prefer favourite favorite
    """.split()
)
_LIKING: Final = frozenset("like love hate enjoy dislike adore avoid".split())
_PERIOD: Final = frozenset(
    """
    day morning afternoon evening night week weekend month spring summer autumn fall winter year time
    monday tuesday wednesday thursday friday saturday sunday
    mondays tuesdays wednesdays thursdays fridays saturdays sundays
    """.split()
)
_REPEATED: Final = frozenset("every each".split())
_TIME: Final = frozenset(
    """
    yesterday today tonight tomorrow recently ago
    monday tuesday wednesday thursday friday saturday sunday
    january february april june july august september october november december
    """.split()
)
_NAMED_PERIOD: Final = frozenset("last this next past".split())
_DATE: Final = re.compile(r"\b(?:1[89]|20)\d\d\b")
_STEP: Final = re.compile(r"\bstep \d|\bhow to\b")
_LIST: Final = re.compile(r"^\s*1[.)] .*\n\s*2[.)] ", re.MULTILINE)
_STEPPED: Final = frozenset("step how".split())
_BEGINS: Final = frozenset("first firstly".split())
_GOES_ON: Final = frozenset("then next finally afterwards".split())


def type_of(content: str) -> str:
    """Return one of `TYPES` for a text: the same for the same text, always."""
    text = content[:_CHARS]
    text = (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    words = _WORD.findall(text)
    known = frozenset(words)
    if not known.isdisjoint(FIRST_PERSON):
        if _is_habit(words, known):
            return "persona"
        if _is_dated(text, words, known):
            return "episodic"
    return "procedural" if _is_sequence(text, known) else "semantic"


def _is_habit(words: list[str], known: frozenset[str]) -> bool:
    if not known.isdisjoint(_HABIT):
        return True
    if known.isdisjoint(_LIKING) and known.isdisjoint(_REPEATED):
        return False
    return any(
        (before in ("i", "we") and word in _LIKING) or (before in _REPEATED and word in _PERIOD)
        for before, word in pairwise(words)
    )


def _is_dated(text: str, words: list[str], known: frozenset[str]) -> bool:
    if not known.isdisjoint(_TIME):
        return True
    if not known.isdisjoint(_NAMED_PERIOD) and any(
        before in _NAMED_PERIOD and word in _PERIOD for before, word in pairwise(words)
    ):
        return True
    return _DATE.search(text) is not None


def _is_sequence(text: str, known: frozenset[str]) -> bool:
    if not known.isdisjoint(_BEGINS) and (not known.isdisjoint(_GOES_ON) or "after that" in text):
        return True
    if not known.isdisjoint(_STEPPED) and _STEP.search(text):
        return True
    return "1" in known and "2" in known and _LIST.search(text) is not None
