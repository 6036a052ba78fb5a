"""Windows: of any history a line has no gap and no overlap, and the view of a moment has one version of each line."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memseal.index.filters import condition
from memseal.index.state import Stamped, VaultState
from memseal.index.validity import line_of
from memseal.memory.memory import Draft, from_microseconds
from memseal.memory.operations import Remember, Retraction, make_stamp

MOMENTS = range(-1, 9)
# Of each memory: which earlier one it supersedes (if any), when it happened (if said), when it was written.
HISTORIES = st.lists(
    st.tuples(st.integers(-3, 7), st.none() | st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=8
)


def memory_id(number: int) -> bytes:
    return bytes((number + 1,)) * 16


def told(history: list[tuple[int, int | None, int]]) -> VaultState:
    state = VaultState()
    for number, (of, captured_at, written_at) in enumerate(history):
        draft = Draft(f"memory {number}", "test", captured_at=captured_at)
        operation = Remember(
            memory_id(number), draft, written_at, of=memory_id(of) if 0 <= of < number else None, reason=None
        )
        state.remember([Stamped(operation, make_stamp(number + 1, 0, operation.id))])
    return state


def shown(told: VaultState, moment: int, **filters: str) -> set[int]:
    wanted = condition({"as_of": from_microseconds(moment), **filters})
    query = f"SELECT m.n FROM memories m WHERE {wanted.where}"  # noqa: S608
    return {row[0] for row in told.connection.execute(query, wanted.values)}


@given(HISTORIES)
def test_windows_of_a_line_have_no_gap_and_no_overlap(history: list[tuple[int, int | None, int]]) -> None:
    state = told(history)
    for number in range(1, len(history) + 1):
        windows = line_of(state, number)
        assert windows[-1].end is None
        for before, after in pairwise(windows):
            assert before.start <= after.start == before.end


@given(HISTORIES)
def test_view_of_a_moment_is_what_the_windows_say(history: list[tuple[int, int | None, int]]) -> None:
    state = told(history)
    lines = {tuple(line_of(state, number)) for number in range(1, len(history) + 1)}
    for moment in MOMENTS:
        expected = {
            window.number
            for line in lines
            for window in line
            if window.start <= moment and (window.end is None or moment < window.end)
        }
        assert shown(state, moment) == expected


@given(HISTORIES, st.integers(0, 7))
def test_retracted_memory_is_in_no_view_unless_asked_for(
    history: list[tuple[int, int | None, int]], target: int
) -> None:
    state = told(history)
    before = {moment: shown(state, moment) for moment in MOMENTS}
    retraction = Retraction(b"r" * 16, memory_id(target), True, 1, "never true")
    state.retract(retraction, make_stamp(99, 0, retraction.id))
    for moment in MOMENTS:
        assert shown(state, moment) == before[moment] - {target + 1}
        assert shown(state, moment, state="all") == before[moment]


def test_clock_that_is_behind_puts_no_correction_before_what_it_corrects() -> None:
    state = told([(-1, 5, 5), (0, 2, 6)])
    assert [(window.start, window.end) for window in line_of(state, 1)] == [(5, 5), (5, None)]


def test_two_memories_that_supersede_each_other_end_the_walk() -> None:
    state = VaultState()
    for number, other in ((0, 1), (1, 0)):
        operation = Remember(memory_id(number), Draft(str(number), "test"), 1, of=memory_id(other))
        state.remember([Stamped(operation, make_stamp(number + 1, 0, operation.id))])
    assert {window.number for window in line_of(state, 1)} == {1, 2}
    assert shown(state, 5) == set()
