"""All that is open in RAM, fed record by record: the same for every order, and what the reference says."""

import numpy as np
import pytest
from hypothesis import given

from memseal.index.state import VaultState
from memseal.index.view import EMBEDDING, View
from memseal.memory.memory import Draft
from memseal.memory.operations import Embed, Remember, Setting, make_stamp
from tests.index.histories import MODEL, apply, told_in_two_orders, vector
from tests.index.reference import Reference, Stamped, Told


def pinned_view() -> View:
    return View(pin=(MODEL, 3))


def told(view: View, memory_id: bytes) -> Told:
    number = view.state.connection.execute("SELECT n FROM memories WHERE id = ?", (memory_id,)).fetchone()[0]
    memory = view.state.memories([number])[0]
    (stamp,) = view.state.connection.execute("SELECT vector FROM memories WHERE n = ?", (number,)).fetchone()
    return Told(
        content=memory.content,
        tags=memory.tags,
        state=memory.state,
        reason=memory.reason,
        supersedes=None if memory.supersedes is None else bytes.fromhex(memory.supersedes),
        superseded_by=None if memory.superseded_by is None else bytes.fromhex(memory.superseded_by),
        vector=stamp,
    )


@given(told_in_two_orders())
def test_digest_is_equal_for_every_order_grouping_and_repetition(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    digests = set()
    for records in orders:
        view = pinned_view()
        for record in records:
            assert apply(view, record) == []
        digests.add(view.state.digest())
    assert len(digests) == 1


@given(told_in_two_orders())
def test_state_after_every_record_is_what_the_reference_says(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    view, reference = pinned_view(), Reference()
    for record in orders[0]:
        apply(view, record)
        reference.apply(record)
        assert_agrees(view.state, view, reference)


@given(told_in_two_orders())
def test_image_of_a_state_goes_on_as_the_state_itself(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    whole, parts = pinned_view(), pinned_view()
    for record in orders[0]:
        apply(whole, record)
        parts = View(VaultState(parts.state.image()), parts.vectors, pin=(MODEL, 3))
        apply(parts, record)
    assert parts.state.digest() == whole.state.digest()


def assert_agrees(state: VaultState, view: View, reference: Reference) -> None:
    memories = reference.memories()
    assert state.count("1") == len(memories)
    representatives = {memory_id for memory_id in memories if reference.leads_to(memory_id) == memory_id}
    assert state.count() == len(representatives)
    for memory_id in memories:
        number = state.number_of(memory_id)
        assert number is not None
        assert state.memories([number])[0].id == reference.leads_to(memory_id).hex()
    for memory_id in representatives:
        assert told(view, memory_id) == reference.told(memory_id)
        assert_vector(view, memory_id, reference)
    found = {tuple(bytes.fromhex(each.id) for each in state.memories(rivals)) for _, rivals in state.conflicts()}
    assert found == reference.conflicts()
    assert [state.setting(name) for name in "ab"] == [reference.setting(name) for name in "ab"]


def assert_vector(view: View, memory_id: bytes, reference: Reference) -> None:
    number, expected = view.state.number_of(memory_id), reference.vector(memory_id)
    assert view.vectors is not None
    assert number is not None
    kept = view.vectors.vectors(np.array([number]))[0]
    if expected is None:
        assert np.isnan(kept).all()
    else:
        assert kept.tolist() == vector(expected).astype(np.float32).tolist()
