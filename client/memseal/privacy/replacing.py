"""Replacing: spans of a text become stand-ins, and nothing else of it changes."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from memseal.privacy.pairs import Pairs
from memseal.privacy.rules.people import TITLE
from memseal.privacy.spans import NATURAL, Span

_NAME: Final = re.compile(r"[^\W\d_]+(?:['’-](?![sS]\b)[^\W\d_]+)*")
_PLAIN_NAME: Final = re.compile(r"[^\W\d_][^\W\d_\s.,'’()\"“”&/-]*(?:[\s.,'’()\"“”&/-]{1,4}[^\W\d_]+)*[.'’)\"”]{0,2}s?")
_TITLES: Final = re.compile(rf"(?:{TITLE}\b\.?\s+)+(?=\S)", re.IGNORECASE)
_KEPT_IN_NAMES: Final = frozenset(
    """
    the and or of jr sr ii iii iv esq phd md da de del della di do dos das du la le van von der den ten zu zur y e al el
    bin ibn ben bint s
    """.split()
)
_INITIALS: Final = re.compile(
    r"(?:(?:[^\W\d_]\.?\s)+)?[^\W\d_]{2,}(?:['’-](?![sS]\b)[^\W\d_]+)*(?:\s[^\W\d_](?![^\W_]))*"
)
# What a company's name ends in says what it is, not who.
_GENERIC: Final = re.compile(
    (
        r"(?:,?\s+(?:Inc|LLC|LLP|LP|Ltd|Limited|Corp|Corporation|Co|Company|PLC|GmbH|AG|KG|SE|SA|SAS"
        r"|SARL|SpA|BV|NV|AB|AS|Oy|ApS|Pty|Pvt|Bank|University|Hospital|Clinic|Group|Holdings"
        r"|Consulting|Accounting|Airlines|Partners|Foundation)\b\.?)+$"
    ),
    re.IGNORECASE,
)
_LETTER: Final = re.compile(r"[^\W\d_]")


class Replacement(NamedTuple):
    """One stand-in in the outgoing text: where it came from, where it went, and why."""

    span: Span
    start: int
    end: int


def replace(text: str, spans: Sequence[Span], pairs: Pairs, *, natural: bool = True) -> tuple[str, list[Replacement]]:
    """Return the text with stand-ins for spans that are in order and do not overlap.

    Where `natural` is false every stand-in is a typed one.
    """
    parts: list[str] = []
    made: list[Replacement] = []
    place = length = 0
    for span in spans:
        standin = _standin(text, span, pairs, natural=natural)
        length += span.start - place
        parts += (text[place : span.start], standin)
        made.append(Replacement(span, length, length + len(standin)))
        length += len(standin)
        place = span.end
    return "".join((*parts, text[place:])), made


def _standin(text: str, span: Span, pairs: Pairs, *, natural: bool) -> str:
    value = text[span.start : span.end]
    if not natural or span.type not in NATURAL or _is_inside_word(text, span):
        return pairs.token(value, span.type)
    if span.type == "PERSON":
        return _person(value, pairs) if _PLAIN_NAME.fullmatch(value) else pairs.token(value, span.type)
    return _unit(value, span.type, pairs)


def _is_inside_word(text: str, span: Span) -> bool:
    before, after = text[span.start - 1 : span.start], text[span.end : span.end + 1]
    packed = "\u3040" <= text[span.start] <= "\ud7a3"
    return not packed and (before.isalnum() or after.isalnum())


def _person(value: str, pairs: Pairs) -> str:
    title = _TITLES.match(value)
    start = title.end() if title is not None else 0
    places = [
        match
        for match in _NAME.finditer(value, start)
        if match[0].casefold() not in _KEPT_IN_NAMES and len(match[0]) > 1
    ]
    if not places:
        return value if title is not None and not _NAME.search(value, start) else pairs.token(value, "PERSON")
    for match in places:  # the names first: those with initials are built from them
        pairs.name(match[0], "PERSON", _part(match, places))
    return value[:start] + _INITIALS.sub(lambda match: _with_initials(match[0], pairs, places), value[start:])


def _part(match: re.Match[str], places: list[re.Match[str]]) -> str:
    if len(places) == 1:
        return ""
    return "first" if match is places[0] else "last" if match is places[-1] else ""


def _with_initials(value: str, pairs: Pairs, places: list[re.Match[str]]) -> str:
    names = [
        match[0] for match in _NAME.finditer(value) if len(match[0]) > 1 and match[0].casefold() not in _KEPT_IN_NAMES
    ]
    if len(names) != 1:
        return value
    return pairs.name(value, "PERSON") if names[0] == value else pairs.phrase(value, names[0])


def _unit(value: str, kind: str, pairs: Pairs) -> str:
    generic = _GENERIC.search(value) if kind == "ORGANIZATION" else None
    core = value[: generic.start()] if generic is not None else value
    if not core or not _LETTER.search(core) or "\n" in core or any(character in "[]{}<>\\@=" for character in core):
        return pairs.token(value, kind)
    return pairs.name(core, kind) + value[len(core) :]
