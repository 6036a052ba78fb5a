"""Sanitizers and recognisers for the tests."""

import random
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

import pytest

from memseal.privacy.known import Known
from memseal.privacy.spans import Span
from memseal.sanitize import Detector, Sanitizer, SpacyModel
from memseal.sanitize.model import DEFAULT_MODEL

SEED = bytes(range(32))
MODEL_IS_HERE = find_spec("spacy") is not None and find_spec(DEFAULT_MODEL) is not None
needs_model = pytest.mark.skipif(not MODEL_IS_HERE, reason="spaCy or its English model is not installed")
needs_presidio = pytest.mark.skipif(find_spec("presidio_analyzer") is None, reason="presidio-analyzer is not installed")
TYPES = ("PERSON", "ORGANIZATION", "LOCATION", "EMAIL", "PHONE_NUMBER", "MEDICAL_RECORD_NUMBER", "ADDRESS")


@cache
def rules() -> Detector:
    """Everything but a language model."""
    return Detector()


@cache
def full() -> Detector:
    return Detector(SpacyModel())


def by_rules(seed: bytes = SEED, **options: object) -> Sanitizer:
    detector = Detector(known=Known({"PERSON": options.pop("owner")})) if "owner" in options else rules()  # type: ignore[dict-item]
    return Sanitizer(detector=detector, seed=seed, **options)  # type: ignore[arg-type]


class Marked:
    """A detector that finds what it was told, wherever that stands."""

    missing = ()

    def __init__(self, **values: str) -> None:
        self._values = values

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        return [
            [
                Span(*match.span(), name.rstrip("0123456789"), 0.9, "test")
                for name, value in self._values.items()
                for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text)
            ]
            for text in texts
        ]


class Scattered:
    """A detector that finds stretches at random, across each other and through words."""

    missing = ()

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        return [[self._span(text) for _ in range(self._random.randrange(5))] for text in texts]

    def _span(self, text: str) -> Span:
        start = self._random.randrange(len(text) + 1)
        end = min(len(text), start + self._random.randrange(12))
        return Span(start, end, self._random.choice(TYPES), self._random.random(), "test")
