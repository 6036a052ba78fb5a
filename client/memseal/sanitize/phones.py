"""Telephone numbers, by the numbering plans of all countries."""

import re
from collections.abc import Iterator
from typing import Final

import phonenumbers

from memseal.privacy.spans import Span

# Numbers without a country code are tried as numbers of these, in this order.
REGIONS: Final = (
    "US",
    "GB",
    "DE",
    "FR",
    "IN",
    "AU",
    "JP",
    "CN",
    "BR",
    "IT",
    "ES",
    "NL",
    "CH",
    "SE",
    "PL",
    "KR",
    "MX",
    "ZA",
    "RU",
    "TR",
)
_CANDIDATE: Final = re.compile(
    (
        r"(?<![\w.@/=$€£#-])(?:\+|00|\()?\d(?:[\s().\u00a0/-]{0,3}\d){6,16}(?:\s*(?:x|ext\.?|extension"
        r"|#)\s*\d{1,6})?(?![\w]|[.,]\d)"
    ),
    re.IGNORECASE,
)
_SHAPE: Final = re.compile(r"[()+]|^\d{1,5}(?:[\s./-]\d{2,5})+$|^0\d{6,}|^0\d{2,4}[\s/-]\d{5,9}$")
_CUE: Final = re.compile(
    (
        r"(?:phone|tel|telephone|mobil|cell|call|ring|dial|fax|text|sms|whatsapp|number|reach|contact"
        r"|handy|telefon|portable|móvil|celular|手机|电话|携帯|電話|office|ext|büro|line|hotline|\bph\b|tlf|☎"
        r"|📞)[^\n]{0,24}$"
    ),
    re.IGNORECASE,
)
_AFTER: Final = re.compile(r"\s*[-(,]?\s*(?:office|fax|mobile|cell|home|work|tel|phone)\b", re.IGNORECASE)
_AMERICAN: Final = re.compile(
    (
        r"(?<![\w.])(?:\+?1[\s.-]?)?(?:\(\d{3}\)\s?|\d{3}[\s.-])\d{3}[\s.-]\d{4}(?:\s*(?:x"
        r"|ext\.?)\s*\d{1,6})?(?![\w]|[.-]\d)"
    ),
    re.IGNORECASE,
)
_SPOKEN: Final = re.compile(
    r"\b(?:(?:zero|oh|o|one|two|three|four|five|six|seven|eight|nine|double|triple)\b[\s,-]*){7,}(?<![\s,-])",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"(?:19|20)\d{2}[-/. ]\d{1,2}[-/. ]\d{1,2}(?!\d)|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d{2}(?!\d)"
)


def find(text: str, regions: tuple[str, ...] = REGIONS) -> Iterator[Span]:
    """Return the telephone numbers in a text."""
    for match in _CANDIDATE.finditer(text):
        score = _score(text, match, regions)
        if score:
            yield Span(match.start(), match.end(), "PHONE_NUMBER", score, "phone")
    for match in _AMERICAN.finditer(text):
        yield Span(match.start(), match.end(), "PHONE_NUMBER", 0.8, "phone of the American plan")
    for match in _SPOKEN.finditer(text):
        yield Span(match.start(), match.end(), "PHONE_NUMBER", 0.8, "phone in words")


def _score(text: str, match: re.Match[str], regions: tuple[str, ...]) -> float:
    number = match[0]
    if _DATE.match(number):
        return 0.0
    cued = (
        _CUE.search(text, max(0, match.start() - 40), match.start()) is not None
        or _AFTER.match(text, match.end()) is not None
    )
    if number.startswith(("+", "00")):
        return (
            0.9 if _possible(number.replace("00", "+", 1) if number.startswith("00") else number, None) or cued else 0.6
        )
    if cued:
        return 0.85 if any(_valid(number, region) for region in regions) else 0.7
    if not _SHAPE.search(number):
        return 0.0
    return 0.75 if any(_valid(number, region) for region in regions) else 0.0


def _possible(number: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


def _valid(number: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number_for_region(phonenumbers.parse(number, region), region)
    except phonenumbers.NumberParseException:
        return False
