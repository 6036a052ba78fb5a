"""Names that are known by list: the owner, contacts, projects."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from memseal.privacy.spans import Span

_SHORTEST: Final = 2


class Known:
    """Terms that are always personal, whatever else they could mean; case and line breaks do not count."""

    def __init__(self, terms: Mapping[str, Iterable[str]] | None = None) -> None:
        """Take terms by kind, as in {"PERSON": ["Sarah Chen"], "ORGANIZATION": ["Project Heron"]}."""
        self._patterns = [
            (kind, pattern) for kind, given in (terms or {}).items() if (pattern := _pattern(given)) is not None
        ]

    def find(self, text: str) -> Iterator[Span]:
        """Return where the terms stand in a folded text."""
        for kind, pattern in self._patterns:
            for match in pattern.finditer(text):
                yield Span(match.start(), match.end(), kind, 1.0, "list")


def _pattern(terms: Iterable[str]) -> re.Pattern[str] | None:
    clean = sorted(
        {" ".join(term.split()) for term in terms if len(term.strip()) >= _SHORTEST},
        key=lambda term: (-len(term), term),
    )
    if not clean:
        return None
    alternatives = "|".join(r"\s+".join(map(re.escape, term.split())) for term in clean)
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
