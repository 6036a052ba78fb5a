"""What operations say together, rule by rule (vault-format §10); `test_view` compares any history with a reference."""

import time
from typing import Any

import pytest

from memseal.index.state import Stamped, VaultState
from memseal.memory.memory import Draft, Memory, State
from memseal.memory.operations import Remember, Retraction, Setting, Stamp, Tagging, make_stamp

BERLIN, MUNICH, HAMBURG, COPY = (bytes((number,)) * 16 for number in range(1, 5))
RED, BLUE = b"r" * 16, b"b" * 16


def at(counter: int, operation_id: bytes, position: int = 0) -> Stamp:
    return make_stamp(counter, position, operation_id)


def remember(
    state: VaultState, memory_id: bytes, content: str, counter: int, *, of: bytes | None = None, **fields: Any
) -> None:
    draft = Draft(content, "test")._replace(**fields)
    reason = None if of is None else f"because of {content}"
    state.remember([Stamped(Remember(memory_id, draft, 1, None, of, reason), at(counter, memory_id))])


def retract(state: VaultState, target: bytes, counter: int, *, retracted: bool = True, reason: str = "wrong") -> None:
    operation_id = counter.to_bytes(16, "big")
    state.retract(Retraction(operation_id, target, retracted, 1, reason), at(counter, operation_id))


def get(state: VaultState, memory_id: bytes) -> Memory:
    number = state.number_of(memory_id)
    assert number is not None
    return state.memories([number])[0]


# ── the same memory ─────────────────────────────────────────────────────────────────────────────────


def test_same_memory_from_two_devices_is_one_under_the_first_id() -> None:
    state = VaultState()
    remember(state, COPY, "lives in Berlin", 2)
    remember(state, BERLIN, "lives in Berlin", 1)
    assert get(state, COPY).id == get(state, BERLIN).id == BERLIN.hex()
    assert state.count() == 1


@pytest.mark.parametrize(
    "difference", [{"kind": "fact"}, {"author": "Ann"}, {"author": ""}, {"thread": "t"}, {"captured_at": 0}]
)
def test_memories_that_differ_in_one_field_are_two(difference: dict[str, Any]) -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, COPY, "lives in Berlin", 2, **difference)
    assert state.count() == 2


@pytest.mark.parametrize("difference", [{"source": "other"}, {"tags": ("x",)}, {"position": 3}, {"origin": "o"}])
def test_memories_that_differ_in_where_they_came_from_are_one(difference: dict[str, Any]) -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, COPY, "lives in Berlin", 2, **difference)
    assert state.count() == 1


def test_memory_that_supersedes_is_never_the_same_as_another() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, MUNICH, "lives in Munich", 2, of=BERLIN)
    remember(state, COPY, "lives in Munich", 3)
    assert get(state, COPY).id == COPY.hex()


def test_what_was_said_of_either_of_two_same_memories_is_said_of_the_one() -> None:
    state = VaultState()
    remember(state, COPY, "lives in Berlin", 2, tags=("copy",))
    retract(state, COPY, 4)
    remember(state, BERLIN, "lives in Berlin", 1, tags=("first",))
    found = get(state, COPY)
    assert (found.tags, found.state, found.reason) == (("copy", "first"), State.RETRACTED, "wrong")


def test_memories_whose_identity_joins_to_one_text_stay_two() -> None:
    state = VaultState()
    remember(state, BERLIN, "a", 1, author="b\0c", thread="d")
    remember(state, COPY, "a", 2, author="b", thread="c\0d")
    assert state.count() == 2


def test_same_as_finds_the_memory_that_a_draft_would_be() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    known, unknown = Draft("lives in Berlin", "another source"), Draft("lives in berlin", "test")
    assert state.same_as([known, unknown, known]) == [BERLIN, None, BERLIN]


# ── one id twice ────────────────────────────────────────────────────────────────────────────────────


def test_operation_written_again_with_its_first_stamp_changes_nothing() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    before = state.digest()
    remember(state, BERLIN, "lives in Berlin", 1)
    assert state.digest() == before


def test_of_two_memories_with_one_id_the_lower_stamp_counts_whatever_comes_first() -> None:
    first, second = VaultState(), VaultState()
    remember(first, BERLIN, "lives in Berlin", 1, tags=("b",))
    remember(first, BERLIN, "lives in Munich", 2, tags=("m",))
    remember(second, BERLIN, "lives in Munich", 2, tags=("m",))
    remember(second, BERLIN, "lives in Berlin", 1, tags=("b",))
    assert first.digest() == second.digest()
    assert (get(second, BERLIN).content, get(second, BERLIN).tags) == ("lives in Berlin", ("b",))


def test_two_memories_with_one_id_in_one_record_are_taken() -> None:
    state = VaultState()
    batch = [
        Stamped(Remember(BERLIN, Draft(content, "test"), 1), at(counter, BERLIN))
        for counter, content in ((2, "lives in Munich"), (1, "lives in Berlin"), (3, "lives in Hamburg"))
    ]
    state.remember(batch)
    assert get(state, BERLIN).content == "lives in Berlin"


def test_memory_that_stops_superseding_gives_the_other_back() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, MUNICH, "lives in Munich", 3, of=BERLIN)
    remember(state, MUNICH, "lives in Munich", 2)
    assert get(state, BERLIN).state == State.ACTIVE


# ── superseded, retracted ───────────────────────────────────────────────────────────────────────────


def test_memory_is_superseded_by_one_that_came_before_it() -> None:
    state = VaultState()
    remember(state, MUNICH, "lives in Munich", 2, of=BERLIN)
    assert get(state, MUNICH).state == State.ACTIVE
    remember(state, BERLIN, "lives in Berlin", 1)
    found = get(state, BERLIN)
    assert (found.state, found.superseded_by, found.reason) == (
        State.SUPERSEDED,
        MUNICH.hex(),
        "because of lives in Munich",
    )


def test_of_several_that_supersede_one_the_last_is_current_and_none_is_lost() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, HAMBURG, "lives in Hamburg", 3, of=BERLIN)
    remember(state, MUNICH, "lives in Munich", 2, of=BERLIN)
    assert get(state, HAMBURG).state == State.ACTIVE
    assert (get(state, MUNICH).state, get(state, MUNICH).superseded_by) == (State.SUPERSEDED, HAMBURG.hex())
    ((_, rivals),) = state.conflicts()
    assert [memory.id for memory in state.memories(rivals)] == [HAMBURG.hex(), MUNICH.hex()]


def test_memories_that_supersede_two_same_memories_are_in_conflict() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, MUNICH, "lives in Munich", 3, of=BERLIN)
    remember(state, HAMBURG, "lives in Hamburg", 4, of=COPY)
    assert state.conflicts() == []
    remember(state, COPY, "lives in Berlin", 2)
    assert get(state, MUNICH).superseded_by == get(state, BERLIN).superseded_by == HAMBURG.hex()


def test_memory_that_supersedes_the_loser_of_a_conflict_is_active() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, MUNICH, "lives in Munich", 2, of=BERLIN)
    remember(state, HAMBURG, "lives in Hamburg", 3, of=BERLIN)
    remember(state, COPY, "lives near Munich", 4, of=MUNICH)
    assert (get(state, MUNICH).superseded_by, get(state, COPY).state) == (COPY.hex(), State.ACTIVE)


def test_memory_that_supersedes_itself_is_taken_and_stays_out_of_recall() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1, of=BERLIN)
    assert get(state, BERLIN).state == State.SUPERSEDED


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_last_of_retractions_and_restorations_counts(order: tuple[int, ...]) -> None:
    state = VaultState()
    for counter in order:
        retract(state, BERLIN, counter, retracted=counter != 2, reason=f"reason {counter}")
    remember(state, BERLIN, "lives in Berlin", 1)
    assert (get(state, BERLIN).state, get(state, BERLIN).reason) == (State.RETRACTED, "reason 3")


def test_retracted_and_superseded_memory_is_both_and_says_why_it_was_retracted() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1)
    remember(state, MUNICH, "lives in Munich", 2, of=BERLIN)
    retract(state, BERLIN, 3)
    assert (get(state, BERLIN).state, get(state, BERLIN).reason) == (State.BOTH, "wrong")


# ── tags and settings ───────────────────────────────────────────────────────────────────────────────


def test_tag_stays_while_one_that_added_it_was_not_named_by_a_removal() -> None:
    state = VaultState()
    remember(state, BERLIN, "lives in Berlin", 1, tags=("home",))
    state.tag(Tagging(RED, BERLIN, 1, add=("home",)))
    state.tag(Tagging(BLUE, BERLIN, 1, remove=(("home", BERLIN),)))
    assert get(state, BERLIN).tags == ("home",)
    state.tag(Tagging(bytes(16), BERLIN, 1, remove=(("home", RED),)))
    assert get(state, BERLIN).tags == ()


def test_removal_that_comes_before_the_tag_removes_it() -> None:
    state = VaultState()
    state.tag(Tagging(BLUE, BERLIN, 1, remove=(("home", RED),)))
    state.tag(Tagging(RED, BERLIN, 1, add=("home",)))
    remember(state, BERLIN, "lives in Berlin", 1)
    assert get(state, BERLIN).tags == ()


def test_last_setting_of_a_name_counts_whatever_comes_first() -> None:
    state = VaultState()
    state.apply_setting(Setting(RED, "colour", "red", 1), at(2, RED))
    state.apply_setting(Setting(BLUE, "colour", "blue", 1), at(1, BLUE))
    assert state.setting("colour") == "red"
    assert state.setting("size") is None


# ── cost ────────────────────────────────────────────────────────────────────────────────────────────


def test_thousands_of_same_memories_and_rivals_are_not_quadratic() -> None:
    # A vault of another program, or a hostile device, must not be able to stall the others: work for all pairs of
    # 4,000 would take minutes.
    state, started = VaultState(), time.process_time()
    ids = [number.to_bytes(16, "big") for number in range(8_000)]
    same = [Remember(each, Draft("tea", "test"), 1) for each in ids[:4_000]]
    rivals = [Remember(each, Draft("coffee", "test"), 1, of=ids[0]) for each in ids[4_000:]]
    state.remember([Stamped(each, at(number, each.id)) for number, each in enumerate([*same, *rivals])])
    assert (state.count(), state.count("m.state = 0 AND m.same IS NULL")) == (4_001, 1)
    assert time.process_time() - started < 60
