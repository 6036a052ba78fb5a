"""Read a query: its words, and the time it speaks of."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memseal.recall.dates import Period, find_period
from memseal.recall.stopwords import STOP_WORDS

# A pasted page must not become a query of a thousand words; 64 is also what fits `Candidates.matched`.
MAX_TERMS = 64
# What is read of a query at all; the embedder reads about 256 tokens.
MAX_CHARS = 20_000


@dataclass(frozen=True)
class Query:
    """A query that was read: `text` for the embedder, `terms` for the words, `period` if it names one."""

    text: str
    terms: tuple[str, ...]
    words: frozenset[str]
    period: Period | None


def parse_query(text: str, now: datetime | None = None) -> Query:
    """Read any text as a query; relative times ("last week") count only if `now` (aware) is given.

    Terms are the distinct words in order, in lower case, without stop words: letters, digits and marks
    only, so that nothing in them can be an operator. A query of stop words has none.
    """
    clean = _clean(text)
    words = list(dict.fromkeys(_words(clean)))
    terms = [word for word in words if word not in STOP_WORDS][:MAX_TERMS]
    return Query(clean, tuple(terms), frozenset(words), find_period(clean, now))


def words_of(text: str) -> frozenset[str]:
    """Return the distinct words of a text, in lower case."""
    return frozenset(_words(_clean(text)))


def _clean(text: str) -> str:
    # A lone surrogate cannot be encoded, so neither SQLite nor a tokenizer would take it.
    readable = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", readable)


def _words(text: str) -> Iterator[str]:
    """Split where SQLite's `unicode61` does: what is neither letter, mark nor digit separates."""
    spaced = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in text.lower())
    return iter(spaced.split())
