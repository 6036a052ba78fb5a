"""The words of a memory that say what it is about."""

import re
from collections.abc import Iterable
from typing import Final

from memseal.memory.types import FIRST_PERSON
from memseal.recall.english import FOREIGN, is_english
from memseal.recall.stopwords import STOP_WORDS
from memseal.recall.words import split

_CHARS: Final = 2_000
_LEAST: Final = 3
# What most diaries say of any topic: when, how often, and that somebody did something.
_EMPTY: Final = frozenset(
    """
    yesterday today tonight tomorrow morning afternoon evening night noon week weekend month year day time
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december spring summer autumn winter last next ago always usually often never
    sometimes again still every each first then also really very just got get went going made make said say told
    hey hello yes yeah yep okay wow thanks thank awesome amazing nice cool sure glad happy sorry hope bit lot lots part
    feel look sound seem mean guess help keep let try find show see talk share shared photo picture image anything
    something everything nothing people person everyone someone
    like love good great new old thing one two three well much many way know think want need took take came come
    hour minute second four five six seven eight nine ten since even around away back along lately gonna wanna gotta
    happen happened chat chatted spoke congrats
    making getting taking coming giving give gave trying keeping looking thinking feeling talking
    """.split()
)
_SECOND_PERSON: Final = frozenset("you your yours yourself yourselves".split())
_ENDS: Final = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[\u3002\uff01\uff1f])")


def terms_of(content: str) -> frozenset[str]:
    """Return the telling words of a text, in lower case and without a plural's ending."""
    return _telling(split(content[:_CHARS]))


def statements_of(content: str, *, spoken: bool) -> tuple[frozenset[str], ...]:
    """Return the telling words of each sentence that says something of who wrote it, if it is English; else of each.

    A question does not, nor what is said to another ("your shop looks great"); where it was `spoken` in a conversation,
    only what has a word of the first person does.
    """
    text = content[:_CHARS]
    sentences = [sentence for sentence in _ENDS.split(text) if sentence]
    if is_english(text):
        sentences = [sentence for sentence in sentences if _is_own(sentence, spoken)]
    return tuple(filter(None, (_telling(split(sentence)) for sentence in sentences)))


def _is_own(sentence: str, spoken: bool) -> bool:
    words = frozenset(split(sentence))
    if sentence.endswith("?") or not words.isdisjoint(_SECOND_PERSON):
        return False
    return not spoken or not words.isdisjoint(FIRST_PERSON)


def _telling(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_stem(word) for word in words if _tells(word) and _tells(_stem(word)))


def _stem(word: str) -> str:
    if word.isascii() and len(word) > _LEAST + 1 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _tells(word: str) -> bool:
    if word in STOP_WORDS or word in FOREIGN or word in _EMPTY or word.isdigit():
        return False
    return len(word) >= _LEAST or not word.isascii()
