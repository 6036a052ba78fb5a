"""Rule K10 of vault-format §7: who has signed, and who must have."""

from typing import Any

import pytest

from memseal_server import keyring
from memseal_server.versions import Refused, read_version
from tests.server.building import first_version, private_key, public
from tests.server.judging import Change, accept_after, read, refusal, two_devices

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
