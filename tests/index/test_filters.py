"""Which memories a question is about: each filter, its bounds, and what is refused."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memseal.errors import FilterUnknown
from memseal.index.filters import NAMES, condition
from memseal.index.state import Stamped, VaultState
from memseal.memory.memory import Draft, to_microseconds
from memseal.memory.operations import Remember, Retraction, Tagging, make_stamp

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def remember(state: VaultState, name: str, *, of: str | None = None, **fields: Any) -> None:
    """Write a memory whose content and id are its name, at noon unless `captured_at` says otherwise."""
    counter = state.count("1") + 1
    draft = Draft(name, "test")._replace(**fields)
    operation = Remember(_id(name), draft, to_microseconds(NOON), None, None if of is None else _id(of))
    state.remember([Stamped(operation, make_stamp(counter, 0, _id(name)))])


def _id(name: str) -> bytes:
    return name.encode().ljust(16, b"-")


def found(state: VaultState, /, **filters: Any) -> list[str]:
    wanted = condition(filters)
    mask = state.mask(wanted.where, wanted.values)
    assert state.count(wanted.where, wanted.values) == mask.sum()
    return [memory.content for memory in state.memories(mask.nonzero()[0].tolist())]


@pytest.fixture
def state() -> VaultState:
    """Two active memories, one superseded, one retracted, one both, and a second write of the first."""
    state = VaultState()
    remember(state, "one", kind="fact", author="Ann", thread="t", tags=("red", "blue"), origin="o")
    remember(state, "two", source="other", tags=("red",))
    remember(state, "old")
    remember(state, "wrong", tags=("red",))
    remember(state, "both")
    remember(state, "new", of="old")
    remember(state, "newer", of="both")
    remember(state, "copy", **Draft("one", "other", "fact", author="Ann", thread="t")._asdict())
    for number, target in enumerate(("wrong", "both")):
        operation_id = bytes((number,)) * 16
        retraction = Retraction(operation_id, _id(target), True, 1, "wrong")
        state.retract(retraction, make_stamp(20, number, operation_id))
    return state


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["one", "two", "new", "newer"]),
        ({"kind": "fact"}, ["one"]),
        ({"author": "Ann"}, ["one"]),
        ({"thread": "t"}, ["one"]),
        ({"source": "other"}, ["two"]),
        ({"origin": "o"}, ["one"]),
        ({"tags": ["red"]}, ["one", "two"]),
        ({"tags": ["red", "blue"]}, ["one"]),
        ({"tags": []}, ["one", "two", "new", "newer"]),
        ({"tags": ["red"], "author": "Bob"}, []),
        ({"kind": None, "state": "active"}, ["one", "two", "new", "newer"]),
        ({"state": "superseded"}, ["old", "both"]),
        ({"state": "retracted"}, ["wrong", "both"]),
        ({"state": "all"}, ["one", "two", "old", "wrong", "both", "new", "newer"]),
        ({"state": "all", "tags": ["red"]}, ["one", "two", "wrong"]),
        ({"author": "' OR 1 --"}, []),
        ({"type": "semantic"}, ["one", "two", "new", "newer"]),
        ({"type": "episodic"}, []),
        ({"type": "' OR 1 --"}, []),
        ({"tier": "atom"}, ["one", "two", "new", "newer"]),
        ({"tier": "affinity", "state": "all"}, []),
    ],
)
def test_filters_leave_what_they_name(state: VaultState, filters: Mapping[str, Any], names: list[str]) -> None:
    assert found(state, **filters) == names


def test_memory_is_found_by_a_tag_of_its_second_writing_until_that_is_removed(state: VaultState) -> None:
    state.tag(Tagging(b"t" * 16, _id("copy"), 1, add=("green",)))
    assert found(state, tags=["green"]) == ["one"]
    state.tag(Tagging(b"u" * 16, _id("copy"), 1, remove=(("green", b"t" * 16),)))
    assert found(state, tags=["green"]) == []


@pytest.mark.parametrize(
    ("since", "until", "is_found"),
    [
        (NOON, None, True),
        (NOON + MICROSECOND, None, False),
        (None, NOON, False),
        (None, NOON + MICROSECOND, True),
        (NOON, NOON, False),
        (NOON.astimezone(timezone(timedelta(hours=-7))), NOON + MICROSECOND, True),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_time_window_is_half_open_on_when_it_happened_or_else_was_written(
    since: datetime | None, until: datetime | None, is_found: bool, told: bool
) -> None:
    state = VaultState()
    remember(state, "noon", captured_at=to_microseconds(NOON) if told else None)
    assert found(state, since=since, until=until) == (["noon"] if is_found else [])


def test_time_window_goes_by_when_it_happened_rather_than_when_it_was_written() -> None:
    state = VaultState()
    remember(state, "years ago", captured_at=to_microseconds(NOON - timedelta(days=900)))
    assert found(state, since=NOON - timedelta(days=1)) == []


def test_window_of_writing_goes_by_when_it_was_written_whenever_it_happened() -> None:
    state = VaultState()
    remember(state, "years ago", captured_at=to_microseconds(NOON - timedelta(days=900)))
    assert found(state, written_since=NOON) == found(state, written_until=NOON + MICROSECOND) == ["years ago"]
    assert found(state, written_since=NOON + MICROSECOND) == found(state, written_until=NOON) == []


@pytest.mark.parametrize("name", ["kinds", "Kind", "", "limit", "n = 1 OR kind"])
def test_unknown_filter_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(FilterUnknown) as caught:
        condition({name: "fact"})
    assert repr(name) in str(caught.value)
    assert all(known in str(caught.value) for known in NAMES)


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"tags": "red"}, TypeError),
        ({"tags": [1]}, TypeError),
        ({"tags": 1}, TypeError),
        ({"kind": 1}, TypeError),
        ({"author": b"Ann"}, TypeError),
        ({"since": "yesterday"}, TypeError),
        ({"until": 1.5}, TypeError),
        ({"since": datetime(2026, 5, 1)}, ValueError),  # noqa: DTZ001 - that is what is refused
        ({"state": "gone"}, ValueError),
        ({"state": ["active"]}, TypeError),
    ],
)
def test_filter_of_a_wrong_type_or_value_is_refused(filters: Mapping[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        condition(filters)


def test_type_that_was_named_counts_before_the_rules() -> None:
    state = VaultState()
    remember(state, "Yesterday I met Sam")
    remember(state, "Yesterday I met Ann", others={"type": "semantic"})
    remember(state, "The moon is far", others={"type": "dream"})
    assert found(state, type="episodic") == ["Yesterday I met Sam"]
    assert found(state, type="semantic") == ["Yesterday I met Ann"]
    assert found(state, type="dream") == ["The moon is far"]


def test_what_was_made_of_others_is_active_while_all_of_them_are() -> None:
    state = VaultState()
    derived = {"tier": "composite", "derived_from": [_id("one"), _id("two"), _id("elsewhere")]}
    remember(state, "both of them", others=derived)
    remember(state, "one")
    remember(state, "two")
    assert found(state, tier="composite") == ["both of them"]
    remember(state, "two again", of="two")
    assert found(state, tier="composite") == []
    assert found(state, tier="composite", state="all") == ["both of them"]
