"""Rules K2 to K10 of vault-format §7, each broken in one place."""

from collections.abc import Callable
from typing import Any

import pytest

from memseal_server import keyring
from memseal_server.versions import Refused, StreamEnd, Version, read_version
from tests.server.building import (
    BODY_SIZE,
    Draft,
    Fields,
    Log,
    entry,
    first_version,
    kit,
    opener,
    pack,
    private_key,
    public,
    record,
    some_bytes,
    vault_id,
)

Change = Callable[[Draft], Any]


def read(draft: Draft) -> Version:
    return read_version(draft.build(), draft.vault)


def accept_after(previous: Draft | None, candidate: Draft) -> None:
    keyring.accept(None if previous is None else read(previous), read(candidate))


def refusal(previous: Draft | None, candidate: Draft) -> str:
    with pytest.raises(Refused) as refused:
        accept_after(previous, candidate)
    assert refused.value.detail
    return refused.value.code


def two_devices() -> Draft:
    return first_version().next("alice").add("bob")


# What is accepted.


def test_first_version_is_accepted() -> None:
    accept_after(None, first_version())


def test_first_version_with_recovery_code_is_accepted() -> None:
    draft = first_version()
    draft.fields["recovery"] = opener("recovery", 1, 1)
    accept_after(None, draft)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft, id="nothing changed"),
        pytest.param(lambda draft: draft.add("carol"), id="a device added by another"),
        pytest.param(lambda draft: draft.new_epoch(), id="a new epoch"),
        pytest.param(lambda draft: draft.new_epoch().end(1), id="a device ended"),
        pytest.param(lambda draft: draft.new_epoch().new_kit(), id="a new kit"),
        pytest.param(lambda draft: draft.new_epoch().end(0).add("alice:2"), id="keys replaced under the same id"),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 1, 3)),
            id="a recovery code",
        ),
        pytest.param(
            lambda draft: draft.new_epoch().new_kit().fields.update(passphrase_since=3),
            id="a passphrase change",
        ),
        pytest.param(lambda draft: draft.fields.update(later_software=[1, {"a": None}]), id="an unknown field"),
    ],
)
def test_version_signed_by_an_active_device_is_accepted(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    change(candidate)
    accept_after(previous, candidate)


def test_join_version_needs_no_device_that_was_there() -> None:
    previous = two_devices()
    candidate = previous.next().add("carol")
    accept_after(previous, candidate)
    assert keyring.is_join(read(previous), read(candidate))


def test_recovery_code_can_be_replaced() -> None:
    previous = two_devices()
    previous.fields["recovery"] = opener("recovery", 1, 2)
    candidate = previous.next("bob").new_epoch()
    candidate.fields["recovery"] = opener("recovery", 2, 3)
    accept_after(previous, candidate)


# K2: chain.


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.fields.update(version=4), id="a number left out"),
        pytest.param(lambda draft: draft.fields.update(version=2), id="the same number"),
        pytest.param(lambda draft: draft.fields.update(previous=bytes(32)), id="no version before"),
    ],
)
def test_version_that_does_not_continue_is_refused(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_chain"


@pytest.mark.parametrize("change", [{"version": 2}, {"previous": b"\x01" * 32}], ids=repr)
def test_first_version_that_continues_something_is_refused(change: Fields) -> None:
    draft = first_version()
    draft.fields.update(change)
    assert refusal(None, draft) == "keyring_chain"


# K3: first version.


def two_entries(draft: Draft) -> None:
    draft.add("bob")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(two_entries, id="two entries"),
        pytest.param(lambda draft: draft.fields.update(devices=[]), id="no entry"),
        pytest.param(lambda draft: draft.fields.update(epoch=2), id="epoch"),
        pytest.param(lambda draft: draft.fields.update(epoch_since=2), id="epoch_since"),
        pytest.param(lambda draft: draft.fields.update(passphrase_since=2), id="passphrase_since"),
        pytest.param(lambda draft: draft.fields.update(kit=kit(1, 2)), id="kit since"),
        pytest.param(lambda draft: draft.fields.update(kit=kit(2, 1)), id="kit generation"),
        pytest.param(lambda draft: draft.fields.update(recovery=opener("recovery", 2, 1)), id="recovery"),
        pytest.param(lambda draft: draft.fields["devices"][0].update(since=2), id="entry since"),
        pytest.param(lambda draft: draft.end(0), id="an ended entry"),
        pytest.param(lambda draft: draft.fields.update(devices=[entry("bob", 1)]), id="another's vault"),
    ],
)
def test_first_version_that_is_not_a_beginning_is_refused(change: Change) -> None:
    draft = first_version()
    change(draft)
    assert refusal(None, draft) == "keyring_first"


# K4: epoch.


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 2},
        {"epoch": 3, "epoch_since": 3, "epoch_key": public(private_key("epoch 3"))},
        {"epoch_since": 3},
        {"epoch_key": public(private_key("epoch 2"))},
        {"epoch": 2, "epoch_since": 3},
        {"epoch": 2, "epoch_key": public(private_key("epoch 2"))},
        {"epoch_since": 3, "epoch_key": public(private_key("epoch 2"))},
    ],
    ids=lambda change: " ".join(change),
)
def test_epoch_that_changes_by_halves_is_refused(change: Fields) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    candidate.fields.update(change)
    assert refusal(previous, candidate) == "keyring_epoch"


# K5: devices.


def reversed_entries(draft: Draft) -> None:
    draft.fields["devices"].reverse()


def ended_again(draft: Draft) -> None:
    draft.new_epoch().fields["devices"][2]["ended"]["streams"] = [[bytes(16), 1, bytes(32), 64]]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.fields["devices"].pop(), id="an entry is gone"),
        pytest.param(reversed_entries, id="another order"),
        pytest.param(lambda draft: draft.fields["devices"].insert(0, entry("carol", 4)), id="added at the front"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(id=bytes(16)), id="another id"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(sign=entry("carol", 4)["sign"]), id="another key"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(wrap=bytes(1_216)), id="another wrapping key"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(since=1), id="another since"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(unknown=1), id="an unknown field added"),
        pytest.param(
            lambda draft: draft.new_epoch().fields["devices"][1].update(ended={"version": 3, "streams": []}),
            id="ended in another version",
        ),
        pytest.param(
            lambda draft: draft.new_epoch().end(1).fields["devices"][1].update(wrap=bytes(1_216)),
            id="ended with another key",
        ),
        pytest.param(lambda draft: draft.fields["devices"][2].update(ended=None), id="an ended one is back"),
        pytest.param(ended_again, id="an ended one changed"),
        pytest.param(lambda draft: draft.fields["devices"].append(entry("carol", 3)), id="added with an older since"),
        pytest.param(
            lambda draft: draft.fields["devices"].append({**entry("carol", 4), "ended": {"version": 4, "streams": []}}),
            id="added as ended",
        ),
        pytest.param(lambda draft: draft.add("dave:2"), id="an ended device's id is taken"),
        pytest.param(lambda draft: draft.new_epoch().end(0).end(1), id="nobody is left"),
    ],
)
def test_entries_that_change_otherwise_are_refused(change: Change) -> None:
    before = two_devices()
    before.add("dave")
    previous = before.next("alice").new_epoch().end(2)
    accept_after(before, previous)
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_devices"


# K6: kit, recovery code, passphrase.


def kit_with(**fields: Any) -> Change:
    def change(draft: Draft) -> None:
        draft.new_epoch().new_kit()
        draft.fields["kit"].update(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(kit_with(generation=1), id="same generation"),
        pytest.param(kit_with(generation=3), id="a generation left out"),
        pytest.param(kit_with(since=2), id="older since"),
        pytest.param(kit_with(wrap=kit(1, 1)["wrap"]), id="same wrapping key"),
        pytest.param(kit_with(request=kit(1, 1)["request"]), id="same request key"),
        pytest.param(lambda draft: draft.fields["kit"].update(unknown=1), id="an unknown field added"),
        pytest.param(lambda draft: draft.fields["kit"]["cost"].update(memory=8), id="only the cost changed"),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 2, 3)),
            id="recovery appears as the second",
        ),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 1, 2)),
            id="recovery appears as an older one",
        ),
        pytest.param(lambda draft: draft.fields.update(passphrase_since=3), id="passphrase without a new kit"),
        pytest.param(
            lambda draft: draft.new_epoch().new_kit().fields.update(passphrase_since=2),
            id="passphrase since another version",
        ),
    ],
)
def test_kit_that_changes_otherwise_is_refused(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_kit"


@pytest.mark.parametrize(
    "recovery",
    [
        pytest.param(None, id="gone"),
        pytest.param(opener("recovery", 3, 3), id="a generation left out"),
        pytest.param({**opener("recovery", 2, 3), "since": 2}, id="older since"),
        pytest.param({**opener("recovery", 1, 3), "generation": 2}, id="same keys"),
    ],
)
def test_recovery_code_that_changes_otherwise_is_refused(recovery: Fields | None) -> None:
    previous = two_devices()
    previous.fields["recovery"] = opener("recovery", 1, 2)
    candidate = previous.next("alice").new_epoch()
    candidate.fields["recovery"] = recovery
    assert refusal(previous, candidate) == "keyring_kit"


# K7: what needs a new epoch.


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.end(1), id="an ended device"),
        pytest.param(lambda draft: draft.new_kit(), id="a new kit"),
        pytest.param(lambda draft: draft.fields.update(recovery=opener("recovery", 1, 3)), id="a recovery code"),
    ],
)
def test_change_of_keys_in_the_same_epoch_is_refused(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_epoch_needed"


# K8: floor.


def test_floor_is_refused() -> None:
    draft = first_version()
    draft.fields["floor"] = {}
    assert refusal(None, draft) == "keyring_floor"


def test_version_without_a_floor_is_refused() -> None:
    draft = first_version()
    del draft.fields["floor"]
    assert refusal(None, draft) == "keyring_malformed"


def test_floor_that_appears_later_is_refused() -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    candidate.fields["floor"] = 0
    assert refusal(previous, candidate) == "keyring_floor"


# K9: sealed part.


def test_sealed_part_that_was_not_approved_is_refused() -> None:
    draft = first_version()
    other = record(2, pack({"boxes": [], "slots": []})) + record(3, some_bytes("other", BODY_SIZE))
    content = draft.stripped() + other
    version = read_version(content, draft.vault)
    with pytest.raises(Refused, match="keyring_sealed"):
        keyring.accept(None, version)


# K10: signatures.


def without(signers: list[Any], name: str) -> list[Any]:
    return [key for key in signers if public(key) != public(private_key(name))]


@pytest.mark.parametrize("name", ["alice", "carol", "epoch 1", "epoch 2"])
def test_version_that_lacks_a_signature_is_refused(name: str) -> None:
    previous = two_devices()
    candidate = previous.next("alice").add("carol").new_epoch()
    accept_after(previous, candidate)
    candidate.signers = without(candidate.signers, name)
    assert refusal(previous, candidate) == "keyring_signature"


@pytest.mark.parametrize("name", ["alice", "epoch 1"])
def test_first_version_that_lacks_a_signature_is_refused(name: str) -> None:
    draft = first_version()
    draft.signers = without(draft.signers, name)
    assert refusal(None, draft) == "keyring_signature"


@pytest.mark.parametrize("name", ["stranger", "dave", "kit 1", "epoch 7"])
def test_version_with_a_signature_of_someone_else_is_refused(name: str) -> None:
    before = two_devices().add("dave")
    previous = before.next("alice").new_epoch().end(2)
    candidate = previous.next("alice")
    candidate.signers.append(private_key(name))
    assert refusal(previous, candidate) == "keyring_signature"


@pytest.mark.parametrize("position", [0, 1, 2])
def test_version_with_a_false_signature_is_refused(position: int) -> None:
    previous = two_devices()
    candidate = previous.next("alice").add("carol")
    approval = candidate.approval()
    approval["signatures"][position][1] = bytes(64)
    version = read_version(candidate.build(approval), candidate.vault)
    with pytest.raises(Refused, match="keyring_signature"):
        keyring.accept(read(previous), version)


def test_signature_over_another_version_is_refused() -> None:
    previous = two_devices()
    other = previous.next("alice")
    other.fields["note"] = "another"
    candidate = previous.next("alice")
    version = read_version(candidate.build(other.approval()), candidate.vault)
    with pytest.raises(Refused, match="keyring_signature"):
        keyring.accept(read(previous), version)


def test_signature_that_stands_twice_is_refused() -> None:
    previous = two_devices()
    candidate = previous.next("alice", "alice")
    assert refusal(previous, candidate) == "keyring_signature"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft, id="nothing"),
        pytest.param(lambda draft: draft.add("carol").add("dave"), id="two devices"),
        pytest.param(lambda draft: draft.add("carol").new_epoch(), id="a new epoch"),
        pytest.param(lambda draft: draft.add("carol").new_epoch().new_kit(), id="a new kit"),
        pytest.param(lambda draft: draft.new_epoch().end(1).add("bob:2"), id="an id that is not new"),
        pytest.param(lambda draft: draft.add("carol").fields.update(later=1), id="an unknown field"),
    ],
)
def test_version_without_a_device_that_was_there_is_only_a_join(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next()
    change(candidate)
    assert refusal(previous, candidate) == "keyring_signature"
    assert not keyring.is_join(read(previous), read(candidate))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.add("carol").end(1), id="another entry ended"),
        pytest.param(lambda draft: draft.add("dave:2"), id="an id that an ended entry had"),
        pytest.param(lambda draft: draft.end(0).add("alice:2"), id="an id that is free again"),
    ],
)
def test_join_adds_one_entry_of_a_new_id_and_ends_none(change: Change) -> None:
    previous = two_devices().add("dave").next("alice").new_epoch().end(2)
    candidate = previous.next()
    change(candidate)
    assert not keyring.is_join(read(previous), read(candidate))


def test_vault_id_is_derived_from_the_first_signing_key() -> None:
    assert keyring.vault_id(public(private_key("alice"))) == vault_id(private_key("alice"))


def test_ended_streams_are_read() -> None:
    first = first_version()
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(2)
    previous = first.next("alice").add("bob")
    candidate = previous.next("bob").new_epoch().end(0, [log.stream_end()])
    accept_after(previous, candidate)
    ended = read(candidate).entries[0].ended_streams
    assert ended == {log.stream: StreamEnd(2, log.chain(), len(log.content()))}
