"""Vectors of device files (§8) and of logs' places in a keyring (§3)."""

import unicodedata
from collections.abc import Sequence
from typing import Any

from making.book import Book, Group
from making.containers import DEVICE, context, crc, flipped, frame, log_preamble, pack, plaintext, preamble
from making.frozen import Frozen
from making.keyrings import COST, Map, Version, adds, ends, follow, new_epoch, stream_row, vault_key
from making.people import ANN, BEN, EVE, OTHER_VAULT, VAULT, Device, seed
from making.rules import ANN2, ONE, TWO, passphrase, renewed
from making.sealing import PASSPHRASE, cost_bytes, stretched
from making.world import World, world
from memseal.format import primitives

RULE = "vault-format §8"
OLD, NEW = PASSPHRASE, "another passphrase"
REPLACED = renewed(ONE, ANN, passphrase)


def add(book: Book) -> None:
    _Devices(book.group("device")).add()
    _Places(book.group("place"), world(book)).add()


def salt_of(state: str) -> bytes:
    return seed(f"salt {state}")


def key_set(device: Device, before: bytes | None = None) -> Map:
    return {"sign": device.sign, "wrap": device.wrap, "local": device.local, "local_before": before}


def slot(state: str, cost: Map = COST) -> Map:
    return {"state": state, "salt": salt_of(state), "cost": cost}


def slot_key(words: str, state: str, device: bytes, cost: Map = COST, vault: bytes = VAULT) -> bytes:
    ikm = stretched(words, salt_of(state), cost["memory"], cost["passes"], cost["lanes"])
    return primitives.derive(ikm, salt_of(state), "memseal/v1/device", vault, device, cost_bytes(cost))


def begin_of(device: Device, **changes: Any) -> bytes:
    return preamble(DEVICE, **({"stream": device.id} | changes))


def sealed_set(
    frozen: Frozen,
    name: str,
    words: str,
    state: str,
    content: Any,
    device: Device = ANN,
    index: int = 1,
    cost: Map = COST,
) -> bytes:
    """The body of a sealed key set."""
    key = slot_key(words, state, device.id, cost)
    return frozen.sealed(name, key, context(begin_of(device), index), plaintext(pack(content)))


def marks(frozen: Frozen, name: str, device: Device, index: int) -> bytes:
    """The body of the marks; what they say is an implementation's own."""
    key = primitives.derive(device.local, b"", "memseal/v1/marks", VAULT, device.id)
    return frozen.sealed(name, key, context(begin_of(device), index), plaintext(pack(MARKS)))


MARKS: Map = {"keyring": 0, "digest": bytes(32), "logs": [], "remotes": {}, "server": "", "rewritten": 0}


def file_of(slots: Any, bodies: Sequence[bytes], begin: bytes = begin_of(ANN)) -> bytes:
    first = slots if isinstance(slots, bytes) else pack({"slots": slots})
    return begin + b"".join(frame(index, body) for index, body in enumerate([first, *bodies]))


class _Devices:
    def __init__(self, group: Group) -> None:
        frozen = group.frozen
        self._group = group
        self._current = sealed_set(frozen, "current", OLD, "current", key_set(ANN))
        self._pending = sealed_set(frozen, "pending", NEW, "pending", key_set(ANN2, ANN.local), index=2)
        self._marks = marks(frozen, "marks 2", ANN, 2)
        self._marks_3 = marks(frozen, "marks 3", ANN, 3)
        self._one = file_of([slot("current")], [self._current, self._marks])
        self._two = file_of([slot("current"), slot("pending")], [self._current, self._pending, self._marks_3])

    def add(self) -> None:
        self._opens("current", "a device file with one slot", self._one, [ONE], ANN)
        self._opens("nfd", "its passphrase in NFD", self._one, [ONE], ANN, unicodedata.normalize("NFD", OLD))
        self._opens("later", "for a keyring in which another device joined", self._one, [ONE, TWO], ANN)
        self._opens("pending-dropped", "a passphrase change that did not get to the keyring", self._two, [ONE], ANN)
        self._opens(
            "pending-counts", "a passphrase change that got to the keyring", self._two, [ONE, REPLACED], ANN2, NEW
        )
        self._refused("wrong", "another passphrase", self._one, "passphrase_wrong", words=NEW)
        self._refused("empty", "no passphrase", self._one, "passphrase_wrong", words="")
        title = "the old passphrase, after the change got to the keyring and before the file was made anew"
        self._refused("pending-old", title, self._two, "passphrase_wrong", [ONE, REPLACED])
        title = "the new passphrase, before the change got to the keyring"
        self._refused("pending-new", title, self._two, "passphrase_wrong", words=NEW)
        title = "an old device file put back after a passphrase change"
        self._refused("put-back", title, self._one, "local_rollback", [ONE, REPLACED])
        revoked = [ONE, TWO, follow(TWO, ends(ANN, stream_row("a")), new_epoch, by=(BEN.sign,))]
        self._refused("ended", "a device that another one ended", self._one, "device_ended", revoked)
        self._add_sealed_faults()
        self._add_damage()
        self._add_slots()
        self._add_costs()

    def _add_sealed_faults(self) -> None:
        frozen = self._group.frozen

        def with_set(name: str, title: str, body: bytes, code: str, slots: Sequence[Map] = (slot("current"),)) -> None:
            self._refused(name, title, file_of(list(slots), [body, self._marks]), code)

        with_set("flipped", "a flipped bit in the key set", flipped(self._current, 70), "passphrase_wrong")
        other = {**slot("current"), "salt": seed("another salt")}
        with_set("salt", "another salt", self._current, "passphrase_wrong", [other])
        dearer = slot("current", COST | {"passes": 4})
        with_set("cost", "another cost than it was sealed at", self._current, "passphrase_wrong", [dearer])
        moved = sealed_set(frozen, "index", OLD, "current", key_set(ANN), index=2)
        with_set("index", "sealed for another index", moved, "passphrase_wrong")
        key = slot_key(OLD, "current", BEN.id)
        body = frozen.sealed("other device", key, context(begin_of(ANN), 1), plaintext(pack(key_set(ANN))))
        with_set("device", "sealed under the key of another device id", body, "passphrase_wrong")
        key = slot_key(OLD, "current", ANN.id, vault=OTHER_VAULT)
        body = frozen.sealed("other vault", key, context(begin_of(ANN), 1), plaintext(pack(key_set(ANN))))
        with_set("vault", "sealed under the key of another vault", body, "passphrase_wrong")
        faults: dict[str, tuple[str, Any]] = {
            "sign": ("a signing seed of 31 bytes", key_set(ANN) | {"sign": bytes(31)}),
            "wrap": ("no wrapping seed", {name: value for name, value in key_set(ANN).items() if name != "wrap"}),
            "local": ("a local key that is a text", key_set(ANN) | {"local": "0" * 32}),
            "before": ("a local key before of 16 bytes", key_set(ANN) | {"local_before": bytes(16)}),
            "array": ("an array", [key_set(ANN)]),
        }
        for name, (title, content) in faults.items():
            body = sealed_set(frozen, f"set {name}", OLD, "current", content)
            with_set(f"set-{name}", f"the key set has {title}", body, "device_file")
        key = slot_key(OLD, "current", ANN.id)
        unpadded = plaintext(pack(key_set(ANN)), filler=b"\1")
        body = frozen.sealed("set padding", key, context(begin_of(ANN), 1), unpadded)
        with_set("set-padding", "the key set's padding is not zero", body, "device_file")

    def _add_damage(self) -> None:
        file, rest = self._one, self._one[64:]
        for name, title, content in (
            ("short", "fewer bytes than a preamble", file[:63]),
            ("magic", "no magic", b"\0" + file[1:]),
            ("crc", "a flipped bit in the preamble", flipped(file, 40)),
            ("kind", "a preamble of another kind", preamble(2, stream=ANN.id) + rest),
            ("epoch", "a preamble with an epoch", begin_of(ANN, epoch=1) + rest),
            ("nonce", "a preamble with a nonce", begin_of(ANN, nonce=bytes(11) + b"\1") + rest),
            ("torn", "the last byte is missing", file[:-1]),
            ("more", "one byte too many", file + b"\0"),
            ("header", "a flipped bit in the first header", flipped(file, 66)),
            ("no-marks", "no marks", file_of([slot("current")], [self._current])),
            ("more-records", "one record too many", file_of([slot("current")], [self._current, self._marks, b""])),
            ("empty", "a preamble alone", file[:64]),
        ):
            self._refused(f"file-{name}", title, content, "device_file")
        newer = begin_of(ANN, version=2) + rest
        self._refused("file-version", "a device file of a newer format", newer, "version_unknown")
        self._refused("file-suite", "a device file of another suite", begin_of(ANN, suite=2) + rest, "suite_unknown")

    def _add_slots(self) -> None:
        bodies = [self._current, self._pending, self._marks_3]

        def refused(name: str, title: str, slots: Any, count: int) -> None:
            given = [*bodies[:count], bodies[2]]
            self._refused(f"slots-{name}", title, file_of(slots, given), "device_file")

        refused("none", "no slot", [], 0)
        refused("pending-alone", "one slot, and it is pending", [slot("pending")], 1)
        refused("pending-first", "the pending slot comes first", [slot("pending"), slot("current")], 2)
        refused("current-twice", "two current slots", [slot("current"), slot("current")], 2)
        refused("state", "a state that is not known", [slot("current") | {"state": "newer"}], 1)
        refused("salt", "a salt of 31 bytes", [slot("current") | {"salt": bytes(31)}], 1)
        refused("map", "slots is a map", pack({"slots": {}}), 1)
        refused("array", "record 0 is an array", pack([slot("current")]), 1)
        refused("no-msgpack", "record 0 is no msgpack", b"\xc1", 1)
        three = [slot("current"), slot("pending"), slot("pending")]
        content = file_of(three, [self._current, self._pending, self._pending, self._marks_3])
        self._refused("slots-three", "two pending slots", content, "device_file")
        self._refused(
            "slots-fewer",
            "two slots are listed, one is there",
            file_of(three[:2], [self._current, self._marks]),
            "device_file",
        )

    def _add_costs(self) -> None:
        for name, title, change, code in (
            ("unknown", "a derivation that is not known", {"name": "scrypt"}, "kdf_unknown"),
            ("memory", "too little memory", {"memory": 65535}, "kdf_floor"),
            ("passes", "too few passes", {"passes": 2}, "kdf_floor"),
            ("lanes", "no lane", {"lanes": 0}, "kdf_floor"),
            ("memory-most", "too much memory", {"memory": 1048577}, "kdf_ceiling"),
            ("passes-most", "too many passes", {"passes": 11}, "kdf_ceiling"),
            ("lanes-most", "too many lanes", {"lanes": 17}, "kdf_ceiling"),
            ("field", "a field that is not known", {"newer": 1}, "device_file"),
            ("negative", "negative memory", {"memory": -1}, "device_file"),
            ("text", "passes as a text", {"passes": "3"}, "device_file"),
        ):
            content = file_of([slot("current", COST | change)], [self._current, self._marks])
            self._refused(f"cost-{name}", f"a slot's cost has {title}", content, code)
        dear = COST | {"memory": 131072, "lanes": 1}
        body = sealed_set(self._group.frozen, "dear", OLD, "current", key_set(ANN), cost=dear)
        content = file_of([slot("current", dear)], [body, self._marks])
        self._opens("cost-dear", "a dearer derivation of one lane", content, [ONE], ANN)

    def _opens(
        self, name: str, title: str, content: bytes, versions: Sequence[Version], device: Device, words: str = OLD
    ) -> None:
        gives = {"device_id": device.id, "sign": device.sign, "wrap": device.wrap, "local": device.local}
        self._group.ok(name, RULE, title, "open_device", _given(content, versions, words), **gives)

    def _refused(
        self, name: str, title: str, content: bytes, code: str, versions: Sequence[Version] = (ONE,), words: str = OLD
    ) -> None:
        self._group.refused(name, RULE, title, "open_device", _given(content, versions, words), code)


def _given(content: bytes, versions: Sequence[Version], words: str) -> Map:
    return {"content": content, "versions": [version.content for version in versions], "passphrase": words}


# ── logs in a keyring ───────────────────────────────────────────────────────────────────────────────


class _Places:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here

    def add(self) -> None:
        here = self._here
        one, two, three = here.one.digest, here.two.digest, here.three.digest
        first = log_preamble(ANN.public_sign, 1, one)
        self._placed("first", "the log of the first device", first, ANN, 1)
        second = log_preamble(ANN.public_sign, 2, three)
        self._placed("epoch", "a log of the newest epoch", second, ANN, 2)
        self._placed("joined", "the log of a device that joined", log_preamble(BEN.public_sign, 1, one), BEN, 1)
        self._refused(
            "behind",
            "of an epoch that the keyring does not have yet",
            log_preamble(ANN.public_sign, 3, three),
            "keyring_behind",
        )
        self._refused("epoch-0", "of epoch 0", log_preamble(ANN.public_sign, 0, one), "epoch_mismatch")
        self._refused("epoch-unknown", "of an epoch whose key is not known", first, "epoch_mismatch", keys=(2,))
        wrong = log_preamble(ANN.public_sign, 1, two)
        self._refused("began-other", "its nonce names a version that did not begin its epoch", wrong, "stream_mismatch")
        wrong = log_preamble(ANN.public_sign, 2, one)
        self._refused(
            "began-before", "its nonce names the version that began the epoch before", wrong, "stream_mismatch"
        )
        self._refused(
            "stranger", "of a device that is not listed", log_preamble(EVE.public_sign, 1, one), "stream_mismatch"
        )
        self._refused("name", "under the name of another log", first, "stream_mismatch", file=second[32:48])
        underived = preamble(2, epoch=1, stream=seed("any", 16), nonce=one[:8] + b"rand")
        self._refused("underived", "a stream id that is derived from nothing", underived, "stream_mismatch")
        other = log_preamble(ANN.public_sign, 1, one, vault=OTHER_VAULT)
        self._refused("vault", "of another vault", other, "vault_mismatch")
        self._refused("kind", "a device file's preamble", begin_of(ANN), "kind_mismatch")
        self._refused("newer", "of a newer format", _newer(first), "version_unknown")
        self._refused("damaged", "a flipped bit in the epoch", flipped(first, 15), "preamble_damaged")
        self._add_ended(log_preamble(BEN.public_sign, 1, one))

    def _add_ended(self, place: bytes) -> None:
        row = [place[32:48], 3, seed("chain"), 4000]
        version = follow(self._here.three, ends(BEN, row), new_epoch)
        listed = {"length": 4000, "records": 3, "chain": seed("chain")}
        self._placed("ended", "of an ended device: where it ends", place, BEN, 1, listed, version)
        version = follow(self._here.three, ends(BEN, stream_row("another")), new_epoch)
        nothing = {"length": 0, "records": 0, "chain": b""}
        self._placed("ended-unlisted", "of an ended device that does not name it", place, BEN, 1, nothing, version)
        later = follow(version, adds(EVE), by=(ANN.sign,), new=(EVE.sign,))
        self._placed(
            "ended-before", "of a device that was ended some versions ago", place, BEN, 1, nothing, version, later
        )

    def _given(
        self, place: bytes, more: Sequence[Version] = (), file: bytes | None = None, keys: Sequence[int] = (1, 2)
    ) -> Map:
        rows = [[epoch, {"bytes": vault_key(epoch).hex()}] for epoch in (*keys, *([3] if more else []))]
        versions = [each.stripped() for each in (self._here.one, self._here.two, self._here.three, *more)]
        return {"content": place, "name": file or place[32:48], "versions": versions, "vault_keys": rows}

    def _placed(
        self, name: str, title: str, place: bytes, owner: Device, epoch: int, limit: Map | None = None, *more: Version
    ) -> None:
        key = primitives.derive(vault_key(epoch), b"", "memseal/v1/log", VAULT, place[32:48])
        gives = {"owner": owner.public_sign, "key": key, "limit": limit}
        self._group.ok(name, "vault-format §3", title, "place_log", self._given(place, more), **gives)

    def _refused(self, name: str, title: str, place: bytes, code: str, **options: Any) -> None:
        self._group.refused(name, "vault-format §3", title, "place_log", self._given(place, **options), code)


def _newer(place: bytes) -> bytes:
    head = place[:8] + b"\2" + place[9:60]
    return head + crc(head)
