"""Vectors of what opens a keyring: boxes, secrets, kit slot, recovery slot (§7)."""

import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.containers import flipped
from making.keyrings import (
    COST,
    Change,
    Map,
    Recipe,
    Version,
    adds,
    build,
    changed,
    ends,
    epoch_key,
    first,
    first_public,
    kit_secret,
    kit_seed,
    new_epoch,
    next_public,
    recovery,
    recovery_seed,
    sets,
    vault_key,
)
from making.people import ANN, BEN, EVE, OTHER_VAULT, Device, seed
from making.sealing import (
    NAMES,
    PASSPHRASE,
    box_info,
    boxes,
    kit_bytes,
    kit_slot,
    kit_text,
    recovery_slot,
    recovery_text,
    secrets_map,
    slot_content,
    whole,
)
from making.strings import resealed
from making.world import World, world

RULE = "vault-format §7"


def add(book: Book) -> None:
    here = world(book)
    _Boxes(book.group("keyring"), here).add()
    _Secrets(book.group("keyring"), here).add()
    _Kits(book.group("kit"), here).add()
    _Codes(book.group("kit"), here).add()


class _Boxes:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here

    def add(self) -> None:
        here = self._here
        self._opens("ann", "a device's box", here.one.content, ANN, 1)
        self._opens("ben", "the box of a device that joined", here.two.content, BEN, 1)
        self._opens("epoch", "a box of a later epoch", here.three.content, ANN, 2)
        self._refused("stripped", "a stripped version has no boxes", here.one.stripped(), "box_missing")
        self._refused("stranger", "a device that is not listed", here.two.content, "box_missing", EVE)
        ended = changed(next_public(here.two), [ends(BEN), new_epoch])
        version = self._whole("ended", ended, [ANN.sign, epoch_key(1), epoch_key(2)])
        self._refused("ended", "a device that is ended", version.content, "box_missing", BEN)
        given = {"version": here.two.content, "seed": BEN.wrap, "sign": ANN.public_sign}
        title = "another device's wrapping key with this one's signing key"
        self._group.refused("box-other-entry", RULE, title, "open_box", given, "box_sealed")
        self._add_wrong_boxes()

    def _add_wrong_boxes(self) -> None:
        public = self._here.two.public
        sound = boxes(self._group.frozen, "box sound", public, vault_key(1))
        row = sound[0]
        info = box_info(public, ANN.id, ANN.public_sign, ANN.public_wrap)
        faults: dict[str, tuple[str, list[Any], str]] = {
            "none": ("its box is not there", sound[1:], "box_missing"),
            "short": (
                "one box is a byte short: record 2 is as if it had none",
                [row, [row[0], row[1][:-1]]],
                "box_missing",
            ),
            "text": ("a box is a text: record 2 is as if it had none", [row, [sound[1][0], "box"]], "box_missing"),
            "three": ("a row has three values: record 2 is as if it had none", [row, [*sound[1], 1]], "box_missing"),
            "flipped": ("a flipped bit in the wrapped key", [[row[0], flipped(row[1], 1130)]], "box_sealed"),
            "flipped-enc": ("a flipped bit in the encapsulated key", [[row[0], flipped(row[1], 5)]], "box_sealed"),
            "swapped": ("another device's box under its key", [[row[0], sound[1][1]]], "box_sealed"),
        }
        for name, (title, rows, code) in faults.items():
            self._refused(name, title, self._with(f"box {name}", rows), code)
        number = len(info) - 32 - 32 - 16 - 4
        places = {
            "version": ("another version", info[: number - 1] + bytes([9]) + info[number:]),
            "epoch": ("another epoch", info[: number + 3] + bytes([9]) + info[number + 4 :]),
            "vault": ("another vault", box_info(public, ANN.id, ANN.public_sign, ANN.public_wrap, OTHER_VAULT)),
            "device": ("another device id", box_info(public, BEN.id, ANN.public_sign, ANN.public_wrap)),
            "sign": ("another signing key", box_info(public, ANN.id, BEN.public_sign, ANN.public_wrap)),
            "wrap": ("another wrapping key", box_info(public, ANN.id, ANN.public_sign, BEN.public_wrap)),
            "no-label": ("no label", info[len(b"memseal/v1/box") :]),
            "empty": ("nothing", b""),
        }
        for name, (title, other) in places.items():
            wrapped = self._group.frozen.wrapped(f"wrapped {name}", ANN.wrap, other, vault_key(1))
            content = self._with(f"box info {name}", [[row[0], wrapped]])
            self._refused(f"info-{name}", f"wrapped with {title} in its info", content, "box_sealed")
        wrapped = self._group.frozen.wrapped("wrapped other key", ANN.wrap, info, vault_key(2))
        content = self._with("box other key", [[row[0], wrapped]])
        self._refused("other-key", "a vault key that is not the epoch's", content, "epoch_key_mismatch")

    def _with(self, name: str, rows: list[Any]) -> bytes:
        return self._whole(name, self._here.two.public, (BEN.sign, epoch_key(1)), box_rows=rows).content

    def _whole(self, name: str, public: Map, signers: Sequence[bytes], **options: Any) -> Version:
        return whole(self._group.frozen, name, public, signers, self._here.slots, **options)

    def _opens(self, name: str, title: str, version: bytes, device: Device, epoch: int) -> None:
        given = {"version": version, "seed": device.wrap, "sign": device.public_sign}
        self._group.ok(f"box-{name}", RULE, title, "open_box", given, vault_key=vault_key(epoch))

    def _refused(self, name: str, title: str, version: bytes, code: str, device: Device = ANN) -> None:
        given = {"version": version, "seed": device.wrap, "sign": device.public_sign}
        self._group.refused(f"box-{name}", RULE, title, "open_box", given, code)


class _Secrets:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here

    def add(self) -> None:
        here = self._here
        self._opens("one", "the secrets of a first version", here.one, 1, [])
        self._opens("three", "the secrets of epoch 2, with the key of epoch 1", here.three, 2, [1])
        self._refused("key", "under the vault key of another epoch", here.three.content, "record_sealed", 1)
        self._refused("stripped", "of a stripped version", here.one.stripped(), "keyring_missing", 1)
        moved = build(
            here.two.public, Recipe((BEN.sign, epoch_key(1)), sealed_part=here.one.content[here.one.open_size :])
        )
        self._refused("moved", "of the version before", moved.content, "record_sealed", 1)
        self._add_faults()

    def _add_faults(self) -> None:
        public = self._here.one.public
        sound = secrets_map(public, NAMES)
        faults: dict[str, tuple[str, Any]] = {
            "kit-secret": ("a kit secret of 15 bytes", sound | {"kit_secret": bytes(15)}),
            "kit-secret-missing": ("no kit secret", {name: sound[name] for name in ("history", "names")}),
            "history": ("a vault key of 31 bytes in the history", sound | {"history": [[1, bytes(31)]]}),
            "history-epoch": ("epoch 0 in the history", sound | {"history": [[0, bytes(32)]]}),
            "names": ("a name that is bytes", sound | {"names": [[ANN.id, b"laptop"]]}),
            "array": ("an array", [sound]),
        }
        for name, (title, content) in faults.items():
            slots = self._here.slots
            version = whole(
                self._group.frozen,
                f"secrets {name}",
                public,
                (ANN.sign, epoch_key(1)),
                slots,
                secrets=content,
                box_rows=[],
            )
            self._refused(name, f"the secrets have {title}", version.content, "keyring_malformed", 1)

    def _opens(self, name: str, title: str, version: Version, epoch: int, history: list[int]) -> None:
        given = {"version": version.content, "vault_key": vault_key(epoch)}
        gives: dict[str, Any] = {
            "history": [[old, {"bytes": vault_key(old).hex()}] for old in history],
            "names": {device.hex(): text for device, text in NAMES.items()},
            "kit_secret": kit_secret(1),
        }
        self._group.ok(f"secrets-{name}", RULE, title, "open_secrets", given, **gives)

    def _refused(self, name: str, title: str, version: bytes, code: str, epoch: int) -> None:
        given = {"version": version, "vault_key": vault_key(epoch)}
        self._group.refused(f"secrets-{name}", RULE, title, "open_secrets", given, code)


def _one_with(group: Group, name: str, slots: Sequence[Any], *changes: Change, **options: Any) -> Version:
    """A first version with a kit and these slots."""
    public = changed(first_public(), [sets("recovery", to=recovery(1, 1)), *changes])
    return whole(group.frozen, name, public, (ANN.sign, epoch_key(1)), slots, **options)


class _Kits:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here
        self._begun = build(here.one.public, Recipe(()))

    def add(self) -> None:
        here = self._here
        self._opens("one", "kit and passphrase, of a first version", here.versions(1), 1)
        self._opens("three", "of a version two further, epoch 2", here.versions(3), 2)
        decomposed = unicodedata.normalize("NFD", PASSPHRASE)
        self._opens("nfd", "the passphrase in NFD", here.versions(1), 1, passphrase=decomposed)
        self._opens(
            "lower", "the kit as somebody typed it", here.versions(1), 1, kit=kit_text().lower().replace("-", " ")
        )
        server = kit_text(server=b"https://memory.example")
        self._opens("server", "a kit that names a server", here.versions(1), 1, kit=server)
        code = "kit_or_passphrase"
        self._refused("passphrase", "another passphrase", here.versions(1), code, passphrase=PASSPHRASE + ".")
        self._refused("case", "the passphrase in capitals", here.versions(1), code, passphrase=PASSPHRASE.upper())
        self._refused("space", "a space after the passphrase", here.versions(1), code, passphrase=PASSPHRASE + " ")
        other = resealed(kit_bytes(seed("another kit secret", 16))[:-4])
        self._refused("secret", "another kit secret", here.versions(1), code, kit=other)
        other = kit_text(vault=OTHER_VAULT)
        self._refused("vault", "a kit of another vault", here.versions(1), "vault_mismatch", kit=other)
        self._refused("stripped", "the newest version is stripped", [here.one.stripped()], "keyring_missing")
        self._add_slots()
        self._add_mismatches()
        self._add_costs()
        self._add_chains()

    def _slot(self, name: str, **changes: Any) -> Map:
        content = slot_content(self._begun, kit_seed(1)) | changes
        return kit_slot(self._group.frozen, name, content)

    def _with(self, name: str, *slots: Any, **options: Any) -> list[bytes]:
        return [_one_with(self._group, name, slots, **options).content]

    def _add_slots(self) -> None:
        good, code = self._here.slots[0], "kit_or_passphrase"
        broken = good | {"sealed": flipped(good["sealed"], 60)}
        self._refused("slot-flipped", "a flipped bit in the slot", self._with("slot flipped", broken), code)
        self._refused("slot-salt", "another salt", self._with("slot salt", good | {"salt": seed("another salt")}), code)
        self._refused(
            "slot-generation", "another generation", self._with("slot generation", good | {"generation": 2}), code
        )
        self._refused("slot-none", "no kit slot", self._with("slot none", self._here.slots[1]), "keyring_missing")
        self._opens("slot-last", "of two kit slots the last counts", self._with("slot last", broken, good), 1)
        self._refused(
            "slot-last-broken", "of two kit slots the last is broken", self._with("slot first", good, broken), code
        )
        other = {"for": "newer", "what": [1, b"\0"]}
        self._opens(
            "slot-unknown", "a slot for another purpose is passed over", self._with("slot unknown", good, other), 1
        )
        malformed = good | {"salt": bytes(31)}
        self._refused(
            "slot-malformed",
            "a salt of 31 bytes: record 2 is as if it had no slot",
            self._with("slot malformed", malformed),
            "keyring_missing",
        )
        unreadable = self._with("slot unreadable", record_2=b"\xc1")
        self._refused("slot-unreadable", "record 2 is no msgpack", unreadable, "keyring_missing")
        content = slot_content(self._begun, kit_seed(1))
        elsewhere = kit_slot(self._group.frozen, "slot elsewhere", content, vault=OTHER_VAULT)
        self._refused("slot-vault", "a slot sealed for another vault", self._with("slot vault", elsewhere), code)
        boxless = self._with("kit boxless", good, box_rows=[])
        self._refused("box-missing", "no box for the kit", boxless, "box_missing")
        other_seed = self._slot("slot other seed", seed=kit_seed(2))
        self._refused(
            "slot-seed", "the slot holds another wrapping key", self._with("slot seed", other_seed), "box_missing"
        )

    def _add_mismatches(self) -> None:
        faults = {
            "public": ("another public section", {"public": seed("another")}),
            "sealed-too": ("a hash of the whole file", {"public": _sha256(self._here.one.content)}),
            "version": ("version 2 of one", {"version": 2}),
        }
        for name, (title, change) in faults.items():
            slot = self._slot(f"slot pins {name}", **change)
            self._refused(f"pins-{name}", f"the slot pins {title}", self._with(f"pins {name}", slot), "slot_mismatch")
        forged = first(sets("newer", to="forged"))
        public = changed(next_public(forged), [new_epoch])
        signers = (ANN.sign, epoch_key(1), epoch_key(2))
        version = whole(self._group.frozen, "forged two", public, signers, [self._here.slots[0]])
        title = "a server shows a keyring of its own making behind the right slot"
        self._refused("pins-forged", title, [forged.stripped(), version.content], "slot_mismatch")

    def _add_costs(self) -> None:
        costs = {
            "floor": ("cheaper than the floor", {"passes": 2}, "kdf_floor"),
            "floor-memory": ("of too little memory", {"memory": 65535}, "kdf_floor"),
            "ceiling": ("dearer than the ceiling", {"memory": 1048577}, "kdf_ceiling"),
            "unknown": ("not known", {"name": "scrypt"}, "kdf_unknown"),
        }
        for name, (title, change, code) in costs.items():
            cost = sets("kit", "cost", to=COST | change)
            version = _one_with(self._group, f"cost {name}", self._here.slots, cost)
            self._refused(f"cost-{name}", f"the kit's derivation is {title}", [version.content], code)
        dearer = COST | {"passes": 4}
        public = changed(self._here.one.public, [sets("kit", "cost", to=dearer)])
        content = slot_content(build(public, Recipe(())), kit_seed(1))
        slot = kit_slot(self._group.frozen, "slot dearer", content, cost=dearer)
        version = whole(self._group.frozen, "dearer", public, (ANN.sign, epoch_key(1)), [slot])
        self._opens("cost-dearer", "a derivation of four passes", [version.content], 1)
        unbound = kit_slot(self._group.frozen, "slot unbound", content)
        version = whole(self._group.frozen, "unbound", public, (ANN.sign, epoch_key(1)), [unbound])
        self._refused("cost-other", "sealed at another cost than the kit says", [version.content], "kit_or_passphrase")

    def _add_chains(self) -> None:
        here = self._here
        one, _, three = here.versions(3)
        self._refused("chain-missing", "a version in between is missing", [one, three], "keyring_chain")
        stranger = changed(next_public(here.one), [adds(EVE)])
        forged = build(stranger, Recipe((EVE.sign,)))
        public = changed(next_public(forged), [new_epoch])
        last = whole(
            self._group.frozen, "chain last", public, (EVE.sign, epoch_key(1), epoch_key(2)), here.slots, box_rows=[]
        )
        title = "a version in between lacks the epoch key's signature"
        versions = [one, forged.content, last.content]
        self._refused("chain-signature", title, versions, "keyring_signature")

    def _opens(self, name: str, title: str, versions: list[bytes], epoch: int, **given: str) -> None:
        self._group.ok(
            f"opens-{name}", RULE, title, "open_kit", self._given(versions, given), vault_key=vault_key(epoch)
        )

    def _refused(self, name: str, title: str, versions: list[bytes], code: str, **given: str) -> None:
        self._group.refused(f"closed-{name}", RULE, title, "open_kit", self._given(versions, given), code)

    def _given(self, versions: list[bytes], given: dict[str, str]) -> Map:
        return {"versions": versions, "kit": kit_text(), "passphrase": PASSPHRASE} | given


def _sha256(content: bytes) -> bytes:
    return sha256(content).digest()


class _Codes:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here
        self._begun = build(here.one.public, Recipe(()))

    def add(self) -> None:
        here, kit = self._here, self._here.slots[0]
        self._opens("one", "a recovery code alone, of a first version", here.versions(1), 1)
        self._opens("three", "of a version two further, epoch 2", here.versions(3), 2)
        wrong = recovery_text(2)
        self._refused("secret", "another recovery code of this vault", here.versions(1), "recovery_code", wrong)
        other = recovery_text(vault=OTHER_VAULT)
        self._refused("vault", "a code of another vault", here.versions(1), "vault_mismatch", other)
        slot = here.slots[1]
        flipped_slot = slot | {"sealed": flipped(slot["sealed"], -1)}
        self._refused(
            "flipped", "a flipped bit in the slot", self._with("code flipped", kit, flipped_slot), "recovery_code"
        )
        later = slot | {"generation": 2}
        self._refused("generation", "another generation", self._with("code generation", kit, later), "recovery_code")
        self._refused("none", "no slot for the code that is listed", self._with("code none", kit), "keyring_missing")
        as_kit = kit | {"for": "recovery"}
        self._refused(
            "kit-slot", "the kit's slot in its place", self._with("code kit slot", kit, as_kit), "recovery_code"
        )
        pins = slot_content(self._begun, recovery_seed(1)) | {"public": seed("another")}
        slot = recovery_slot(self._group.frozen, "code pins", pins)
        self._refused(
            "pins", "the slot pins another public section", self._with("code pins other", kit, slot), "slot_mismatch"
        )
        boxless = self._with("code boxless", *here.slots, box_rows=[])
        self._refused("box-missing", "no box for the recovery code", boxless, "box_missing")

    def _with(self, name: str, *slots: Map, **options: Any) -> list[bytes]:
        return [_one_with(self._group, name, slots, **options).content]

    def _opens(self, name: str, title: str, versions: list[bytes], epoch: int) -> None:
        given = {"versions": versions, "code": recovery_text()}
        self._group.ok(f"recovers-{name}", RULE, title, "open_recovery", given, vault_key=vault_key(epoch))

    def _refused(self, name: str, title: str, versions: list[bytes], code: str, text: str | None = None) -> None:
        given = {"versions": versions, "code": text or recovery_text()}
        self._group.refused(f"recovery-{name}", RULE, title, "open_recovery", given, code)
