"""Vectors of whole vaults: folders with everything in them (§1), and what one wrong file does."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.checkpoints import row_of, run
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
from making.devices import file_of, marks, sealed_set, slot
from making.keyrings import Map, Version, changed, ends, epoch_key, new_epoch, next_public, sets, vault_key
from making.people import ANN, BEN, EVE, OTHER_VAULT, VAULT, Device, seed
from making.said import remember, retract, supersede
from making.sealing import PASSPHRASE, whole
from making.states import memory
from making.world import World, world
from memseal.format import primitives

FOLDER = "vault-format §1"
Files = dict[str, bytes]


def log_key(preamble: bytes, epoch: int) -> bytes:
    return primitives.derive(vault_key(epoch), b"", "memseal/v1/log", VAULT, preamble[32:48])


def log_name(log: MadeLog) -> str:
    return f"logs/{log.preamble[32:48].hex()}.mseal"


def meta(previous: int, *operations: Map, heads: list[Any] | None = None) -> Map:
    return {"previous": previous, "heads": heads or [], "operations": list(operations)}


def head_of(log: MadeLog, counter: int, records: int | None = None) -> list[Any]:
    """What a record of another log says of this one, after its first records."""
    count = len(log.records) if records is None else records
    return [log.preamble[32:48], count - 1, log.chains[count], counter]


A, B, C, D = remember("a"), remember("b", tags=["work"]), remember("c"), supersede("d", "a")
OUT = retract("r", "c")


@dataclass(frozen=True)
class Standing:
    """Ann's device in the small vault: her file, the keyring, Ann's and Ben's logs."""

    world: World
    device: bytes
    ann: MadeLog
    ben: MadeLog
    later: MadeLog

    def keyring(self, count: int = 3) -> Files:
        versions = self.world.versions(count)
        return {f"keyring/{number:08d}.mseal": content for number, content in enumerate(versions, 1)}

    def files(self) -> Files:
        logs = {log_name(log): log.whole() for log in (self.ann, self.ben, self.later)}
        return {"device.mseal": self.device, **self.keyring(), **logs}

    def memories(self) -> list[Map]:
        return [
            memory(A, active=False, superseded_by=D["id"]),
            memory(B),
            memory(C, active=False, retracted=True),
            memory(D),
        ]


@lru_cache(maxsize=1)
def standing(book: Book) -> Standing:
    here, frozen = world(book), book.group("vault").frozen
    body = sealed_set(frozen, "key set", PASSPHRASE, "current", KEYS)
    device = file_of([slot("current")], [body, marks(frozen, "marks", ANN, 2)])
    ann = made_log(frozen, "ann", ANN, 1, here.one)
    ann.put(meta(0, A))
    ann.put(meta(1, B))
    ben = made_log(frozen, "ben", BEN, 1, here.one)
    ben.put(meta(0, C, heads=[head_of(ann, 1, 1)]), signer=BEN.sign)
    ben.put(meta(2, D, heads=[head_of(ann, 2)]), signer=BEN.sign)
    later = made_log(frozen, "later", ANN, 2, here.three)
    later.put(meta(2, OUT, heads=[head_of(ann, 2), head_of(ben, 3)]))
    return Standing(here, device, ann, ben, later)


KEYS: Map = {"sign": ANN.sign, "wrap": ANN.wrap, "local": ANN.local, "local_before": None}


def made_log(frozen: Any, name: str, owner: Device, epoch: int, began: Version, **options: Any) -> MadeLog:
    begin = log_preamble(owner.public_sign, epoch, began.digest, **options)
    return MadeLog(frozen, name, begin, log_key(begin, epoch))


def add(book: Book) -> None:
    group, here = book.group("vault"), standing(book)
    _Vaults(group, here).add()
    lowered(book).add()


class _Vaults:
    def __init__(self, group: Group, here: Standing) -> None:
        self._group = group
        self._here = here

    def add(self) -> None:
        here = self._here
        files, memories = here.files(), here.memories()
        self._opens("three-logs", "two devices, two epochs, three logs", files, memories)
        alone = {"device.mseal": here.device, **here.keyring(1), log_name(here.ann): here.ann.whole()}
        self._opens("one-log", "one device with one log", alone, [memory(A), memory(B)])
        empty = {"device.mseal": here.device, **here.keyring(1)}
        self._opens("empty", "a vault without a log", empty, [])
        more = {
            "cache/any.bin": b"\0",
            "logs/readme.txt": b"text",
            "lock": b"",
            "other/file": b"x",
            f"logs/{'A' * 32}.mseal": b"x",
        }
        self._opens("other-files", "files with other names are left alone", files | more, memories)
        own = {f"traces/{'0' * 24}.mseal": b"damaged", f"sessions/{'0' * 32}.mseal": b"damaged"}
        self._opens("own-files", "damage of traces and kept sessions is none of the vault's", files | own, memories)
        self._refused("passphrase", "another passphrase", files, "passphrase_wrong", words="another")
        self._refused("device-missing", "no device file", without(files, "device.mseal"), "device_file")
        self._add_keyrings(files)
        self._add_logs(files)
        self._add_writes(files)
        self._add_heads(files)
        self._add_ended(files)

    def _add_keyrings(self, files: Files) -> None:
        here, names = self._here.world, [f"keyring/{number:08d}.mseal" for number in (1, 2, 3, 4)]
        self._refused("keyring-none", "no keyring", without(files, *names), "keyring_missing")
        self._refused("keyring-first", "version 1 is missing", without(files, names[0]), "keyring_missing")
        self._refused("keyring-middle", "version 2 is missing", without(files, names[1]), "keyring_missing")
        stripped = files | {names[2]: here.three.stripped()}
        self._refused("keyring-stripped", "the newest version is stripped", stripped, "keyring_missing")
        again = files | {names[2]: here.two.content}
        self._refused("keyring-again", "version 2 under the name of version 3", again, "keyring_chain")
        cut = files | {names[0]: here.one.stripped()[:-1]}
        self._refused("keyring-cut", "version 1 is cut", cut, "record_torn")
        damaged = files | {names[2]: flipped(here.three.content, -1)}
        self._refused("keyring-damaged", "the last byte of the newest version is flipped", damaged, "keyring_sealed")
        public = changed(next_public(here.three), [sets("newer", to=1)])
        signers = (ANN.sign, epoch_key(2))
        boxless = whole(self._group.frozen, "boxless", public, signers, here.slots, box_rows=[], history=[1])
        more = files | {names[2]: here.three.stripped(), names[3]: boxless.content}
        self._refused("keyring-boxless", "the newest version has no box for this device", more, "box_missing")
        log = files | {names[2]: self._here.ann.whole()}
        self._refused("keyring-log", "a log in the place of a keyring version", log, "kind_mismatch")

    def _add_logs(self, files: Files) -> None:
        here, frozen = self._here, self._group.frozen
        memories = here.memories()
        ben, ann = here.ben, here.ann
        alone = [memory(A), memory(B)]
        rest = without(files, log_name(ben), log_name(here.later))
        renamed = rest | {f"logs/{seed('another', 16).hex()}.mseal": ben.whole()}
        self._found("log-renamed", "a log under another name", renamed, "stream_mismatch", alone)
        eve = made_log(frozen, "eve", EVE, 1, here.world.one)
        eve.put(meta(0, C), signer=EVE.sign)
        self._found(
            "log-stranger",
            "a log of a device that is not listed",
            files | {log_name(eve): eve.whole()},
            "stream_mismatch",
            memories,
        )
        ahead = made_log(frozen, "ahead", ANN, 3, here.world.three, random=b"ahea")
        self._found(
            "log-ahead",
            "a log of an epoch to come",
            files | {log_name(ahead): ahead.whole()},
            "keyring_behind",
            memories,
        )
        foreign = made_log(frozen, "foreign", EVE, 1, here.world.one, vault=OTHER_VAULT)
        self._found(
            "log-foreign",
            "a log of another vault",
            files | {log_name(foreign): foreign.whole()},
            "vault_mismatch",
            memories,
        )
        device = files | {f"logs/{ANN.id.hex()}.mseal": here.device}
        self._found("log-device", "a device file among the logs", device, "kind_mismatch", memories)
        newer = preamble(2, epoch=1, stream=seed("newer", 16), version=2) + b"what version 2 is made of"
        title = "a log of a newer format is left alone, the others are read"
        self._found(
            "log-newer", title, files | {f"logs/{seed('newer', 16).hex()}.mseal": newer}, "version_unknown", memories
        )
        damaged = files | {log_name(ann): flipped(ann.whole(), 40)}
        title = "a flipped bit in a log's preamble: the log is not read, and others name what is missing"
        left = [memory(C, active=False, retracted=True), memory(D)]
        self._found("log-damaged", title, damaged, "preamble_damaged withheld", left)
        record = files | {log_name(ben): ben.whole([flipped(ben.records[0], 99), ben.records[1]])}
        title = "a flipped byte in a record costs it alone"
        left = [memory(A, active=False, superseded_by=D["id"]), memory(B), memory(D)]
        self._found("log-record", title, record, "record_sealed", left)
        dropped = files | {log_name(ben): ben.whole([ben.records[1]])}
        self._found("log-dropped", "a record was cut out", dropped, "record_order", left)
        torn = rest | {log_name(ann): ann.whole()[:-1]}
        self._found("log-torn", "the last record is cut", torn, "record_torn", [memory(A)])
        public = changed(next_public(here.world.three), [sets("newer", to=1)])
        forgotten = whole(frozen, "forgotten", public, (ANN.sign, epoch_key(2)), here.world.slots, history=[])
        files_4 = files | {
            "keyring/00000003.mseal": here.world.three.stripped(),
            "keyring/00000004.mseal": forgotten.content,
        }
        self._found(
            "log-forgotten",
            "the newest version's history lacks the epoch of two logs",
            files_4,
            "epoch_mismatch withheld",
            [],
        )

    def _add_writes(self, files: Files) -> None:
        frozen, here = self._group.frozen, self._here
        rest = without(files, log_name(here.ann), log_name(here.later))
        ben = here.ben
        log = made_log(frozen, "writes", BEN, 1, here.world.one, random=b"writ")
        log.put(meta(0, A), signer=None, flags=MORE)
        log.put(meta(1, B), signer=BEN.sign)
        log.put(meta(2, remember("e")), signer=BEN.sign, flags=MORE)
        log.put(meta(3, remember("f")), signer=BEN.sign)
        rest = without(rest, log_name(ben))
        both = [memory(A), memory(B), memory(remember("e")), memory(remember("f"))]
        self._opens("write-whole", "two writes of two records", rest | {log_name(log): log.whole()}, both)
        half = log.whole(log.records[:3])
        title = "another device's write that is there in part does not count yet, and is nothing wrong"
        self._opens("write-half", title, rest | {log_name(log): half}, both[:2])
        unsigned = log.whole(log.records[:1])
        self._opens("write-unsigned", "records that no signature covers yet", rest | {log_name(log): unsigned}, [])
        own = made_log(frozen, "own writes", ANN, 1, here.world.one, random=b"writ")
        own.put(meta(0, A))
        own.put(meta(1, B), flags=MORE)
        title = "a write of this device that is there in part was torn"
        self._found("write-torn", title, rest | {log_name(own): own.whole()}, "record_torn", [memory(A)])
        unknown = made_log(frozen, "unknown", ANN, 1, here.world.one, random=b"unkn")
        newer = {"op": "newer", "id": seed("newer", 16)}
        unknown.put(meta(0, A, newer))
        title = "an operation of newer software: the others of its record count"
        self._found(
            "write-unknown", title, rest | {log_name(unknown): unknown.whole()}, "operation_unknown", [memory(A)]
        )
        forged = made_log(frozen, "forged", BEN, 1, here.world.one, random=b"forg")
        forged.put(meta(0, A), signer=BEN.sign)
        forged.put(meta(1, B), signer=ANN.sign)
        title = "another device signed the last record of a log that is not its own"
        self._found("write-forged", title, rest | {log_name(forged): forged.whole()}, "signature_invalid", [memory(A)])

    def _add_heads(self, files: Files) -> None:
        frozen, here = self._group.frozen, self._here
        ann = here.ann
        base = {"device.mseal": here.device, **here.keyring(), log_name(ann): ann.whole()}

        def naming(name: str, title: str, codes: str, *metas: Map) -> None:
            log = made_log(frozen, name, BEN, 1, here.world.one, random=b"head")
            for each in metas:
                log.put(each, signer=BEN.sign)
            memories = [
                memory(A),
                memory(B),
                *(memory(operation) for each in metas for operation in each["operations"]),
            ]
            self._found(f"head-{name}", title, base | {log_name(log): log.whole()}, codes, memories)

        more = [*head_of(ann, 3)[:1], 2, seed("chain"), 3]
        naming("more", "a head of a record that is not here", "withheld", meta(0, C, heads=[more]))
        absent = [seed("absent stream", 16), 0, seed("chain"), 1]
        naming("absent", "a head of a log that is not here", "withheld", meta(0, C, heads=[absent]))
        high = [*head_of(ann, 9)[:3], 9]
        naming(
            "counter", "a head with a counter that no record of its log has", "counter_false", meta(0, C, heads=[high])
        )
        title = "previous is not the counter of the record before"
        naming("previous", title, "counter_false", meta(0, C), meta(5, remember("e")))

    def _add_ended(self, files: Files) -> None:
        here = self._here
        ben = here.ben
        title = "Ben's device was ended after his first record: the second does not count"
        first = [memory(A), memory(B), memory(C, active=False, retracted=True)]
        version = self._ending("ended", [ben.preamble[32:48], 1, ben.chains[1], ben.end(1)["length"]])
        self._found("ended-beyond", title, self._with(files, version), "stream_ended withheld", first)
        version = self._ending("ended whole", [ben.preamble[32:48], 2, ben.chain, ben.end()["length"]])
        self._opens(
            "ended-whole", "Ben's device was ended after his last record", self._with(files, version), here.memories()
        )

    def _ending(self, name: str, row: list[Any]) -> Version:
        public = changed(next_public(self._here.world.three), [ends(BEN, row), new_epoch])
        signers = (ANN.sign, epoch_key(2), epoch_key(3))
        return whole(self._group.frozen, name, public, signers, self._here.world.slots, history=[1, 2])

    def _with(self, files: Files, version: Version) -> Files:
        three = self._here.world.three
        return files | {"keyring/00000003.mseal": three.stripped(), "keyring/00000004.mseal": version.content}

    def _opens(self, name: str, title: str, files: Files, memories: list[Map]) -> None:
        self._group.ok(name, FOLDER, title, "open_vault", _given(files), memories=_sorted(memories))

    def _found(self, name: str, title: str, files: Files, codes: str, memories: list[Map]) -> None:
        self._group.found(name, FOLDER, title, "open_vault", _given(files), codes, memories=_sorted(memories))

    def _refused(self, name: str, title: str, files: Files, code: str, words: str = PASSPHRASE) -> None:
        self._group.refused(name, FOLDER, title, "open_vault", _given(files) | {"passphrase": words}, code)

    opens, found, refused, with_version = _opens, _found, _refused, _with


class Cut:
    """The same vault with a floor: Ann's first log is cut, Ben's stands at its first record."""

    _id = seed("vault checkpoint", 16)
    _part = seed("part vault", 16)
    names = (f"checkpoints/{_id.hex()}", f"parts/{_part.hex()}")

    def __init__(self, group: Group, here: Standing, files: Files, vaults: _Vaults) -> None:
        self._group, self._here, self._files, self._vaults = group, here, files, vaults
        ann, ben = here.ann, here.ben
        self._rows = [self._row(ann, 2, 2), self._row(ben, 1, 2)]
        begin = preamble(CHECKPOINT, stream=self._part)
        held: list[Map] = [
            {"operations": [A | {"stamp": [1, 0]}, B | {"stamp": [2, 0]}]},
            {"operations": [C | {"stamp": [2, 0]}]},
        ]
        self.part = run(group, "vault part", begin, seed("part key vault"), held).whole()
        self.manifest = self._made_manifest()
        floor = {
            "checkpoint": self._id,
            "digest": sha256(self.manifest).digest(),
            "parts": [self._part],
            "logs": self._rows,
        }
        public = changed(next_public(here.world.three), [sets("floor", to=floor)])
        self.version = whole(group.frozen, "floor", public, (ANN.sign, epoch_key(2)), here.world.slots, history=[1])

    def add(self) -> None:
        names = [f"{name}.mseal" for name in self.names]
        objects = dict(zip(names, (self.manifest, self.part), strict=True))
        files = self._vaults.with_version(self._files, self.version) | objects
        memories = self._here.memories()
        ann, ben = self._here.ann, self._here.ben
        self._vaults.opens("floor", "a floor and whole logs", files, memories)
        cut = files | {log_name(ann): self._cut(ann, 2), log_name(ben): self._cut(ben, 1)}
        self._vaults.opens("floor-cut", "logs that are cut at the floor", cut, memories)
        gone = without(files, log_name(ann)) | {log_name(ben): self._cut(ben, 1)}
        self._vaults.opens("floor-gone", "a log of which the floor covers all, and which is gone", gone, memories)
        title = "no manifest: the rest is read"
        rest = [memory(D)]
        self._vaults.found("floor-manifest", title, without(cut, names[0]), "checkpoint_missing", rest)
        self._vaults.found(
            "floor-part", "no part: the rest is read", without(cut, names[1]), "checkpoint_missing", rest
        )
        other = cut | {names[0]: flipped(self.manifest, -1)}
        title = "a flipped bit in the manifest: the rest is read"
        self._vaults.found("floor-damaged", title, other, "checkpoint_mismatch", rest)
        swapped = cut | {names[0]: self.part, names[1]: self.manifest}
        title = "manifest and part under each other's name"
        self._vaults.found("floor-swapped", title, swapped, "checkpoint_mismatch", rest)
        base = files | {log_name(ann): flipped(self._cut(ann, 2), 70), log_name(ben): self._cut(ben, 1)}
        self._vaults.found("floor-base", "a damaged base", base, "base_damaged", memories)
        first = files | {log_name(ann): self._cut(ann, 1), log_name(ben): self._cut(ben, 1)}
        self._vaults.found(
            "floor-base-unknown", "a log that begins where no floor says", first, "base_unknown", memories
        )

    def _row(self, log: MadeLog, records: int, counter: int) -> list[Any]:
        end, place = log.end(records), log.preamble
        return [place[32:48], 1, place[48:60], 0, end["length"], records, end["chain"], counter]

    def _cut(self, log: MadeLog, records: int) -> bytes:
        end = log.end(records)
        head = b"\xff\xff\xff\xff" + u64(end["length"]) + u32(records) + end["chain"] + u64(2)
        return log.preamble + head + crc(head) + b"".join(log.records[records:])

    def _made_manifest(self) -> bytes:
        nonce = self._here.world.three.digest[:8] + bytes(4)
        place = preamble(CHECKPOINT, epoch=2, stream=self._id, nonce=nonce)
        key = primitives.derive(vault_key(2), b"", "memseal/v1/checkpoint", VAULT, self._id)
        logs = [[row[0], *row[4:]] for row in self._rows]
        parts = [row_of("vault", self.part, 2)]
        fields = {"made_by": ANN.public_sign, "counter": 2, "logs": logs, "parts": parts}
        body = content(pack(fields), chain=sha256(place).digest(), preamble=place, index=0)
        return place + frame(0, self._group.frozen.sealed("vault manifest", key, context(place, 0), plaintext(body)))


@lru_cache(maxsize=1)
def lowered(book: Book) -> Cut:
    """The floor of the small vault, with its checkpoint."""
    here, group = standing(book), book.group("vault")
    return Cut(group, here, here.files(), _Vaults(group, here))


def without(files: Mapping[str, bytes], *names: str) -> Files:
    return {name: content for name, content in files.items() if name not in names}


def _given(files: Files) -> Map:
    return {"files": files, "passphrase": PASSPHRASE}


def _sorted(memories: list[Map]) -> list[Map]:
    return sorted(memories, key=lambda each: each["id"])
