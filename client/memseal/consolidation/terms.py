"""The words of a memory that say what it is about."""

from typing import Final

from memseal.recall.english import FOREIGN
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
    """.split()
)


def terms_of(content: str) -> frozenset[str]:
    """Return the telling words of a text, in lower case and without a plural's ending."""
    return frozenset(_stem(word) for word in split(content[:_CHARS]) if _tells(word) and _tells(_stem(word)))


def _stem(word: str) -> str:
    if word.isascii() and len(word) > _LEAST + 1 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _tells(word: str) -> bool:
    if word in STOP_WORDS or word in FOREIGN or word in _EMPTY or word.isdigit():
        return False
    return len(word) >= _LEAST or not word.isascii()
