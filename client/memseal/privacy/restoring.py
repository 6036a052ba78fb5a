"""The way back: stand-ins in a reply become the real values, in one pass, whole or in pieces."""

import json
import re
from collections.abc import Callable
from typing import Final

from memseal.privacy import tokens
from memseal.privacy.pairs import Entry, Pairs, case_of
from memseal.privacy.typos import Typos

# Scripts that set no spaces between words.
_PACKED: Final = r"\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
_IS_PACKED: Final = re.compile(f"[{_PACKED}]")
_WORD: Final = rf"(?<![^\W_{_PACKED}])(?P<word>[^\W_{_PACKED}]+)"
# What a language may add to a name without a sign between: the Walkers, Emmas.
_ENDINGS: Final = ("s", "es")


class Restorer:
    """Restores what one session issued; what it did not issue stays as it is."""

    def __init__(self, pairs: Pairs) -> None:
        """Take the pairs; `renew` takes in those that were added since."""
        self._pairs = pairs
        self._taken = 0
        self._beginnings: set[str] = set()
        self._packed: list[str] = []
        self._phrases: list[str] = []
        self._escaped: dict[str, str] = {}  # as JSON may spell a name
        self._typos = Typos()
        self._longest = tokens.LONGEST
        self._pattern = self._compiled()
        self.renew()

    def renew(self) -> None:
        """Take in the pairs that were added."""
        special = len(self._packed) + len(self._phrases)
        for entry in self._pairs.entries(self._taken):
            self._taken += 1
            if not entry.standin.startswith("["):
                self._take(entry.standin)
        if special != len(self._packed) + len(self._phrases):
            self._pattern = self._compiled()

    def _take(self, name: str) -> None:
        if _IS_PACKED.search(name):
            self._packed.append(name)
        elif not name.isalnum():
            self._phrases.append(name)
        if not name.isascii():
            escaped = json.dumps(name)[1:-1]
            self._packed.append(escaped)
            self._escaped[escaped.casefold()] = name.casefold()
            self._beginnings.update(escaped[:length].casefold() for length in range(1, len(escaped) + 1))
        low = " ".join(name.casefold().split())  # as `_may_grow` looks it up: a name may go over the end of a line
        self._typos.take(low)
        self._beginnings.update(low[:length] for length in range(1, len(low) + 1))
        self._beginnings.update(low + ending for ending in ("e", *_ENDINGS))
        self._longest = max(self._longest, 7 * len(name))

    def _compiled(self) -> re.Pattern[str]:
        parts = (tokens.TOKEN.pattern, *_as_they_are(self._packed), *_with_edges(self._phrases), _WORD)
        return re.compile("|".join(parts))

    def restore(self, text: str, escape: Callable[[str], str] = str) -> str:
        """Return the text with real values; `escape` prepares each for where it stands, such as in JSON."""
        return self._pattern.sub(lambda match: self._real(match, escape), text)

    def restore_until(self, text: str, start: int, end: int, escape: Callable[[str], str] = str) -> tuple[str, int]:
        """Restore text[start:end], never half a stand-in; returns the place that was reached too."""
        parts: list[str] = []
        for match in self._pattern.finditer(text, start):
            if match.start() >= end:
                break
            if match.end() > end and self._real(match, str) != match[0]:
                end = match.start()
                break
            parts += (text[start : match.start()], self._real(match, escape))
            start = match.end()
        end = max(start, end)
        return "".join((*parts, text[start:end])), end

    def settled(self, text: str, start: int) -> int:
        """Return up to where a text that goes on can be restored already: all after may become a stand-in yet."""
        for place in range(max(start, len(text) - self._longest), len(text)):
            if self._may_grow(text, place):
                return place
        return len(text)

    def issued(self, text: str) -> list[tuple[int, int, Entry]]:
        """Return where stand-ins that were issued stand in a text."""
        found = [(match.start(), match.end(), self._entry(match)[0]) for match in self._pattern.finditer(text)]
        return [(start, end, entry) for start, end, entry in found if entry is not None]

    def _may_grow(self, text: str, place: int) -> bool:
        tail = text[place:]
        inside = place > 0 and text[place - 1].isalnum() and not _IS_PACKED.match(text[place - 1])
        if tokens.may_become(tail) and not (inside and tail[0].isalnum()):
            return True
        if tail[0].isspace():
            return False
        if not inside and tail.isalnum() and self._typos.may_become(tail.casefold()):
            return True
        low = " ".join(tail.split()) + (" " if tail[-1].isspace() else "")
        return (not inside or bool(self._packed)) and low.casefold() in self._beginnings

    def _real(self, match: re.Match[str], escape: Callable[[str], str]) -> str:
        entry, ending = self._entry(match)
        if entry is None:
            return match[0]
        if entry.standin.startswith("["):
            return escape(next(iter(entry.surfaces.values())))
        written = match[0].removesuffix(ending)
        if written.casefold() in self._escaped:
            written = json.loads(f'"{written}"')
        return escape(entry.real(case_of(written)) + ending)

    def _entry(self, match: re.Match[str]) -> tuple[Entry | None, str]:
        if match["label"] or match["bare"]:
            return self._pairs.find(tokens.as_written(match)), ""
        low = " ".join(match[0].split()).casefold()
        entry = self._pairs.find(self._escaped.get(low, low))
        if entry is None and match["word"]:
            for ending in _ENDINGS:
                if low.endswith(ending) and (entry := self._pairs.find(low.removesuffix(ending))) is not None:
                    return entry, match[0][-len(ending) :]
            if (meant := self._typos.meant(low)) is not None and self._pairs.is_strange(low):
                entry = self._pairs.find(meant)
        return entry, ""


def _with_edges(phrases: list[str]) -> tuple[str, ...]:
    # The longest first, so that none is taken for another's beginning.
    found = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in sorted(phrases, key=len, reverse=True))
    return (rf"(?<![^\W_])(?i:{found})(?![^\W_])",) if phrases else ()


def _as_they_are(names: list[str]) -> tuple[str, ...]:
    found = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return (rf"(?i:{found})",) if names else ()


class Stream:
    """Restores a reply that arrives in pieces: together the results are what restoring it whole gives."""

    def __init__(self, restorer: Callable[[], Restorer], escape: Callable[[str], str] = str) -> None:
        """Take what returns the session's restorer: pairs may be added while a reply arrives."""
        self._restorer = restorer
        self._escape = escape
        self._text = ""  # what is held back, after one character that was given out already
        self._start = 0

    def push(self, piece: str) -> str:
        """Take the next piece and return what can be said already."""
        self._text += piece
        restorer = self._restorer()
        return self._give(restorer, restorer.settled(self._text, self._start))

    def end(self) -> str:
        """Return the rest."""
        return self._give(self._restorer(), len(self._text))

    def _give(self, restorer: Restorer, end: int) -> str:
        shown, reached = restorer.restore_until(self._text, self._start, end, self._escape)
        keep = max(0, reached - 1)
        self._text, self._start = self._text[keep:], reached - keep
        return shown
