"""What is accepted by the rules of vault-format §7, and K2 to K4 and K7 to K9 broken in one place."""

import pytest

from memseal_server import keyring
from memseal_server.versions import Refused, read_version
from tests.server.building import (
    BODY_SIZE,
    Draft,
    Fields,
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
from tests.server.judging import Change, accept_after, read, refusal, two_devices

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


def test_vault_id_is_derived_from_the_first_signing_key() -> None:
    assert keyring.vault_id(public(private_key("alice"))) == vault_id(private_key("alice"))


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


# K9: sealed part.


def test_sealed_part_that_was_not_approved_is_refused() -> None:
    draft = first_version()
    other = record(2, pack({"boxes": [], "slots": []})) + record(3, some_bytes("other", BODY_SIZE))
    content = draft.stripped() + other
    version = read_version(content, draft.vault)
    with pytest.raises(Refused, match="keyring_sealed"):
        keyring.accept(None, version)
