"""Vectors of media and bundles (§8c, §8d)."""

import unicodedata
from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.checkpoints import stamped
from making.containers import BUNDLE, MEDIA, MORE, MadeLog, flipped, frame, header, pack, plaintext, preamble, record
from making.keyrings import COST, Map
from making.people import OTHER_VAULT, VAULT, seed
from making.said import ident, retract
from making.sealing import PASSPHRASE, SALT, cost_bytes, stretched
from making.states import memory
from memseal.format import primitives

MEDIUM, BUNDLED = "vault-format §8c", "vault-format §8d"


def add(book: Book) -> None:
    _Media(book.group("media")).add()
    _Bundles(book.group("bundle")).add()


class _Media:
    _id, _key = seed("media", 16), seed("media key")
    _pieces = (b"the first piece of a picture", b"and the last")

    def __init__(self, group: Group) -> None:
        self._group = group
        self._begin = preamble(MEDIA, stream=self._id)
        self._records = [self._record(f"piece {index}", index, piece) for index, piece in enumerate(self._pieces)]

    def add(self) -> None:
        first, second = self._records
        whole = self._begin + first + second
        self._opens("two", "an item in two pieces", whole, b"".join(self._pieces))
        self._opens("empty", "an empty item has no record", self._begin, b"")
        large = bytes(range(256)) * 1024
        record_0 = self._record("large", 0, large)
        self._opens("large", "a piece of several chunks", self._begin + record_0, large)
        code = "media_mismatch"
        self._refused("cut", "the last piece is missing", self._begin + first, code)
        self._refused("empty-file", "all pieces are missing", self._begin, code)
        self._refused("digest", "the memory names another digest", whole, code, digest=seed("another"))
        self._refused("bytes", "the memory names another length", whole, code, bytes=39)
        self._refused("more", "a piece more", whole + self._record("more", 2, b"more"), code)
        other = preamble(MEDIA, stream=seed("another item", 16))
        records = [
            record(self._group.frozen, f"other {index}", self._key, other, index, plaintext(piece))
            for index, piece in enumerate(self._pieces)
        ]
        self._refused("other-id", "a sound container under another id", other + b"".join(records), code)
        self._refused("order", "the pieces in another order", self._begin + second + first, "record_order")
        self._refused("dropped", "the first piece is missing", self._begin + second, "record_order")
        self._refused("twice", "the first piece twice", self._begin + first + first, "record_order")
        self._refused("torn", "the last byte is missing", whole[:-1], "record_torn")
        self._refused(
            "header", "a flipped bit in the second header", flipped(whole, 64 + len(first) + 3), "record_header"
        )
        self._refused("flipped", "a flipped bit in the first piece", flipped(whole, 300), "record_sealed")
        self._refused("key", "another key", whole, "record_sealed", key=seed("another media key"))
        reframed = frame(0, second[12:]) + frame(1, first[12:])
        self._refused(
            "reframed", "the pieces in another order, with headers for it", self._begin + reframed, "record_sealed"
        )
        unpadded = record(self._group.frozen, "unpadded", self._key, self._begin, 0, plaintext(b"x", filler=b"\1"))
        self._refused("padding", "the padding is not zero", self._begin + unpadded, "record_padding")
        long = header((64 << 20) + 1, 0) + bytes(30)
        self._refused("length", "a length beyond 64 MiB", self._begin + long, "record_length")
        rest = first + second
        self._refused("kind", "a checkpoint's part in its place", preamble(3, stream=self._id) + rest, "kind_mismatch")
        self._refused(
            "vault", "of another vault", preamble(MEDIA, stream=self._id, vault=OTHER_VAULT) + rest, "vault_mismatch"
        )
        self._refused(
            "newer", "of a newer format", preamble(MEDIA, stream=self._id, version=2) + rest, "version_unknown"
        )
        self._refused("short", "63 bytes", whole[:63], "preamble_short")

    def _record(self, name: str, index: int, piece: bytes) -> bytes:
        return record(self._group.frozen, name, self._key, self._begin, index, plaintext(piece))

    def _given(self, content: bytes, item: bytes, **changes: Any) -> Map:
        named = {"id": self._id, "key": self._key, "bytes": len(item), "digest": sha256(item).digest()}
        return {"content": content, "vault_id": VAULT, "named": named | changes}

    def _opens(self, name: str, title: str, content: bytes, item: bytes) -> None:
        given = self._given(content, item)
        self._group.ok(name, MEDIUM, title, "open_media", given, digest=sha256(item).digest())

    def _refused(self, name: str, title: str, content: bytes, code: str, **changes: Any) -> None:
        given = self._given(content, b"".join(self._pieces), **changes)
        self._group.refused(name, MEDIUM, title, "open_media", given, code)


A, B, C = stamped("a", 1), stamped("b", 2), stamped("c", 2, 1)
OUT = retract("r", "b") | {"stamp": [9, 0]}
METAS: list[Map] = [{"operations": [A, B]}, {"operations": [C]}, {"operations": [OUT]}]


class _Bundles:
    _key = seed("bundle key")

    def __init__(self, group: Group) -> None:
        self._group = group
        self._begin = preamble(BUNDLE, stream=seed("bundle", 16))
        self._slot = self._record_0("slot")
        self._run = self._made("sound", METAS)

    def add(self) -> None:
        whole = self._run.whole()
        both = [memory(A), memory(B, active=False, retracted=True), memory(C)]
        self._opens("three", "a bundle of three records", whole, both)
        self._opens("nfd", "its passphrase in NFD", whole, both, unicodedata.normalize("NFD", PASSPHRASE))
        nothing = self._made("nothing", [{"operations": []}])
        self._opens("nothing", "a bundle of nothing", nothing.whole(), [])
        erased = {"op": "erase", "id": ident("x"), "targets": [ident("a")], "at": 0, "stamp": [12, 0]}
        gone = self._made("erased", [{"operations": [erased, B]}])
        self._opens("erased", "an erase in a bundle", gone.whole(), [memory(B)])
        self._refused("passphrase", "another passphrase", whole, "bundle_passphrase", PASSPHRASE + "x")
        self._refused("passphrase-empty", "no passphrase", whole, "bundle_passphrase", "")
        self._add_slots()
        self._add_preambles()
        self._add_records(both)

    def _add_slots(self) -> None:
        good: Map = self._fields("fields")
        rest = b"".join(self._run.records[1:])
        for name, title, value, code in (
            ("salt", "a salt of 31 bytes", good | {"salt": bytes(31)}, "bundle_invalid"),
            ("salt-missing", "no salt", {key: good[key] for key in ("cost", "sealed")}, "bundle_invalid"),
            ("sealed-missing", "nothing sealed", {key: good[key] for key in ("cost", "salt")}, "bundle_invalid"),
            ("sealed-short", "sealed a byte short", good | {"sealed": good["sealed"][:-1]}, "bundle_invalid"),
            (
                "cost-field",
                "a cost with a field that is not known",
                good | {"cost": COST | {"newer": 1}},
                "bundle_invalid",
            ),
            ("cost-missing", "no cost", {key: good[key] for key in ("salt", "sealed")}, "bundle_invalid"),
            ("array", "an array", [good], "bundle_invalid"),
            ("kdf", "a derivation that is not known", good | {"cost": COST | {"name": "scrypt"}}, "kdf_unknown"),
            ("floor", "a cost under the floor", good | {"cost": COST | {"passes": 2}}, "kdf_floor"),
            ("ceiling", "a cost over the ceiling", good | {"cost": COST | {"lanes": 17}}, "kdf_ceiling"),
            ("salt-other", "another salt", good | {"salt": seed("another salt")}, "bundle_passphrase"),
            (
                "flipped",
                "a flipped bit in the sealed key",
                good | {"sealed": flipped(good["sealed"], 60)},
                "bundle_passphrase",
            ),
            (
                "cost-other",
                "another cost than it was sealed at",
                good | {"cost": COST | {"passes": 4}},
                "bundle_passphrase",
            ),
        ):
            content = self._begin + frame(0, pack(value)) + rest
            self._refused(f"slot-{name}", f"record 0 has {title}", content, code)
        content = self._begin + frame(0, b"\xc1") + rest
        self._refused("slot-no-msgpack", "record 0 is no msgpack", content, "bundle_invalid")
        other = preamble(BUNDLE, stream=seed("another bundle", 16))
        self._refused("slot-moved", "the slot of another bundle", other + self._slot + rest, "bundle_passphrase")
        elsewhere = preamble(BUNDLE, stream=seed("bundle", 16), vault=OTHER_VAULT)
        self._refused(
            "slot-vault", "the slot of another vault's bundle", elsewhere + self._slot + rest, "bundle_passphrase"
        )

    def _add_preambles(self) -> None:
        rest = b"".join(self._run.records)
        stream = seed("bundle", 16)
        for name, title, begin, code in (
            ("kind", "a log's preamble", preamble(2, stream=stream), "kind_mismatch"),
            ("newer", "a newer format", preamble(BUNDLE, stream=stream, version=2), "version_unknown"),
            ("suite", "another suite", preamble(BUNDLE, stream=stream, suite=2), "suite_unknown"),
            ("damaged", "a flipped bit", flipped(self._begin, 20), "preamble_damaged"),
            ("epoch", "an epoch", preamble(BUNDLE, stream=stream, epoch=1), "bundle_invalid"),
            ("nonce", "a nonce", preamble(BUNDLE, stream=stream, nonce=b"\1" + bytes(11)), "bundle_invalid"),
        ):
            self._refused(f"preamble-{name}", f"its preamble has {title}", begin + rest, code)
        self._refused(
            "slot-header", "a flipped bit in the first header", flipped(self._run.whole(), 65), "record_header"
        )

    def _add_records(self, both: list[Map]) -> None:
        slot, first, second, third = self._run.records
        a, b, c = both
        present = memory(B)

        def found(name: str, title: str, records: list[bytes], codes: str, memories: list[Map]) -> None:
            given = {"content": self._run.whole(records), "passphrase": PASSPHRASE}
            self._group.found(name, BUNDLED, title, "open_bundle", given, codes, memories=_sorted(memories))

        found("torn", "the last record is missing", [slot, first, second], "record_torn", [a, present, c])
        found("torn-all", "all records but the first are missing", [slot], "record_torn", [])
        found(
            "torn-inside", "the last record is cut", [slot, first, second, third[:-1]], "record_torn", [a, present, c]
        )
        found(
            "flipped",
            "a flipped byte in the second record",
            [slot, first, flipped(second, 200), third],
            "record_sealed",
            [a, b],
        )
        found("dropped", "the second record was cut out", [slot, first, third], "record_order", [a, b])
        header_gone = flipped(second, 1)
        found(
            "header", "a flipped bit in the second header", [slot, first, header_gone, third], "record_header", [a, b]
        )
        other = self._made("other", [{"operations": [stamped("d")]}, METAS[1], METAS[2]])
        spliced = [slot, first, other.records[2], third]
        found("spliced", "a record of another bundle under the same key", spliced, "chain_broken", both)
        wrong = self._made("wrong", [{"operations": [A | {"kind": ""}, B]}])
        given = {"content": wrong.whole(), "passphrase": PASSPHRASE}
        title = "an operation with a wrong field"
        self._group.found("operation", BUNDLED, title, "open_bundle", given, "operation_invalid", memories=[present])

    def _fields(self, name: str) -> Map:
        begin = self._begin
        ikm = stretched(PASSPHRASE, SALT)
        key = primitives.derive(ikm, SALT, "memseal/v1/bundle", VAULT, begin[32:48], cost_bytes())
        sealed = self._group.frozen.sealed(name, key, b"memseal/v1/bundle-slot" + begin, self._key)
        return {"salt": SALT, "cost": COST, "sealed": sealed}

    def _record_0(self, name: str) -> bytes:
        return frame(0, pack(self._fields(name)))

    def _made(self, name: str, metas: list[Map]) -> MadeLog:
        made = MadeLog(self._group.frozen, name, self._begin, self._key)
        made.take(self._slot)
        for number, meta in enumerate(metas):
            made.put(meta, signer=None, flags=0 if number == len(metas) - 1 else MORE)
        return made

    def _opens(self, name: str, title: str, content: bytes, memories: list[Map], words: str = PASSPHRASE) -> None:
        given = {"content": content, "passphrase": words}
        self._group.ok(name, BUNDLED, title, "open_bundle", given, memories=_sorted(memories))

    def _refused(self, name: str, title: str, content: bytes, code: str, words: str = PASSPHRASE) -> None:
        given = {"content": content, "passphrase": words}
        self._group.refused(name, BUNDLED, title, "open_bundle", given, code)


def _sorted(memories: list[Map]) -> list[Map]:
    return sorted(memories, key=lambda each: each["id"])
