"""The approximate index beside the exact one: what it finds, and how it follows every change."""

import gc
import weakref
from collections.abc import Iterator
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.index import approximation
from memseal.index.approximate import ApproximateIndex
from memseal.index.vectors import VectorIndex

DIMENSION = 96
COUNT = 6_000
CLUSTERS = 60


@pytest.fixture(autouse=True)
def approximate_from_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few thousand vectors be many, and choosing most of them worth it."""
    monkeypatch.setattr(approximation, "APPROXIMATE_FROM", 2_000)
    monkeypatch.setattr(approximation, "_MOST_CHOSEN", 0.9)


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float16]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), "<f2")


def clustered(count: int, seed: int) -> NDArray[np.float16]:
    """Return vectors that lie as those of texts do: many about each of some topics."""
    rng, topics = np.random.default_rng(seed), np.random.default_rng(1).standard_normal((CLUSTERS, DIMENSION))
    return unit(topics[rng.integers(0, CLUSTERS, count)] + 0.7 * rng.standard_normal((count, DIMENSION)))


def filled(vectors: NDArray[np.float16]) -> VectorIndex:
    """Return an index of these vectors; an approximate one is being built."""
    index = VectorIndex(DIMENSION)
    index.add(np.arange(1, len(vectors) + 1), vectors)
    return index


def ready(vectors: NDArray[np.float16]) -> VectorIndex:
    """Return an index whose approximate one is built."""
    index = filled(vectors)
    index._approximation.settle()
    assert index._approximation.is_ready
    return index


VECTORS = clustered(COUNT, 2)
QUERIES = clustered(40, 3).astype(np.float32)


@pytest.fixture
def index() -> Iterator[VectorIndex]:
    made = ready(VECTORS)
    yield made
    made.close()


def exact(query: NDArray[np.float32], limit: int, allowed: NDArray[np.bool_] | None = None) -> set[int]:
    cosines = VECTORS.astype(np.float32) @ query
    if allowed is not None:
        cosines[~allowed[1 : COUNT + 1]] = -2
    return {int(row) + 1 for row in np.argsort(-cosines)[:limit]}


def recall(index: VectorIndex, allowed: NDArray[np.bool_] | None = None) -> float:
    found = [len(exact(query, 10, allowed) & set(index.search(query, 10, allowed)[0].tolist())) for query in QUERIES]
    return sum(found) / (10 * len(QUERIES))


def test_nearly_all_of_the_nearest_ten_are_found_with_their_exact_cosines(index: VectorIndex) -> None:
    assert recall(index) >= 0.98
    numbers, scores = index.search(QUERIES[0], 10)
    assert np.allclose(scores, VECTORS[numbers - 1].astype(np.float32) @ QUERIES[0], atol=1e-5)
    assert (np.diff(scores) <= 0).all()


def test_fewer_rows_are_compared_than_there_are(index: VectorIndex) -> None:
    rows = index._approximation.choose(QUERIES[:1], 10, COUNT, 1.0)
    assert rows is not None
    assert rows.size == 1_000


def test_of_what_a_filter_leaves_as_many_are_compared_as_of_all(index: VectorIndex) -> None:
    rows = index._approximation.choose(QUERIES[:1], 10, COUNT, 0.25)
    assert rows is not None
    assert rows.size == 4_000


@pytest.mark.parametrize(("share", "most"), [(0.09, 0.9), (0.25, 0.6)])
def test_where_a_filter_leaves_little_all_of_it_is_compared(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch, share: float, most: float
) -> None:
    monkeypatch.setattr(approximation, "_MOST_CHOSEN", most)
    assert index._approximation.choose(QUERIES[:1], 10, COUNT, share) is None


def test_filter_that_leaves_few_of_the_chosen_is_answered_exactly(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve of the chosen would do for ten hits; but some that were not chosen are nearer than the worst that were."""
    monkeypatch.setattr(approximation, "_LEAST_COMPARED", 100)
    cosines = VECTORS.astype(np.float32) @ QUERIES[0]
    chosen = index._approximation.choose(QUERIES[:1], 10, COUNT, 0.97)
    assert chosen is not None
    allowed = np.full(COUNT + 1, True)
    allowed[chosen[np.argsort(-cosines[chosen])[:-12]] + 1] = False
    found = exact(QUERIES[0], 10, allowed)
    assert not found <= set((chosen + 1).tolist())
    assert set(index.search(QUERIES[0], 10, allowed)[0].tolist()) == found


@pytest.mark.parametrize("part", [0.9, 0.5, 0.2, 0.09, 0.004])
def test_filter_of_any_width_starves_no_search(index: VectorIndex, part: float) -> None:
    allowed = np.random.default_rng(4).random(COUNT + 1) < part
    for query in QUERIES:
        numbers, _ = index.search(query, 10, allowed)
        assert numbers.size == min(10, int(allowed[1:].sum()))
        assert allowed[numbers].all()
    assert recall(index, allowed) >= 0.98


def test_filter_that_leaves_only_what_is_far_is_answered_exactly(index: VectorIndex) -> None:
    cosines = VECTORS.astype(np.float32) @ QUERIES[0]
    allowed = np.concatenate([[False], cosines < np.quantile(cosines, 0.5)])
    assert set(index.search(QUERIES[0], 10, allowed)[0].tolist()) == exact(QUERIES[0], 10, allowed)


def test_vector_that_is_added_is_found_at_once(index: VectorIndex) -> None:
    index.add(np.array([90_000]), QUERIES[:1].astype("<f2"))
    assert index._approximation.is_ready
    assert index.search(QUERIES[0], 1)[0].tolist() == [90_000]


def test_vector_that_is_replaced_is_found_by_its_new_value(index: VectorIndex) -> None:
    far = int(np.argmin(VECTORS.astype(np.float32) @ QUERIES[1])) + 1
    index.add(np.array([far]), QUERIES[1:2].astype("<f2"))
    assert index._approximation.is_ready
    assert index.search(QUERIES[1], 1)[0].tolist() == [far]


def test_many_replaced_vectors_let_it_be_built_anew(index: VectorIndex) -> None:
    index.add(np.arange(1, 1_200), clustered(1_199, 5))
    assert not index._approximation.is_ready
    index.search(QUERIES[0], 10)
    index._approximation.settle()
    assert index._approximation.is_ready


def test_erased_vector_leaves_nothing_in_any_code(index: VectorIndex) -> None:
    nearest = int(index.search(QUERIES[2], 1)[0][0])
    codes = index._approximation._index
    assert codes is not None
    index.drop(nearest)
    assert len(codes) == 0
    assert not index._approximation.is_ready
    assert nearest not in index.search(QUERIES[2], 10)[0]
    index._approximation.settle()
    assert nearest not in index.search(QUERIES[2], 10)[0]
    assert (index._view()[nearest - 1] == 0).all()


def test_memory_of_the_codes_is_overwritten_before_it_is_let_go_of() -> None:
    codes = ApproximateIndex(DIMENSION)
    codes.add(VECTORS[:64])
    kept = codes._faiss.codes
    before = bytes(approximation_bytes(kept))
    codes._faiss.reset = lambda: None
    codes.wipe()
    assert any(before)
    assert not any(approximation_bytes(kept))


def approximation_bytes(codes: object) -> NDArray[np.uint8]:
    import faiss

    content: NDArray[np.uint8] = faiss.rev_swig_ptr(codes.data(), codes.size())  # type: ignore[attr-defined]
    return content


def test_exact_answers_come_while_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, begun, add = Event(), Event(), ApproximateIndex.add

    def held(self: ApproximateIndex, vectors: NDArray[np.float16]) -> None:
        begun.set()
        go_on.wait()
        add(self, vectors)

    monkeypatch.setattr(ApproximateIndex, "add", held)
    index = filled(VECTORS)
    begun.wait()
    assert set(index.search(QUERIES[0], 10)[0].tolist()) == exact(QUERIES[0], 10)
    index.add(np.array([80_000]), QUERIES[:1].astype("<f2"))
    go_on.set()
    index._approximation.settle()
    assert index._approximation.is_ready
    assert index.search(QUERIES[0], 1)[0].tolist() == [80_000]


def test_erase_while_it_is_built_begins_it_anew_without_that_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, begun, sizes, add = Event(), Event(), list[int](), ApproximateIndex.add

    def held(self: ApproximateIndex, vectors: NDArray[np.float16]) -> None:
        begun.set()
        go_on.wait()
        sizes.append(int((vectors == 0).all(axis=1).sum()))
        add(self, vectors)

    monkeypatch.setattr(ApproximateIndex, "add", held)
    index = filled(VECTORS)
    begun.wait()
    index.drop(7)
    go_on.set()
    index._approximation.settle()
    assert sizes == [0, 1]
    assert 7 not in index.search(VECTORS[6].astype(np.float32), 10)[0]


def test_building_ends_with_the_index_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximation, "_STEP", 16)
    index = filled(VECTORS)
    builder = index._approximation._builder
    assert builder is not None
    index.close()
    assert not builder.is_alive()
    index.search(QUERIES[0], 10)
    assert index._approximation._builder is None


def test_closed_index_lets_go_of_its_memory_at_once() -> None:
    index = ready(VECTORS)
    gone = weakref.ref(index)
    gc.disable()
    try:
        index.close()
        del index
        assert gone() is None
    finally:
        gc.enable()


def test_few_vectors_and_short_ones_are_compared_one_by_one() -> None:
    few, short = filled(VECTORS[:1_999]), VectorIndex(16)
    short.add(np.arange(3_000), unit(np.random.default_rng(6).standard_normal((3_000, 16))))
    assert few._approximation._builder is None
    assert short._approximation._builder is None
    few.search(QUERIES[0], 10)
    short.search(np.full(16, 0.25, np.float32), 10)
    assert few._approximation._builder is None
    assert short._approximation._builder is None
    assert few.approximation() is None


def test_kept_bytes_answer_as_before_and_follow_what_comes(index: VectorIndex) -> None:
    content = index.approximation()
    assert content is not None
    again = VectorIndex.from_codes(DIMENSION, index.numbers(), index.codes())
    again.take_approximation(content)
    assert again._approximation.is_ready
    for query in QUERIES:
        assert np.array_equal(again.search(query, 10)[0], index.search(query, 10)[0])
    again.add(np.array([90_000]), QUERIES[:1].astype("<f2"))
    assert again.search(QUERIES[0], 1)[0].tolist() == [90_000]


def test_bytes_are_of_the_living_vectors_as_they_are_now(index: VectorIndex) -> None:
    index.drop(5)
    index.add(np.array([6]), QUERIES[3:4].astype("<f2"))
    content = index.approximation()
    again = VectorIndex.from_codes(DIMENSION, index.numbers(), index.codes())
    assert content is not None
    again.take_approximation(content)
    assert again._approximation.is_ready
    assert again.search(QUERIES[3], 1)[0].tolist() == [6]


@pytest.mark.parametrize("content", [b"", b"nothing of FAISS", bytes(4_096)])
def test_bytes_that_do_not_fit_are_passed_over(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximation, "APPROXIMATE_FROM", COUNT + 1)
    index = filled(VECTORS)
    index.take_approximation(np.frombuffer(content, np.uint8))
    assert not index._approximation.is_ready


def test_bytes_of_other_vectors_are_passed_over(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    content = index.approximation()
    assert content is not None
    monkeypatch.setattr(approximation, "APPROXIMATE_FROM", COUNT + 1)
    fewer = filled(VECTORS[:-1])
    fewer.take_approximation(content)
    assert not fewer._approximation.is_ready
