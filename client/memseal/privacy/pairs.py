"""One session's pairs of real values and stand-ins: one real value, one stand-in, both ways."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from memseal.privacy import tokens
from memseal.privacy.folding import key_of
from memseal.privacy.lexicon import Lexicon
from memseal.privacy.pools import Draw, Pools, draw_name, invent

_T = TypeVar("_T")
_VERSION: Final = 1
_COUNTS: Final = 1 << 53  # of choices and numbers: nobody comes so far, and counting on takes no more than 64 bits
# Of last names, where women's differ from men's.
_FEMALE_ENDINGS: Final = ("а", "я", "ova", "ová", "ská", "cká", "ska", "cka", "eva", "ina", "dóttir")
_DEFAULT_LOCALE: Final = "en"
_TRIES: Final = 64
_INITIALS: Final = "BCDEFGHJKLMNPRSTVW"
_WORDS: Final = re.compile(r"[^\W_]+")
TITLE, UPPER, LOWER = "title", "upper", "lower"


@dataclass
class Entry:
    """One real value in the letter cases it was written in, and its stand-in."""

    standin: str
    type: str
    surfaces: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def real(self, case: str) -> str:
        """Return the real value in a letter case."""
        if case in self.surfaces:
            return self.surfaces[case]
        shown = next(iter(self.surfaces.values()))
        return shown.upper() if case == UPPER else shown.lower() if case == LOWER else _capitalised(shown)


class Pairs:
    """The pairs of a session. It is as secret as what it hides: it has no telling repr, and is saved only sealed."""

    def __init__(self, seed: bytes, lexicon: Lexicon, pools: Pools) -> None:
        """Take the session's random seed, which makes its stand-ins other than those of any other session."""
        self._draw = Draw(seed)
        self._seed = seed
        self._lexicon = lexicon
        self._pools = pools
        self._names: dict[str, Entry] = {}  # by key of the real value
        self._odd: dict[str, Entry] = {}  # by a real value whose spelling has a stand-in of its own
        self._data: dict[str, Entry] = {}  # by real value
        self._by_standin: dict[str, Entry] = {}
        self._entries: list[Entry] = []
        self._numbers: dict[str, int] = {}
        self._seen: set[str] = set()  # every word that any text or value had

    def __repr__(self) -> str:
        return f"<pairs of {len(self._by_standin)} values>"

    def __len__(self) -> int:
        return len(self._by_standin)

    def entries(self, start: int = 0) -> list[Entry]:
        """Return the pairs in the order they were made, from a place on."""
        return self._entries[start:]

    def see(self, text: str) -> None:
        """Remember the words of a text: no stand-in will be one of them."""
        self._seen.update(word.casefold() for word in _WORDS.findall(text))

    def name(self, value: str, kind: str, place: str = "") -> str:
        """Return the natural stand-in of a name, in its letter case; `place` is first, last or nothing."""
        case = case_of(value)
        entry = self._odd.get(value) or self._names.get(key_of(value))
        if entry is not None and entry.surfaces.setdefault(case, value) == value and entry.real(case) == value:
            return in_case(entry.standin, case)
        made = self._new_name(value, kind, place)
        if entry is None:
            self._names[key_of(value)] = made
        else:  # another spelling of the same value: it must come back as it was written
            self._odd[value] = made
        return in_case(made.standin, case)

    def phrase(self, value: str, anchor: str) -> str:
        """Return the stand-in of a name with initials: other letters around the stand-in of the name itself."""
        known = self._odd.get(value)
        if known is None:
            name = self._names[key_of(anchor)].standin if key_of(anchor) in self._names else anchor
            before, _, after = value.partition(anchor)
            for _ in range(_TRIES):
                standin = self._letters(before) + in_case(name, case_of(anchor)) + self._letters(after)
                if standin.casefold() not in self._by_standin:
                    break
            else:  # a name with one initial has no more than the alphabet
                return self.token(value, "PERSON")
            known = Entry(standin, "PERSON", {TITLE: value})
            self._odd[value] = known
            self._add(known, value)
        return known.standin

    def _letters(self, initials: str) -> str:
        return "".join(self._draw.one_of(_INITIALS) if letter.isalpha() else letter for letter in initials)

    def token(self, value: str, kind: str) -> str:
        """Return the typed stand-in of a value."""
        entry = self._data.get(value)
        if entry is None:
            label = tokens.label_of(kind)
            self._numbers[label] = number = self._numbers.get(label, 0) + 1
            entry = Entry(tokens.token(label, number), kind, {TITLE: value})
            self._data[value] = entry
            self._add(entry, value)
        return entry.standin

    def known(self, value: str) -> bool:
        """Whether a name has a natural stand-in already."""
        return value in self._odd or key_of(value) in self._names

    def is_strange(self, word: str) -> bool:
        """Whether a word in small letters is no word and no name, and no text of this session had it."""
        lexicon = self._lexicon
        return not (word in self._seen or word in lexicon.words or word in lexicon.first or word in lexicon.last)

    def find(self, standin: str) -> Entry | None:
        """Return the pair of a stand-in that was issued."""
        return self._by_standin.get(_place_of(standin))

    def save(self) -> dict[str, Any]:
        """Return everything as plain values, to be sealed."""
        return {
            "version": _VERSION,
            "seed": self._seed,
            "drawn": self._draw.drawn,
            "seen": sorted(self._seen),
            "numbers": dict(self._numbers),
            "entries": [[entry.standin, entry.type, dict(entry.surfaces)] for entry in self.entries()],
            "names": {key: entry.standin for key, entry in self._names.items()},
            "odd": {value: entry.standin for value, entry in self._odd.items()},
            "data": {value: entry.standin for value, entry in self._data.items()},
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any], lexicon: Lexicon, pools: Pools) -> "Pairs":
        """Return the mapping that was saved.

        Raises `KeyError`, `TypeError` or `ValueError` where it is none, or was saved by newer software.
        """
        if saved.get("version") != _VERSION:
            raise ValueError("the mapping was saved by a newer version: update memseal")
        made = cls(_checked(saved["seed"], bytes), lexicon, pools)
        made._draw = Draw(made._seed, _count(saved["drawn"]))
        made._seen = {_checked(word, str) for word in _array(saved["seen"])}
        made._numbers = {label: _count(number) for label, number in _map(saved["numbers"]).items()}
        for standin, kind, surfaces in _array(saved["entries"]):
            shown = {case: _filled(value) for case, value in _map(surfaces).items()}
            if not shown:
                raise ValueError("a stand-in without a real value")
            entry = Entry(_filled(standin), _checked(kind, str), shown)
            made._by_standin[_place_of(entry.standin)] = entry
            made._entries.append(entry)
        for name, target in (("names", made._names), ("odd", made._odd), ("data", made._data)):
            for value, standin in _map(saved[name]).items():
                target[value] = made._by_standin[_place_of(_checked(standin, str))]
        return made

    def _new_name(self, value: str, kind: str, place: str) -> Entry:
        self.see(value)
        entry = Entry(self._fresh(value, kind, place), kind, {case_of(value): value})
        self._add(entry, value)
        return entry

    def _add(self, entry: Entry, value: str) -> None:
        self.see(value)
        self._by_standin[_place_of(entry.standin)] = entry
        self._entries.append(entry)

    def _fresh(self, value: str, kind: str, place: str) -> str:
        if kind != "PERSON":
            return invent(self._draw, kind, self._is_free)
        return draw_name(self._draw, self._pool(value, place), self._is_free)

    def _pool(self, value: str, place: str) -> Sequence[str]:
        low = value.casefold()
        gender = self._lexicon.first.get(low, "") if place != "last" else ""
        locale = self._pools.home.get(low) or self._pools.home.get(low[:1], "") or _script(value) or _DEFAULT_LOCALE
        if place != "last" and (place == "first" or low in self._lexicon.first):
            return self._pools.first.get((locale, gender)) or self._pools.first.get((_DEFAULT_LOCALE, gender), ())
        ending = "f" if low.endswith(_FEMALE_ENDINGS) else "m"
        return (
            self._pools.last.get((locale, ending))
            or self._pools.last.get((locale, ""))
            or self._pools.last.get((_DEFAULT_LOCALE, ""), ())
        )

    def _is_free(self, name: str) -> bool:
        low = name.casefold()
        return (
            low not in self._seen
            and low not in self._by_standin
            and not any(low + ending in self._seen for ending in ("s", "es", "n"))
            and low not in self._lexicon.words
            and not self._lexicon.is_word(low)
        )


def case_of(value: str) -> str:
    """Return which letter case a value is written in."""
    if value.isupper() and sum(character.isalpha() for character in value) > 1:
        return UPPER
    return LOWER if value.islower() else TITLE


def in_case(name: str, case: str) -> str:
    """Return a name in a letter case."""
    return name.upper() if case == UPPER else name.lower() if case == LOWER else name


def _checked(value: Any, kind: type[_T]) -> _T:
    # Exactly: a true is an integer to Python, and `bytes` of an integer are as many zeros.
    if type(value) is not kind:
        raise TypeError("a value of another type than was saved")
    return value


def _array(value: Any) -> list[Any]:
    rows: list[Any] = value
    _checked(rows, list)
    return rows


def _map(value: Any) -> dict[str, Any]:
    entries: dict[Any, Any] = value
    _checked(entries, dict)
    return {_checked(name, str): each for name, each in entries.items()}


def _filled(value: Any) -> str:
    if not (text := _checked(value, str)):
        raise ValueError("an empty text")
    return text


def _count(value: Any) -> int:
    number = _checked(value, int)
    if not 0 <= number < _COUNTS:
        raise ValueError("a number that no session comes to")
    return number


def _capitalised(value: str) -> str:
    return _WORDS.sub(lambda word: word[0][:1].upper() + word[0][1:].lower(), value)


def _place_of(standin: str) -> str:
    # A name over the end of a line is looked up as one on a line.
    return standin if standin.startswith("[") else " ".join(standin.casefold().split())


def _script(value: str) -> str:
    for character in value:
        if "\u0400" <= character <= "\u04ff":
            return "ru"
        if "\u4e00" <= character <= "\u9fff":
            return "zh"
        if "\uac00" <= character <= "\ud7a3":
            return "ko"
        if "\u3040" <= character <= "\u30ff":
            return "ja"
        if "\u0600" <= character <= "\u06ff":
            return "ar"
        if "\u0370" <= character <= "\u03ff":
            return "el"
    return ""
