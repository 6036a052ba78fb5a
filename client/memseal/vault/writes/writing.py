"""From what an app wants remembered to batches of operations."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memseal.embedding import Embedder
from memseal.errors import EmbedderAnswer, EmbedderUnavailable, MemoryInvalid, VectorInvalid
from memseal.format.content import Column
from memseal.index.view import EMBEDDING, View
from memseal.memory.memory import Draft, draft, to_microseconds
from memseal.memory.operations import Embed, Remember, Setting
from memseal.memory.texts import ID_SIZE
from memseal.recall import index_text
from memseal.vault.folder.batch import Batch

# A record of a bulk write: large enough that its fixed cost vanishes, small enough that damage costs little.
_RECORD_BYTES = 4 << 20
_ROWS = 4096
CALLER_MODEL = "caller"
"""The model's name where an app brings vectors and no model is pinned: no text query is compared with them."""


@dataclass(frozen=True)
class Vectors:
    """One vector for each memory to be written: float16 codes of unit length, shape (n, d), and their model."""

    model: str
    codes: NDArray[np.float16]


def read_items(items: Iterable[Mapping[str, Any]]) -> list[Draft]:
    """Return the checked drafts of items; an error names the item by its number, from 0."""
    drafts = list[Draft]()
    for number, item in enumerate(items):
        try:
            drafts.append(draft(**item))
        except MemoryInvalid as error:
            raise MemoryInvalid(f"item {number}: {error}") from None
        except TypeError as error:
            raise TypeError(f"item {number}: {error}") from None
    return drafts


def item_embeddings(
    items: Sequence[Mapping[str, Any]], embeddings: ArrayLike | None
) -> tuple[Sequence[Mapping[str, Any]], ArrayLike | None]:
    """Return items without their own `embedding`, and all embeddings as one matrix; raises `VectorInvalid`.

    Either every item brings one, or none does, or they come as a matrix beside the items.
    """
    check_items(items)
    own = [item["embedding"] for item in items if item.get("embedding") is not None]
    if not own:
        return [_without_embedding(item) for item in items] if any(
            "embedding" in item for item in items
        ) else items, embeddings
    if embeddings is not None or len(own) != len(items):
        raise VectorInvalid("embeddings come with every item or with none, or as a matrix beside the items")
    try:
        matrix = np.asarray(own, np.float32)
    except (TypeError, ValueError):
        matrix = np.empty(0, np.float32)
    if matrix.ndim != 2:
        raise VectorInvalid("the items' embeddings are not numbers of one length")
    return [_without_embedding(item) for item in items], matrix


def check_items(items: Sequence[Mapping[str, Any]]) -> None:
    """Raise `TypeError` for an item that is no mapping, naming it by its number."""
    for number, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise TypeError(f"item {number} is a mapping with content and source, not {type(item).__name__}")


def _without_embedding(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in item.items() if name != "embedding"}


def unit_codes(embeddings: ArrayLike, count: int) -> NDArray[np.float16]:
    """Return float16 vectors of unit length, shape (count, d); raises `VectorInvalid`."""
    try:
        matrix = np.asarray(embeddings, np.float32)
    except (TypeError, ValueError):
        raise VectorInvalid("embeddings are numbers, shape (n, d)") from None
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] < 1:
        raise VectorInvalid(f"embeddings have shape {matrix.shape}, not ({count}, d)")
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if not np.isfinite(norms).all() or not norms.all():
        raise VectorInvalid("an embedding has a value that is not finite, or no length")
    codes = np.empty(matrix.shape, "<f2")
    for start in range(0, count, _ROWS):  # in steps, or a bulk write would hold all vectors once more
        part = slice(start, start + _ROWS)
        codes[part] = matrix[part] / norms[part, np.newaxis]
    return codes


def given_vectors(view: View, embeddings: ArrayLike, count: int) -> Vectors:
    """Return vectors that the app brought, taken as of the pinned model; `VectorInvalid` for another dimension."""
    codes = unit_codes(embeddings, count)
    model, dimension = view.pinned or (CALLER_MODEL, codes.shape[1])
    if codes.shape[1] != dimension:
        raise VectorInvalid(f"embeddings have {codes.shape[1]} dimensions, this vault's have {dimension}")
    return Vectors(model, codes)


def embedded_vectors(view: View, embedder: Embedder | None, drafts: Sequence[Draft]) -> Vectors | None:
    """Return vectors made by the embedder, or None where there is none, of another model, or out of reach.

    What is written without a vector waits for `reindex`; a memory is never lost for want of a model.
    """
    if embedder is None or not drafts or view.pinned not in (None, (embedder.name, embedder.dimension)):
        return None
    try:
        vectors = embedder.embed([text_of(each) for each in drafts])
    except (EmbedderUnavailable, EmbedderAnswer):
        return None
    return Vectors(embedder.name, unit_codes(vectors, len(drafts)))


def text_of(what: Draft) -> str:
    """Return the text by which a memory is found by meaning."""
    return index_text(what.content, what.author)


def new_id() -> bytes:
    """Return a fresh id for an operation."""
    return secrets.token_bytes(ID_SIZE)


def present() -> int:
    """Return the time now, in µs since 1970 UTC, as operations carry it."""
    return to_microseconds(datetime.now(UTC))


def new_memories(drafts: Sequence[Draft], written_at: int) -> list[Remember]:
    """Return the operations that remember these, with fresh ids."""
    ids = secrets.token_bytes(ID_SIZE * len(drafts))
    return [
        Remember(ids[start : start + ID_SIZE], each, written_at)
        for start, each in zip(range(0, len(ids), ID_SIZE), drafts, strict=True)
    ]


def remember_batches(
    view: View, operations: Sequence[Remember], vectors: Vectors | None, written_at: int
) -> list[Batch]:
    """Return the batches of one write: the first also pins the model, where none is pinned yet."""
    if not operations:
        return []
    if vectors is None:
        return [Batch(some) for some in _split(operations, 0)]
    width = vectors.codes.shape[1]
    batches, done = list[Batch](), 0
    for some in _split(operations, width * 2):
        codes = vectors.codes[done : done + len(some)]
        done += len(some)
        placed = [_with_row(operation, row) for row, operation in enumerate(some)]
        batches.append(Batch(placed, _column(vectors.model, codes)))
    if view.pinned is None and batches:
        pin = Setting(new_id(), EMBEDDING, {"model": vectors.model, "dimension": width}, written_at)
        batches[0] = Batch([pin, *batches[0].operations], batches[0].columns)
    return batches


def embed_batches(targets: Sequence[bytes], model: str, codes: NDArray[np.float16]) -> list[Batch]:
    """Return the batches that give vectors to memories that are there already."""
    operations = [Embed(new_id(), target, row) for row, target in enumerate(targets)]
    return [Batch(operations, _column(model, codes))]


def _column(model: str, codes: NDArray[np.float16]) -> tuple[Column, ...]:
    if not len(codes):
        return ()
    content = np.ascontiguousarray(codes, "<f2").reshape(-1).view(np.uint8).data
    return (Column(EMBEDDING, model, "f2", codes.shape[1], len(codes), content),)


def _with_row(operation: Remember, row: int) -> Remember:
    return Remember(operation.id, operation.draft, operation.written_at, row, operation.of, operation.reason)


def _split(operations: Sequence[Remember], vector_bytes: int) -> list[Sequence[Remember]]:
    """Cut a write into records of about `_RECORD_BYTES`."""
    parts, first, size = list[Sequence[Remember]](), 0, 0
    for number, operation in enumerate(operations):
        more = vector_bytes + 200 + 2 * len(operation.draft.content)
        if number > first and size + more > _RECORD_BYTES:
            parts.append(operations[first:number])
            first, size = number, 0
        size += more
    parts.append(operations[first:])
    return parts
