"""All that is open in RAM, fed record by record: the same for every order, and what the reference says."""

import numpy as np
import pytest
from hypothesis import given, settings

from memseal.errors import FormatError
from memseal.format.content import Column
from memseal.format.values import decode_value
from memseal.index.state import VaultState
from memseal.index.view import EMBEDDING, View, decoded
from memseal.memory.memory import Draft
from memseal.memory.operations import Embed, Meta, Remember, Setting, encode_operation, make_stamp
from memseal.memory.traits import sources_of
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
    digests, reference = set(), Reference()
    for record in orders[0]:
        reference.apply(record)
    for records in orders:
        view = pinned_view()
        for record in records:
            assert apply(view, record) == []
        digests.add(view.state.digest())
        assert {(double.again.id, double.stamp) for double in view.state.doubles.due()} == reference.doubles()
    assert len(digests) == 1


@given(told_in_two_orders())
def test_what_was_derived_from_what_is_known_alike_in_every_order(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    known = list[object]()
    for records in orders:
        view = pinned_view()
        for record in records:
            apply(view, record)
        rows = view.state.connection.execute("SELECT derived, source FROM sources ORDER BY 1, 2").fetchall()
        held = view.state.connection.execute("SELECT id, others FROM memories ORDER BY 1").fetchall()
        assert rows == [
            (each, source) for each, others in held if others for source in sources_of(decode_value(others))
        ]
        known.append((rows, view.state.erasures.orphans()))
    assert known[0] == known[1]


@given(told_in_two_orders())
def test_state_after_every_record_is_what_the_reference_says(
    orders: tuple[list[list[Stamped]], list[list[Stamped]]],
) -> None:
    view, reference = pinned_view(), Reference()
    for record in orders[0]:
        apply(view, record)
        reference.apply(record)
        assert_agrees(view.state, view, reference)


@settings(max_examples=settings().max_examples // 5)  # each step copies everything
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


# ── vectors ─────────────────────────────────────────────────────────────────────────────────────────

ID = bytes(15) + b"\1"
EARLIER, LATER = make_stamp(1, 0, ID), make_stamp(2, 0, ID)


def memory(row: int | None) -> Remember:
    return Remember(ID, Draft("tea", "test"), 1, row)


def kept_vector(view: View) -> list[float]:
    assert view.vectors is not None
    kept: list[float] = view.vectors.vectors(np.array([view.state.number_of(ID)]))[0].tolist()
    return kept


def test_vector_of_an_operation_that_does_not_count_leaves_the_index() -> None:
    view = pinned_view()
    apply(view, [(memory(row=0), LATER)])
    apply(view, [(memory(row=None), EARLIER)])
    assert np.isnan(kept_vector(view)).all()
    assert [row[0] for row in view.state.without_vector(10)] == [ID]


def test_embedded_vector_stays_when_an_operation_with_a_lower_stamp_comes() -> None:
    view, embed = pinned_view(), make_stamp(3, 0, bytes(16))
    for operation, stamp in ((memory(0), LATER), (Embed(bytes(16), ID, 0), embed), (memory(0), EARLIER)):
        apply(view, [(operation, stamp)])
    assert kept_vector(view) == vector(embed).tolist()


def test_embedded_vector_counts_also_before_an_own_one_that_will_not_count() -> None:
    view, embed = pinned_view(), make_stamp(2, 0, bytes(16))
    late = make_stamp(5, 0, ID)
    for operation, stamp in ((memory(0), late), (Embed(bytes(16), ID, 0), embed), (memory(0), EARLIER)):
        apply(view, [(operation, stamp)])
    assert kept_vector(view) == vector(embed).tolist()


def test_vectors_that_came_before_their_model_was_pinned_ask_for_a_new_reading() -> None:
    view = View()
    apply(view, [(memory(row=0), EARLIER)])
    assert (view.foreign_vectors, view.pin_moved) == (1, False)
    pin = Setting(bytes(16), EMBEDDING, {"model": MODEL, "dimension": 3}, 1)
    apply(view, [(pin, make_stamp(2, 0, bytes(16)))])
    assert view.pin_moved


def test_vectors_of_another_model_are_counted_and_not_used() -> None:
    view = View(pin=("another", 3))
    apply(view, [(memory(row=0), EARLIER)])
    assert view.foreign_vectors == 1
    assert [row[0] for row in view.state.without_vector(10)] == [ID]


@pytest.mark.parametrize(
    "value", [None, 3, {}, {"model": "m"}, {"model": "m", "dimension": "3"}, {"model": "m", "dimension": 1 << 40}]
)
def test_setting_that_pins_nothing_is_ignored(value: object) -> None:
    view = View()
    apply(view, [(Setting(bytes(16), EMBEDDING, value, 1), make_stamp(1, 0, bytes(16)))])
    assert view.state_pin() is None


def test_row_beyond_the_column_leaves_the_memory_without_vector() -> None:
    view = pinned_view()
    column = Column(EMBEDDING, MODEL, "f2", 3, 1, np.array([0, 1, 0], "<f2").tobytes())
    assert view.apply_decoded([(memory(row=7), EARLIER)], [column], "record") == []
    assert [row[0] for row in view.state.without_vector(10)] == [ID]


def test_vector_that_is_not_finite_is_passed_over_and_named() -> None:
    view = pinned_view()
    column = Column(EMBEDDING, MODEL, "f2", 3, 1, np.array([np.nan, 0, 0], "<f2").tobytes())
    (finding,) = view.apply_decoded([(memory(row=0), EARLIER)], [column], "record")
    assert (finding.code, finding.where) == ("column_value", "record")
    assert np.isnan(kept_vector(view)).all()


def test_operations_that_are_not_valid_are_named_and_the_others_count() -> None:
    good = encode_operation(memory(row=None))
    values = ({"op": "remember", "id": ID}, 7, {**good, "stamp": [9, 0]}, {"op": "dream", "id": bytes(16)}, good)
    view = pinned_view()
    said, findings = decoded(Meta(0, 1, (), values), (), "record")
    assert [finding.code for finding in [*findings, *view.apply_all([said])]] == [
        "operation_invalid",
        "operation_invalid",
        "stamp_invalid",
        "operation_unknown",
    ]
    assert view.state.count() == 1


def test_image_whose_words_were_split_by_other_rules_is_refused() -> None:
    state = VaultState()
    image = VaultState(state.image())
    image.connection.execute("PRAGMA user_version = 0")
    with pytest.raises(FormatError) as caught:
        VaultState(image.image())
    assert caught.value.code == "record_content"
