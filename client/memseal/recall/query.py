"""Read a query: its words, the time it speaks of, and whether it asks for anything else."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memseal.recall.dates import find_period
from memseal.recall.english import FOREIGN, is_english
from memseal.recall.period import Period
from memseal.recall.stopwords import ASKING, STOP_WORDS
from memseal.recall.words import split

# A pasted page must not become a query of a thousand words; 64 is also what fits `Candidates.matched`.
MAX_TERMS = 64
# What is read of a query at all; the embedder reads about 256 tokens.
MAX_CHARS = 20_000

# In fewer words than this a small word of another language can be the topic: "ma" is a ghost in Vietnamese.
_SENTENCE = 3

TimeRule = Literal["prefer", "only", "ignore"]
"""What a time in the query does: lift the memories of then, leave out all others, or nothing."""


@dataclass(frozen=True)
class Query:
    """A query that was read: `text` for the embedder, `terms` for the words, `period` if it names one.

    `about_time`: beside the period it only asks ("what happened last week?"), so every memory of then answers it.
    `time_terms` has a bit for each term that only names the time: one alone ("last") makes no memory related, all do.
    """

    text: str
    terms: tuple[str, ...]
    words: frozenset[str]
    period: Period | None
    about_time: bool = False
    time_terms: int = 0

    @property
    def searchable(self) -> bool:
        """Whether there is anything to look for: a query of stop words alone finds nothing, whatever is near it."""
        return bool(self.terms) or self.about_time


def parse_query(text: str, now: datetime | None = None, *, first_weekday: int = 0, time: TimeRule = "prefer") -> Query:
    """Read any text as a query; relative times ("last week") count only if `now` (aware) is given, in its zone.

    Terms are the distinct words in order, in lower case, without stop words: letters, digits, marks and signs
    only, so that nothing in them can be an operator. The words that name a time stay terms, since a memory may have
    them ("the band Last Tuesday"), except where it counts for all (`only`).
    """
    clean = _clean(text)
    period = None if time == "ignore" else find_period(clean, now, first_weekday)
    topic = clean if period is None else period.without(clean)
    stop = STOP_WORDS if is_english(clean) or clean.count(" ") < _SENTENCE - 1 else STOP_WORDS | FOREIGN
    about = [word for word in split(topic) if word not in stop]
    about_time = period is not None and ASKING.issuperset(about)
    phrase = "" if period is None else period.phrase
    rest, whole = ("", phrase) if about_time else (topic, clean)
    whole = rest if time == "only" else whole
    words = list(dict.fromkeys(split(whole)))
    terms = [word for word in words if word not in stop][:MAX_TERMS]
    return Query(
        text=whole,
        terms=tuple(terms),
        words=frozenset(words),
        period=period,
        about_time=about_time,
        time_terms=sum(1 << place for place, term in enumerate(terms) if about_time or term not in about),
    )


def words_of(text: str) -> frozenset[str]:
    """Return the distinct words of a text, in lower case."""
    return frozenset(split(_clean(text)))


def _clean(text: str) -> str:
    # A lone surrogate cannot be encoded, so neither SQLite nor a tokenizer would take it.
    readable = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", readable)
