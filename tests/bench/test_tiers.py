"""The probe of the three tiers gives what recall promises (recall.md §4)."""

from pathlib import Path

from tests.bench.probing import tiers


def test_habit_comes_first_with_three_tiers_and_single_memories_stay_first(tmp_path: Path) -> None:
    results = tiers.run(tmp_path)
    assert results["three tiers"] == (1.0, 1.0)
    assert results["one tier"][0] < 1.0
    assert results["one tier"][1] == 1.0
