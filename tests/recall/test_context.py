"""What neighbours and threads give."""

import numpy as np

from memseal.recall.context import from_neighbours, from_thread, neighbours, supported
from memseal.recall.weights import Weights
from tests.recall.build import candidates

KERNEL = Weights(one_before=0.5, two_before=0.25, one_after=0.2, two_after=0.1, thread=0.3)
OFF = Weights(one_before=0, two_before=0, one_after=0, two_after=0, thread=0)


def test_each_neighbour_gets_its_share() -> None:
    five = candidates(5, threads=[0] * 5, positions=[10, 11, 12, 13, 14])
    gained = from_neighbours(neighbours(five, KERNEL), np.array([0.0, 0, 1, 0, 0]))
    assert np.allclose(gained, [0.1, 0.2, 0, 0.5, 0.25])


def test_order_of_the_candidates_does_not_matter() -> None:
    shuffled = candidates(3, threads=[0, 0, 0], positions=[2, 0, 1])
    assert np.allclose(from_neighbours(neighbours(shuffled, KERNEL), np.array([0.0, 1, 0])), [0.25, 0, 0.5])


def test_nothing_crosses_from_one_thread_to_another() -> None:
    two = candidates(4, threads=[0, 1, 2, 3], positions=[7, 8, 6, 9])
    assert not from_neighbours(neighbours(two, KERNEL), np.ones(4)).any()


def test_last_position_of_a_thread_is_no_neighbour_of_the_first_of_the_next() -> None:
    two = candidates(2, threads=[0, 1], positions=[40, 0])
    assert not from_neighbours(neighbours(two, KERNEL), np.ones(2)).any()


def test_gap_in_the_positions_is_not_closed() -> None:
    apart = candidates(2, threads=[0, 0], positions=[1, 4])
    assert not from_neighbours(neighbours(apart, KERNEL), np.ones(2)).any()


def test_memory_without_thread_or_position_is_never_touched() -> None:
    loose = candidates(3, threads=[-1, -1, -1], positions=[0, 1, 2])
    scores = np.array([1.0, 5.0, 1.0])
    assert not from_neighbours(neighbours(loose, KERNEL), scores).any()
    assert not from_thread(loose, scores, KERNEL).any()
    assert np.array_equal(supported(neighbours(loose, KERNEL), scores > 2), [False, True, False])


def test_huge_positions_are_neighbours_too() -> None:
    far = candidates(3, threads=[0, 0, 1], positions=[2**62, 2**62 + 1, 0])
    assert np.allclose(from_neighbours(neighbours(far, KERNEL), np.array([1.0, 0, 0])), [0, 0.5, 0])


def test_thread_gives_the_mean_of_its_three_best() -> None:
    mixed = candidates(6, threads=[0, 0, 0, 0, 1, -1], positions=[0, 9, 18, 27, 0, 0])
    gained = from_thread(mixed, np.array([1.0, 4, 3, 2, 5, 9]), KERNEL)
    assert np.allclose(gained, [0.9, 0.9, 0.9, 0.9, 1.5, 0])


def test_weights_of_zero_switch_both_off() -> None:
    three = candidates(3, threads=[0, 0, 0], positions=[0, 1, 2])
    scores = np.array([1.0, 2, 3])
    assert not from_neighbours(neighbours(three, OFF), scores).any()
    assert not from_thread(three, scores, OFF).any()
    assert np.array_equal(supported(neighbours(three, OFF), scores > 2), [False, False, True])


def test_neighbour_of_a_relevant_memory_is_supported() -> None:
    four = candidates(4, threads=[0, 0, 0, 0], positions=[0, 1, 2, 3])
    assert np.array_equal(
        supported(neighbours(four, KERNEL), np.array([True, False, False, False])), [True, True, True, False]
    )


def test_no_candidates_are_no_trouble() -> None:
    none = candidates(0)
    assert from_neighbours(neighbours(none, KERNEL), np.array([])).size == 0
    assert from_thread(none, np.array([]), KERNEL).size == 0


def test_entries_of_other_days_are_no_neighbours_though_their_positions_are() -> None:
    day = 24 * 3_600 * 1_000_000
    diary = candidates(3, threads=[0, 0, 0], positions=[1, 2, 3], captured_at=[day, day + 60_000_000, 3 * day])
    gained = from_neighbours(neighbours(diary, KERNEL), np.array([1.0, 1, 1]))
    assert np.allclose(gained, [0.2, 0.5, 0])


def test_memories_without_a_time_are_taken_to_be_of_one_sitting() -> None:
    mixed = candidates(2, threads=[0, 0], positions=[1, 2], captured_at=[0, 10**15])
    assert np.allclose(from_neighbours(neighbours(mixed, KERNEL), np.array([1.0, 0])), [0, 0.5])
