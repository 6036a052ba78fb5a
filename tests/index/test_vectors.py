"""Exact search over vectors."""

from threading import Thread

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.errors import VectorInvalid
from memseal.index.vectors import VectorIndex

DIMENSION = 16


def unit(count: int, seed: int = 1) -> NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), "<f2")


def filled(count: int) -> tuple[VectorIndex, NDArray[np.float16]]:
    vectors = unit(count)
    index = VectorIndex(DIMENSION)
    index.add(np.arange(1, count + 1), vectors.tobytes())
    return index, vectors


def test_search_finds_what_a_plain_product_finds() -> None:
    index, vectors = filled(200)
    query = unit(1, seed=2)[0].astype(np.float32)
    numbers, scores = index.search(query, 10)
    cosines = vectors.astype(np.float32) @ query
    assert numbers.tolist() == (np.argsort(-cosines)[:10] + 1).tolist()
    assert np.allclose(scores, np.sort(cosines)[::-1][:10], atol=1e-5)


def test_bytes_of_a_record_go_in_and_out_unchanged() -> None:
    index, vectors = filled(7)
    assert index.codes() == vectors.tobytes()
    assert index.numbers().tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_arrays_and_views_are_taken_like_bytes() -> None:
    vectors = unit(3)
    index = VectorIndex(DIMENSION)
    index.add(np.array([5]), vectors[0])
    index.add(np.array([6]), memoryview(vectors[1].tobytes()))
    index.add(np.array([7]), bytearray(vectors[2].tobytes()))
    assert index.codes() == vectors.tobytes()


def test_strided_array_is_taken_by_its_values() -> None:
    vectors = unit(4)
    index = VectorIndex(DIMENSION)
    index.add(np.array([1, 2]), vectors[::2])
    assert index.codes() == vectors[::2].tobytes()


def test_rebuilt_index_answers_the_same() -> None:
    index, _ = filled(50)
    index.drop(9)
    again = VectorIndex.from_codes(DIMENSION, index.numbers(), index.codes())
    query = unit(1, seed=3)[0].astype(np.float32)
    numbers, scores = index.search(query, 49)
    same_numbers, same_scores = again.search(query, 49)
    assert np.array_equal(numbers, same_numbers)
    assert np.array_equal(scores, same_scores)


def test_narrow_filter_still_finds_as_many_as_wanted() -> None:
    index, _ = filled(500)
    allowed = np.zeros(501, np.bool_)
    allowed[[3, 77, 444]] = True
    numbers, _ = index.search(unit(1, seed=4)[0].astype(np.float32), 3, allowed)
    assert sorted(numbers.tolist()) == [3, 77, 444]


def test_number_beyond_the_mask_is_not_allowed() -> None:
    index, _ = filled(5)
    numbers, _ = index.search(unit(1)[0].astype(np.float32), 5, np.ones(3, np.bool_))
    assert sorted(numbers.tolist()) == [1, 2]


def test_filter_that_allows_nothing_finds_nothing() -> None:
    index, _ = filled(5)
    assert index.search(unit(1)[0].astype(np.float32), 5, np.zeros(6, np.bool_))[0].size == 0


def test_replaced_vector_is_never_found_again() -> None:
    index, vectors = filled(20)
    replacement = unit(1, seed=5)
    index.add(np.array([4]), replacement)
    numbers, scores = index.search(vectors[3].astype(np.float32), 20)
    assert len(index) == 20
    assert sorted(numbers.tolist()) == list(range(1, 21))
    assert scores[numbers == 4][0] < 0.99
    assert np.array_equal(index.vectors(np.array([4])), replacement.astype(np.float32))


def test_last_of_a_number_that_comes_twice_counts() -> None:
    vectors = unit(3)
    index = VectorIndex(DIMENSION)
    index.add(np.array([8, 9, 8]), vectors)
    assert index.numbers().tolist() == [9, 8]
    assert index.codes() == vectors[1:].tobytes()
    assert np.array_equal(index.vectors(np.array([8]))[0], vectors[2].astype(np.float32))


def test_dropped_vector_is_gone_from_search_and_export() -> None:
    index, vectors = filled(3)
    index.drop(2)
    assert 2 not in index
    assert len(index) == 2
    assert sorted(index.search(vectors[1].astype(np.float32), 3)[0].tolist()) == [1, 3]
    assert index.codes() == vectors[[0, 2]].tobytes()


def test_dropping_what_is_not_there_changes_nothing() -> None:
    index, _ = filled(3)
    for number in (2, 2, 0, -1, 10**9):
        index.drop(number)
    assert index.numbers().tolist() == [1, 3]


def test_dropped_number_can_come_back() -> None:
    index, _ = filled(3)
    index.drop(2)
    index.add(np.array([2]), unit(1, seed=6))
    assert index.numbers().tolist() == [1, 3, 2]


def test_number_without_a_vector_has_no_cosine() -> None:
    index, vectors = filled(3)
    cosines = index.similarities(vectors[0].astype(np.float32), np.array([1, 99, -1, 2]))
    assert np.isclose(cosines[0], 1, atol=1e-3)
    assert np.isnan(cosines[[1, 2]]).all()
    assert np.isclose(cosines[3], vectors[0].astype(np.float32) @ vectors[1].astype(np.float32), atol=1e-5)


def test_empty_index_finds_nothing() -> None:
    index = VectorIndex(DIMENSION)
    index.add(np.empty(0, np.int64), b"")
    query = unit(1)[0].astype(np.float32)
    assert index.search(query, 5)[0].size == 0
    assert index.codes() == b""
    assert np.isnan(index.vectors(np.array([1]))).all()


def test_limit_of_nothing_finds_nothing() -> None:
    index, vectors = filled(3)
    assert index.search(vectors[0].astype(np.float32), 0)[0].size == 0


@pytest.mark.parametrize("size", [1, DIMENSION * 2 - 1, DIMENSION * 2 + 2, DIMENSION * 4])
def test_codes_of_another_size_are_refused(size: int) -> None:
    with pytest.raises(VectorInvalid):
        VectorIndex(DIMENSION).add(np.array([1]), bytes(size))


def test_query_of_another_dimension_is_refused() -> None:
    index, _ = filled(3)
    with pytest.raises(VectorInvalid):
        index.search(np.ones(DIMENSION + 1, np.float32), 1)


def test_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        VectorIndex(DIMENSION).add(np.array([-1]), unit(1))


def test_search_leaves_the_threads_of_faiss_as_they_were() -> None:
    index, vectors = filled(3)
    before = faiss.omp_get_max_threads()
    index.search(vectors[0].astype(np.float32), 1)
    assert faiss.omp_get_max_threads() == before


def test_adding_while_others_search_is_safe() -> None:
    index, vectors = filled(100)
    found: list[int] = []

    def search() -> None:
        for _ in range(200):
            found.append(int(index.search(vectors[0].astype(np.float32), 1)[0][0]))

    searchers = [Thread(target=search) for _ in range(2)]
    for searcher in searchers:
        searcher.start()
    for number in range(101, 600):
        index.add(np.array([number]), -vectors[0])
    for searcher in searchers:
        searcher.join()
    assert found == [1] * 400
    assert len(index) == 599


def unit_rows(count: int, dimension: int) -> NDArray[np.float16]:
    rows = np.random.default_rng(count).standard_normal((count, dimension)).astype(np.float32)
    unit: NDArray[np.float16] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f2")
    return unit


def test_codes_written_into_place_are_searched_like_added_ones() -> None:
    rows, numbers = unit_rows(300, 24), np.arange(10, 310)
    added = VectorIndex.from_codes(24, numbers, rows)

    def fill(target: memoryview) -> None:
        target[:] = rows.tobytes()

    placed = VectorIndex.with_codes(24, numbers, fill)
    for row in rows[:20].astype(np.float32):
        expected, found = added.search(row, 5), placed.search(row, 5)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
    assert placed.codes() == added.codes()
    assert b"".join(placed.code_pieces(24 * 2 * 7)) == placed.codes()


def test_a_faiss_with_another_file_form_gets_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = unit_rows(30, 8)

    def fill(target: memoryview) -> None:
        target[:] = rows.tobytes()

    def refuse(_: object) -> object:
        raise RuntimeError("unknown form")

    monkeypatch.setattr("memseal.index.vectors._borrowing", refuse)
    index = VectorIndex.with_codes(8, np.arange(30), fill)
    assert index.search(rows[4].astype(np.float32), 1)[0].tolist() == [4]


def test_an_index_with_codes_in_place_grows_replaces_and_drops() -> None:
    rows, more = unit_rows(50, 8), unit_rows(3, 8)

    def fill(target: memoryview) -> None:
        target[:] = rows.tobytes()

    index = VectorIndex.with_codes(8, np.arange(1, 51), fill)
    index.add(np.array([51, 7, 52]), more)
    index.drop(3)
    assert len(index) == 51
    assert index.search(more[1].astype(np.float32), 1)[0].tolist() == [7]
    assert 3 not in index.search(rows[2].astype(np.float32), 51)[0]


def test_no_codes_in_place_is_an_empty_index() -> None:
    index = VectorIndex.with_codes(8, np.empty(0, np.int64), lambda _: None)
    assert index.search(np.ones(8, np.float32), 3)[0].size == 0
    index.add(np.array([1]), unit_rows(1, 8))
    assert len(index) == 1
