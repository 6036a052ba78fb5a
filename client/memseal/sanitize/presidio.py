"""The national identifiers that Presidio's recognizers know, with their check digits."""

import logging
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, cast

from memseal.privacy.spans import Span
from memseal.sanitize import offline

# All that have a pattern, but for what our own rules find better, and what is no person's.
_LEFT_OUT: Final = frozenset(
    """
    EmailRecognizer UrlRecognizer IpRecognizer MacAddressRecognizer DateRecognizer CreditCardRecognizer
    IbanRecognizer CryptoRecognizer UuidRecognizer DePlzRecognizer DeKfzRecognizer UkPostcodeRecognizer
    CaPostalCodeRecognizer UkVehicleRegistrationRecognizer ZaLicensePlateRecognizer TrLicensePlateRecognizer
    InVehicleRegistrationRecognizer NgVehicleRegistrationRecognizer ZaPhoneNumberRecognizer UsSsnRecognizer
    """.split()
)
_ALONE: Final = 0.4  # a pattern this sure, with its check digit right, needs no word beside it
_WITH_WORD: Final = 0.05
_REACH: Final = 40
_FRACTION: Final = re.compile(r"\d[.,]?\d*$")  # 2.71828182845904 has the check digit of somebody in Poland
_DIGITS: Final = re.compile(r"\d{2}")


@cache
def presidio_numbers() -> "PresidioNumbers":
    """Return the recognizers, which all sessions share."""
    return PresidioNumbers()


class PresidioNumbers:
    """Presidio's recognizers, called one by one: its engine would overlook most of them and open sockets."""

    def __init__(self) -> None:
        """Make one of each; they load nothing."""
        logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
        analyzer = offline.load("presidio_analyzer")
        recognizers = offline.load("presidio_analyzer.predefined_recognizers")
        found = cast("dict[str, Any]", vars(recognizers))
        self._recognizers = [
            (made, _word_pattern(made.context))
            for name, kind in sorted(found.items())
            if isinstance(kind, type) and issubclass(kind, analyzer.PatternRecognizer) and name not in _LEFT_OUT
            for made in (kind(supported_language="en"),)
        ]

    def find(self, text: str) -> Iterator[Span]:
        """Return the identifiers in a text that have a right check digit or the word for them beside them."""
        if not _DIGITS.search(text):
            return
        for recognizer, words in self._recognizers:
            for found in recognizer.analyze(text, recognizer.supported_entities, None):
                score = _judged(text, found, words)
                if score and not _FRACTION.search(text, max(0, found.start - 3), found.start):
                    yield Span(found.start, found.end, found.entity_type, score, recognizer.name)


def _word_pattern(context: list[str] | None) -> re.Pattern[str] | None:
    words = [re.escape(word.strip()) for word in context or () if len(word.strip()) > 1]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words)})(?![^\W_])", re.IGNORECASE) if words else None


def _judged(text: str, found: Any, words: re.Pattern[str] | None) -> float:
    pattern_score = found.analysis_explanation.original_score
    valid = found.score >= 1.0
    if not any(character.isdigit() for character in text[found.start : found.end]):
        return 0.0
    if words is not None and words.search(text, max(0, found.start - _REACH), found.start):
        return 0.9 if valid or pattern_score >= _ALONE else 0.8 if pattern_score >= _WITH_WORD else 0.0
    return 0.75 if valid and pattern_score >= _ALONE else 0.0
