"""How often and how long ago (memory-model §2)."""

import math

import pytest

from memseal.memory.significance import DECAY_PER_DAY, freshness, significance


def test_a_well_established_habit_scores_about_092() -> None:
    assert significance(12, 0) == pytest.approx(0.92, abs=0.005)


def test_what_was_never_seen_is_not_significant() -> None:
    assert significance(0, 0) == 0
    assert significance(-3, 0) == 0


def test_it_rises_with_each_time_and_stays_below_one() -> None:
    scores = [significance(seen, 10) for seen in range(60)]
    assert scores == sorted(scores)
    assert scores[1] - scores[0] > scores[30] - scores[29]
    assert scores[-1] < 1


@pytest.mark.parametrize(("data_class", "half_life_days"), [("general", 139), ("medical", 347), ("archival", 990)])
def test_half_lives_of_the_data_classes(data_class: str, half_life_days: int) -> None:
    decay = DECAY_PER_DAY[data_class]
    assert round(math.log(2) / decay) == half_life_days
    assert freshness(half_life_days, decay) == pytest.approx(0.5, abs=0.002)


def test_what_is_yet_to_come_has_not_faded() -> None:
    assert freshness(-30, 0.005) == 1
    assert significance(3, -30) == significance(3, 0)
