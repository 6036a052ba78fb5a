"""Texts as a reader sees them, without invisible characters, lookalikes and encodings, and the way back."""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Letters of other scripts that look like Latin ones, folded only in a word that has Latin letters too.
_LOOKALIKES: Final = str.maketrans(
    "авеёіјкмнорѕстухьАВЕІЈКМНОРЅСТУХЬԁԛԝɡαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abeëijkmhopsctyxbABEIJKMHOPSCTYXbdqwgaeiknoptuxABEZHIKMNOPTYX",
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}|&(?:#\d{1,6}|#x[0-9A-Fa-f]{1,5}|[A-Za-z]{2,8});")
_ODD_QUOTES: Final = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"}


@dataclass(frozen=True)
class Folded:
    """A folded text, and for each of its characters where the original of it starts and ends."""

    text: str
    starts: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the original of text[start:end], which is not empty."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> Folded:
    """Return the text as it is read, with a map back."""
    if text.isascii() and not _ENCODED.search(text):
        return Folded(text)
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, shown in _clusters(text):
        for character in shown:
            characters.append(character)
            starts.append(start)
            ends.append(end)
    return Folded(_WORD.sub(_latin, "".join(characters)), tuple(starts), tuple(ends))


def key_of(text: str) -> str:
    """Return what two spellings of one value have in common: case, form of accents and spaces do not count."""
    return " ".join(fold(text).text.casefold().split())


def _clusters(text: str) -> Iterator[tuple[int, int, str]]:
    place = 0
    while place < len(text):
        encoded = _ENCODED.match(text, place) if text[place] in "%&" else None
        if encoded is not None and (shown := _decoded(encoded[0])) is not None:
            yield place, encoded.end(), shown
            place = encoded.end()
            continue
        end = place + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        yield place, end, _shown(text[place:end])
        place = end


def _decoded(encoded: str) -> str | None:
    character = chr(int(encoded[1:], 16)) if encoded[0] == "%" else html.unescape(encoded)
    return character if len(character) == 1 and " " < character < "\x7f" else None


def _shown(cluster: str) -> str:
    if len(cluster) == 1:
        if cluster < "\x7f":
            return cluster
        if cluster in _ODD_QUOTES:
            return _ODD_QUOTES[cluster]
        if unicodedata.category(cluster) == "Cf":  # zero width, bidi marks, soft hyphens
            return ""
    return unicodedata.normalize("NFKC", cluster)


def _latin(word: re.Match[str]) -> str:
    shown = word[0]
    return shown if shown.isascii() or not any("A" <= letter <= "z" for letter in shown) else _same_length(shown)


def _same_length(word: str) -> str:
    return word.translate(_LOOKALIKES)
