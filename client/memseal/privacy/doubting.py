"""What a language model takes for a name: the part of it that is one, or nothing."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from memseal.privacy.lexicon import NAMES_THAT_ARE_WORDS, NOT_NAMES, Lexicon
from memseal.privacy.spans import Span

WORD: Final = re.compile(r"[^\W\d_]+(?:['-](?![sS]\b)[^\W\d_]+)*")
_PART: Final = re.compile(r"[^\W\d_]+")
_HUMP: Final = re.compile(r"[A-Z][a-z]+|[A-Z]+(?![a-z])|[a-z]+")
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+(?:[A-Z]+[a-z]*)+")
_NAME_BESIDE_DIGITS: Final = re.compile(r"[^\W\d_a-zà-öø-ÿ][^\W\d_A-ZÀ-Þ]{2,}")
# What follows an abbreviation that says what the number after it is.
_LABEL: Final = re.compile(r"\s*(?:number\b|no\b|id\b|#|:|=|\d|[A-Z]+\d)", re.IGNORECASE)
# Before these words a common word is a name all the same: in Split, at Target.
_BEFORE_PLACE: Final = re.compile(
    r"\b(?:in|near|outside|around|to|from|at|via|through|visit(?:s|ed|ing)?|,)\s+(?:the\s+)?$", re.IGNORECASE
)
_BEFORE_COMPANY: Final = re.compile(
    r"\b(?:(?:work(?:s|ed|ing)?|job|role|position|interview(?:ed)?|intern(?:ed|ship)?|hired|employed)\s+(?:at|for|by|with)"
    r"|at|join(?:s|ed|ing)?|left|acquired\s+by|support|(?:CEO|CTO|CFO|founder|owner|head|president)\s+of)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_LOOK_BACK: Final = 32
_LONGEST_ABBREVIATION: Final = 5
_ODD: Final = "@/_=\\{}<>"
_SMALL_WORDS: Final = frozenset(("the", "of", "and", "for", "in", "a", "an", "de", "s"))
_SCORE: Final = 0.7


def believed(text: str, found: Iterable[Span], lexicon: Lexicon) -> Iterator[Span]:
    """Return what of a model's findings are names, each without the words around it."""
    for span in found:
        words = list(WORD.finditer(text, span.start, span.end))
        if words and not _cuts_a_word(text, span):
            yield from (
                _person(text, span, words, lexicon) if span.type == "PERSON" else _other(text, span, words, lexicon)
            )


def _cuts_a_word(text: str, span: Span) -> bool:
    # The model reads "gonna" as two words.
    return ((text[span.start - 1 : span.start] + text[span.start]).isalpha() and span.start > 0) or (
        text[span.end - 1 : span.end + 1].isalpha() and span.end < len(text)
    )


def _person(text: str, span: Span, words: list[re.Match[str]], lexicon: Lexicon) -> Iterator[Span]:
    line = text.find("\n", span.start, span.end)
    if line >= 0:
        words = [word for word in words if word.end() <= line] or words[:1]
    while words and words[0][0].casefold() in NOT_NAMES:
        words = words[1:]
    while words and words[-1][0].casefold() in NOT_NAMES:
        words = words[:-1]
    if not words or any(
        character.isdigit() or character in _ODD for character in text[words[0].start() : words[-1].end()]
    ):
        return
    lows = [word[0].casefold() for word in words]
    if not any(
        low in lexicon.usual or low in NAMES_THAT_ARE_WORDS or not (_is_plain(low, lexicon) or len(low) == 1)
        for low in lows
    ):
        return
    if text[words[0].start() : words[-1].end()].islower() and not any(
        lexicon.is_first(low) or lexicon.is_unheard(low) for low in lows
    ):
        return
    known = [low for low in lows if low in lexicon.first or low in lexicon.last]
    if not known and (span.source.endswith("recased") or text[words[-1].end() :].startswith(":")):
        return
    if len(words) == 1 and not known and not (lexicon.is_unheard(lows[0]) and words[0][0][0].isupper()):
        return
    yield span._replace(start=words[0].start(), end=max(words[-1].end(), min(span.end, words[-1].end())))


def _other(text: str, span: Span, words: list[re.Match[str]], lexicon: Lexicon) -> Iterator[Span]:
    shown = text[span.start : span.end].partition("\n")[0].rstrip().removesuffix("'s")
    lows = [part[0].casefold() for part in _PART.finditer(shown)]
    if all(low in NOT_NAMES or low in _SMALL_WORDS or low in lexicon.languages for low in lows):
        return
    if any(character in "@=\\{}<>_|" for character in shown):
        return
    if any(character.isdigit() for character in shown) and not _NAME_BESIDE_DIGITS.search(shown):
        return
    cue = _BEFORE_PLACE if span.type == "LOCATION" else _BEFORE_COMPANY
    if cue.search(text, max(0, span.start - _LOOK_BACK), span.start) is None and _is_doubtful(
        text, span, shown, words, lexicon
    ):
        return
    if len(words) == 1 and (len(shown) < 3 or (shown.islower() and not lexicon.is_unheard(shown))):
        return
    yield span._replace(end=span.start + len(shown), score=_SCORE)


def _is_doubtful(text: str, span: Span, shown: str, words: list[re.Match[str]], lexicon: Lexicon) -> bool:
    """Whether nothing but the model says that this is a name."""
    low = shown.casefold()
    if low in lexicon.countries or (low in lexicon.places and not _is_plain(low, lexicon)):
        return False
    if len(words) > 1:
        return all(
            _is_plain(part, lexicon) or part in _SMALL_WORDS
            for part in (found[0].casefold() for found in _PART.finditer(shown))
        )
    if shown.isupper() and (len(shown) <= _LONGEST_ABBREVIATION or _LABEL.match(text, span.end)):
        return True
    if low in lexicon.first and low in NAMES_THAT_ARE_WORDS:  # Ask Chase: whatever the model makes of it
        return False
    if lexicon.is_word(low) or (span.type == "LOCATION" and not lexicon.is_unheard(low)):
        return True
    return _CAMEL.fullmatch(shown) is not None and all(
        lexicon.is_word(hump.casefold()) or not lexicon.is_unheard(hump.casefold()) for hump in _HUMP.findall(shown)
    )


def _is_plain(word: str, lexicon: Lexicon) -> bool:
    return lexicon.is_word(word) or word in lexicon.heard
