"""Which floors follow which: the forms of rule K1 and rule K8 (vault-format §7)."""

from dataclasses import replace
from typing import Any

import pytest

from memseal.errors import MemsealError
from memseal.format.acceptance import accept
from memseal.format.floor import decode_floor
from memseal.format.preamble import stream_id_of
from memseal.format.primitives import public_signing_key
from tests.format.building import ANN, BEN, Change, Device, Plan, Raw, Step, epoch_key, first, follow, joined, raw_of

FIRST = first()
JOINED = joined(FIRST, BEN)


def stream(device: Device = ANN, nonce: bytes = b"n" * 12) -> bytes:
    return stream_id_of(FIRST.version.vault_id, public_signing_key(device.sign), nonce)


ROW = [stream(), 1, b"n" * 12, 2, 64 + 7 * 1108, 7, b"c" * 32, 9]
FLOOR = {"checkpoint": b"k" * 16, "digest": b"d" * 32, "parts": [b"p" * 16], "logs": [ROW]}


def outcome(previous: Step | None, candidate: Raw) -> str:
    try:
        accept(None if previous is None else previous.version, candidate.decoded())
    except MemsealError as error:
        return error.code
    return "accepted"


def floored(base: Step, floor: object, change: Change = lambda public: None) -> Raw:
    """Return a version after a base that has this floor, and another change."""

    def both(public: dict[str, Any]) -> None:
        public["floor"] = floor
        change(public)

    return raw_of(follow(base, Plan(signers=[ANN.sign])), [ANN.sign, epoch_key(1)], both)


WITH_FLOOR = replace(JOINED, version=floored(JOINED, FLOOR).decoded())


@pytest.mark.parametrize(
    "floor",
    [
        0,
        {},
        "nil",
        [1],
        {**FLOOR, "checkpoint": b"short"},
        {**FLOOR, "parts": [b"p" * 16] * 2},
        {**FLOOR, "logs": [ROW, ROW]},
        {**FLOOR, "logs": [ROW[:-1]]},
        {**FLOOR, "logs": [[*ROW[:4], 63, *ROW[5:]]]},
        {**FLOOR, "logs": [[*ROW[:7], 1 << 53]]},
        {**FLOOR, "logs": [[ROW[0], 0, *ROW[2:]]]},
    ],
)
def test_k1_floor_of_a_wrong_form_is_refused(floor: object) -> None:
    assert outcome(JOINED, floored(JOINED, floor)) == "keyring_malformed"


def test_k8_version_that_changes_only_the_floor_is_accepted() -> None:
    assert outcome(JOINED, floored(JOINED, FLOOR)) == "accepted"
    assert outcome(JOINED, floored(JOINED, {**FLOOR, "newer": 1})) == "accepted"


def test_k8_first_version_with_a_floor_is_refused() -> None:
    assert (
        outcome(None, raw_of(FIRST, [ANN.sign, epoch_key(1)], lambda public: public.update(floor=FLOOR)))
        == "keyring_floor"
    )


def test_k8_floor_that_changes_with_something_else_is_refused() -> None:
    assert outcome(JOINED, floored(JOINED, FLOOR, lambda public: public.update(newer=1))) == "keyring_floor"


@pytest.mark.parametrize(
    ("place", "value"),
    [(1, 2), (2, b"m" * 12), (3, 1), (4, 64 + 7 * 1108 - 1), (5, 6), (7, 8)],
    ids=lambda value: str(value),
)
def test_k8_row_below_the_one_before_is_refused(place: int, value: object) -> None:
    row: list[object] = [*ROW[:4], 64 + 8 * 1108, *ROW[5:]]  # further on, so that only one value is below
    row[place] = value
    assert (
        outcome(WITH_FLOOR, floored(WITH_FLOOR, {**FLOOR, "checkpoint": b"l" * 16, "logs": [row]})) == "keyring_floor"
    )


@pytest.mark.parametrize("place", [3, 5, 6, 7])
def test_k8_row_of_the_same_length_that_differs_is_refused(place: int) -> None:
    row = [*ROW]
    row[place] = {3: 3, 5: 8, 6: b"x" * 32, 7: 10}[place]
    assert (
        outcome(WITH_FLOOR, floored(WITH_FLOOR, {**FLOOR, "checkpoint": b"l" * 16, "logs": [row]})) == "keyring_floor"
    )


@pytest.mark.parametrize(
    "floor", [None, {**FLOOR, "digest": b"e" * 32}, {**FLOOR, "checkpoint": b"l" * 16, "logs": []}], ids=str
)
def test_k8_floor_that_goes_back_or_keeps_its_checkpoint_is_refused(floor: object) -> None:
    assert outcome(WITH_FLOOR, floored(WITH_FLOOR, floor)) == "keyring_floor"


def test_k8_floor_that_rises_is_accepted() -> None:
    row = [*ROW[:3], 3, 64 + 8 * 1108, 8, b"x" * 32, 10]
    other = [stream(BEN, b"o" * 12), 1, b"o" * 12, *ROW[3:]]
    risen = {**FLOOR, "checkpoint": b"l" * 16, "logs": [row, other]}
    assert outcome(WITH_FLOOR, floored(WITH_FLOOR, risen)) == "accepted"


MOST = 12 + (1 << 26)


@pytest.mark.parametrize(
    "changes",
    [{4: 64 + 7 * MOST}, {3: 7}, {3: 0}, {7: 1 << 32}, {7: 0}, {0: stream(BEN)}],
    ids=str,
)
def test_k8_row_of_a_log_that_can_be_is_accepted(changes: dict[int, object]) -> None:
    row = [changes.get(place, value) for place, value in enumerate(ROW)]
    assert outcome(JOINED, floored(JOINED, {**FLOOR, "logs": [row]})) == "accepted"


@pytest.mark.parametrize(
    "changes",
    [
        {0: b"s" * 16},
        {2: b"m" * 12},
        {1: 2},
        {3: 8},
        {3: 0, 4: 64, 5: 0},
        {4: 63 + 7 * 1108},
        {4: 65 + 7 * MOST},
        {7: (1 << 32) + 1},
        {3: 2, 4: (1 << 53) - 1, 5: (1 << 32) - 1, 7: (1 << 53) - 1},
    ],
    ids=str,
)
def test_k8_row_of_a_log_that_cannot_be_is_refused(changes: dict[int, object]) -> None:
    row = [changes.get(place, value) for place, value in enumerate(ROW)]
    assert outcome(JOINED, floored(JOINED, {**FLOOR, "logs": [row]})) == "keyring_floor"
    risen = {**FLOOR, "checkpoint": b"l" * 16, "logs": [row]}
    assert outcome(WITH_FLOOR, floored(WITH_FLOOR, risen)) == "keyring_floor"


def test_k8_more_rows_than_can_be_judged_are_refused() -> None:
    floor = decode_floor({**FLOOR, "logs": [ROW, [stream(nonce=b"o" * 12), 1, b"o" * 12, *ROW[3:]]]}, "any")
    ann = public_signing_key(ANN.sign)
    assert floor.is_possible(FIRST.version.vault_id, 1, [ann] * (1 << 21))
    assert not floor.is_possible(FIRST.version.vault_id, 1, [ann] * ((1 << 21) + 1))
