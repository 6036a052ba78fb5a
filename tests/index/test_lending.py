"""What versions that were replaced lend to what stands for them now."""

import numpy as np
import pytest

from memseal.index.lending import Lent, lend
from memseal.index.lexical import LexicalIndex
from memseal.index.vectors import VectorIndex
from memseal.recall.weights import LENT
from tests.index.build import texts

SAID = ("the dentist is on Tuesday", "the dentist is on Friday", "teeth are checked on Friday", "the boiler leaks")


def lent(superseded_by: dict[int, int], query: str = "dentist", vectors: VectorIndex | None = None) -> Lent:
    """Return what the memories of `SAID` lend that were superseded: by number, by which."""
    connection = texts(*SAID)
    connection.execute("ALTER TABLE memories ADD COLUMN superseded_by INTEGER")
    for old, new in superseded_by.items():
        connection.execute("UPDATE memories SET superseded_by = ? WHERE n = ?", (new, old))
    replaced = np.isin(np.arange(len(SAID) + 1), list(superseded_by))
    vector = None if vectors is None else np.array([1, 0], np.float32)
    matches = LexicalIndex(connection).match([query])
    return lend(connection, matches, vectors, vector, replaced, 10, 100, str.isascii)


def test_every_version_leads_to_the_newest() -> None:
    found = lent({1: 2, 2: 3})
    assert found.versions.tolist() == [1, 2]
    assert found.newest.tolist() == [3, 3]
    assert (found.lexical > 0).all()


def test_forged_circle_leads_nowhere() -> None:
    assert lent({1: 2, 2: 1}).newest.size == 0


def test_meaning_is_lent_too_and_less_than_it_was() -> None:
    vectors = VectorIndex(2)
    vectors.add(np.array([4]), np.array([[1, 0]], "<f2"))
    found = lent({4: 3}, "heating", vectors)
    assert (found.newest.tolist(), found.cosine.tolist()) == ([3], [pytest.approx(LENT)])


def test_scores_are_raised_to_what_is_lent_and_never_lowered() -> None:
    found = Lent(
        np.array([1, 2, 3]), np.array([5, 6, 9]), np.array([4.0, 1.0, 9.0]), np.array([1, 2, 4], np.uint64),
        np.array([0.5, 0.1, 0.9]),
    )  # fmt: skip
    numbers, lexical, cosine = np.array([5, 6, 7]), np.array([1.0, 2.0, 0.0]), np.array([np.nan, 0.4, 0.2])
    matched = np.array([8, 8, 0], np.uint64)
    assert found.given(numbers, lexical, matched, cosine).tolist() == [1, -1, -1]
    assert lexical.tolist() == [4.0, 2.0, 0.0]
    assert matched.tolist() == [9, 8, 0]
    assert cosine.tolist() == [0.5, 0.4, 0.2]
