"""One rule, and how rules are applied."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memseal.privacy.spans import Span

# How far before a number the word may stand that says what it is ("routing number of my bank: …").
_REACH: Final = 48


@dataclass(frozen=True)
class Rule:
    """A pattern; where `cue` is given it must occur shortly before, and `accept` must agree to the value."""

    name: str
    type: str
    pattern: re.Pattern[str]
    score: float = 0.9
    cue: re.Pattern[str] | None = None
    accept: Callable[[str], bool] | None = None


def compiled(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern, verbose if it has lines; its group `value`, or else the whole match, is what is personal."""
    return re.compile(pattern, re.VERBOSE | flags if "\n" in pattern else flags)


def apply(rules: Iterable[Rule], text: str) -> Iterator[Span]:
    """Return what the rules find."""
    for rule in rules:
        grouped = "value" in rule.pattern.groupindex
        for match in rule.pattern.finditer(text):
            start, end = match.span("value") if grouped else match.span()
            if start == end or (rule.accept is not None and not rule.accept(text[start:end])):
                continue
            if rule.cue is None or rule.cue.search(text, max(0, start - _REACH), start):
                yield Span(start, end, rule.type, rule.score, rule.name)
