"""Vectors of keyring acceptance: rules K2 to K10 (§7)."""

from collections.abc import Sequence
from typing import Any

from making import curve
from making.book import Book, Group
from making.containers import frame, pack
from making.keyrings import (
    Change,
    Map,
    Recipe,
    Version,
    adds,
    build,
    changed,
    drops,
    ends,
    entry,
    epoch_key,
    first,
    first_public,
    floor,
    floor_row,
    follow,
    kit,
    new_epoch,
    new_kit,
    new_recovery,
    next_public,
    recovery,
    sets,
    stream_of,
    stream_row,
)
from making.people import ANN, BEN, EVE, VAULT, Device, public_sign, seed, sign

ANN2, BEN2 = ANN.renewed(), BEN.renewed()
ONE = first()
TWO = follow(ONE, adds(BEN), by=(), new=(BEN.sign,))  # a join version
RULE = "vault-format §7 K"


class Rules:
    """Adds a case for each version that comes after some others."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def accepts(self, rule: int, name: str, title: str, *versions: Version) -> None:
        last = versions[-1]
        gives = {"version": last.public["version"], "epoch": last.public["epoch"], "digest": last.digest}
        place = (f"k{rule}-{name}", f"{RULE}{rule}", title, "accept_keyring", _given(versions))
        self._group.ok(*place, **gives, active=last.active())

    def refuses(self, rule: int, name: str, title: str, *versions: Version) -> None:
        code = CODES[rule]
        self._group.refused(f"k{rule}-{name}", f"{RULE}{rule}", title, "accept_keyring", _given(versions), code)


CODES = {
    2: "keyring_chain",
    3: "keyring_first",
    4: "keyring_epoch",
    5: "keyring_devices",
    6: "keyring_kit",
    7: "keyring_epoch_needed",
    8: "keyring_floor",
    9: "keyring_sealed",
    10: "keyring_signature",
}


def _given(versions: Sequence[Version]) -> Map:
    return {"versions": [version.content for version in versions], "vault_id": VAULT}


def add(book: Book) -> None:
    group = book.group("keyring")
    rules = Rules(group)
    for add_rule in (_add_sound, _add_2, _add_3, _add_4, _add_5, _add_6, _add_7, _add_8, _add_9, _add_10):
        add_rule(rules)


def renewed(before: Version, device: Device, *more: Change, by: Sequence[bytes] | None = None) -> Version:
    """The version in which a device replaces its keys."""
    after = device.renewed()
    signers = (device.sign,) if by is None else by
    return follow(before, ends(device, stream_row("a")), adds(after), new_epoch, *more, by=signers, new=(after.sign,))


def passphrase(public: Map) -> None:
    new_kit(public)
    public["passphrase_since"] = public["version"]


def _add_sound(rules: Rules) -> None:
    rules.accepts(2, "first", "a first version", ONE)
    rules.accepts(10, "join", "a join version, signed by the new device and the epoch key", ONE, TWO)
    revoked = follow(TWO, ends(BEN, stream_row("b")), new_epoch)
    rules.accepts(5, "ended", "a device is ended by another", ONE, TWO, revoked)
    rules.accepts(
        5, "ended-itself", "a device ends itself", ONE, TWO, follow(TWO, ends(BEN), new_epoch, by=(BEN.sign,))
    )
    rejoined = follow(revoked, adds(BEN2), by=(ANN.sign,), new=(BEN2.sign,))
    rules.refuses(
        5, "ended-id-later", "an id of an entry that ended before is taken again", ONE, TWO, revoked, rejoined
    )
    rules.accepts(
        6, "passphrase", "the passphrase changes: new keys, kit and epoch", ONE, renewed(ONE, ANN, passphrase)
    )
    changed_by_ann = renewed(TWO, ANN, passphrase)
    title = "another device replaces its keys after a change of the passphrase"
    rules.accepts(5, "keys-replaced", title, ONE, TWO, changed_by_ann, renewed(changed_by_ann, BEN))
    rules.accepts(6, "new-kit", "a new kit and epoch", ONE, follow(ONE, new_kit, new_epoch))
    rules.accepts(6, "recovery", "a recovery code appears", ONE, follow(ONE, new_recovery, new_epoch))
    coded = follow(ONE, new_recovery, new_epoch)
    rules.accepts(6, "recovery-again", "a new recovery code", ONE, coded, follow(coded, new_recovery, new_epoch))
    rules.accepts(4, "rekey", "a new epoch and nothing else", ONE, follow(ONE, new_epoch))
    rules.accepts(4, "same", "nothing changes but version and previous", ONE, follow(ONE))
    newer = first(sets("newer", to=[1, b"\0"]), sets("devices", 0, "newer", to="kept"))
    title = "fields of newer software are kept and signed"
    rules.accepts(2, "unknown-fields", title, newer, follow(newer, adds(BEN), by=(), new=(BEN.sign,)))
    both = follow(TWO, new_epoch, by=(ANN.sign, BEN.sign))
    rules.accepts(10, "both-sign", "two devices sign", ONE, TWO, both)
    stripped = first(signers=(epoch_key(1), ANN.sign))
    rules.accepts(10, "signatures-order", "signatures in another order", stripped)


def _add_2(rules: Rules) -> None:
    rules.refuses(2, "number-skipped", "version 3 after version 1", ONE, follow(ONE, sets("version", to=3)))
    rules.refuses(2, "number-again", "version 1 after version 1", ONE, follow(ONE, sets("version", to=1)))
    rules.refuses(2, "first-is-2", "version 2 as the first", first(sets("version", to=2)))
    rules.refuses(
        2, "previous-zeros", "32 zeros as the version before", ONE, follow(ONE, sets("previous", to=bytes(32)))
    )
    other = first(sets("newer", to="another"))
    rules.refuses(2, "previous-other", "it follows another version 1", ONE, follow(other))
    rules.refuses(
        2, "previous-first", "a first version that names one before", first(sets("previous", to=seed("one before")))
    )
    rules.refuses(2, "replayed", "an accepted version again", ONE, TWO, TWO)
    sealed_other = build(ONE.public, Recipe((ANN.sign, epoch_key(1)), sealed=seed("another sealed part")))
    title = "it follows a version 1 that differs in its sealed part alone"
    rules.refuses(2, "previous-sealed", title, ONE, follow(sealed_other))


def _add_3(rules: Rules) -> None:
    faults: dict[str, tuple[str, Sequence[Change], Sequence[bytes]]] = {
        "two-entries": ("two entries", [adds(BEN)], [BEN.sign]),
        "epoch": ("epoch 2", [sets("epoch", to=2), sets("epoch_key", to=public_sign(epoch_key(2)))], [epoch_key(2)]),
        "epoch-since": ("epoch_since is 2", [sets("epoch_since", to=2)], []),
        "since": ("the entry's since is 2", [sets("devices", 0, "since", to=2)], []),
        "kit-since": ("the kit's since is 2", [sets("kit", "since", to=2)], []),
        "kit-generation": ("the kit's generation is 2", [sets("kit", to=kit(2, 1))], []),
        "recovery-generation": ("a recovery code of generation 2", [sets("recovery", to=recovery(2, 1))], []),
        "recovery-since": ("the recovery code's since is 2", [sets("recovery", to=recovery(1, 2))], []),
        "passphrase-since": ("passphrase_since is 2", [sets("passphrase_since", to=2)], []),
        "ended": ("its entry is ended", [ends(ANN)], []),
    }
    for name, (title, changes, more) in faults.items():
        signers = [ANN.sign, *more, *([] if name == "epoch" else [epoch_key(1)])]
        rules.refuses(3, name, title, first(*changes, signers=signers))
    other = first(sets("devices", to=[entry(EVE, 1)]), signers=(EVE.sign, epoch_key(1)))
    rules.refuses(3, "other-vault", "the vault id is not of its entry's key", other)
    rules.accepts(3, "recovery", "a first version with a recovery code", first(sets("recovery", to=recovery(1, 1))))


def _add_4(rules: Rules) -> None:
    ahead = [sets("epoch", to=3), sets("epoch_since", to=2), sets("epoch_key", to=public_sign(epoch_key(3)))]
    rules.refuses(4, "by-two", "two epochs on", ONE, follow(ONE, *ahead))
    later = follow(ONE, new_epoch)
    back = [sets("epoch", to=1), sets("epoch_since", to=3), sets("epoch_key", to=public_sign(epoch_key(1)))]
    rules.refuses(4, "back", "back to epoch 1", ONE, later, follow(later, *back))
    same = [sets("epoch", to=2), sets("epoch_since", to=2)]
    public = changed(next_public(ONE), same)
    rules.refuses(4, "same-key", "a new epoch with the old key", ONE, build(public, Recipe((ANN.sign, epoch_key(1)))))
    rules.refuses(4, "since-alone", "epoch_since changes alone", ONE, follow(ONE, sets("epoch_since", to=2)))
    public = changed(next_public(ONE), [sets("epoch_key", to=public_sign(epoch_key(2)))])
    signers = (ANN.sign, epoch_key(1), epoch_key(2))
    rules.refuses(4, "key-alone", "the epoch key changes alone", ONE, build(public, Recipe(signers)))
    rules.refuses(4, "since-old", "a new epoch since version 1", ONE, follow(ONE, new_epoch, sets("epoch_since", to=1)))
    rules.refuses(
        4, "since-later", "a new epoch since version 3", ONE, follow(ONE, new_epoch, sets("epoch_since", to=3))
    )


def _add_5(rules: Rules) -> None:
    def after_two(name: str, title: str, *changes: Change, **signing: Any) -> None:
        rules.refuses(5, name, title, ONE, TWO, follow(TWO, *changes, **signing))

    after_two("missing", "an entry is missing", drops("devices", 1))
    after_two("missing-new-epoch", "an entry is missing, with a new epoch", drops("devices", 1), new_epoch)
    swapped = [TWO.public["devices"][1], TWO.public["devices"][0]]
    after_two("order", "two entries in another order", sets("devices", to=swapped))
    after_two("wrap", "an entry's wrapping key changes", sets("devices", 1, "wrap", to=EVE.public_wrap))
    after_two("sign", "an entry's signing key changes", sets("devices", 1, "sign", to=EVE.public_sign), new=(EVE.sign,))
    after_two("id", "an entry's id changes", sets("devices", 1, "id", to=EVE.id))
    after_two("since", "an entry's since changes", sets("devices", 1, "since", to=1))
    after_two("unknown", "an entry gets a field", sets("devices", 1, "newer", to=1))
    old = [ends(BEN), sets("devices", 1, "ended", "version", to=2), new_epoch]
    after_two("ended-before", "an entry ends in an earlier version", *old)
    both = [ends(BEN), sets("devices", 1, "wrap", to=EVE.public_wrap), new_epoch]
    after_two("ended-and-changed", "an entry ends and changes", *both)
    after_two("nobody", "nobody is left", ends(ANN), ends(BEN), new_epoch)
    late = [adds(EVE), sets("devices", 2, "since", to=2)]
    after_two("added-since", "an added entry with an earlier since", *late, new=(EVE.sign,))
    dead = [adds(EVE), sets("devices", 2, "ended", to={"version": 3, "streams": []}), new_epoch]
    after_two("added-ended", "an added entry is ended already", *dead, new=(EVE.sign,))
    front = sets("devices", to=[entry(EVE, 3), *TWO.public["devices"]])
    after_two("added-first", "an added entry before the others", front, new=(EVE.sign,))
    revoked = follow(TWO, ends(BEN, stream_row("b")), new_epoch)

    def after_revoked(name: str, title: str, *changes: Change) -> None:
        rules.refuses(5, name, title, ONE, TWO, revoked, follow(revoked, *changes, new_epoch))

    after_revoked("revived", "an ended entry is active again", sets("devices", 1, "ended", to=None))
    rows = [stream_row("b", 4)]
    after_revoked("end-moved", "where an ended stream ends is changed", sets("devices", 1, "ended", "streams", to=rows))
    after_revoked("end-later", "an entry ends once more", sets("devices", 1, "ended", "version", to=4))
    after_revoked("end-unknown", "an end gets a field", sets("devices", 1, "ended", "newer", to=1))


def _add_6(rules: Rules) -> None:
    def after_one(name: str, title: str, *changes: Change) -> None:
        rules.refuses(6, name, title, ONE, follow(ONE, *changes, new_epoch))

    after_one("generation-same", "another kit of the same generation", sets("kit", to=kit(2, 2) | {"generation": 1}))
    after_one("generation-by-two", "a kit two generations on", sets("kit", to=kit(3, 2)))
    after_one("since", "a new kit since version 1", sets("kit", to=kit(2, 1)))
    after_one(
        "wrap-same", "a new kit with the old wrapping key", new_kit, sets("kit", "wrap", to=ONE.public["kit"]["wrap"])
    )
    request = ONE.public["kit"]["request"]
    after_one("request-same", "a new kit with the old request key", new_kit, sets("kit", "request", to=request))
    after_one("cost-alone", "the kit's cost changes alone", sets("kit", "cost", "passes", to=4))
    after_one("unknown", "the kit gets a field", sets("kit", "newer", to=1))
    after_one("recovery-2", "a recovery code appears with generation 2", sets("recovery", to=recovery(2, 2)))
    after_one("recovery-old", "a recovery code appears, since version 1", sets("recovery", to=recovery(1, 1)))
    coded = follow(ONE, new_recovery, new_epoch)

    def after_coded(name: str, title: str, *changes: Change) -> None:
        rules.refuses(6, name, title, ONE, coded, follow(coded, *changes, new_epoch))

    after_coded("recovery-gone", "the recovery code goes", sets("recovery", to=None))
    again = recovery(2, 3) | {"generation": 1}
    after_coded("recovery-same", "another recovery code of the same generation", sets("recovery", to=again))
    wrap = coded.public["recovery"]["wrap"]
    title = "a new recovery code with the old wrapping key"
    after_coded("recovery-wrap", title, new_recovery, sets("recovery", "wrap", to=wrap))
    after_one("passphrase-alone", "the passphrase changes without a new kit", sets("passphrase_since", to=2))
    after_one(
        "passphrase-later",
        "a new kit, and passphrase_since of a version to come",
        new_kit,
        sets("passphrase_since", to=3),
    )
    both = follow(ONE, passphrase, new_epoch)
    back = [new_kit, sets("passphrase_since", to=1), new_epoch]
    rules.refuses(6, "passphrase-back", "passphrase_since goes back", ONE, both, follow(both, *back))


def _add_7(rules: Rules) -> None:
    rules.refuses(7, "ended", "an entry ends in the same epoch", ONE, TWO, follow(TWO, ends(BEN)))
    rules.refuses(7, "kit", "a new kit in the same epoch", ONE, follow(ONE, new_kit))
    rules.refuses(7, "recovery", "a recovery code appears in the same epoch", ONE, follow(ONE, new_recovery))
    replaced = follow(ONE, ends(ANN), adds(ANN2), new=(ANN2.sign,))
    rules.refuses(7, "replaced", "a device replaces its keys in the same epoch", ONE, replaced)


A4, B2 = floor_row("a", 4, 1), floor_row("b", 2, 1)


def _add_8(rules: Rules) -> None:
    lowered = follow(ONE, sets("floor", to=floor(1, A4, B2)))
    rules.accepts(8, "first", "a first floor", ONE, lowered)
    onward = floor(2, floor_row("a", 9, 2), B2, floor_row("c", 1))
    rules.accepts(
        8,
        "onward",
        "a floor that goes on, stays, and lists one more",
        ONE,
        lowered,
        follow(lowered, sets("floor", to=onward)),
    )
    same = floor(2, A4, B2)
    rules.accepts(
        8, "same-rows", "another checkpoint at the same place", ONE, lowered, follow(lowered, sets("floor", to=same))
    )
    rules.accepts(
        8,
        "kept",
        "a device joins and the floor stays",
        ONE,
        lowered,
        follow(lowered, adds(BEN), by=(), new=(BEN.sign,)),
    )
    rules.refuses(8, "in-first", "a first version with a floor", first(sets("floor", to=floor(1, A4))))
    title = "a floor together with a device that joins"
    rules.refuses(8, "with-device", title, ONE, follow(ONE, sets("floor", to=floor(1, A4)), adds(BEN), new=(BEN.sign,)))
    rules.refuses(
        8,
        "with-epoch",
        "a floor together with a new epoch",
        ONE,
        follow(ONE, sets("floor", to=floor(1, A4)), new_epoch),
    )
    title = "a floor together with a field of newer software"
    rules.refuses(8, "with-unknown", title, ONE, follow(ONE, sets("floor", to=floor(1, A4)), sets("newer", to=1)))

    def onto(name: str, title: str, after: Any) -> None:
        rules.refuses(8, name, title, ONE, lowered, follow(lowered, sets("floor", to=after)))

    onto("gone", "the floor goes", None)
    onto("checkpoint-same", "the same checkpoint with another digest", floor(1, A4, B2) | {"digest": seed("another")})
    onto("stream-missing", "a stream of the floor before is not listed", floor(2, floor_row("a", 9, 2)))
    onto("segment-lower", "a lower segment", floor(2, floor_row("a", 9, 0), B2))
    onto("length-lower", "a lower place", floor(2, floor_row("a", 3, 1), B2))
    for name, place, value in (("records", 5, 3), ("counter", 7, 3)):
        row = floor_row("a", 9, 2)
        row[place] = value
        onto(
            f"{name}-lower",
            f"greater length, fewer {name}" if name == "records" else f"greater length, lower {name}",
            floor(2, row, B2),
        )
    for name, place, value in (
        ("chain", 6, seed("another chain")),
        ("segment", 3, 2),
        ("records", 5, 5),
        ("counter", 7, 5),
        ("epoch", 1, 2),
        ("nonce", 2, seed("another nonce", 12)),
    ):
        row = list(A4)
        row[place] = value
        onto(f"same-length-{name}", f"the same length with another {name}", floor(2, row, B2))
    for name, place, value in (("epoch", 1, 2), ("nonce", 2, seed("another nonce", 12))):
        row = floor_row("a", 9, 2)
        row[place] = value
        onto(f"onward-{name}", f"a greater length with another {name}", floor(2, row, B2))
    _add_8_possible(rules, lowered)
    newer = floor(1, A4, B2) | {"newer": 1}
    onto("unknown-alone", "the floor gets a field, and is else the same", newer)


def _add_8_possible(rules: Rules, lowered: Version) -> None:
    """Rows of logs that there cannot be."""

    def floored(before: Version, row: list[Any]) -> Version:
        return follow(before, sets("floor", to=floor(1, row)))

    def changed_row(changes: Map, base: list[Any] = A4) -> list[Any]:
        return [changes.get(place, value) for place, value in enumerate(base)]

    nonce, most = A4[2], 67_108_876
    accepted: dict[str, tuple[str, Map]] = {
        "largest": ("four records as large as they can be", {4: 64 + 4 * most}),
        "segments": ("as many segments as records", {3: 4}),
        "counter-most": ("the highest counter of epoch 1", {7: 1 << 32}),
        "counter-zero": ("a log whose counter is 0", {7: 0}),
    }
    for name, (title, changes) in accepted.items():
        rules.accepts(8, f"row-{name}", title, ONE, floored(ONE, changed_row(changes)))
    refused: dict[str, tuple[str, Map]] = {
        "stranger": ("a row for a stream of a key that no entry has", {0: stream_of(EVE, nonce)}),
        "stream": ("a row for a stream of nobody", {0: seed("stream", 16)}),
        "nonce": ("a row whose stream is of another nonce", {2: seed("another nonce", 12)}),
        "epoch": ("a row of an epoch to come", {1: 2}),
        "counter": ("a counter above the highest of its epoch", {7: (1 << 32) + 1}),
        "empty": ("a row without records", {3: 0, 4: 64, 5: 0}),
        "short": ("a length that four records do not fit in", {4: 63 + 4 * 1108}),
        "long": ("a length that four records do not fill", {4: 65 + 4 * most}),
        "segments-more": ("more segments than records", {3: 5}),
    }
    for name, (title, changes) in refused.items():
        rules.refuses(8, f"row-{name}", title, ONE, floored(ONE, changed_row(changes)))
    onward = floor(2, changed_row({7: (1 << 32) + 1}, floor_row("a", 9, 2)), B2)
    title = "a row that goes on to a counter above the highest of its epoch"
    rules.refuses(8, "onward-counter", title, ONE, lowered, follow(lowered, sets("floor", to=onward)))
    later = follow(ONE, new_epoch)
    second = changed_row({1: 2, 7: 1 << 33})
    rules.accepts(8, "row-epoch-2", "a log of epoch 2 with its highest counter", ONE, later, floored(later, second))
    third = changed_row({1: 3})
    rules.refuses(8, "row-epoch-3", "a log of epoch 3 in epoch 2", ONE, later, floored(later, third))
    theirs = changed_row({0: stream_of(BEN, nonce)})
    title = "a row for a stream of a device that joined"
    rules.accepts(8, "row-joined", title, ONE, TWO, floored(TWO, theirs))
    title = "a row for a stream of a device that joins only later"
    rules.refuses(8, "row-joins-later", title, ONE, floored(ONE, theirs))
    revoked = follow(TWO, ends(BEN), new_epoch)
    rules.accepts(
        8, "row-ended", "a row for a stream of a device that ended", ONE, TWO, revoked, floored(revoked, theirs)
    )


def _add_9(rules: Rules) -> None:
    part = frame(2, pack({"boxes": [], "slots": []})) + frame(3, bytes(40))
    signers = (ANN.sign, epoch_key(1))
    whole = build(first_public(), Recipe(signers, sealed_part=part))
    rules.accepts(9, "whole", "a sealed part that has the hash", whole)
    malformed = frame(2, b"\xc1") + frame(3, b"")
    title = "a sealed part that nobody can read decides nothing"
    rules.accepts(9, "unreadable", title, build(first_public(), Recipe(signers, sealed_part=malformed)))
    other = build(first_public(), Recipe(signers, sealed_part=part, sealed=seed("another")))
    rules.refuses(9, "other", "the approval names another hash, and is signed with it", other)
    swapped = Version(whole.public, whole.stripped() + malformed, whole.digest, whole.open_size, whole.record_0_end)
    rules.refuses(9, "swapped", "another sealed part in the place of the signed one", swapped)
    flipped = whole.content[:-1] + b"\1"
    changed_part = Version(whole.public, flipped, whole.digest, whole.open_size, whole.record_0_end)
    rules.refuses(9, "flipped", "the last byte of the secrets is flipped", changed_part)


def _add_10(rules: Rules) -> None:
    def one(name: str, title: str, signers: Sequence[bytes] = (), **recipe: Any) -> None:
        rules.refuses(10, name, title, build(first_public(), Recipe(signers, **recipe)))

    one("first-nobody", "a first version that nobody signed")
    one("first-no-epoch-key", "a first version without the epoch key's signature", (ANN.sign,))
    one("first-no-device", "a first version without the device's signature", (epoch_key(1),))
    one("first-stranger", "a stranger signed too", (ANN.sign, epoch_key(1), EVE.sign))
    one("first-twice", "one key signed twice", (ANN.sign, epoch_key(1), ANN.sign))
    one("first-label", "signed over another label", (ANN.sign, epoch_key(1)), label=b"memseal/v1/sign")
    one("first-no-label", "signed over the digest alone", (ANN.sign, epoch_key(1)), label=b"")
    good = ONE.signatures()

    def with_signature(name: str, title: str, signature: bytes) -> None:
        one(name, title, signatures=[[good[0][0], signature], good[1]])

    with_signature("flipped", "a flipped bit in a signature", good[0][1][:-1] + bytes([good[0][1][-1] ^ 1]))
    with_signature("other-key", "the other signer's signature", good[1][1])
    large = int.from_bytes(good[0][1][32:], "little") + curve.L
    with_signature("s-too-large", "S is the group's order too large", good[0][1][:32] + large.to_bytes(32, "little"))
    torsion = curve.signature_off_by(curve.EIGHTH, ANN.sign, ANN.public_sign, b"memseal/v1/keyring-sign" + ONE.digest)
    with_signature("cofactor", "a signature that is true only with the cofactor", torsion)
    with_signature(
        "other-version", "a signature of another version", sign(ANN.sign, b"memseal/v1/keyring-sign" + TWO.digest)
    )

    def after(
        name: str, title: str, before: Sequence[Version], changes: Sequence[Change], signers: Sequence[bytes]
    ) -> None:
        public = changed(next_public(before[-1]), changes)
        rules.refuses(10, name, title, *before, build(public, Recipe(signers)))

    both, old, new = [ONE, TWO], epoch_key(1), epoch_key(2)
    after("join-no-device", "a join version without the new device's signature", [ONE], [adds(BEN)], [old])
    after("join-no-epoch-key", "a join version without the epoch key's signature", [ONE], [adds(BEN)], [BEN.sign])
    after(
        "join-two",
        "two devices join at once, with the epoch key alone",
        [ONE],
        [adds(BEN, EVE)],
        [BEN.sign, EVE.sign, old],
    )
    title = "a device joins with the epoch key alone, and a field of newer software changes"
    after("join-unknown", title, [ONE], [adds(BEN), sets("newer", to=1)], [BEN.sign, old])
    title = "a device joins with the epoch keys alone, and begins an epoch"
    after("join-epoch", title, [ONE], [adds(BEN), new_epoch], [BEN.sign, old, new])
    after("rekey-no-device", "a new epoch without a device's signature", [ONE], [new_epoch], [old, new])
    after("rekey-no-old-key", "a new epoch without the old epoch key's signature", [ONE], [new_epoch], [ANN.sign, new])
    after("rekey-no-new-key", "a new epoch without the new epoch key's signature", [ONE], [new_epoch], [ANN.sign, old])
    after(
        "floor-no-device",
        "a floor with the epoch key's signature alone",
        [ONE],
        [sets("floor", to=floor(1, A4))],
        [old],
    )
    after("same-no-device", "nothing changes, and no device signed", [ONE], [], [old])
    after(
        "revoked-by-itself-alone",
        "a device that joins now ends another",
        both,
        [adds(EVE), ends(BEN), new_epoch],
        [EVE.sign, old, new],
    )
    revoked = [*both, follow(TWO, ends(BEN), new_epoch)]
    title = "a device that was ended before signs"
    after("ended-signs", title, revoked, [new_epoch], [BEN.sign, new, epoch_key(3)])
    after(
        "ended-signs-too",
        "a device that was ended before signs too",
        revoked,
        [new_epoch],
        [ANN.sign, BEN.sign, new, epoch_key(3)],
    )
    after("old-epoch-signs", "the key of an epoch that is over signs too", revoked, [], [ANN.sign, old, new])
    request = seed("any request key")
    after("kit-signs", "the kit's request key signs too", [ONE], [new_epoch], [ANN.sign, old, new, request])
    replaced = [ends(ANN), adds(ANN2), new_epoch]
    after("replaced-old-only", "new keys that did not sign", [ONE], replaced, [ANN.sign, old, new])
    after("replaced-new-only", "keys are replaced by the new ones alone", [ONE], replaced, [ANN2.sign, old, new])
