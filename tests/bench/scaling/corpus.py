"""Texts with the word frequencies of natural language, and vectors that lie as a real model's do, in any number.

The words are those of the local model's own vocabulary, which lists them by how often they occur: the word of rank r is
drawn with a weight of 1 / (r + 2.7) (Zipf and Mandelbrot). Half of a text's content words come from one of 300 topics.
A first 20,000 texts are embedded by the local model; every later memory is a text of its own near two of those, and
its vector a mixture of theirs with noise.
"""

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memseal.embedding.minilm import MiniLmEmbedder

DIMENSION = 384
BASE = 20_000
QUESTIONS = 300
KEPT = "MEMSEAL_BENCH_VECTORS"
"""The variable that names the file in which the model's vectors are kept for all processes of a run."""
QUERY_WORDS = 7
PEOPLE = ("Ada", "Bela", "Caroline", "Deniz", "Emil")

_TOPICS, _TOPIC_WORDS, _FREQUENT = 300, 60, 150
_WORDS = 15
_NOISE = 0.35


def texts(first: int, count: int) -> list[str]:
    """Return the texts of memories `first` and on, each of about fifteen words and 85 characters."""
    rng = np.random.default_rng([1, first])
    base = np.arange(first, first + count) % BASE
    words = _base_words()[base]
    if first >= BASE:
        changed = rng.random(words.shape) < 0.4
        words = np.where(changed, _drawn(rng, words.shape), words)
    vocabulary = _vocabulary()
    return [f"{' '.join(vocabulary[word] for word in row)} {first + place}." for place, row in enumerate(words)]


def vectors(first: int, count: int) -> NDArray[np.float32]:
    """Return the vectors of memories `first` and on, of unit length, shape (count, 384)."""
    base = _base_vectors()[:BASE]
    if first < BASE:
        return base[first : first + count]
    rng = np.random.default_rng([2, first])
    one, other = base[np.arange(first, first + count) % BASE], base[rng.integers(0, BASE, count)]
    share = rng.uniform(0.6, 1.0, (count, 1)).astype(np.float32)
    return _unit(share * one + (1 - share) * other + _noise(rng, count))


def questions(count: int = QUESTIONS) -> list[str]:
    """Return questions about the topics, in words of which some are frequent, as people ask."""
    rng = np.random.default_rng(3)
    vocabulary, topics = _vocabulary(), _topic_words()
    asked = list[str]()
    for topic in rng.integers(0, _TOPICS, count):
        special = [vocabulary[word] for word in rng.choice(topics[topic], 3, replace=False)]
        common = [vocabulary[word] for word in _drawn(rng, (QUERY_WORDS - 3,))]
        person = PEOPLE[int(rng.integers(len(PEOPLE)))]
        asked.append(f"what did {person} say about {' '.join([*common, *special])}")
    return asked


def question_vectors() -> NDArray[np.float32]:
    """Return the model's own vectors of all questions."""
    return _base_vectors()[BASE:]


def authors(first: int, count: int) -> list[str]:
    """Return who said each memory: five people."""
    return [PEOPLE[number * 7919 % 5] for number in range(first, first + count)]


def items(first: int, count: int) -> list[dict[str, Any]]:
    """Return memories as `remember_many` takes them: conversations of twenty turns each."""
    return [
        {
            "content": text,
            "source": "bench",
            "author": author,
            "thread": f"conversation {number // 20}",
            "position": number % 20,
            "kind": "decision" if number % 100 == 0 else "note",
            "tags": ["rare"] if number % 2_000 == 0 else (),
        }
        for number, text, author in zip(
            range(first, first + count), texts(first, count), authors(first, count), strict=True
        )
    ]


@cache
def _vocabulary() -> list[str]:
    raw = files("memseal.embedding").joinpath("data", "minilm-tokenizer.json").read_text("utf-8")
    ranked = sorted(json.loads(raw)["model"]["vocab"].items(), key=lambda entry: entry[1])
    return [word for word, _ in ranked if word.isascii() and word.isalpha() and word.islower() and len(word) > 1]


@cache
def _topic_words() -> NDArray[np.int64]:
    rng = np.random.default_rng(4)
    return rng.integers(_FREQUENT, len(_vocabulary()), (_TOPICS, _TOPIC_WORDS))


@cache
def _base_words() -> NDArray[np.int64]:
    rng = np.random.default_rng(5)
    topics = rng.integers(0, _TOPICS, BASE)
    special = _topic_words()[topics[:, np.newaxis], rng.integers(0, _TOPIC_WORDS, (BASE, _WORDS))]
    return np.where(rng.random((BASE, _WORDS)) < 0.3, special, _drawn(rng, (BASE, _WORDS)))


@cache
def _base_vectors() -> NDArray[np.float32]:
    """Embed the first texts, or read what another process of this run embedded."""
    file = Path(os.environ[KEPT])
    if not file.exists():
        made = MiniLmEmbedder().embed([*texts(0, BASE), *questions(QUESTIONS)])
        np.save(file, made)
    kept: NDArray[np.float32] = np.load(file)
    return kept


def _drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    weights = 1 / (np.arange(len(_vocabulary())) + 2.7)
    bounds = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(bounds, rng.random(shape)), bounds.size - 1)


def _noise(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    drawn = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    return np.asarray(drawn * np.float32(_NOISE / np.sqrt(DIMENSION)))


def _unit(matrix: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)
