"""Where the words of a text begin and end, in any script: the same for what is stored and what is asked (recall.md §3).

SQLite's tokenizer folds case and accents and takes off English endings; it needs white space around each word, and
finds none in Chinese or Thai.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

VERSION: Final = 1
"""To be raised with every change of the rules here: an index that was made by others must be made anew."""

# Han, kana, bopomofo, Yi; Hangul, whose particles stick to the words; Thai, Lao, Myanmar, Khmer, Tai Le to Tai Tham.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3031-\u3035"
    "\u3040-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\ua9e0-\ua9ff"
    "\uaa60-\uaa7f\uac00-\ud7ff\uf900-\ufaff\U00016fe0-\U00018cff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_RUN: Final = re.compile(f"[{_UNSPACED}][{_UNSPACED}\u0300-\u036f\u3099\u309a]*")
# Points and stretchers of Hebrew and Arabic, which most people leave out, and what makes a sign an emoji.
_OPTIONAL: Final = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\ufe0e\ufe0f]"
)
_ACCENT: Final = re.compile("[\u0300-\u036f]")
# In the exact form of a word an accent is a private character, which the tokenizer keeps.
_KEPT: Final = {code: 0xE000 + code for code in range(0x0300, 0x0370)}
# Letters that people without the right keyboard write so, and that no decomposition takes apart.
_PLAIN: Final = str.maketrans({"đ": "d", "ł": "l", "ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "\u0131": "i"})
# The rest of a text the tokenizer sees as it is: reading all of it takes ten times as long.
# Possessive, and only from where a word begins, so that no text is gone through more than once.
_PIECE: Final = r"[^\s\x80-\U0010ffff]*+[^\x00-\x7f\s]\S*+"
_BEYOND_ASCII: Final = re.compile(rf"(?<!\S){_PIECE}(?:\s++{_PIECE})*")
_FLAG: Final = re.compile("([\U0001f1e6-\U0001f1ff])  ([\U0001f1e6-\U0001f1ff])")


def split(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case: of unspaced scripts each two neighbouring characters, or one alone."""
    for word in _apart(text):
        units = _units(word)
        if len(units) > 1:
            yield from map("".join, pairwise(units))
        else:
            yield word


def indexed(text: str) -> str:
    """Return a text as the tokenizer is to see it.

    A word with accents is there with and without them, so that it is found by either, and better by its own; a run of
    an unspaced script as its single characters and as its pairs.
    """
    return text if text.isascii() else _BEYOND_ASCII.sub(_indexed, text)


def _indexed(piece: re.Match[str]) -> str:
    words = list[str]()
    for word in _apart(piece[0]):
        units = _units(word)
        words += (*units, *map("".join, pairwise(units))) if units else _forms(word)
    return " ".join(words)


def asked(word: str) -> str:
    """Return one of the words of `split` as the tokenizer is to see it."""
    return " ".join(_forms(word))


def _apart(text: str) -> Iterator[str]:
    """Yield words, runs of unspaced scripts, and signs, in lower case."""
    plain = _OPTIONAL.sub("", unicodedata.normalize("NFKC", text).lower())
    spaced = "".join(map(_spaced, unicodedata.normalize("NFC", plain)))
    # A flag is two letters, each of which is part of many flags.
    for word in _RUN.sub(r" \g<0> ", _FLAG.sub(r"\1\2", spaced)).split():
        if word[0].isalnum() or any(unicodedata.category(character)[0] != "M" for character in word):
            yield word


def _spaced(character: str) -> str:
    """Return what is part of a word as it is, a sign such as an emoji as a word, and a space for all else."""
    if character.isalnum():
        return character
    category = unicodedata.category(character)
    if category == "So":
        return f" {character} "
    return character if category[0] == "M" or category == "Co" else " "


def _units(word: str) -> list[str]:
    """Return the characters of an unspaced run, each with its marks; none of another word."""
    if not _RUN.match(word):  # runs stand alone: what begins as one is one
        return []
    if word.isalnum():
        return list(word)
    units = list[str]()
    for character in word:
        if units and unicodedata.category(character)[0] == "M":
            units[-1] += character
        else:
            units.append(character)
    return units


def _forms(word: str) -> list[str]:
    """Return the word, with its accents kept if it has any, and as it is written without the right keyboard."""
    forms = [word]
    if word.isascii():
        return forms
    marked = unicodedata.normalize("NFD", word)
    if _ACCENT.search(marked):
        forms.append(marked.translate(_KEPT))
    plain = word.translate(_PLAIN)
    return [*forms, plain] if plain != word else forms
