"""Names of places: from lists of countries, regions and cities, or given away by the words beside them."""

import re
from collections.abc import Iterator
from typing import Final

from memseal.privacy.lexicon import NOT_NAMES, Lexicon
from memseal.privacy.spans import Span

_WORD: Final = re.compile(r"(?<![\w@#./-])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@])")
_LONGEST: Final = 5  # words: Saint Vincent and the Grenadines
_CAPITAL = r"[^\W\d_a-zà-öø-ÿ][^\W\d_]+(?:['’-][^\W\d_]+)*"
_NAME = rf"{_CAPITAL}(?:[ ](?:(?:de|la|del|do|da|am|an|der|im|nad|sur|upon|the|van)[ ]){{0,2}}{_CAPITAL}){{0,4}}"
# Before these a place is likely, and where somebody is called like a place, the place is meant.
_IN: Final = re.compile(r"\b(?:in|near|outside|around|across|through|nach|aus|bei)\s+$", re.IGNORECASE)
_TOWARDS: Final = re.compile(
    r"\b(?:in|near|outside|around|across|through|to|from|of|at|via|visit(?:s|ed|ing)?|leaving|reach(?:ed)?|the|and"
    r"|nach|aus|bei|à|en|em|till|från)\s+$",
    re.IGNORECASE,
)
_IN_OR_FROM: Final = re.compile(r"\b(?:in|from|to)\s+$", re.IGNORECASE)
_RARE_RANK: Final = 3_000
_SELDOM_RANK: Final = 5_000
_LOOK_BACK: Final = 16
# Who moves, lives or stays does so somewhere, and one is from somewhere.
_TO_SOMEWHERE = r"""\b(?:(?i:mov(?:e[ds]?|ing)|relocat(?:e[ds]?|ing)|emigrat(?:ed|ing)|flew|fly(?:ing)?|flies
    |flights?|travel(?:s|l?ed|l?ing)?
    |drov?e|driving|sail(?:ed|ing)|trips?|holidays?|vacation|visit(?:s|ed|ing)?|born|live[sd]?|living|grew\s+up
    |raised|based
    |stay(?:s|ed|ing)?|arriv(?:e[ds]?|ing)|land(?:ed|ing)|hotel|apartment|flat|house|office|branch|originally
    |comes?|came|coming
    |wohne|wohnt|lebe|lebt|vivo|vive|habite)\s+(?:(?:back|here|there|out|over|up|down|home)\s+)?(?:to|from|in|near
    |outside|around|at)
    |(?i:is|are|am|i'm|one)\s+(?:all\s+)?from|(?i:i\s+am|i'm|we're|we\s+are)\s+in)\s+(?:the\s+city\s+of\s+)?"""
_SOMEWHERE: Final = re.compile(rf"{_TO_SOMEWHERE}(?P<value>{_NAME})", re.VERBOSE)
_SOMEWHERE_SMALL: Final = re.compile(
    rf"{_TO_SOMEWHERE}(?P<value>[^\W\d_A-Z]{{4,}}(?:-[^\W\d_]+)*)(?![\w@/-])", re.VERBOSE
)
# by train from Leiden to Ghent
_FROM_TO: Final = re.compile(
    rf"\b(?:train|bus|coach|ferry|plane|flight|way|drive|trip|road"
    rf"|journey)s?\s+(?:from\s+{_NAME}\s+)?to\s+(?P<value>{_NAME})"
)
# in Leiden 2311: a town and its postcode
_BEFORE_POSTCODE: Final = re.compile(
    rf"\b(?:in|at|near)\s+(?P<value>(?:{_NAME})\s+(?!(?:19|20)\d\d\b)\d{{4,5}})\b(?![.,]\d|\s?%)"
)
_SMALL_TOWN_AND_COUNTRY: Final = re.compile(
    r"^[ \t>]*(?P<town>[^\W\d_][^\n\d,:;]{1,40}?),?[ ]*\n[ \t>]*(?P<country>[^\n\d,:;]{3,40}?)[ ]*(?:\d{4,6}[ ]*)?$",
    re.MULTILINE,
)


def find(text: str, lexicon: Lexicon) -> Iterator[Span]:
    """Return the places in a text that need no model of the language."""
    yield from _listed(text, lexicon)
    for match in _SOMEWHERE.finditer(text):
        end = _end_of_name(text, *match.span("value"), lexicon)
        if end > match.start("value"):
            yield Span(match.start("value"), end, "LOCATION", 0.65, "place by the words before it")
    for match in _SOMEWHERE_SMALL.finditer(text):
        parts = match["value"].casefold().split("-")
        if not any(_is_usual(part, lexicon) for part in (parts[0], parts[-1])):
            yield Span(*match.span("value"), "LOCATION", 0.62, "place by the words before it")
    for match in _FROM_TO.finditer(text):
        start, end = match.span("value")
        if text[start:end].split()[0].casefold() not in lexicon.first:
            end = _end_of_name(text, start, end, lexicon)
            if end > start:
                yield Span(start, end, "LOCATION", 0.62, "where one goes")
    for match in _BEFORE_POSTCODE.finditer(text):
        yield Span(*match.span("value"), "LOCATION", 0.7, "place before a postcode")
    for match in _SMALL_TOWN_AND_COUNTRY.finditer(text):
        if match["country"].casefold() in lexicon.countries and ". " not in match["town"]:
            yield Span(match.start("town"), match.end("country"), "LOCATION", 0.7, "town before a country")


def _listed(text: str, lexicon: Lexicon) -> Iterator[Span]:
    words = list(_WORD.finditer(text))
    no_capitals: dict[int, bool] = {}
    place = 0
    while place < len(words):
        length = next((many for many in range(_LONGEST, 0, -1) if _is_listed(text, words, place, many, lexicon)), 0)
        if length:
            start, end = words[place].start(), words[place + length - 1].end()
            line = text.rfind("\n", 0, start) + 1
            if line not in no_capitals:
                until = text.find("\n", start)
                shown = text[line : until if until >= 0 else len(text)]
                no_capitals[line] = shown == shown.lower()
            if _is_meant(text, start, end, lexicon, in_small_letters=no_capitals[line]):
                country = text[start:end].casefold() in lexicon.countries
                yield Span(start, end, "LOCATION", 0.75 if country else 0.7, "country" if country else "listed place")
        place += max(1, length)


def _is_listed(text: str, words: list[re.Match[str]], place: int, many: int, lexicon: Lexicon) -> bool:
    if place + many > len(words):
        return False
    name = text[words[place].start() : words[place + many - 1].end()].casefold()
    return name in lexicon.places or name in lexicon.countries


def _is_meant(text: str, start: int, end: int, lexicon: Lexicon, *, in_small_letters: bool) -> bool:
    """Whether what is called like a place is one here."""
    shown = text[start:end]
    name = shown.casefold()
    if name in NOT_NAMES or name in lexicon.languages:
        return False
    somebody = " " not in name and (name in lexicon.first or name in lexicon.last)
    plain = all(lexicon.is_word(word) or word in lexicon.heard for word in name.split())
    if not shown[0].isupper():
        if not in_small_letters or somebody:
            return False
        if plain:  # words that an encyclopedia has because they are places: ghana, galway
            rare = lexicon.words.get(name, 0) >= _RARE_RANK
            return _before(_IN_OR_FROM, text, start) and (rare or name in lexicon.countries)
        return name in lexicon.countries or _before(_TOWARDS, text, start)
    if somebody:
        return _before(_IN, text, start)
    return not plain or _before(_TOWARDS, text, start) or name in lexicon.countries


def _is_usual(word: str, lexicon: Lexicon) -> bool:
    """Whether a word is one that people live or are in: fear, denial."""
    return word in NOT_NAMES or word in lexicon.first or lexicon.words.get(word, _SELDOM_RANK) < _SELDOM_RANK


def _before(cue: re.Pattern[str], text: str, start: int) -> bool:
    return cue.search(text, max(0, start - _LOOK_BACK), start) is not None


def _end_of_name(text: str, start: int, end: int, lexicon: Lexicon) -> int:
    """Return where the words stop that may be of a place's name; the start if none is."""
    last = start
    for word in re.finditer(r"\S+", text[start:end]):
        low = word[0].casefold()
        if low in NOT_NAMES:
            break
        if word[0][0].isupper():
            last = start + word.end()
    name = text[start:last].casefold()
    return start if name and all(lexicon.is_word(word) for word in name.split()) else last
