"""Vectors of checkpoints: manifests, parts, and the base of a log that was cut (§5a, §8b)."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.containers import (
    CHECKPOINT,
    MORE,
    MadeLog,
    content,
    context,
    crc,
    flipped,
    frame,
    log_preamble,
    pack,
    plaintext,
    preamble,
    u32,
    u64,
)
from making.keyrings import Map, Version, floor_row, follow, sets, vault_key
from making.people import ANN, EVE, OTHER_VAULT, VAULT, seed
from making.said import remember
from making.world import World, world
from memseal.format import primitives

RULE, BASE = "vault-format §8b", "vault-format §5a"
CHECKPOINT_ID = seed("checkpoint", 16)
ROWS = [floor_row("a", 4, 1), floor_row("b", 2, 1)]


def add(book: Book) -> None:
    group, here = book.group("checkpoint"), world(book)
    parts = _Parts(group)
    parts.add()
    _Manifests(group, here).add()
    _Bases(group, here).add()


def part_preamble(name: str) -> bytes:
    return preamble(CHECKPOINT, stream=seed(f"part {name}", 16))


def run(group: Group, name: str, begin: bytes, key: bytes, metas: Sequence[Map], **options: Any) -> MadeLog:
    """Records that are not signed, each but the last with flag 2."""
    made = MadeLog(group.frozen, name, begin, key)
    for number, meta in enumerate(metas):
        last = number == len(metas) - 1
        made.put(meta, **({"signer": None, "flags": 0 if last else MORE} | options))
    return made


def row_of(name: str, container: bytes, records: int, **changes: Any) -> list[Any]:
    fields = {
        "id": seed(f"part {name}", 16),
        "key": seed(f"part key {name}"),
        "length": len(container),
        "records": records,
        "chain": chain_of(container),
    } | changes
    return list(fields.values())


def chain_of(container: bytes) -> bytes:
    """The chain after the last record, over the bytes as stored."""
    chain, offset = sha256(container[:64]).digest(), 64
    while offset < len(container):
        end = offset + 12 + int.from_bytes(container[offset : offset + 4], "big")
        chain = sha256(chain + container[offset:end]).digest()
        offset = end
    return chain


def stamped(name: str, counter: int = 1, position: int = 0) -> Map:
    return remember(name, stamp=[counter, position])


METAS = [{"operations": [stamped("a"), stamped("b", 2)]}, {"operations": [stamped("c", 7)]}]


def tagged_row(row: Sequence[Any]) -> list[Any]:
    return [{"bytes": value.hex()} if isinstance(value, bytes) else value for value in row]


class _Parts:
    def __init__(self, group: Group) -> None:
        self._group = group
        self._part = self._made("sound", METAS)

    def add(self) -> None:
        part = self._part
        whole = part.whole()
        row = row_of("sound", whole, 2)
        self._read("part", "a part of two records", whole, row, 2, 3)
        none = self._made("none", [{"operations": []}])
        self._read("part-empty", "a part without operations", none.whole(), row_of("none", none.whole(), 1), 1, 0)
        self._read("part-missing", "a part that is not there", None, row, 0, 0, "checkpoint_missing")
        damaged = flipped(whole, 700)
        codes = "record_sealed"
        self._read("part-damaged", "a flipped byte in the first record: the second is read", damaged, row, 1, 1, codes)
        longer = row_of("sound", whole, 2, length=len(whole) + 1)
        self._read("part-length", "the manifest names another length", whole, longer, 2, 3, "checkpoint_mismatch")
        other = row_of("sound", whole, 2, chain=seed("another"))
        self._read("part-other-chain", "the manifest names another chain", whole, other, 2, 3, "checkpoint_mismatch")
        more = row_of("sound", whole, 3)
        self._read(
            "part-records", "the manifest names another number of records", whole, more, 2, 3, "checkpoint_mismatch"
        )
        self._add_records()
        self._add_preambles()

    def _add_records(self) -> None:
        part = self._part
        torn = part.whole(part.records[:1])
        self._read(
            "part-torn",
            "its last record is missing, and its row says so",
            torn,
            row_of("sound", torn, 1),
            1,
            2,
            "record_torn",
        )
        signed = MadeLog(self._group.frozen, "part signed", part_preamble("signed"), seed("part key signed"))
        signed.put(METAS[0], signer=ANN.sign, flags=MORE)
        signed.put(METAS[1], signer=None)
        row = row_of("signed", signed.whole(), 2)
        self._read("part-signed", "a record that is signed", signed.whole(), row, 1, 1, "checkpoint_invalid")
        bare = {key: value for key, value in METAS[0]["operations"][0].items() if key != "stamp"}
        unstamped = self._made("unstamped", [{"operations": [bare, stamped("d")]}])
        row = row_of("unstamped", unstamped.whole(), 1)
        self._read("part-no-stamp", "an operation without a stamp", unstamped.whole(), row, 1, 1, "checkpoint_invalid")
        late = self._made("late", [{"operations": [stamped("a", 10), stamped("b", 11)]}])
        row = row_of("late", late.whole(), 1)
        title = "a stamp above the manifest's counter"
        self._read("part-stamp", title, late.whole(), row, 1, 1, "stamp_invalid")
        wrong = self._made("wrong", [{"operations": [stamped("a") | {"kind": ""}, stamped("b")]}])
        row = row_of("wrong", wrong.whole(), 1)
        self._read("part-operation", "an operation with a wrong field", wrong.whole(), row, 1, 1, "operation_invalid")

    def _add_preambles(self) -> None:
        rest = self._part.whole()[64:]

        def refused(name: str, title: str, begin: bytes, code: str) -> None:
            self._read(f"part-{name}", title, begin + rest, row_of("sound", begin + rest, 2), 0, 0, code)

        refused("kind", "a media item in a part's place", preamble(4, stream=seed("part sound", 16)), "kind_mismatch")
        refused(
            "vault",
            "a part of another vault",
            preamble(CHECKPOINT, stream=seed("part sound", 16), vault=OTHER_VAULT),
            "vault_mismatch",
        )
        refused(
            "newer",
            "a part of a newer format",
            preamble(CHECKPOINT, stream=seed("part sound", 16), version=2),
            "version_unknown",
        )

    def _made(self, name: str, metas: Sequence[Map], **options: Any) -> MadeLog:
        return run(self._group, f"part {name}", part_preamble(name), seed(f"part key {name}"), metas, **options)

    def _read(
        self, name: str, title: str, whole: bytes | None, row: list[Any], records: int, operations: int, codes: str = ""
    ) -> None:
        given = {"content": whole, "vault_id": VAULT, "row": tagged_row(row), "counter": 10}
        if codes:
            self._group.found(name, RULE, title, "open_part", given, codes, records=records, operations=operations)
        else:
            self._group.ok(name, RULE, title, "open_part", given, records=records, operations=operations)


PART_ROWS = [row_of(name, bytes(1172), 1, chain=seed(f"chain {name}")) for name in ("one", "two")]
META: Map = {
    "made_by": ANN.public_sign,
    "counter": 4,
    "logs": [[row[0], *row[4:]] for row in ROWS],
    "parts": PART_ROWS,
}


class _Manifests:
    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._here = here

    def add(self) -> None:
        self._opens("manifest", "a manifest of two logs and two parts", self._made("sound"))
        nothing = META | {"logs": [], "parts": [], "counter": 0}
        version = self._floor(self._made("nothing", nothing), logs=[], parts=[])
        self._opens("manifest-nothing", "a manifest of nothing", self._made_before, version, nothing)
        unknown = META | {"newer": 1}
        self._opens("manifest-unknown", "a field of newer software", self._made("unknown", unknown))
        old = self._begin(epoch=1, began=self._here.one.digest)
        title = "a manifest that was made in an earlier epoch"
        self._opens("manifest-epoch", title, self._made("epoch 1", begin=old, key=vault_key(1)))
        sound = self._made("again")
        self._refused("manifest-missing", "the manifest is not there", None, "checkpoint_missing", self._floor(sound))
        self._refused(
            "manifest-digest",
            "another manifest than the floor names",
            sound,
            "checkpoint_mismatch",
            self._floor(sound + b"."),
        )
        self._refused(
            "manifest-flipped",
            "a flipped bit in its record",
            flipped(sound, 500),
            "checkpoint_mismatch",
            self._floor(sound),
        )
        self._add_floors(sound)
        self._add_forms()
        self._add_preambles()

    def _add_floors(self, sound: bytes) -> None:
        ids = [row[0] for row in PART_ROWS]
        moved = [*ROWS[0][:4], ROWS[0][4] + 1108, 5, seed("chain a 5"), 5]

        def refused(name: str, title: str, **changes: Any) -> None:
            version = self._floor(sound, **changes)
            self._refused(f"manifest-{name}", title, sound, "checkpoint_mismatch", version)

        refused("parts-order", "the floor names the parts in another order", parts=ids[::-1])
        refused("parts-fewer", "the floor names one part less", parts=ids[:1])
        refused("parts-more", "the floor names one part more", parts=[*ids, seed("part three", 16)])
        refused("parts-other", "the floor names another part", parts=[ids[0], seed("part three", 16)])
        refused("logs-order", "the floor has the rows in another order", logs=ROWS[::-1])
        refused("logs-fewer", "the floor has one row less", logs=ROWS[:1])
        refused("logs-moved", "the floor stands elsewhere in a log", logs=[moved, ROWS[1]])
        refused("logs-chain", "the floor has another chain", logs=[[*ROWS[0][:6], seed("chain"), 4], ROWS[1]])
        refused("logs-counter", "the floor has another counter", logs=[[*ROWS[0][:7], 9], ROWS[1]])
        elsewhere = [[row[0], 1, row[2], 2, *row[4:]] for row in ROWS]
        version = self._floor(sound, logs=elsewhere)
        self._opens("manifest-segment", "the floor's segments are no business of the manifest", sound, version)

    def _add_forms(self) -> None:
        begin, nothing = self._begin(), META | {"logs": [], "parts": []}
        forms: dict[str, tuple[str, Map, str]] = {
            "not-signed": ("it is not signed", {"signer": None}, "checkpoint_invalid"),
            "more": ("it says that more records follow", {"flags": MORE}, "checkpoint_invalid"),
            "chain": ("it has another chain than a first record", {"chain": seed("chain")}, "checkpoint_invalid"),
            "stranger": ("it is signed by another than it says", {"signer": EVE.sign}, "signature_invalid"),
            "other-index": ("it is signed for another index", {"signed_index": 1}, "signature_invalid"),
        }
        for name, (title, options, code) in forms.items():
            made = self._made(name, **options)
            self._refused(f"manifest-{name}", title, made, code, self._floor(made))
        foreign = META | {"made_by": EVE.public_sign}
        made = self._made("foreign", foreign, signer=EVE.sign)
        title = "it is made and signed by a device that is not listed"
        self._refused("manifest-foreign", title, made, "signature_invalid", self._floor(made))
        embedding = {"name": "embedding", "type": "f2", "width": 2, "rows": 1, "bytes": 4, "model": "a"}
        made = self._made("embedding", META | {"columns": [embedding]}, columns=bytes(4))
        self._refused("manifest-columns", "it has a column", made, "checkpoint_invalid", self._floor(made))
        two = self._made("first of two") + frame(1, bytes(1096))
        self._refused("manifest-two", "a second record", two, "checkpoint_invalid", self._floor(two))
        self._refused("manifest-none", "no record", begin, "checkpoint_invalid", self._floor(begin))
        torn = self._made("torn")[:-1]
        self._refused("manifest-torn", "its record is cut", torn, "record_torn", self._floor(torn))
        made = self._made("other key", key=vault_key(1))
        self._refused("manifest-key", "sealed under the key of another epoch", made, "record_sealed", self._floor(made))
        for field, wrong in (("made_by", bytes(31)), ("counter", "9"), ("logs", {}), ("parts", None)):
            name = field.replace("_", "-")
            made = self._made(f"wrong {name}", META | {field: wrong})
            self._refused(
                f"manifest-wrong-{name}",
                f"{field} is not what it must be",
                made,
                "checkpoint_invalid",
                self._floor(made),
            )
        for name, title, meta in (
            ("above", "a counter above those of its logs", META | {"counter": 5}),
            ("of-nothing", "a counter above 0 without logs", nothing | {"counter": 1}),
        ):
            made = self._made(f"counter {name}", meta)
            version = self._floor(made) if meta["logs"] else self._floor(made, logs=[], parts=[])
            self._refused(f"manifest-counter-{name}", title, made, "checkpoint_invalid", version)
        for name, title, field, row in (
            ("log-short", "a log's row of four values", "logs", META["logs"][0][:4]),
            ("part-key", "a part's key of 31 bytes", "parts", [PART_ROWS[0][0], bytes(31), *PART_ROWS[0][2:]]),
            ("part-chain", "a part's chain of 31 bytes", "parts", [*PART_ROWS[0][:4], bytes(31)]),
        ):
            made = self._made(f"row {name}", META | {field: [row, META[field][1]]})
            self._refused(f"manifest-{name}", title, made, "checkpoint_invalid", self._floor(made))

    def _add_preambles(self) -> None:
        began = self._here.three.digest
        for name, title, begin, code in (
            (
                "kind",
                "a log in its place",
                preamble(2, epoch=2, stream=CHECKPOINT_ID, nonce=began[:8] + bytes(4)),
                "kind_mismatch",
            ),
            ("vault", "of another vault", self._begin(vault=OTHER_VAULT), "vault_mismatch"),
            ("newer", "of a newer format", self._begin(version=2), "version_unknown"),
            ("epoch-unknown", "of an epoch that the keyring does not have", self._begin(epoch=3), "epoch_mismatch"),
        ):
            made = self._made(f"begin {name}", begin=begin)
            self._refused(
                f"manifest-{name}",
                f"a manifest {title}" if title.startswith("of") else title,
                made,
                code,
                self._floor(made),
            )

    def _begin(self, epoch: int = 2, began: bytes | None = None, **changes: Any) -> bytes:
        nonce = (began or self._here.three.digest)[:8] + bytes(4)
        return preamble(CHECKPOINT, **({"epoch": epoch, "stream": CHECKPOINT_ID, "nonce": nonce} | changes))

    def _made(
        self, name: str, meta: Map = META, *, begin: bytes | None = None, key: bytes | None = None, **options: Any
    ) -> bytes:
        place = begin or self._begin()
        seal_key = primitives.derive(key or vault_key(2), b"", "memseal/v1/checkpoint", VAULT, CHECKPOINT_ID)
        index = options.pop("signed_index", 0)
        usual = {"chain": sha256(place).digest(), "preamble": place, "index": index}
        body = content(pack(meta), **(usual | options))
        sealed = self._group.frozen.sealed(f"manifest {name}", seal_key, context(place, 0), plaintext(body))
        self._made_before = place + frame(0, sealed)
        return self._made_before

    def _floor(self, manifest: bytes, **changes: Any) -> Version:
        floor = {
            "checkpoint": CHECKPOINT_ID,
            "digest": sha256(manifest).digest(),
            "parts": [row[0] for row in PART_ROWS],
            "logs": ROWS,
        }
        return follow(self._here.three, sets("floor", to=floor | changes))

    def _given(self, made: bytes | None, version: Version) -> Map:
        here = self._here
        versions = [each.stripped() for each in (here.one, here.two, here.three, version)]
        keys = [[epoch, {"bytes": vault_key(epoch).hex()}] for epoch in (1, 2)]
        return {"content": made, "versions": versions, "vault_keys": keys}

    def _opens(self, name: str, title: str, made: bytes, version: Version | None = None, meta: Map = META) -> None:
        gives = {
            "made_by": meta["made_by"],
            "counter": meta["counter"],
            "logs": [tagged_row(row) for row in meta["logs"]],
            "parts": [tagged_row(row) for row in meta["parts"]],
        }
        given = self._given(made, version or self._floor(made))
        self._group.ok(name, RULE, title, "open_manifest", given, **gives)

    def _refused(self, name: str, title: str, made: bytes | None, code: str, version: Version) -> None:
        self._group.refused(name, RULE, title, "open_manifest", self._given(made, version), code)


class _Bases:
    """The log of the floor's first row, cut there."""

    def __init__(self, group: Group, here: World) -> None:
        self._group = group
        self._place = log_preamble(ANN.public_sign, 1, here.one.digest)
        nonce = self._place[48:60]
        self._row = [self._place[32:48], 1, nonce, 2, 64 + 4 * 1108, 4, seed("chain 4"), 11]
        floor = {"checkpoint": CHECKPOINT_ID, "digest": seed("manifest"), "parts": [], "logs": [self._row]}
        first = follow(here.three, sets("floor", to=floor))
        later = [*self._row[:4], 64 + 9 * 1108, 9, seed("chain 9"), 20]
        onward = floor | {"checkpoint": seed("another checkpoint", 16), "logs": [later]}
        second = follow(first, sets("floor", to=onward))
        self._later = later
        self._versions = [each.stripped() for each in (here.one, here.two, here.three, first, second)]

    def add(self) -> None:
        self._opens("base", "a base at the newest floor", self._later)
        self._opens("base-older", "a base at a floor before the newest", self._row)
        good = self._base(self._row)
        for position, name in ((4, "length"), (12, "records"), (20, "chain"), (50, "counter"), (59, "crc")):
            self._refused(
                f"base-flipped-{name}", f"a flipped bit in the {name}", flipped(good, position), "base_damaged"
            )
        self._refused("base-cut", "59 bytes of a base", good[:59], "base_damaged")
        for field, title, place, value in (
            ("length", "another length", 4, 5000),
            ("records", "another number of records", 5, 5),
            ("chain", "another chain", 6, seed("another chain")),
            ("counter", "another counter", 7, 12),
        ):
            row = list(self._row)
            row[place] = value
            self._refused(f"base-other-{field}", f"{title} than the floor's", self._base(row), "base_unknown")
        other = log_preamble(ANN.public_sign, 1, self._place[48:56] + bytes(24), random=b"othr")
        self._refused("base-stream", "of a stream that no floor lists", good, "base_unknown", other)
        mixed = [*self._row[:4], self._later[4], *self._row[5:]]
        self._refused("base-mixed", "the length of one floor, the rest of another", self._base(mixed), "base_unknown")
        given = self._given(good, self._place) | {"versions": self._versions[:3]}
        self._group.refused("base-no-floor", BASE, "a keyring without a floor", "open_base", given, "base_unknown")

    def _base(self, row: list[Any]) -> bytes:
        head = b"\xff\xff\xff\xff" + u64(row[4]) + u32(row[5]) + row[6] + u64(row[7])
        return head + crc(head)

    def _given(self, base: bytes, place: bytes) -> Map:
        return {"content": place + base, "versions": self._versions}

    def _opens(self, name: str, title: str, row: list[Any]) -> None:
        gives = {"length": row[4], "records": row[5], "chain": row[6], "counter": row[7]}
        self._group.ok(name, BASE, title, "open_base", self._given(self._base(row), self._place), **gives)

    def _refused(self, name: str, title: str, base: bytes, code: str, place: bytes | None = None) -> None:
        given = self._given(base, place or self._place)
        self._group.refused(name, BASE, title, "open_base", given, code)
