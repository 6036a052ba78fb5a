"""Which keyring versions follow which: rules K1 to K10, each broken alone (vault-format §7)."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import MemsealError
from memseal.format import primitives
from memseal.format.acceptance import accept
from memseal.format.keyring import KeyringVersion, Slots, decode_version
from memseal.format.keys import SigningKey
from memseal.format.primitives import sha256
from memseal.format.records import frame
from memseal.format.values import encode_value
from tests.format.broken import flipped
from tests.format.building import (
    ANN,
    BEN,
    EVE,
    VAULT,
    Change,
    Plan,
    Raw,
    Step,
    epoch_key,
    first,
    follow,
    joined,
    keys_replaced,
    kit_entry,
    map_of,
    passphrase_changed,
    raw_of,
    recovery_entry,
    revoked,
    seed,
)

FIRST = first()
JOINED = joined(FIRST, BEN)
REVOKED = revoked(JOINED, BEN, by=ANN)
CHANGED = passphrase_changed(JOINED, ANN)
STRANGER = SigningKey(seed("a stranger"))


def outcome(previous: Step | None, candidate: Raw) -> str:
    try:
        accept(None if previous is None else previous.version, candidate.decoded())
    except MemsealError as error:
        return error.code
    return "accepted"


def entry_map(step: Step) -> dict[str, Any]:
    entry: dict[str, Any] = map_of(step.version)["devices"][-1]
    return entry


def put(*path: str | int, value: Any) -> Change:
    """A change of one field, named by its path."""

    def change(public: dict[str, Any]) -> None:
        place: Any = public
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(*path: str | int) -> Change:
    def change(public: dict[str, Any]) -> None:
        place: Any = public
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


# ── shapes that are accepted ────────────────────────────────────────────────────────────────────────


def _recovery(before: Step, generation: int) -> Step:
    return follow(before, Plan(new_epoch=True, recovery=generation, signers=[ANN.sign]))


WITH_RECOVERY = _recovery(FIRST, 1)
SHAPES: dict[str, tuple[Step | None, Step]] = {
    "first": (None, FIRST),
    "join": (FIRST, JOINED),
    "second join": (JOINED, joined(JOINED, EVE)),
    "revocation": (JOINED, REVOKED),
    "device that ends itself": (JOINED, follow(JOINED, Plan(end=[BEN], new_epoch=True, signers=[BEN.sign]))),
    "passphrase change": (JOINED, CHANGED),
    "other device's new keys": (CHANGED, keys_replaced(CHANGED, BEN)),
    "new epoch alone": (JOINED, follow(JOINED, Plan(new_epoch=True, signers=[BEN.sign]))),
    "new kit": (JOINED, follow(JOINED, Plan(new_epoch=True, new_kit=True, signers=[BEN.sign]))),
    "recovery code appears": (FIRST, WITH_RECOVERY),
    "new recovery code": (WITH_RECOVERY, _recovery(WITH_RECOVERY, 2)),
    "version that changes nothing": (JOINED, follow(JOINED, Plan(signers=[ANN.sign]))),
    "device added by a device": (FIRST, follow(FIRST, Plan(add=[BEN], signers=[ANN.sign, BEN.sign]))),
    "join after a revocation": (REVOKED, joined(REVOKED, EVE)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_is_accepted_whole_and_stripped(shape: str) -> None:
    before, after = SHAPES[shape]
    previous = None if before is None else before.version
    accept(previous, after.version)
    accept(previous, decode_version(after.version.stripped(), VAULT))


def test_chain_of_two_devices_is_accepted_from_end_to_end() -> None:
    steps = [FIRST, JOINED, CHANGED]
    steps.append(keys_replaced(CHANGED, BEN))
    steps.append(revoked(steps[-1], BEN.renewed(), by=ANN.renewed()))
    steps.append(joined(steps[-1], EVE))
    versions = [decode_version(step.version.stripped(), VAULT) for step in steps]
    for previous, version in zip([None, *versions], versions, strict=False):
        accept(previous, version)
    assert [len(version.public.active()) for version in versions] == [1, 2, 2, 2, 1, 2]


@pytest.mark.parametrize("shape", SHAPES)
def test_digest_stays_the_same_after_stripping(shape: str) -> None:
    version = SHAPES[shape][1].version
    stripped = decode_version(version.stripped(), VAULT)
    assert (stripped.digest, stripped.public_digest) == (version.digest, version.public_digest)
    assert (stripped.boxes, stripped.secrets, stripped.sealed_part()) == (None, None, b"")


def test_digest_is_over_preamble_public_section_and_sealed_hash() -> None:
    version = FIRST.version
    head, sealed = version.content[: version.approval_offset], version.content[version.open_size :]
    assert version.digest == sha256(b"memseal/v1/keyring", head, sha256(sealed))


def test_unknown_field_of_the_public_section_decides_nothing() -> None:
    signers = [ANN.sign, epoch_key(1)]
    candidate = raw_of(follow(JOINED, Plan()), signers, put("newer", value=[1]))
    assert outcome(JOINED, candidate) == "accepted"


# ── each rule, broken alone ─────────────────────────────────────────────────────────────────────────

FIRST_SIGNERS = [ANN.sign, epoch_key(1)]
SMALL_ORDER = [
    bytes(32),
    bytes(31) + b"\x80",
    b"\1" + bytes(31),
    b"\1" + bytes(30) + b"\x80",
    b"\xec" + b"\xff" * 30 + b"\x7f",
    b"\xec" + b"\xff" * 31,
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
]
NOT_CANONICAL = [
    (((1 << 255) - 19 + number) | sign << 255).to_bytes(32, "little") for number in range(19) for sign in (0, 1)
]

K1: dict[str, Change] = {
    "version is a text": put("version", value="1"),
    "version is true": put("version", value=True),
    "version is 0": put("version", value=0),
    "version is absent": drop("version"),
    "previous is short": put("previous", value=bytes(31)),
    "previous is nil": put("previous", value=None),
    "epoch is 0": put("epoch", value=0),
    "epoch is beyond 32 bits": put("epoch", value=1 << 32),
    "epoch_since is absent": drop("epoch_since"),
    "epoch_since is beyond 32 bits": put("epoch_since", value=1 << 32),
    "epoch_key is long": put("epoch_key", value=bytes(range(33))),
    "devices is a map": put("devices", value={}),
    "entry is no map": put("devices", 0, value=7),
    "id is short": put("devices", 0, "id", value=bytes(15)),
    "sign is a text": put("devices", 0, "sign", value="x" * 32),
    "wrap is short": put("devices", 0, "wrap", value=bytes(1215)),
    "since is 0": put("devices", 0, "since", value=0),
    "ended is absent": drop("devices", 0, "ended"),
    "ended is a number": put("devices", 0, "ended", value=1),
    "ended names no streams": put("devices", 0, "ended", value={"version": 1}),
    "ended names no version": put("devices", 0, "ended", value={"streams": []}),
    "stream row is short": put("devices", 0, "ended", value={"version": 1, "streams": [[bytes(16), 1, bytes(32)]]}),
    "stream id is short": put("devices", 0, "ended", value={"version": 1, "streams": [[bytes(15), 1, bytes(32), 64]]}),
    "stream chain is short": put(
        "devices", 0, "ended", value={"version": 1, "streams": [[bytes(16), 1, bytes(31), 64]]}
    ),
    "stream has records below 0": put(
        "devices", 0, "ended", value={"version": 1, "streams": [[bytes(16), -1, bytes(32), 64]]}
    ),
    "stream is shorter than a preamble": put(
        "devices", 0, "ended", value={"version": 1, "streams": [[bytes(16), 0, bytes(32), 63]]}
    ),
    "stream stands twice": put(
        "devices", 0, "ended", value={"version": 1, "streams": [[bytes(16), 0, bytes(32), 64]] * 2}
    ),
    "kit is nil": put("kit", value=None),
    "generation is 0": put("kit", "generation", value=0),
    "kit since is absent": drop("kit", "since"),
    "kit wrap is short": put("kit", "wrap", value=b""),
    "kit request is absent": drop("kit", "request"),
    "cost is absent": drop("kit", "cost"),
    "cost without memory": drop("kit", "cost", "memory"),
    "cost with passes below 0": put("kit", "cost", "passes", value=-1),
    "cost with another field": put("kit", "cost", "newer", value=1),
    "recovery is absent": drop("recovery"),
    "recovery is no map": put("recovery", value=1),
    "recovery without a key": put("recovery", value={"generation": 1, "since": 1, "request": bytes(32)}),
    "passphrase_since is absent": drop("passphrase_since"),
    "floor is absent": drop("floor"),
    "entry twice": lambda public: public["devices"].append(public["devices"][0]),
    "signing key twice": lambda public: public["devices"].append(
        {**public["devices"][0], "id": bytes(16), "wrap": BEN.entry(1).wrap}
    ),
    "wrapping key twice": lambda public: public["devices"].append(
        {**public["devices"][0], "id": bytes(16), "sign": BEN.entry(1).sign}
    ),
    "active id twice": lambda public: public["devices"].append(
        {**public["devices"][0], "sign": BEN.entry(1).sign, "wrap": BEN.entry(1).wrap}
    ),
}


@pytest.mark.parametrize("name", K1)
def test_k1_malformed_version_is_refused(name: str) -> None:
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS)) == "accepted"
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, K1[name])) == "keyring_malformed"


KEYS: list[tuple[str | int, ...]] = [("epoch_key",), ("devices", 0, "sign"), ("kit", "request")]


@pytest.mark.parametrize("path", KEYS, ids=lambda path: path[-1])
@pytest.mark.parametrize("key", [*SMALL_ORDER, *NOT_CANONICAL], ids=bytes.hex)
def test_k1_signing_key_that_is_not_sound_is_refused(path: tuple[str | int, ...], key: bytes) -> None:
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, put(*path, value=key))) == "keyring_malformed"


def test_recovery_key_that_is_not_sound_is_refused() -> None:
    candidate = raw_of(
        WITH_RECOVERY, [ANN.sign, epoch_key(1), epoch_key(2)], put("recovery", "request", value=SMALL_ORDER[2])
    )
    assert outcome(FIRST, candidate) == "keyring_malformed"


def test_signature_that_holds_for_a_key_of_small_order_shows_why_it_is_refused() -> None:
    identity = b"\1" + bytes(31)
    primitives.verify(identity, identity + bytes(32), b"whatever")


def test_every_key_we_make_is_sound() -> None:
    made = [primitives.public_signing_key(SigningKey(seed(str(number)))) for number in range(200)]
    assert all(map(primitives.is_sound_signing_key, made))


@pytest.mark.parametrize(
    "preamble",
    [
        lambda raw: with_preamble(raw, 12, b"\0\0\0\2"),
        lambda raw: with_preamble(raw, 40, (2).to_bytes(8, "big")),
        lambda raw: with_preamble(raw, 32, b"\1"),
        lambda raw: with_preamble(raw, 48, b"\1"),
    ],
    ids=["epoch", "version", "stream id", "nonce"],
)
def test_k1_preamble_that_disagrees_is_refused(preamble: Callable[[Raw], Raw]) -> None:
    assert outcome(None, preamble(raw_of(FIRST, FIRST_SIGNERS))) == "keyring_malformed"


def with_preamble(raw: Raw, offset: int, value: bytes) -> Raw:
    """A version whose preamble has other bytes, and a right CRC."""
    head = raw.to_bytes()[:60]
    head = head[:offset] + value + head[offset + len(value) :]
    return replace(raw, preamble=head + zlib.crc32(head).to_bytes(4, "big"))


def test_version_of_another_vault_is_refused() -> None:
    with pytest.raises(MemsealError) as refused:
        decode_version(FIRST.version.content, bytes(16))
    assert refused.value.code == "vault_mismatch"


@pytest.mark.parametrize("change", [put("version", value=3), put("version", value=1)], ids=["skips", "repeats"])
def test_k2_version_that_is_not_the_next_is_refused(change: Change) -> None:
    assert outcome(FIRST, raw_of(JOINED, [BEN.sign, epoch_key(1)], change)) == "keyring_chain"


def test_k2_version_after_another_one_is_refused() -> None:
    assert outcome(FIRST, raw_of(JOINED, [BEN.sign, epoch_key(1)], put("previous", value=bytes(32)))) == "keyring_chain"
    assert outcome(REVOKED, raw_of(CHANGED, [])) == "keyring_chain"


def test_k2_first_version_that_names_one_before_is_refused() -> None:
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, put("previous", value=b"\1" * 32))) == "keyring_chain"
    assert outcome(None, raw_of(JOINED, [BEN.sign, epoch_key(1)])) == "keyring_chain"


@pytest.mark.parametrize(
    "change",
    [
        put("devices", 0, "sign", value=BEN.entry(1).sign),
        put("devices", value=[]),
        lambda public: public["devices"].append(entry_map(JOINED)),
        put("devices", 0, "since", value=2),
        put("devices", 0, "ended", value={"version": 1, "streams": []}),
        put("epoch", value=2),
        put("epoch_since", value=2),
        put("kit", "since", value=2),
        put("kit", "generation", value=2),
        put("passphrase_since", value=2),
        put("recovery", value={**map_of(WITH_RECOVERY.version)["recovery"], "since": 2}),
    ],
    ids=[
        "another vault's key",
        "no entry",
        "two entries",
        "since",
        "ended",
        "epoch",
        "epoch_since",
        "kit since",
        "kit generation",
        "passphrase_since",
        "recovery since",
    ],
)
def test_k3_first_version_that_is_none_is_refused(change: Change) -> None:
    assert outcome(None, raw_of(FIRST, [ANN.sign, BEN.sign, epoch_key(1)], change)) == "keyring_first"


NEW_EPOCH = follow(JOINED, Plan(new_epoch=True, signers=[ANN.sign]))
NEW_EPOCH_SIGNERS = [ANN.sign, epoch_key(1), epoch_key(2)]


@pytest.mark.parametrize(
    "change",
    [
        put("epoch", value=3),
        put("epoch", value=1),
        put("epoch_since", value=2),
        put("epoch_since", value=1),
        put("epoch_key", value=JOINED.public.epoch_key),
    ],
    ids=["two on", "the same with another key", "since another", "since the old one", "the old key"],
)
def test_k4_epoch_that_does_not_follow_is_refused(change: Change) -> None:
    assert outcome(JOINED, raw_of(NEW_EPOCH, NEW_EPOCH_SIGNERS)) == "accepted"
    assert outcome(JOINED, raw_of(NEW_EPOCH, NEW_EPOCH_SIGNERS, change)) == "keyring_epoch"


def test_k4_epoch_never_falls() -> None:
    after = follow(NEW_EPOCH, Plan(signers=[ANN.sign]))
    assert outcome(NEW_EPOCH, raw_of(after, [], put("epoch", value=1))) == "keyring_epoch"


REVOKED_SIGNERS = [ANN.sign, epoch_key(1), epoch_key(2)]


@pytest.mark.parametrize(
    "change",
    [
        lambda public: public["devices"].pop(),
        lambda public: public["devices"].reverse(),
        put("devices", 0, "since", value=2),
        put("devices", 0, "id", value=bytes(16)),
        put("devices", 0, "wrap", value=EVE.entry(1).wrap),
        put("devices", 0, "newer", value=1),
        put("devices", 1, "ended", "version", value=2),
        put("devices", 0, "ended", value={"version": 3, "streams": []}),
    ],
    ids=["gone", "reordered", "since", "id", "wrap", "a new field", "ended before", "no device left"],
)
def test_k5_entry_that_was_changed_is_refused(change: Change) -> None:
    assert outcome(JOINED, raw_of(REVOKED, REVOKED_SIGNERS)) == "accepted"
    assert outcome(JOINED, raw_of(REVOKED, REVOKED_SIGNERS, change)) == "keyring_devices"


def test_k5_ended_entry_never_becomes_active_again() -> None:
    after = follow(REVOKED, Plan(new_epoch=True, signers=[ANN.sign]))
    for change in (put("devices", 1, "ended", value=None), put("devices", 1, "ended", "version", value=4)):
        assert outcome(REVOKED, raw_of(after, [], change)) == "keyring_devices"


@pytest.mark.parametrize(
    "change",
    [
        put("devices", 1, "since", value=1),
        put("devices", 1, "ended", value={"version": 2, "streams": []}),
    ],
    ids=["since", "ended at once"],
)
def test_k5_entry_that_is_added_wrongly_is_refused(change: Change) -> None:
    assert outcome(FIRST, raw_of(JOINED, [BEN.sign, epoch_key(1)], change)) == "keyring_devices"


def test_k5_id_of_an_ended_device_is_not_taken_again() -> None:
    again = BEN.renewed()
    assert outcome(REVOKED, raw_of(joined(REVOKED, again), [again.sign, epoch_key(2)])) == "keyring_devices"


def test_k5_keys_of_an_ended_device_are_not_taken_again() -> None:
    after = joined(REVOKED, EVE)
    for name in ("sign", "wrap"):
        change = put("devices", 2, name, value=getattr(BEN.entry(1), name))
        assert outcome(REVOKED, raw_of(after, [EVE.sign, epoch_key(2)], change)) == "keyring_malformed"


@pytest.mark.parametrize(
    "change",
    [
        put("kit", "generation", value=3),
        put("kit", "generation", value=1),
        put("kit", "since", value=2),
        put("kit", "wrap", value=JOINED.public.kit.wrap),
        put("kit", "request", value=JOINED.public.kit.request),
        put("passphrase_since", value=2),
    ],
    ids=[
        "generation skips",
        "generation repeats",
        "since",
        "the old wrap",
        "the old request",
        "passphrase since another",
    ],
)
def test_k6_kit_that_does_not_follow_is_refused(change: Change) -> None:
    signers = [ANN.sign, ANN.renewed().sign, epoch_key(1), epoch_key(2)]
    assert outcome(JOINED, raw_of(CHANGED, signers)) == "accepted"
    assert outcome(JOINED, raw_of(CHANGED, signers, change)) == "keyring_kit"


def test_k6_passphrase_changes_only_with_the_kit() -> None:
    assert outcome(JOINED, raw_of(NEW_EPOCH, NEW_EPOCH_SIGNERS, put("passphrase_since", value=3))) == "keyring_kit"


NEW_RECOVERY = SHAPES["new recovery code"][1]


@pytest.mark.parametrize(
    "change",
    [
        put("recovery", value=None),
        put("recovery", "generation", value=3),
        put("recovery", "since", value=2),
        put("recovery", "wrap", value=recovery_entry(1, 1).wrap),
        put("recovery", "request", value=recovery_entry(1, 1).request),
    ],
    ids=["gone", "generation", "since", "the old wrap", "the old request"],
)
def test_k6_recovery_code_that_does_not_follow_is_refused(change: Change) -> None:
    signers = [ANN.sign, epoch_key(2), epoch_key(3)]
    assert outcome(WITH_RECOVERY, raw_of(NEW_RECOVERY, signers)) == "accepted"
    assert outcome(WITH_RECOVERY, raw_of(NEW_RECOVERY, signers, change)) == "keyring_kit"


def test_k6_recovery_code_begins_with_generation_1() -> None:
    assert outcome(FIRST, raw_of(WITH_RECOVERY, [], put("recovery", "generation", value=2))) == "keyring_kit"


SAME_EPOCH = follow(JOINED, Plan(signers=[ANN.sign]))


@pytest.mark.parametrize(
    "change",
    [
        put("devices", 1, "ended", value={"version": 3, "streams": []}),
        lambda public: public.update(kit=map_of(CHANGED.version)["kit"]),
        lambda public: public.update(recovery={**map_of(WITH_RECOVERY.version)["recovery"], "since": 3}),
    ],
    ids=["device ended", "kit", "recovery"],
)
def test_k7_what_ends_a_key_begins_an_epoch(change: Change) -> None:
    assert outcome(JOINED, raw_of(SAME_EPOCH, [ANN.sign, epoch_key(1)], change)) == "keyring_epoch_needed"


def test_k9_sealed_part_that_was_not_approved_is_refused() -> None:
    raw = raw_of(JOINED, [BEN.sign, epoch_key(1)])
    assert outcome(FIRST, replace(raw, sealed=bytes(32))) == "keyring_sealed"
    assert outcome(FIRST, replace(raw, sealed=bytes(32), sealed_part=b"")) == "accepted"


@pytest.mark.parametrize("record", [2, 3])
def test_k9_flipped_byte_of_the_sealed_part_is_refused(record: int) -> None:
    content, size = JOINED.version.content, len(JOINED.version.content)
    bit = 8 * ((JOINED.version.open_size + 500) if record == 2 else size - 3)
    with pytest.raises(MemsealError) as refused:
        accept(FIRST.version, decode_version(flipped(content, bit), VAULT))
    assert refused.value.code == "keyring_sealed"


def test_k9_sealed_part_of_another_version_is_refused() -> None:
    raw = raw_of(JOINED, [BEN.sign, epoch_key(1)])
    other = replace(raw, sealed=sha256(raw.sealed_part), sealed_part=FIRST.version.sealed_part())
    assert outcome(FIRST, other) == "keyring_sealed"


SIGNERS: dict[str, tuple[Step, Step, Sequence[SigningKey]]] = {
    "nobody": (FIRST, JOINED, []),
    "join without the epoch key": (FIRST, JOINED, [BEN.sign]),
    "join without the joiner": (FIRST, JOINED, [epoch_key(1)]),
    "join with a stranger too": (FIRST, JOINED, [BEN.sign, epoch_key(1), STRANGER]),
    "join signed twice": (FIRST, JOINED, [BEN.sign, epoch_key(1), BEN.sign]),
    "join by two at once": (FIRST, follow(FIRST, Plan(add=[BEN, EVE])), [BEN.sign, EVE.sign, epoch_key(1)]),
    "epoch keys alone": (JOINED, NEW_EPOCH, [epoch_key(1), epoch_key(2)]),
    "new epoch without its key": (JOINED, NEW_EPOCH, [ANN.sign, epoch_key(1)]),
    "new epoch without the old key": (JOINED, NEW_EPOCH, [ANN.sign, epoch_key(2)]),
    "nothing changed, by no device": (JOINED, SAME_EPOCH, [epoch_key(1)]),
    "new keys without their signature": (JOINED, CHANGED, [ANN.sign, epoch_key(1), epoch_key(2)]),
    "new keys without the old ones": (JOINED, CHANGED, [ANN.renewed().sign, epoch_key(1), epoch_key(2)]),
    "by the device that was ended before": (
        REVOKED,
        follow(REVOKED, Plan()),
        [BEN.sign, epoch_key(2)],
    ),
    "with the device that was ended before": (REVOKED, follow(REVOKED, Plan()), [ANN.sign, BEN.sign, epoch_key(2)]),
    "with an epoch key from before": (REVOKED, follow(REVOKED, Plan()), [ANN.sign, epoch_key(1), epoch_key(2)]),
}


@pytest.mark.parametrize("name", SIGNERS)
def test_k10_version_signed_by_others_is_refused(name: str) -> None:
    before, after, signers = SIGNERS[name]
    assert outcome(before, raw_of(after, signers)) == "keyring_signature"


@pytest.mark.parametrize("signers", [[ANN.sign], [epoch_key(1)], [ANN.sign, epoch_key(1), epoch_key(2)]])
def test_k10_first_version_signed_by_others_is_refused(signers: Sequence[SigningKey]) -> None:
    assert outcome(None, raw_of(FIRST, signers)) == "keyring_signature"


def test_k10_join_version_changes_nothing_but_one_entry() -> None:
    candidate = raw_of(JOINED, [BEN.sign, epoch_key(1)], put("newer", value=1))
    assert outcome(FIRST, candidate) == "keyring_signature"


def test_k10_joiner_takes_no_id_that_is_listed() -> None:
    # With the id of a device that ends in the same version only a device can do that.
    new = ANN.renewed()
    taken = follow(JOINED, Plan(add=[new], end=[ANN], new_epoch=True))
    assert outcome(JOINED, raw_of(taken, [new.sign, epoch_key(1), epoch_key(2)])) == "keyring_signature"


def test_k10_every_flipped_byte_of_a_signature_is_refused() -> None:
    content = JOINED.version.content
    start = content.index(JOINED.version.signatures[0][1])
    codes = set()
    for offset in range(64):
        with pytest.raises(MemsealError) as refused:
            accept(FIRST.version, decode_version(flipped(content, 8 * (start + offset)), VAULT))
        codes.add(refused.value.code)
    assert codes == {"keyring_signature"}


def test_k10_signature_over_another_version_is_refused() -> None:
    other = follow(FIRST, Plan(add=[BEN], signers=[ANN.sign, BEN.sign]))
    assert other.version.digest != JOINED.version.digest
    content = JOINED.version.content.replace(JOINED.version.signatures[0][1], other.version.signatures[1][1])
    with pytest.raises(MemsealError) as refused:
        accept(FIRST.version, decode_version(content, VAULT))
    assert refused.value.code == "keyring_signature"


# ── any change at all ───────────────────────────────────────────────────────────────────────────────

OPEN = JOINED.version.stripped()
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text("ab")
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "sign", "version", "x"]), inner),
    max_leaves=6,
)
REFUSALS = {
    "preamble_magic",
    "preamble_damaged",
    "record_header",
    "keyring_malformed",
    "keyring_chain",
    "keyring_devices",
    "keyring_epoch",
    "keyring_kit",
    "keyring_epoch_needed",
    "keyring_floor",
    "keyring_sealed",
    "keyring_signature",
    "kdf_unknown",
}


def test_each_flipped_byte_of_a_whole_version_is_refused() -> None:
    content = JOINED.version.content
    # Every byte of what is decided on, and every seventh of the boxes, which one hash covers.
    offsets = [*range(0, len(OPEN), 1), *range(len(OPEN), len(content), 7)]
    assert {_refusal(flipped(content, 8 * offset + offset % 8)) for offset in offsets} <= REFUSALS


def test_each_cut_of_a_version_is_refused_but_the_stripped_one() -> None:
    content = JOINED.version.content
    accepted = [end for end in [*range(0, len(content), 11), len(OPEN)] if _refusal(content[:end]) == "accepted"]
    assert set(accepted) == {len(OPEN)}


def _refusal(content: bytes) -> str:
    try:
        accept(FIRST.version, decode_version(content, VAULT))
    except MemsealError as error:
        return error.code
    return "accepted"


def paths_in(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The path of every field and entry in a tree of maps and arrays."""
    match value:
        case dict():
            inner: Iterable[tuple[str | int, Any]] = value.items()
        case list():
            inner = enumerate(value)
        case _:
            inner = ()
    for step, below in inner:
        yield (step,)
        yield from ((step, *path) for path in paths_in(below))


@given(data=st.data())
def test_any_change_of_the_public_section_is_accepted_or_refused_with_our_code(data: st.DataObject) -> None:
    public = map_of(JOINED.version)
    *path, last = data.draw(st.sampled_from(list(paths_in(public))))
    place: Any = public
    for step in path:
        place = place[step]
    place[last] = data.draw(anything)
    raw = Raw(public, JOINED.version.sealed_part(), [BEN.sign, epoch_key(1)])
    assert outcome(FIRST, raw) in REFUSALS | {"accepted"}


@given(body=anything.map(encode_value) | st.binary(max_size=60), record=st.sampled_from([0, 1]))
def test_any_body_of_an_open_record_is_refused_with_our_code(body: bytes, record: int) -> None:
    content = JOINED.version.content
    ends = [64, JOINED.version.approval_offset, JOINED.version.open_size]
    changed = content[: ends[record]] + frame(record, body) + content[ends[record + 1] :]
    assert _refusal(changed) == "keyring_malformed"


# ── limits, and what is not decided on ──────────────────────────────────────────────────────────────


def test_version_has_at_most_4_mebibytes() -> None:
    filler = put("newer", value=bytes((4 << 20) - len(OPEN)))
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, filler)) == "keyring_limit"


def test_version_lists_at_most_1024_entries() -> None:
    entry = entry_map(FIRST)
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, put("devices", value=[entry] * 1024))) == "keyring_malformed"
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, put("devices", value=[entry] * 1025))) == "keyring_limit"


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_version_has_two_or_four_records(count: int) -> None:
    raw = raw_of(FIRST, FIRST_SIGNERS).to_bytes()
    pieces = [
        raw[:64],
        raw[64 : FIRST.version.approval_offset],
        raw[FIRST.version.approval_offset : FIRST.version.open_size],
    ]
    sealed = [frame(index, b"x") for index in range(2, 5)]
    with pytest.raises(MemsealError) as refused:
        decode_version(b"".join([*pieces, *sealed][: count + 1]), VAULT)
    assert refused.value.code == "keyring_malformed"


@pytest.mark.parametrize("boxes", [b"", b"\xc0", b"\x80", b"\x82\xa5boxes\x91\x01\xa5slots\x90"])
def test_malformed_boxes_are_as_if_they_were_not_there(boxes: bytes) -> None:
    raw = replace(raw_of(JOINED, [BEN.sign, epoch_key(1)]), sealed_part=frame(2, boxes) + frame(3, b"x"))
    version: KeyringVersion = raw.decoded()
    accept(FIRST.version, version)
    assert (version.boxes, version.slots) == ({}, Slots(None))


def test_fields_of_newer_software_are_kept_in_every_part() -> None:
    def change(public: dict[str, Any]) -> None:
        for part in (public, public["devices"][0], public["kit"]):
            part["newer"] = {"of": "newer software"}

    before = raw_of(FIRST, FIRST_SIGNERS, change).decoded()
    accept(None, before)
    after = follow(Step(before, FIRST.secrets, FIRST.slot), Plan(end=[ANN], add=[ANN.renewed()], new_epoch=True))
    kept = map_of(after.version)
    assert all(part["newer"] == {"of": "newer software"} for part in (kept, kept["devices"][0], kept["kit"]))


def test_kit_of_an_unknown_derivation_asks_for_an_update() -> None:
    assert outcome(None, raw_of(FIRST, FIRST_SIGNERS, put("kit", "cost", "name", value="argon3"))) == "kdf_unknown"
    assert kit_entry(1, 1).cost == FIRST.public.kit.cost
