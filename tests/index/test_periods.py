"""The memories of a time: in the database as in memory, and without a condition per year."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memseal.index.filters import Condition, condition
from memseal.index.periods import favoured, of_time
from memseal.index.state import Stamped, VaultState
from memseal.memory.memory import Draft, to_microseconds
from memseal.memory.operations import Remember, make_stamp
from memseal.recall.dates import find_period
from memseal.recall.period import Period

START = datetime(1965, 1, 15, tzinfo=UTC)
MOMENTS = [to_microseconds(START + timedelta(days=97 * number)) for number in range(300)]
NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def state() -> VaultState:
    """Memories over eighty years, each hundredth without a time of its own."""
    state = VaultState()
    operations = [
        Remember(
            number.to_bytes(16, "big"),
            Draft(f"memory {number}", "a", captured_at=None if number % 100 == 99 else moment),
            moment,
            None,
            None,
        )
        for number, moment in enumerate(MOMENTS)
    ]
    state.remember([Stamped(each, make_stamp(1, number, each.id)) for number, each in enumerate(operations)])
    return state


def named(text: str) -> Period:
    period = find_period(text, NOW)
    assert period is not None
    return period


@pytest.mark.parametrize(
    "text",
    ["in May", "between November and February", "in 1999", "before 1970", "since 2020", "next Friday", "in 2099"],
)
def test_database_finds_what_lies_in_the_period(state: VaultState, text: str) -> None:
    period = named(text)
    wanted = of_time(state, period, condition({}))
    found = state.mask(wanted.where, wanted.values)
    expected = [number for number in range(len(MOMENTS)) if period.within(np.array([MOMENTS[number]]))[0]]
    assert [int(memory.content.split()[1]) for memory in state.memories(found.nonzero()[0].tolist())] == expected


def test_years_in_which_nothing_is_cost_nothing(state: VaultState) -> None:
    assert len(named("in May").spans) == 201
    assert len(of_time(state, named("in May"), condition({})).values) <= 2 * 81
    assert of_time(VaultState(), named("in May"), condition({})).values == ()


def test_newest_of_the_period_are_favoured_and_others_are_not(state: VaultState) -> None:
    wanted = of_time(state, named("before 1970"), condition({}))
    chosen = favoured(state, wanted, 3)
    then = chosen.mask.nonzero()[0].tolist()
    assert chosen.newest.tolist() == then[::-1][:3]
    assert favoured(state, wanted, 0).newest.tolist() == []


def test_period_narrows_a_filter(state: VaultState) -> None:
    assert not state.count(*_of(of_time(state, named("in 1999"), condition({"author": "Ann"}))))
    assert state.count(*_of(of_time(state, named("in 1999"), condition({}))))


def _of(wanted: Condition) -> tuple[str, tuple[object, ...]]:
    return wanted.where, wanted.values
