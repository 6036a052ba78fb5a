"""Boxes open for their owner in their version alone; the kit's slot is pinned to the version that made it (§7)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import BoxMissing, KitOrPassphrase
from memseal.format import primitives
from memseal.format.boxes import (
    Secrets,
    SlotContent,
    build_version,
    open_device_box,
    open_kit_box,
    open_recovery_box,
    open_recovery_slot,
    open_secrets,
    open_slot,
    public_part_hash,
    seal_slot,
    slot_cost,
)
from memseal.format.derivation import recovery_slot_key, secrets_key
from memseal.format.keyring import KeyringVersion, Slot, Slots, decode_version, encode_boxes
from memseal.format.keys import KitSecret, StretchedPassphrase
from memseal.format.primitives import STANDARD_COST, sha256
from memseal.format.records import frame, seal_record
from memseal.format.values import decode_value, encode_value
from tests.format.broken import flipped
from tests.format.building import (
    ANN,
    BEN,
    EVE,
    SALT,
    STRETCHED,
    VAULT,
    Device,
    Plan,
    Raw,
    Step,
    epoch_key,
    first,
    follow,
    joined,
    kit_secret,
    kit_seed,
    passphrase_changed,
    raw_of,
    recovery_secret,
    recovery_seed,
    recovery_slot,
    revoked,
    seed,
    vault_key,
)
from tests.format.refusing import code_of

FIRST = first()
JOINED = joined(FIRST, BEN)
REVOKED = revoked(JOINED, BEN, by=ANN)
CHANGED = passphrase_changed(JOINED, ANN)


def _public(device: Device) -> bytes:
    return primitives.public_signing_key(device.sign)


def _box(version: KeyringVersion, wrap: bytes) -> bytes:
    assert version.boxes is not None
    return version.boxes[wrap]


def _with_box(version: KeyringVersion, wrap: bytes, box: bytes) -> KeyringVersion:
    return replace(version, boxes={**(version.boxes or {}), wrap: box})


# ── boxes ───────────────────────────────────────────────────────────────────────────────────────────


def test_every_active_device_and_the_kit_open_a_box_to_the_same_key() -> None:
    version = JOINED.version
    opened = [open_device_box(version, device.keys.wrap, _public(device)) for device in (ANN, BEN)]
    assert [*opened, open_kit_box(version, kit_seed(1))] == [vault_key(1)] * 3


def test_version_has_a_box_for_each_active_entry_the_kit_and_the_recovery_code() -> None:
    before = follow(JOINED, Plan(new_epoch=True, recovery=1, signers=[ANN.sign]))
    public = before.public
    assert public.recovery is not None
    expected = {entry.wrap for entry in public.devices} | {public.kit.wrap, public.recovery.wrap}
    assert set(before.version.boxes or {}) == expected
    after = revoked(before, BEN, by=ANN)
    assert set(after.version.boxes or {}) == expected - {BEN.entry(1).wrap}


def test_device_that_was_ended_finds_no_box() -> None:
    assert code_of(lambda: open_device_box(REVOKED.version, BEN.keys.wrap, _public(BEN))) == "box_missing"


def test_device_that_was_never_listed_finds_no_box() -> None:
    assert code_of(lambda: open_device_box(JOINED.version, EVE.keys.wrap, _public(EVE))) == "box_missing"


def test_stripped_version_has_no_box_no_secrets_and_no_slot() -> None:
    stripped = decode_version(JOINED.version.stripped(), VAULT)
    with pytest.raises(BoxMissing):
        open_device_box(stripped, ANN.keys.wrap, _public(ANN))
    assert code_of(lambda: open_secrets(stripped, vault_key(1))) == "keyring_missing"
    assert code_of(lambda: open_slot(stripped, STRETCHED, kit_secret(1))) == "keyring_missing"
    assert code_of(lambda: slot_cost(stripped)) == "keyring_missing"


def test_box_of_another_owner_does_not_open() -> None:
    ann, ben = ANN.entry(1).wrap, BEN.entry(1).wrap
    swapped = _with_box(JOINED.version, ann, _box(JOINED.version, ben))
    assert code_of(lambda: open_device_box(swapped, ANN.keys.wrap, _public(ANN))) == "box_sealed"


def test_box_with_another_wrapping_key_finds_none() -> None:
    assert code_of(lambda: open_device_box(JOINED.version, BEN.keys.wrap, _public(EVE))) == "box_missing"
    assert code_of(lambda: open_device_box(JOINED.version, EVE.keys.wrap, _public(ANN))) == "box_missing"


def test_box_of_another_version_does_not_open() -> None:
    wrap = ANN.entry(1).wrap
    moved = _with_box(JOINED.version, wrap, _box(FIRST.version, wrap))
    assert code_of(lambda: open_device_box(moved, ANN.keys.wrap, _public(ANN))) == "box_sealed"


def _wrapped_for_ann(info: bytes, content: bytes) -> KeyringVersion:
    wrap = ANN.entry(1).wrap
    return _with_box(FIRST.version, wrap, primitives.wrap(wrap, info, content))


def _info(version: int = 1, epoch: int = 1, vault: bytes = VAULT, owner: bytes = ANN.id, sign: bytes = b"") -> bytes:
    """What a box is bound to, as the specification lists it."""
    return b"".join(
        (
            b"memseal/v1/box",
            vault,
            version.to_bytes(8, "big"),
            epoch.to_bytes(4, "big"),
            owner,
            sign or _public(ANN),
            sha256(ANN.entry(1).wrap),
        )
    )


def test_box_made_by_hand_opens() -> None:
    version = _wrapped_for_ann(_info(), vault_key(1).reveal())
    assert open_device_box(version, ANN.keys.wrap, _public(ANN)) == vault_key(1)


@pytest.mark.parametrize(
    "info",
    [
        _info(version=2),
        _info(epoch=2),
        _info(vault=bytes(16)),
        _info(owner=bytes(16)),
        _info(sign=bytes(32)),
        b"",
    ],
    ids=["version", "epoch", "vault", "device", "signing key", "nothing"],
)
def test_box_bound_to_anything_else_does_not_open(info: bytes) -> None:
    version = _wrapped_for_ann(info, vault_key(1).reveal())
    assert code_of(lambda: open_device_box(version, ANN.keys.wrap, _public(ANN))) == "box_sealed"


def test_box_with_another_vault_key_stops_the_device() -> None:
    version = _wrapped_for_ann(_info(), vault_key(2).reveal())
    assert code_of(lambda: open_device_box(version, ANN.keys.wrap, _public(ANN))) == "epoch_key_mismatch"


@given(bit=st.integers(0, 8 * 1168 - 1))
def test_flipped_bit_of_a_box_is_refused(bit: int) -> None:
    wrap = ANN.entry(1).wrap
    version = _with_box(FIRST.version, wrap, flipped(_box(FIRST.version, wrap), bit))
    assert code_of(lambda: open_device_box(version, ANN.keys.wrap, _public(ANN))) == "box_sealed"


def test_boxes_are_made_anew_in_each_version() -> None:
    assert not set((FIRST.version.boxes or {}).values()) & set((JOINED.version.boxes or {}).values())


def test_wrapping_key_that_is_none_is_refused_with_our_code() -> None:
    listed = replace(JOINED.public, devices=(ANN.entry(1), replace(BEN.entry(2), wrap=b"\xff" * 1216)))
    assert code_of(lambda: build_version(VAULT, listed, vault_key(1), JOINED.secrets, JOINED.version.slots, [])) == (
        "keyring_malformed"
    )


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_open_to_what_was_sealed() -> None:
    secrets = open_secrets(CHANGED.version, vault_key(2))
    assert secrets == CHANGED.secrets
    assert (secrets.history, secrets.kit_secret) == ({1: vault_key(1)}, kit_secret(2))


def test_secrets_of_a_version_open_under_its_own_key_alone() -> None:
    assert code_of(lambda: open_secrets(CHANGED.version, vault_key(1))) == "record_sealed"
    moved = replace(JOINED.version, secrets=FIRST.version.secrets)
    assert code_of(lambda: open_secrets(moved, vault_key(1))) == "record_sealed"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([], "keyring_malformed"),
        ({"history": [], "names": []}, "keyring_malformed"),
        ({"history": [[0, bytes(32)]], "names": [], "kit_secret": bytes(16)}, "keyring_malformed"),
        ({"history": [[1, bytes(31)]], "names": [], "kit_secret": bytes(16)}, "keyring_malformed"),
        ({"history": [[1]], "names": [], "kit_secret": bytes(16)}, "keyring_malformed"),
        ({"history": [], "names": [[bytes(16), 7]], "kit_secret": bytes(16)}, "keyring_malformed"),
        ({"history": [], "names": [[bytes(15), ""]], "kit_secret": bytes(16)}, "keyring_malformed"),
        ({"history": [], "names": [], "kit_secret": bytes(15)}, "keyring_malformed"),
    ],
)
def test_malformed_secrets_are_refused(value: object, code: str) -> None:
    version = FIRST.version
    record = seal_record(secrets_key(vault_key(1), VAULT, 1), version.content[:64], 3, encode_value(value))
    assert code_of(lambda: open_secrets(replace(version, secrets=record[12:]), vault_key(1))) == code


def test_no_key_shows_in_what_a_version_prints() -> None:
    secrets: Secrets = CHANGED.secrets
    printed = repr(CHANGED.secrets) + repr(SlotContent(kit_seed(1), 1, b""))
    assert all(key.reveal().hex() not in printed for key in (secrets.kit_secret, kit_seed(1), vault_key(1)))


# ── the kit's slot ──────────────────────────────────────────────────────────────────────────────────


def test_kit_and_passphrase_open_the_slot() -> None:
    content = open_slot(FIRST.version, STRETCHED, kit_secret(1))
    assert content == SlotContent(kit_seed(1), 1, FIRST.version.public_digest)
    assert slot_cost(FIRST.version) == (SALT, STANDARD_COST)


def test_slot_is_carried_forward_and_pins_the_version_that_made_it() -> None:
    content = open_slot(JOINED.version, STRETCHED, kit_secret(1))
    assert (content.version, content.public) == (1, FIRST.version.public_digest)
    assert content.public != JOINED.version.public_digest
    renewed = open_slot(CHANGED.version, STRETCHED, kit_secret(2))
    assert (renewed.version, renewed.public) == (3, CHANGED.version.public_digest)


def test_pinned_hash_is_the_one_of_the_version_as_stored() -> None:
    assert public_part_hash(VAULT, FIRST.public) == FIRST.version.public_digest
    assert FIRST.version.public_digest == sha256(FIRST.version.content[: FIRST.version.approval_offset])


def test_any_other_first_version_has_another_hash() -> None:
    forged = replace(FIRST.public, epoch_key=primitives.public_signing_key(epoch_key(9)))
    assert public_part_hash(VAULT, forged) != FIRST.version.public_digest


@pytest.mark.parametrize(
    ("stretched", "secret"),
    [(StretchedPassphrase(bytes(32)), kit_secret(1)), (STRETCHED, kit_secret(2)), (STRETCHED, KitSecret(bytes(16)))],
    ids=["passphrase", "the next kit", "another kit"],
)
def test_wrong_kit_or_passphrase_opens_nothing(stretched: StretchedPassphrase, secret: KitSecret) -> None:
    with pytest.raises(KitOrPassphrase):
        open_slot(FIRST.version, stretched, secret)


def test_old_kit_does_not_open_the_new_slot() -> None:
    with pytest.raises(KitOrPassphrase):
        open_slot(CHANGED.version, STRETCHED, kit_secret(1))


def test_slot_is_bound_to_vault_and_generation() -> None:
    for moved in (
        replace(FIRST.version, vault_id=bytes(16)),
        _with_kit_slot(replace(FIRST.slot, generation=2)),
        _with_kit_slot(replace(FIRST.slot, salt=seed("other salt"))),
    ):
        assert code_of(lambda: open_slot(moved, STRETCHED, kit_secret(1))) == "kit_or_passphrase"  # noqa: B023


def test_each_flipped_byte_of_a_slot_is_refused() -> None:
    sealed = FIRST.slot.sealed
    codes = {
        code_of(lambda: open_slot(_with_slot(flipped(sealed, 8 * n)), STRETCHED, kit_secret(1)))  # noqa: B023
        for n in range(len(sealed))
    }
    assert codes == {"kit_or_passphrase"}


def _with_slot(sealed: bytes) -> KeyringVersion:
    return _with_kit_slot(replace(FIRST.slot, sealed=sealed))


def _with_kit_slot(slot: Slot) -> KeyringVersion:
    return replace(FIRST.version, slots=replace(FIRST.version.slots, kit=slot))


# ── the recovery code's slot ────────────────────────────────────────────────────────────────────────

WITH_CODE = follow(JOINED, Plan(new_epoch=True, recovery=1, signers=[ANN.sign]))


def test_recovery_code_alone_opens_slot_and_box() -> None:
    content = open_recovery_slot(WITH_CODE.version, recovery_secret(1))
    assert content == SlotContent(recovery_seed(1), 3, WITH_CODE.version.public_digest)
    assert open_recovery_box(WITH_CODE.version, content.seed) == vault_key(2)


def test_recovery_slot_is_carried_forward_and_pins_the_version_that_made_it() -> None:
    later = revoked(WITH_CODE, BEN, by=ANN).version
    content = open_recovery_slot(later, recovery_secret(1))
    assert (content.version, content.public) == (3, WITH_CODE.version.public_digest)
    assert open_recovery_box(later, content.seed) == vault_key(3)


def test_renewed_recovery_code_opens_and_the_old_one_no_more() -> None:
    renewed = follow(WITH_CODE, Plan(new_epoch=True, recovery=2, signers=[ANN.sign])).version
    assert open_recovery_slot(renewed, recovery_secret(2)).version == 4
    assert code_of(lambda: open_recovery_slot(renewed, recovery_secret(1))) == "recovery_code"
    assert code_of(lambda: open_recovery_box(renewed, recovery_seed(1))) == "box_missing"


def test_vault_without_a_recovery_code_says_so() -> None:
    assert code_of(lambda: open_recovery_slot(FIRST.version, recovery_secret(1))) == "recovery_code"
    assert code_of(lambda: open_recovery_box(FIRST.version, recovery_seed(1))) == "recovery_code"


def test_version_that_lists_a_recovery_code_and_has_no_slot_is_named() -> None:
    without = replace(WITH_CODE.version, slots=replace(WITH_CODE.version.slots, recovery=None))
    assert code_of(lambda: open_recovery_slot(without, recovery_secret(1))) == "keyring_missing"


def test_recovery_slot_is_bound_to_vault_and_generation() -> None:
    version, slot = WITH_CODE.version, recovery_slot(WITH_CODE.public, 1)
    later = replace(version, slots=replace(version.slots, recovery=replace(slot, generation=2)))
    assert code_of(lambda: open_recovery_slot(later, recovery_secret(1))) == "recovery_code"
    moved = replace(version, vault_id=bytes(16))
    assert code_of(lambda: open_recovery_slot(moved, recovery_secret(1))) == "recovery_code"


def test_kit_slot_in_the_place_of_the_recovery_slot_does_not_open() -> None:
    """Even under one key: what a slot is for is part of what it is bound to."""
    key = recovery_slot_key(recovery_secret(1), VAULT, 1)
    kit_like = seal_slot(key, VAULT, 1, SALT, SlotContent(recovery_seed(1), 3, bytes(32)))
    swapped = replace(WITH_CODE.version, slots=replace(WITH_CODE.version.slots, recovery=kit_like))
    assert code_of(lambda: open_recovery_slot(swapped, recovery_secret(1))) == "recovery_code"


def test_each_flipped_byte_of_a_recovery_slot_is_refused() -> None:
    slot = recovery_slot(WITH_CODE.public, 1)
    slots = [replace(slot, sealed=flipped(slot.sealed, 8 * n)) for n in range(len(slot.sealed))]
    versions = [replace(WITH_CODE.version, slots=Slots(WITH_CODE.slot, each)) for each in slots]
    codes = {code_of(lambda: open_recovery_slot(each, recovery_secret(1))) for each in versions}  # noqa: B023
    assert codes == {"recovery_code"}


# ── slots as they are stored ────────────────────────────────────────────────────────────────────────


def _stored(*values: object) -> Slots:
    """The slots of a version whose record 2 lists these."""
    record = frame(2, encode_value({"boxes": [], "slots": list(values)}))
    secrets = FIRST.version.content[-len(FIRST.version.secrets or b"") - 12 :]
    return decode_version(FIRST.version.stripped() + record + secrets, VAULT).slots


KIT_SLOT = {"for": "kit", "generation": 1, "salt": SALT, "sealed": b"kit"}
CODE_SLOT = {"for": "recovery", "generation": 4, "sealed": b"code"}
NEWER_SLOT = {"for": "passkey", "anything": [1, 2], "sealed": 7}


def test_slots_are_read_by_their_purpose() -> None:
    assert _stored(CODE_SLOT, KIT_SLOT) == Slots(Slot(1, SALT, b"kit"), Slot(4, b"", b"code"))


def test_last_slot_of_a_purpose_counts() -> None:
    found = _stored({**KIT_SLOT, "sealed": b"first"}, CODE_SLOT, KIT_SLOT, {**CODE_SLOT, "generation": 5})
    assert found == Slots(Slot(1, SALT, b"kit"), Slot(5, b"", b"code"))


def test_slot_of_another_purpose_and_fields_that_are_not_known_are_carried_on() -> None:
    known = [{**KIT_SLOT, "hint": "h"}, {**CODE_SLOT, "more": [1]}]
    found = _stored(*known, NEWER_SLOT)
    assert found.others == (NEWER_SLOT,)
    assert _stored(*decode_value(encode_boxes({}, found)[12:])["slots"]) == found
    assert found.kit is not None
    assert found.kit.others == {"hint": "h"}


def test_version_carries_slots_of_newer_software_on() -> None:
    slots = replace(WITH_CODE.version.slots, others=(NEWER_SLOT,))
    built = build_version(VAULT, WITH_CODE.public, vault_key(2), WITH_CODE.secrets, slots, [])
    assert decode_version(built.content, VAULT).slots == slots


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        {**KIT_SLOT, "for": 7},
        {**KIT_SLOT, "salt": bytes(31)},
        {**KIT_SLOT, "generation": 0},
        {**CODE_SLOT, "generation": "1"},
        {**CODE_SLOT, "sealed": "text"},
        {"for": "recovery", "generation": 1},
    ],
)
def test_malformed_slot_is_as_if_there_were_none(value: object) -> None:
    assert _stored(KIT_SLOT, value) == Slots(None)


# ── whole versions ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [FIRST, JOINED, CHANGED, REVOKED], ids=["first", "joined", "changed", "revoked"])
def test_decoded_version_is_what_was_built(step: Step) -> None:
    decoded = decode_version(step.version.content, VAULT)
    assert decoded == step.version
    assert decoded.public == step.public
    assert decoded.slots.kit == step.slot


def test_version_made_of_raw_maps_is_the_one_that_was_built() -> None:
    raw: Raw = raw_of(JOINED, [BEN.sign, epoch_key(1)])
    assert raw.to_bytes() == JOINED.version.content
