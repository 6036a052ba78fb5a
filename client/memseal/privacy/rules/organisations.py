"""Names of companies and places that their own words or the words before them give away."""

import re
from collections.abc import Iterator
from typing import Final

from memseal.privacy.lexicon import NOT_NAMES, Lexicon
from memseal.privacy.spans import Span

_CAPITAL = r"[^\W\d_a-zà-öø-ÿ][\w'’-]*"
_NAME = rf"{_CAPITAL}(?:,?[ ](?:(?:and|&|of|de|und|the)[ ])?{_CAPITAL}){{0,4}}"
_LEGAL: Final = re.compile(
    rf"(?<![\w.]){_NAME},?[ ](?:Inc|LLC|L\.L\.C|LLP|LP|Ltd|Limited|Corp|Corporation|Co|Company|PLC"
    rf"|plc|GmbH|AG|KG|SE|SA|S\.A|SAS|SARL|SpA|S\.p\.A|Srl|BV|B\.V|NV|AB|AS|ASA|Oy|Oyj|ApS|A/S|KK"
    rf"|Pty|Pvt|Sdn)\b\.?"
)
_KIND: Final = re.compile(
    rf"(?<![\w.]){_NAME}[ ](?:(?:and|&)[ ](?:Sons?|Daughters?|Brothers|Partners|Co)"
    r"|Airlines|Airways|Enterprises|Industries|Analytics|Healthcare|Bank"
    rf"|Partners|University|College|School|Hospital|Clinic|Institute|Foundation|Consulting"
    rf"|Accounting|Associates|Holdings|Group|Insurance"
    r"|Systems|Solutions|Technologies|Technology|Labs?|Laboratories|Logistics|Motors|Pharma"
    r"|Pharmaceuticals|Pharmacy|Capital|Ventures|Media|Studios?|Services|Financial|Energy|Foods"
    r"|Brothers|Agency|Orchestra|Academy|Dental|Software|Worldwide|Science|Sciences|Robotics"
    r"|Bakery|Cafe|Café|Restaurant|Hotel|Gym)\b"
)
_CUE: Final = re.compile(
    rf"(?:\b(?:works?|worked|working|employed|interned|hired|employment|interview(?:ed|ing)?|job"
    rf"|role|position|internship|account)[ ](?:at|for|by|with)[ ]|\b(?:CEO|CTO|CFO|founder|director"
    rf"|manager|employee|head|president|owner)[ ](?:of|at)[ ]|(?:©|\([Cc]\)"
    rf"|[Cc]opyright)[ ](?:\d{{4}}[ ])?)(?P<value>{_NAME})"
)
_CUE_SMALL: Final = re.compile(
    r"\b(?:work|works|worked|working|interview|interviewing|interviewed|job|internship)[ ]at[ ]"
    r"(?P<value>[a-z][\w-]{3,30})\b"
)
_COUNTRY_LINE: Final = re.compile(
    (
        rf"^[ \t>]*(?P<town>{_CAPITAL}(?:[ ](?:de[ ]|la[ ]|del[ ]"
        rf"|do[ ])*{_CAPITAL}){{0,3}}),?[ ]*\n[ \t>]*(?P<country>{_CAPITAL}(?:[ ]{_CAPITAL})*)[ ]*$"
    ),
    re.MULTILINE,
)
_COUNTRY: Final = re.compile(rf"(?<![\w-]){_CAPITAL}(?:[ ](?:and[ ]|of[ ])?{_CAPITAL})*")


def find(text: str, lexicon: Lexicon) -> Iterator[Span]:
    """Return organisations and places that need no model of the language."""
    for pattern in (_LEGAL, _KIND, _CUE):
        for match in pattern.finditer(text):
            start, end = match.span("value") if "value" in pattern.groupindex else match.span()
            start += _plain_beginning(text[start:end])
            start += _person_before(text[start:end], lexicon)
            if (
                start < end and text[start:end].casefold() not in NOT_NAMES and " " in text[start:end]
            ) or pattern is _CUE:
                yield Span(start, end, "ORGANIZATION", 0.75, "organisation")
    for match in _CUE_SMALL.finditer(text):
        if not lexicon.is_word(match["value"]):
            yield Span(*match.span("value"), "ORGANIZATION", 0.65, "organisation by name")
    for match in _COUNTRY_LINE.finditer(text):
        if match["country"].casefold() in lexicon.countries:
            yield Span(match.start("town"), match.end("country"), "LOCATION", 0.7, "town before a country")
    for match in _COUNTRY.finditer(text):
        name = match[0].casefold()
        if name in lexicon.countries and name not in lexicon.first:
            yield Span(match.start(), match.end(), "LOCATION", 0.75, "country")


def _plain_beginning(name: str) -> int:
    """Return how long the words are before a name that only begin a sentence."""
    first, _, rest = name.partition(" ")
    return len(first) + 1 if rest and first.casefold() in NOT_NAMES else 0


def _person_before(name: str, lexicon: Lexicon) -> int:
    """Return how long a person's name and its comma are before a company's: Priya Nair, Globex Inc."""
    before, comma, _ = name.partition(", ")
    first, _, rest = before.partition(" ")
    return len(before) + 2 if comma and rest and lexicon.is_first(first.casefold()) else 0
