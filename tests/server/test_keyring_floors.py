"""The floor of a keyring version (vault-format §7): its form (K1), and how it may change (K8)."""

from typing import Any

import pytest

from tests.server.building import Draft, Log, entry, first_version, object_id, opener, private_key
from tests.server.judging import Change, accept_after, read, refusal, two_devices


def a_log(salt: bytes = b"salt") -> Log:
    first = first_version()
    return Log(first.vault, private_key("alice"), 1, first.digest(), salt).append(6)


def with_floor(previous: Draft) -> Draft:
    """The version after this one, with a floor at three records of one log and two of another."""
    rows = [a_log().row(3, 2, counter=7), a_log(b"salz").row(2, 1, counter=5)]
    return previous.next("alice").floor("one", ["a", "b"], rows)


# What is accepted.


def test_floor_is_read() -> None:
    log = a_log()
    version = read(with_floor(two_devices()))
    assert version.floor is not None
    assert version.floor.checkpoint == object_id("one")
    assert version.floor.parts == (object_id("a"), object_id("b"))
    row = version.row(log.stream)
    assert row is not None
    assert [row.epoch, row.nonce, row.segment, row.length, row.records, row.chain, row.counter] == log.row(3, 2, 7)[1:]
    assert version.row(bytes(16)) is None
    assert read(two_devices()).row(log.stream) is None


def test_first_floor_is_accepted() -> None:
    previous = two_devices()
    accept_after(previous, with_floor(previous))


def test_floor_without_parts_and_logs_is_accepted() -> None:
    previous = two_devices()
    accept_after(previous, previous.next("alice").floor("one"))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([a_log().row(3, 2, 7), a_log(b"salz").row(2, 1, 5)], id="the same rows"),
        pytest.param([a_log(b"salz").row(2, 1, 5), a_log().row(3, 2, 7)], id="in another order"),
        pytest.param([a_log().row(4, 3, 8), a_log(b"salz").row(2, 1, 5)], id="one log further"),
        pytest.param([a_log().row(4, 2, 7), a_log(b"salz").row(2, 1, 5)], id="further in the same segment"),
        pytest.param([a_log().row(3, 2, 7), a_log(b"salz").row(2, 1, 5), a_log(b"sale").row(1, 1, 1)], id="one more"),
    ],
)
def test_next_floor_is_accepted(rows: list[list[Any]]) -> None:
    previous = with_floor(two_devices())
    accept_after(previous, previous.next("bob").floor("two", ["b"], rows))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.add("carol"), id="a device added"),
        pytest.param(lambda draft: draft.new_epoch().end(1), id="a device ended"),
        pytest.param(lambda draft: draft.new_epoch().new_kit(), id="a new kit"),
    ],
)
def test_floor_stays_when_other_things_change(change: Change) -> None:
    previous = with_floor(two_devices())
    candidate = previous.next("alice")
    change(candidate)
    accept_after(previous, candidate)


def test_join_version_carries_the_floor_on() -> None:
    previous = with_floor(two_devices())
    accept_after(previous, previous.next().add("carol"))


def test_unknown_field_of_the_floor_is_carried_on() -> None:
    previous = with_floor(two_devices())
    previous.fields["floor"]["later"] = [1]
    accept_after(previous, previous.next("alice").add("carol"))


# K1: form.

FORMS: list[tuple[list[str | int], Any]] = [
    ([], 0),
    ([], {}),
    (["checkpoint"], bytes(15)),
    (["checkpoint"], None),
    (["digest"], bytes(31)),
    (["digest"], "text"),
    (["parts"], None),
    (["parts"], {}),
    (["parts", 0], bytes(17)),
    (["parts", 0], object_id("b")),
    (["logs"], None),
    (["logs", 0], []),
    (["logs", 0], [*a_log().row(3, 2), 0]),
    (["logs", 0], a_log().row(3, 2)[:-1]),
    (["logs", 0], a_log(b"salz").row(3, 2)),
    (["logs", 0, 0], bytes(15)),
    (["logs", 0, 1], 0),
    (["logs", 0, 1], 1 << 32),
    (["logs", 0, 2], bytes(11)),
    (["logs", 0, 2], 0),
    (["logs", 0, 3], -1),
    (["logs", 0, 3], 1 << 32),
    (["logs", 0, 4], 63),
    (["logs", 0, 4], 1 << 53),
    (["logs", 0, 5], None),
    (["logs", 0, 5], 1 << 32),
    (["logs", 0, 6], bytes(33)),
    (["logs", 0, 7], True),
    (["logs", 0, 7], 1 << 53),
]


@pytest.mark.parametrize(("path", "value"), FORMS, ids=[f"{number} {path}" for number, (path, _) in enumerate(FORMS)])
def test_floor_of_a_wrong_form_is_refused(path: list[str | int], value: Any) -> None:
    previous = two_devices()
    candidate = with_floor(previous)
    place: Any = candidate.fields
    for step in ["floor", *path][:-1]:
        place = place[step]
    place[["floor", *path][-1]] = value
    assert refusal(previous, candidate) == "keyring_malformed"


@pytest.mark.parametrize("name", ["checkpoint", "digest", "parts", "logs"])
def test_floor_without_a_field_is_refused(name: str) -> None:
    previous = two_devices()
    candidate = with_floor(previous)
    del candidate.fields["floor"][name]
    assert refusal(previous, candidate) == "keyring_malformed"


# K8: logs that can be.

MOST_BYTES = 12 + (1 << 26)


def with_row(previous: Draft, changes: dict[int, Any]) -> Draft:
    row = [changes.get(place, value) for place, value in enumerate(a_log().row(3, 2, counter=7))]
    return previous.next("alice").floor("one", ["a"], [row])


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({4: 64 + 3 * MOST_BYTES}, id="the largest records"),
        pytest.param({3: 3}, id="as many segments as records"),
        pytest.param({7: 1 << 32}, id="the highest counter"),
        pytest.param({7: 0}, id="counter 0"),
    ],
)
def test_row_of_a_log_that_can_be_is_accepted(changes: dict[int, Any]) -> None:
    previous = two_devices()
    accept_after(previous, with_row(previous, changes))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({0: object_id("stream")}, id="a stream of nobody"),
        pytest.param({2: bytes(12)}, id="a nonce of another stream"),
        pytest.param({1: 2}, id="an epoch to come"),
        pytest.param({3: 4}, id="more segments than records"),
        pytest.param({3: 0, 4: 64, 5: 0}, id="no record"),
        pytest.param({4: 63 + 3 * 1108}, id="smaller than records are"),
        pytest.param({4: 65 + 3 * MOST_BYTES}, id="larger than records are"),
        pytest.param({7: (1 << 32) + 1}, id="a counter beyond its epoch's"),
        pytest.param({3: 1, 4: (1 << 53) - 1, 5: (1 << 32) - 1, 7: (1 << 53) - 1}, id="the greatest numbers"),
    ],
)
def test_row_of_a_log_that_cannot_be_is_refused(changes: dict[int, Any]) -> None:
    previous = two_devices()
    assert refusal(previous, with_row(previous, changes)) == "keyring_floor"


def test_row_of_a_device_that_joins_later_is_refused() -> None:
    previous, log = two_devices(), a_log()
    stranger = Log(log.vault, private_key("carol"), 1, first_version().digest(), b"salt").append(6)
    candidate = previous.next("alice").floor("one", ["a"], [stranger.row(3, 2, counter=7)])
    assert refusal(previous, candidate) == "keyring_floor"


# K8: change.


def test_floor_in_the_first_version_is_refused() -> None:
    assert refusal(None, first_version().floor("one")) == "keyring_floor"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.add("carol"), id="a device added"),
        pytest.param(lambda draft: draft.new_epoch(), id="a new epoch"),
        pytest.param(lambda draft: draft.new_epoch().end(1), id="a device ended"),
        pytest.param(lambda draft: draft.new_epoch().new_kit(), id="a new kit"),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 1, 3)), id="a recovery code"
        ),
        pytest.param(lambda draft: draft.fields.update(later=1), id="an unknown field"),
    ],
)
def test_floor_together_with_another_change_is_refused(change: Change) -> None:
    previous = two_devices()
    candidate = with_floor(previous)
    change(candidate)
    assert refusal(previous, candidate) == "keyring_floor"


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no log"),
        pytest.param([a_log().row(4, 3, 8)], id="a log left out"),
        pytest.param([a_log().row(2, 2, 7), a_log(b"salz").row(2, 1, 5)], id="shorter"),
        pytest.param([a_log().row(4, 1, 7), a_log(b"salz").row(2, 1, 5)], id="a lower segment"),
        pytest.param([a_log().row(4, 3, 6), a_log(b"salz").row(2, 1, 5)], id="a lower counter"),
        pytest.param([[*a_log().row(4, 3, 8)[:5], 2, bytes(32), 8], a_log(b"salz").row(2, 1, 5)], id="fewer records"),
        pytest.param([a_log().row(3, 3, 7), a_log(b"salz").row(2, 1, 5)], id="another segment at the same length"),
        pytest.param([a_log().row(3, 2, 8), a_log(b"salz").row(2, 1, 5)], id="another counter at the same length"),
        pytest.param([[*a_log().row(3, 2, 7)[:6], bytes(32), 7], a_log(b"salz").row(2, 1, 5)], id="another chain"),
        pytest.param([[a_log().stream, 2, *a_log().row(4, 3, 8)[2:]], a_log(b"salz").row(2, 1, 5)], id="another epoch"),
        pytest.param(
            [[a_log().stream, 1, bytes(12), *a_log().row(4, 3, 8)[3:]], a_log(b"salz").row(2, 1, 5)],
            id="another nonce",
        ),
    ],
)
def test_floor_below_the_one_before_is_refused(rows: list[list[Any]]) -> None:
    previous = with_floor(two_devices())
    assert refusal(previous, previous.next("alice").floor("two", ["b"], rows)) == "keyring_floor"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.fields.update(floor=None), id="gone"),
        pytest.param(lambda draft: draft.fields["floor"].update(digest=bytes(32)), id="another digest"),
        pytest.param(lambda draft: draft.fields["floor"]["parts"].pop(), id="a part less"),
        pytest.param(lambda draft: draft.fields["floor"]["logs"].append(a_log(b"sale").row(1, 1, 1)), id="a log more"),
        pytest.param(lambda draft: draft.fields["floor"].update(later=1), id="an unknown field"),
    ],
)
def test_floor_that_changes_under_the_same_checkpoint_is_refused(change: Change) -> None:
    previous = with_floor(two_devices())
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_floor"


def test_what_breaks_an_earlier_rule_has_that_code() -> None:
    previous = two_devices()
    candidate = with_floor(previous)
    candidate.fields["devices"].append(entry("carol", 1))
    assert refusal(previous, candidate) == "keyring_devices"
