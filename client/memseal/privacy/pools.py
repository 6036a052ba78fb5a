"""Names that stand in for real ones: drawn from lists by a seed, invented where no list is left."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_ONSETS: Final = "b br c cl d dr f fl g gr h j k kl l m n p pr qu r s sk st t tr v w z th sh".split()
_VOWELS: Final = "a e i o u ae ia eo au ou".split()
_CODAS: Final = "l m n r s x nd rn lm st rt ck v th".split()
_ENDINGS: Final = {"ORGANIZATION": "ix on ara eon ys".split(), "LOCATION": "ford haven mere wick dorf stad".split()}
_NAME_ENDINGS: Final = "a en o is an el".split()


@dataclass(frozen=True)
class Pools:
    """First names by locale and gender, last names likewise, and where a real name is at home."""

    first: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict[tuple[str, str], Sequence[str]])
    last: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict[tuple[str, str], Sequence[str]])
    home: Mapping[str, str] = field(default_factory=dict[str, str])


class Draw:
    """A row of choices that a seed decides: the same seed and the same questions, the same answers."""

    def __init__(self, seed: bytes, drawn: int = 0) -> None:
        """Take the session's seed, and how many choices were made before."""
        self._seed = seed
        self.drawn = drawn

    def below(self, limit: int) -> int:
        """Return the next number below a limit."""
        self.drawn += 1
        digest = hashlib.sha256(self._seed + self.drawn.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def one_of(self, items: Sequence[str]) -> str:
        """Return one of the items."""
        return items[self.below(len(items))]


def draw_name(draw: Draw, names: Sequence[str], free: Callable[[str], bool]) -> str:
    """Return a name of the list that is free, or an invented one when the list seems used up."""
    for _ in range(min(64, 2 * len(names))):
        name = draw.one_of(names)
        if free(name):
            return name
    return invent(draw, "PERSON", free)


def invent(draw: Draw, kind: str, free: Callable[[str], bool]) -> str:
    """Return a word that nobody has used; it grows longer until it is free, so words never run out."""
    syllables = 1
    while True:
        for _ in range(32):
            word = "".join(draw.one_of(_ONSETS) + draw.one_of(_VOWELS) for _ in range(syllables))
            name = (word + draw.one_of(_CODAS) + draw.one_of(_ENDINGS.get(kind, _NAME_ENDINGS))).capitalize()
            if len(name) > 4 and free(name):
                return name
        syllables += 1
