"""Embedders behind an endpoint."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memseal.embedding.http import OllamaEmbedder, OpenAIEmbedder
from memseal.embedding.port import Embedder
from memseal.errors import EmbedderAnswer
from tests.embedding.service import Answer, as_json, ollama, openai, serving, vector_of

TEXTS = ["tea", "a kettle", "", "\u00fcber \U0001fad6", "lone \ud800"]

KINDS: list[tuple[Callable[[str], Embedder], Callable[[str, Any], Answer]]] = [
    (lambda url: OllamaEmbedder("small", url), ollama),
    (lambda url: OpenAIEmbedder("small", url), openai),
]


@pytest.mark.parametrize(("embedder", "answer"), KINDS, ids=["ollama", "openai"])
def test_each_text_gets_its_own_vector_of_unit_length(
    embedder: Callable[[str], Embedder], answer: Callable[[str, Any], Answer]
) -> None:
    with serving(answer) as service:
        vectors = embedder(service.url).embed(TEXTS)
    expected = np.array([vector_of(text) for text in TEXTS])
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True))


@pytest.mark.parametrize(("embedder", "answer"), KINDS, ids=["ollama", "openai"])
def test_dimension_and_floor_are_learned_from_the_model(
    embedder: Callable[[str], Embedder], answer: Callable[[str, Any], Answer]
) -> None:
    with serving(answer) as service:
        learned = embedder(service.url)
        assert learned.dimension == 3
        assert 0.9 < learned.floor < 1


def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    texts = ["x" * length for length in range(150)]
    with serving(ollama) as service:
        vectors = OllamaEmbedder("small", service.url).embed(texts)
        assert len(service.paths) == 3
    expected = np.array([vector_of(text) for text in texts])
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_no_texts_ask_nothing_of_a_model_with_a_known_dimension() -> None:
    assert OllamaEmbedder("small", "http://127.0.0.1:9", dimension=3).embed([]).shape == (0, 3)


def test_paths_are_those_of_the_protocols() -> None:
    with serving(ollama) as service:
        OllamaEmbedder("small", service.url + "/").embed(["tea"])
        assert service.paths == ["/api/embed"]
    with serving(openai) as service:
        OpenAIEmbedder("small", service.url).embed(["tea"])
        OpenAIEmbedder("small", service.url + "/v1/").embed(["tea"])
        OpenAIEmbedder("small", service.url + "/proxy/v1").embed(["tea"])
        assert service.paths == ["/v1/embeddings", "/v1/embeddings", "/proxy/v1/embeddings"]


def test_names_differ_by_model_and_kind() -> None:
    names = {
        OllamaEmbedder("a").name,
        OllamaEmbedder("b").name,
        OpenAIEmbedder("a", "https://example.org").name,
    }
    assert len(names) == 3


@pytest.mark.parametrize(
    "embeddings",
    [
        [[1.0, 0.0]],
        [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
        [[1.0, 0.0], [1.0]],
        [[1.0, 0.0], [1.0, float("nan")]],
        [[1.0, 0.0], [1.0, float("inf")]],
        [[1.0, 0.0], [0.0, 0.0]],
        [["1.0", "0.0"], ["0.0", "1.0"]],
        [[True, False], [False, True]],
        [[1.0, None], [0.0, 1.0]],
        [[], []],
        [1.0, 0.0],
        {"0": [1.0]},
        None,
        "1.0",
        [[[1.0]], [[1.0]]],
    ],
)
def test_nonsense_instead_of_two_vectors_is_refused(embeddings: object) -> None:
    with (
        serving(lambda _path, _request: as_json({"embeddings": embeddings})) as service,
        pytest.raises(EmbedderAnswer) as refused,
    ):
        OllamaEmbedder("small", service.url).embed(["secret", "text"])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("answer", [None, [], {}, {"error": "x"}, 1, "embeddings"])
def test_answer_without_embeddings_is_refused(answer: object) -> None:
    with serving(lambda _path, _request: as_json(answer)) as service:
        for embedder in (OllamaEmbedder("small", service.url), OpenAIEmbedder("small", service.url)):
            with pytest.raises(EmbedderAnswer):
                embedder.embed(["tea"])


@pytest.mark.parametrize(
    "rows",
    [
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": [1], "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1}],
        [{"index": number, "embedding": [1.0]} for number in (0, 1, 1)],
        [0, 1],
        {"0": 1},
    ],
)
def test_rows_that_are_not_numbered_one_by_one_are_refused(rows: object) -> None:
    with serving(lambda _path, _request: as_json({"data": rows})) as service, pytest.raises(EmbedderAnswer):
        OpenAIEmbedder("small", service.url).embed(["tea", "milk"])


def test_other_dimension_than_the_expected_one_is_refused() -> None:
    with serving(ollama) as service, pytest.raises(EmbedderAnswer, match="3 dimensions instead of 384"):
        OllamaEmbedder("small", service.url, dimension=384).embed(["tea"])


def test_dimension_that_changes_between_answers_is_refused() -> None:
    sizes = iter([2, 3])
    with serving(lambda _path, _request: as_json({"embeddings": [[1.0] * next(sizes)]})) as service:
        embedder = OllamaEmbedder("small", service.url)
        embedder.embed(["tea"])
        with pytest.raises(EmbedderAnswer, match="3 dimensions instead of 2"):
            embedder.embed(["tea"])
