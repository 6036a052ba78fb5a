"""What was believed when, what was done between two times, and how a wrong step is undone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from memseal.errors import MemoryState, MemoryUnknown
from memseal.memory.memory import State
from memseal.vault.vault import Vault
from tests.vault.small_vault import open_vault

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number - 1)


@pytest.fixture
def moved(vault: Vault) -> list[str]:
    """The ids of a memory that was superseded twice: of the 1st, the 10th and the 20th."""
    first = vault.remember("Ann lives in Oslo", source="chat", captured_at=day(1))
    second = vault.supersede(first.id, "Ann lives in Rome", source="chat", captured_at=day(10), reason="she moved")
    third = vault.supersede(second.id, "Ann lives in Bern", source="mail", captured_at=day(20), reason="moved again")
    return [first.id, second.id, third.id]


def believed(vault: Vault, at: datetime, about: str = "where does Ann live") -> list[str]:
    return [version.memory.content for version in vault.believed(about, at=at)]


# ── what was believed ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("at", "content"),
    [(day(1), "Oslo"), (day(9), "Oslo"), (day(10), "Rome"), (day(19), "Rome"), (day(20), "Bern"), (day(400), "Bern")],
)
def test_what_was_believed_on_a_day_is_the_version_of_its_window(
    vault: Vault, moved: list[str], at: datetime, content: str
) -> None:
    assert believed(vault, at) == [f"Ann lives in {content}"]
    for memory_id in moved:
        assert believed(vault, at, memory_id) == [f"Ann lives in {content}"]
    assert [memory.content for memory in vault.list(as_of=at)] == [f"Ann lives in {content}"]
    assert [hit.memory.content for hit in vault.recall("Ann", as_of=at).hits] == [f"Ann lives in {content}"]


def test_before_it_was_said_nothing_was_believed(vault: Vault, moved: list[str]) -> None:
    before = day(1) - timedelta(microseconds=1)
    assert believed(vault, before) == believed(vault, before, moved[0]) == []


def test_answer_says_when_it_changed(vault: Vault, moved: list[str]) -> None:
    (version,) = vault.believed("Ann", at=day(12))
    assert (version.valid_from, version.valid_until) == (day(10), day(20))


def test_same_fact_of_two_separate_periods_stays_two(vault: Vault) -> None:
    for since, until in ((1, 5), (10, 15)):
        there = vault.remember("Ann works at the bakery", source="chat", captured_at=day(since))
        vault.supersede(there.id, f"Ann left the bakery on day {until}", source="chat", captured_at=day(until))
    views = [believed(vault, day(number), "bakery") for number in (3, 12)]
    assert [("Ann works at the bakery" in view, len(view)) for view in views] == [(True, 1), (True, 2)]
    assert vault.count(state="superseded", until=day(30)) == 2
    assert [each.kind for each in vault.proposals()] == []


def test_false_and_outdated_are_told_apart(vault: Vault, moved: list[str]) -> None:
    vault.retract(moved[1], reason="she was only on holiday there")
    assert believed(vault, day(12)) == believed(vault, day(12), moved[0]) == []
    assert believed(vault, day(5)) == ["Ann lives in Oslo"]
    assert [each.memory.content for each in vault.believed("Ann", at=day(12), state="all")] == ["Ann lives in Rome"]
    assert [each.memory.id for each in vault.believed(moved[0], at=day(12), state="all")] == [moved[1]]
    vault.restore(moved[1])
    assert believed(vault, day(12)) == ["Ann lives in Rome"]


def test_recall_of_a_day_counts_only_what_was_never_true_as_left_out(vault: Vault, moved: list[str]) -> None:
    assert vault.recall("Ann", as_of=day(12)).receipt.counted.other_state == 0
    vault.retract(moved[1], reason="wrong")
    assert vault.recall("Ann", as_of=day(12)).receipt.counted.other_state == 1


def test_view_of_a_day_with_a_state_is_what_stands_so_now(vault: Vault, moved: list[str]) -> None:
    assert vault.count(as_of=day(5), state="active") == 0
    assert vault.count(as_of=day(25), state="active") == 1


def test_time_without_a_zone_is_refused(vault: Vault, moved: list[str]) -> None:
    with pytest.raises(ValueError, match="zone"):
        vault.believed("Ann", at=datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(MemoryUnknown):
        vault.believed("0" * 32, at=day(1))


# ── history and difference ──────────────────────────────────────────────────────────────────────────


def test_history_has_every_version_with_its_window_and_every_reason(vault: Vault, moved: list[str]) -> None:
    vault.retract(moved[2], reason="a mistake")
    vault.restore(moved[2], reason="it was none")
    for memory_id in moved:
        history = vault.history(memory_id)
        assert [version.memory.id for version in history.versions] == moved
        windows = [(version.valid_from, version.valid_until) for version in history.versions]
        assert windows == [(day(1), day(10)), (day(10), day(20)), (day(20), None)]
        assert [(change.what, change.memory_id, change.reason) for change in history.changes] == [
            ("written", moved[0], None),
            ("written", moved[1], None),
            ("superseded", moved[0], "she moved"),
            ("written", moved[2], None),
            ("superseded", moved[1], "moved again"),
            ("retracted", moved[2], "a mistake"),
            ("restored", moved[2], "it was none"),
        ]


def test_history_survives_closing_and_compacting(path: Path) -> None:
    with open_vault(path) as vault:
        first = vault.remember("one", source="a")
        vault.supersede(first.id, "two", source="a", reason="why")
        vault.retract(first.id, reason="wrong")
        vault.restore(first.id)
        before = vault.history(first.id)
        vault.compact()
    with open_vault(path) as vault:
        assert vault.history(first.id) == before


def test_difference_names_what_was_written_replaced_retracted_restored_and_erased(vault: Vault) -> None:
    begin = datetime.now(UTC)
    old, gone, back = (vault.remember(f"number {number}", source="a") for number in range(3))
    new = vault.supersede(old.id, "another", source="a")
    vault.retract(back.id, reason="wrong")
    vault.restore(back.id)
    vault.erase(gone.id)
    end = datetime.now(UTC) + timedelta(microseconds=1)
    difference = vault.diff(begin, end)
    assert difference.written == (old.id, back.id, new.id)
    assert difference.superseded == ((old.id, new.id),)
    assert (difference.retracted, difference.restored, difference.erased) == ((back.id,), (back.id,), (gone.id,))
    empty = vault.diff(end, end + timedelta(days=1))
    assert empty == replace(empty, written=(), superseded=(), retracted=(), restored=(), erased=())
    with pytest.raises(ValueError, match="before"):
        vault.diff(end, begin)


def test_search_by_time_is_half_open_and_by_the_time_of_the_event(vault: Vault) -> None:
    for number in (1, 2, 3):
        vault.remember(f"day {number}", source="a", captured_at=day(number))
    assert [memory.content for memory in vault.search_by_time(day(1), day(3))] == ["day 2", "day 1"]


# ── undoing ─────────────────────────────────────────────────────────────────────────────────────────


def test_wrong_supersede_is_undone_by_one_command_and_its_reason_stays(vault: Vault, moved: list[str]) -> None:
    restored = vault.revert(moved[2], reason="that was another Ann")
    assert (restored.content, restored.state) == ("Ann lives in Rome", State.ACTIVE)
    assert [hit.memory.content for hit in vault.search("Ann")] == ["Ann lives in Rome"]
    assert believed(vault, day(22)) == ["Ann lives in Bern"]  # what was believed then stays what was believed then
    history = vault.history(moved[0])
    assert history.changes[-1].reason == "that was another Ann"
    ends = [(version.valid_from, version.valid_until) for version in history.versions]
    assert all(before[1] == after[0] for before, after in pairwise(ends))


def test_reverting_a_version_in_the_middle_goes_back_to_the_one_before_it(vault: Vault, moved: list[str]) -> None:
    assert vault.revert(moved[1], reason="no").content == "Ann lives in Oslo"
    with pytest.raises(MemoryState):
        vault.revert(moved[0], reason="no")


def test_forgotten_text_that_is_written_again_leads_to_its_past(vault: Vault) -> None:
    first = vault.remember("the bin is emptied on Monday", source="chat")
    vault.retract(first.id, reason="not any more")
    again = vault.remember("the bin is emptied on Monday", source="chat")
    assert (again.id, again.state) == (first.id, State.ACTIVE)
    whats = [change.what for change in vault.history(first.id).changes]
    assert whats == ["written", "retracted", "restored"]
