"""Joining the two scores."""

import numpy as np

from memseal.recall.fusion import fuse, standardise


def test_z_scores_have_mean_zero_and_deviation_one() -> None:
    scores = standardise(np.array([1.0, 2.0, 6.0]))
    assert np.isclose(scores.mean(), 0)
    assert np.isclose(scores.std(), 1)


def test_scale_of_a_score_does_not_matter() -> None:
    scores = np.array([0.0, 3.0, 5.0])
    assert np.allclose(standardise(scores), standardise(1000 * scores))


def test_scores_that_hardly_differ_hardly_count() -> None:
    assert np.abs(standardise(np.array([1.0, 1.01]))).max() < 0.1


def test_missing_score_counts_as_the_mean() -> None:
    assert np.allclose(standardise(np.array([1.0, np.nan, 3.0])), [-1, 0, 1])


def test_equal_scores_say_nothing() -> None:
    assert np.array_equal(standardise(np.array([0.3, 0.3])), [0, 0])


def test_no_scores_at_all_are_zero() -> None:
    assert np.array_equal(standardise(np.array([np.nan, np.nan])), [0, 0])
    assert standardise(np.array([])).size == 0


def test_dense_weight_of_zero_leaves_the_words() -> None:
    lexical, cosine = np.array([0.0, 1.0, 5.0]), np.array([0.9, 0.1, 0.2])
    assert np.allclose(fuse(lexical, cosine, 0.0), standardise(lexical))


def test_fusion_adds_the_weighted_z_scores() -> None:
    lexical, cosine = np.array([-1.0, 1.0]), np.array([0.5, 0.1])
    assert np.allclose(fuse(lexical, cosine, 0.7), [-1 + 0.7, 1 - 0.7])


def test_scores_that_do_not_count_change_no_other() -> None:
    scores, counting = np.array([1.0, 3.0, 90.0]), np.array([True, True, False])
    assert np.allclose(standardise(scores, counting)[:2], standardise(scores[:2]))
    assert standardise(scores, counting)[2] > 1
