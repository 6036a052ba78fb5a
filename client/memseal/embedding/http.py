"""Embedders behind an HTTP endpoint that the user configured."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from memseal.embedding.endpoint import Endpoint
from memseal.errors import EmbedderAnswer

_BATCH = 64

# Sentences that have nothing to do with each other: how near a model puts the nearest two of them is its
# floor. Models differ widely in this, and none says it.
_UNRELATED = (
    "The ferry to the island leaves at six in the morning.",
    "She tuned the violin before the concert.",
    "Compile the kernel with debug symbols enabled.",
    "My nephew is allergic to peanuts.",
    "Interest rates rose by half a percent.",
    "The recipe needs two cloves of garlic.",
    "A glacier carved this valley ten thousand years ago.",
    "The goalkeeper saved a penalty in extra time.",
    "Please renew your passport at the town hall.",
    "Bees communicate by dancing.",
    "The lease on the flat ends in March.",
    "He quit smoking after his father died.",
)


class _HttpEmbedder:
    """What both kinds share: batches, checks, and what is learned from a first answer."""

    name: str

    def __init__(self, endpoint: Endpoint, dimension: int | None) -> None:
        self._endpoint = endpoint
        self._dimension = dimension
        self._floor: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._endpoint.shown!r})"

    @property
    def dimension(self) -> int:
        """The length of each vector; asked of the endpoint if it was not given."""
        if self._dimension is None:
            return int(self.embed(_UNRELATED[:1]).shape[1])
        return self._dimension

    @property
    def floor(self) -> float:
        """The cosine of the two nearest of some unrelated sentences; asked of the endpoint once."""
        if self._floor is None:
            vectors = self.embed(_UNRELATED)
            self._floor = float(np.triu(vectors @ vectors.T, k=1).max())
        return self._floor

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length per text, shape (n, dimension)."""
        batches = [self._embed_batch(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(batches) if batches else np.empty((0, self.dimension), np.float32)

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = _unit_vectors(self._ask(texts), len(texts))
        if self._dimension is None:
            self._dimension = vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise EmbedderAnswer(f"{vectors.shape[1]} dimensions instead of {self._dimension}")
        return vectors

    def _ask(self, texts: Sequence[str]) -> object:
        raise NotImplementedError


class OllamaEmbedder(_HttpEmbedder):
    """Embeds with a model of an Ollama server (`/api/embed`); the texts go to that server as they are."""

    def __init__(self, model: str, url: str = "http://127.0.0.1:11434", dimension: int | None = None) -> None:
        super().__init__(Endpoint(url, "/api/embed"), dimension)
        self.model = model
        self.name = f"ollama/{model}"

    def _ask(self, texts: Sequence[str]) -> object:
        return _field(self._endpoint.post({"model": self.model, "input": list(texts)}), "embeddings")


class OpenAIEmbedder(_HttpEmbedder):
    """Embeds with an endpoint of OpenAI's kind (`/v1/embeddings`); the texts go to that server as they are.

    Raises `ValueError` for an API key that would go over plain HTTP to another machine.
    """

    def __init__(self, model: str, url: str, api_key: str | None = None, dimension: int | None = None) -> None:
        super().__init__(Endpoint(url, "/v1/embeddings", api_key), dimension)
        self.model = model
        self.name = f"openai/{model}"

    def _ask(self, texts: Sequence[str]) -> object:
        request = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        rows = _field(self._endpoint.post(request), "data")
        if not isinstance(rows, list):
            raise EmbedderAnswer("no list of embeddings")
        return _in_order(cast("list[object]", rows), len(texts))


def _in_order(rows: list[object], count: int) -> list[object]:
    """Return the embeddings by their `index`: the protocol does not promise an order."""
    by_index: dict[int, object] = {}
    for row in rows:
        index = _field(row, "index")
        if not isinstance(index, int):
            raise EmbedderAnswer("an index that is not a number")
        by_index[index] = _field(row, "embedding")
    if len(rows) != count or by_index.keys() != set(range(count)):
        raise EmbedderAnswer(f"the embeddings of {count} texts are not numbered one by one")
    return [by_index[index] for index in range(count)]


def _field(answer: object, name: str) -> object:
    if not isinstance(answer, dict) or name not in answer:
        raise EmbedderAnswer(f"the answer has no {name!r}")
    return cast("dict[str, object]", answer)[name]


def _unit_vectors(rows: object, count: int) -> NDArray[np.float32]:
    try:
        vectors = np.asarray(rows)
    except ValueError as error:  # rows of different lengths
        raise EmbedderAnswer("embeddings of different lengths") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] == 0:
        raise EmbedderAnswer(f"shape {vectors.shape} for {count} texts")
    if vectors.dtype.kind not in "fi":
        raise EmbedderAnswer("embeddings that are not numbers")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EmbedderAnswer("an embedding that is not finite, or zero")
    return np.asarray(vectors / lengths, np.float32)
