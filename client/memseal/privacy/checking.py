"""The outgoing check: nothing that has a stand-in, and no part of it, is left in a text."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from memseal.privacy.folding import fold, key_of
from memseal.privacy.lexicon import Lexicon
from memseal.privacy.pairs import Entry, Pairs
from memseal.privacy.spans import Span

_SCRIPTS: Final = r"\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3"  # without spaces: a word of another ends where one begins
_PART: Final = re.compile(rf"[^\W_{_SCRIPTS}]+")
_WORD: Final = re.compile(rf"{_PART.pattern}(?:['-](?![sS]\b){_PART.pattern})*")
_PACKED: Final = re.compile(rf"[{_SCRIPTS}]")
_UNMISTAKABLE: Final = 8  # so long a value is itself also where letters are glued to a number
_SHORTEST_DATA: Final = 5  # a shorter number is in too many others to say anything


class Finder:
    """Finds in a text what a session knows already."""

    def __init__(self, pairs: Pairs, lexicon: Lexicon) -> None:
        """Take the pairs; `renew` takes in those that were added since."""
        self._pairs = pairs
        self._taken = 0
        self._lexicon = lexicon
        self._phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._data: dict[str, list[tuple[str, str]]] = {}
        self._packed: dict[str, str] = {}  # of scripts without spaces
        self.renew()

    def renew(self) -> None:
        """Take in the pairs that were added."""
        for entry in self._pairs.entries(self._taken):
            self._taken += 1
            for value in entry.surfaces.values():
                self._take(entry, value)

    def find(self, text: str) -> Iterator[Span]:
        """Return where known values stand, in whatever case, accents' form or disguise."""
        folded = fold(text)
        for start, end, kind in (*self._names(folded.text), *self._values(folded.text)):
            begin, finish = folded.original(start, end)
            yield Span(begin, finish, kind, 0.99, "known in this session")

    def _take(self, entry: Entry, value: str) -> None:
        if entry.standin.startswith("["):
            compact = _compact(value)
            if len(compact) >= _SHORTEST_DATA and entry.type != "TEXT":
                self._data.setdefault(compact[:_SHORTEST_DATA], []).append((compact, entry.type))
            if entry.type == "PERSON":
                self._take_words(entry, value)
        else:
            self._take_words(entry, value)

    def _take_words(self, entry: Entry, value: str) -> None:
        if _PACKED.search(value):
            self._packed[value] = entry.type
            return
        words = tuple(_WORD.findall(key_of(value)))
        if len(words) > 1 or (words and not self._is_plain(words[0])):
            self._put(words, entry.type)
        for word in _PART.findall(key_of(value)):
            if not self._is_plain(word):
                self._put((word,), entry.type)

    def _put(self, words: tuple[str, ...], kind: str) -> None:
        known = self._phrases.setdefault(words[0], [])
        if all(rival != words for rival, _ in known):
            known.append((words, kind))
            known.sort(key=lambda rival: -len(rival[0]))

    def _is_plain(self, word: str) -> bool:
        return len(word) < 2 or (word.isascii() and len(word) < 3) or self._lexicon.is_word(word) or word.isdecimal()

    def _names(self, text: str) -> Iterator[tuple[int, int, str]]:
        whole = [(match.start(), match.end(), match[0].casefold()) for match in _WORD.finditer(text)]
        parts = [(match.start(), match.end(), match[0].casefold()) for match in _PART.finditer(text)]
        for value, kind in self._packed.items():
            for found in re.finditer(re.escape(value), text):
                yield found.start(), found.end(), kind
        for words in (whole, parts) if whole != parts else (whole,):
            for place, (start, _, low) in enumerate(words):
                for phrase, kind in self._phrases.get(low, ()):
                    run = words[place : place + len(phrase)]
                    if tuple(word[2] for word in run) == phrase and _is_one(text, run):
                        yield start, run[-1][1], kind
                        break

    def _values(self, text: str) -> Iterator[tuple[int, int, str]]:
        if not self._data:
            return
        # Letter by letter: the small form of one, such as ß, may be two.
        folded = [(place, low) for place, letter in enumerate(text) for low in letter.casefold() if low.isalnum()]
        places = [place for place, _ in folded]
        compact = "".join(low for _, low in folded)
        for place in range(len(compact) - _SHORTEST_DATA + 1):
            for value, kind in self._data.get(compact[place : place + _SHORTEST_DATA], ()):
                end = place + len(value)
                if compact.startswith(value, place) and _stands_alone(text, places, place, end):
                    yield places[place], places[end - 1] + 1, kind


def _compact(text: str) -> str:
    return _letters_and_digits(fold(text).text.casefold())


def _letters_and_digits(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _is_one(text: str, run: list[tuple[int, int, str]]) -> bool:
    return all(right[0] - left[1] <= 3 for left, right in pairwise(run))


def _stands_alone(text: str, places: list[int], start: int, end: int) -> bool:
    """Whether the characters of a value lie close together, and it is no piece of a longer run."""
    if any(right - left > 3 for left, right in zip(places[start : end - 1], places[start + 1 : end], strict=True)):
        return False
    before, first = text[: places[start]][-1:], text[places[start]]
    last, after = text[places[end - 1]], text[places[end - 1] + 1 :][:1]
    if end - start < _UNMISTAKABLE:
        return not (before.isalnum() or after.isalnum())
    return not (_is_one_run(before, first) or _is_one_run(last, after))


def _is_one_run(left: str, right: str) -> bool:
    """Whether two characters side by side are of one number or word: 9José is a number and a name."""
    return (left.isdigit() and right.isdigit()) or (left.isalpha() and right.isalpha())
