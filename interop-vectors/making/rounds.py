"""Vectors of synchronisation: segments, and rounds with servers that lie (sync-protocol §1 and §6)."""

from collections.abc import Sequence
from typing import Any

from making.book import Book, Group
from making.containers import MadeLog, flipped, u32, u64
from making.keyrings import Map, Recipe, Version, adds, build, changed, epoch_key, follow, new_epoch, next_public
from making.people import ANN, BEN, EVE, OTHER_VAULT, seed
from making.said import remember
from making.sealing import PASSPHRASE, whole
from making.states import memory
from making.vaults import A, B, C, Cut, D, Files, Standing, log_name, lowered, made_log, meta, standing, without

SEGMENTS, ROUND = "sync-protocol §1", "sync-protocol §6"


def add(book: Book) -> None:
    here = standing(book)
    _add_segments(book.group("sync"), here)
    _Rounds(book.group("sync"), here, lowered(book)).add()


def _add_segments(group: Group, here: Standing) -> None:
    log = here.ann
    first = u64(0) + u64(len(log.whole())) + u32(0) + bytes(32) + log.whole()
    rest = log.records[1]
    second = u64(log.end(1)["length"]) + u64(len(rest)) + u32(1) + log.chains[1] + rest

    def opens(name: str, title: str, content: bytes, start: Map, length: int) -> None:
        group.ok(name, SEGMENTS, title, "decode_segment", {"content": content}, start=start, length=length)

    def refused(name: str, title: str, content: bytes) -> None:
        group.refused(name, SEGMENTS, title, "decode_segment", {"content": content}, "segment_invalid")

    nothing = {"length": 0, "records": 0, "chain": bytes(32)}
    opens("segment-first", "segment 0, with the preamble", first, nothing, len(log.whole()))
    opens("segment-second", "a segment of one record", second, log.end(1), len(rest))
    refused("segment-empty", "no bytes", b"")
    refused("segment-header", "51 bytes of a header", second[:51])
    refused("segment-cut", "one byte too few", second[:-1])
    refused("segment-more", "one byte too many", second + b"\0")
    refused("segment-length", "a length of 2^64 − 1", second[:8] + b"\xff" * 8 + second[16:])


class _Rounds:
    """Ann's device, of epoch 1, with her own log; Ben's log is on the server."""

    def __init__(self, group: Group, here: Standing, floor: Cut) -> None:
        self._group, self._here, self._floor = group, here, floor
        self._ann, self._ben = here.ann, here.ben
        self._mine = [memory(A), memory(B)]
        self._own = f"logs/{self._ann.preamble[32:48].hex()}"
        self._all = [memory(A, active=False, superseded_by=D["id"]), memory(B), memory(C), memory(D)]

    def add(self) -> None:
        self._add_honest()
        self._add_rollbacks()
        self._add_keyrings()
        self._add_logs()
        self._add_floors()
        self._add_puts()

    # ── what is there ───────────────────────────────────────────────────────────────────────────────

    def _files(self, *logs: MadeLog, count: int = 2) -> Files:
        named = {log_name(log): log.whole() for log in (self._ann, *logs)}
        return {"device.mseal": self._here.device, **self._here.keyring(count), **named}

    def _heads(self, *logs: Map, at: Version | None = None, **keyring: Any) -> Map:
        newest = at or self._here.world.two
        shown = {"version": newest.public["version"], "digest": newest.digest.hex(), "whole": True} | keyring
        listed: Map = {}
        for each in logs:
            listed |= each
        return {"keyring": shown, "floor": None, "logs": listed}

    def _head(self, log: MadeLog, records: int | None = None, **changes: Any) -> Map:
        end = log.end(records)
        shown = {"length": end["length"], "records": end["records"], "chain": end["chain"].hex(), "next": 1} | changes
        return {log.preamble[32:48].hex(): shown}

    def _ends(self, *logs: tuple[MadeLog, int]) -> Map:
        return {log.preamble[32:48].hex(): log.end(records) for log, records in logs}

    def _objects(self, *logs: MadeLog, **more: bytes) -> Files:
        return {f"logs/{log.preamble[32:48].hex()}": log.whole() for log in logs} | more

    def _given(
        self, heads: Sequence[Any], objects: Files, seen: Map | None, put: str | None, files: Files | None
    ) -> Map:
        remote = {"heads": list(heads), "objects": objects, "put": put}
        return {"files": files or self._files(), "passphrase": PASSPHRASE, "seen": seen, "remote": remote}

    def _does(
        self,
        name: str,
        title: str,
        heads: Sequence[Any],
        objects: Files,
        memories: list[Map],
        puts: Sequence[str] = (),
        *,
        seen: Map | None = None,
        files: Files | None = None,
        codes: str = "",
    ) -> None:
        given = self._given(heads, objects, seen, None, files)
        gives: Map = {"memories": sorted(memories, key=lambda each: each["id"]), "puts": sorted(puts)}
        if codes:
            self._group.found(name, ROUND, title, "sync", given, codes, **gives)
        else:
            self._group.ok(name, ROUND, title, "sync", given, **gives)

    def _fails(
        self,
        name: str,
        title: str,
        heads: Sequence[Any],
        objects: Files,
        code: str,
        *,
        seen: Map | None = None,
        put: str | None = None,
        files: Files | None = None,
    ) -> None:
        self._group.refused(name, ROUND, title, "sync", self._given(heads, objects, seen, put, files), code)

    # ── rounds ──────────────────────────────────────────────────────────────────────────────────────

    def _add_honest(self) -> None:
        ann, ben = self._ann, self._ben
        own, theirs = self._head(ann), self._head(ben)
        first = f"{self._own}/0"
        self._does("nothing", "nothing new on either side", [self._heads(own)], {}, self._mine)
        self._does("pull", "another device's log is fetched", [self._heads(own, theirs)], self._objects(ben), self._all)
        self._does("push", "the own log is put", [self._heads()], {}, self._mine, [first])
        title = "both: another's log is fetched and the own one put"
        self._does("both", title, [self._heads(theirs)], self._objects(ben), self._all, [first])
        rest = [f"{self._own}/1"]
        self._does(
            "push-rest",
            "the server has the first record of the own log",
            [self._heads(self._head(ann, 1))],
            {},
            self._mine,
            rest,
        )
        puts = ["keyring/1", "keyring/2", first]
        self._does("register", "a server that does not have the vault", [None, self._heads()], {}, self._mine, puts)
        self._does(
            "again",
            "a server that shows what it showed before",
            [self._heads(own)],
            {},
            self._mine,
            seen=self._seen((ann, 2)),
        )
        whole_log = self._files(ben)
        title = "a log of another device that the server lost before this device saw it there is put back"
        self._does(
            "refill", title, [self._heads(own)], {}, self._all, [f"logs/{ben.preamble[32:48].hex()}/0"], files=whole_log
        )
        three = self._here.world.three
        newer = self._heads(own, at=three)
        self._does("keyring", "a newer keyring version is fetched", [newer], {"keyring/3": three.content}, self._mine)
        later = self._here.later
        heads = self._heads(own, theirs, self._head(later), at=three)
        objects = self._objects(ben, later) | {"keyring/3": three.content}
        self._does("keyring-and-logs", "a newer epoch, and a log of it", [heads], objects, self._here.memories())
        title = "a newer version here: it is put"
        self._does("keyring-put", title, [self._heads(own)], {}, self._mine, ["keyring/3"], files=self._files(count=3))
        half = self._heads(own, whole=False)
        title = "the server has the newest version in part: it is completed"
        self._does("keyring-whole", title, [half], {}, self._mine, ["keyring/2"])

    def _seen(self, *logs: tuple[MadeLog, int], keyring: int = 2) -> Map:
        return {"keyring": keyring, "logs": self._ends(*logs)}

    def _add_rollbacks(self) -> None:
        ann, ben, code = self._ann, self._ben, "rolled_back"
        own = self._head(ann)
        seen = self._seen((ann, 2))
        self._fails("gone", "a server that had the vault does not have it any more", [None], {}, code, seen=seen)
        one = self._heads(own, at=self._here.world.one)
        self._fails("keyring-older", "an older keyring version than before", [one], {}, code, seen=seen)
        self._fails("log-missing", "a log that it showed before is missing", [self._heads()], {}, code, seen=seen)
        self._fails(
            "log-shorter", "a log is shorter than it was", [self._heads(self._head(ann, 1))], {}, code, seen=seen
        )
        both = self._seen((ann, 2), (ben, 2))
        heads = self._heads(own, self._head(ben, 1))
        title = "another device's log is shorter than it was"
        self._fails("log-shorter-other", title, [heads], self._objects(ben), code, seen=both, files=self._files(ben))

    def _add_keyrings(self) -> None:
        own, world = self._head(self._ann), self._here.world
        forked = self._heads(own, digest=seed("another digest").hex())
        self._fails("keyring-forked", "another keyring of the same number", [forked], {}, "keyring_forked")
        newer = [self._heads(own, at=world.three)]

        def fails(name: str, title: str, content: bytes, code: str) -> None:
            self._fails(f"keyring-{name}", title, newer, {"keyring/3": content}, code)

        self._fails("keyring-not-there", "a newer version that it does not give", newer, {}, "not_found")
        fails("again", "version 2 in the place of version 3", world.two.content, "keyring_chain")
        alone = follow(world.two, new_epoch, by=())
        fails("unsigned", "a version that no device signed", alone.content, "keyring_signature")
        stranger = build(changed(next_public(world.two), [adds(EVE)]), Recipe((EVE.sign,)))
        fails("stranger", "a stranger joins without the epoch key", stranger.content, "keyring_signature")
        fails("cut", "a version that is cut", world.three.content[:-1], "record_torn")
        fails("log", "a log in the place of a version", self._ann.whole(), "kind_mismatch")
        fails("flipped", "the last byte of its secrets is flipped", flipped(world.three.content, -1), "keyring_sealed")
        public = changed(next_public(world.two), [new_epoch])
        signers = (ANN.sign, epoch_key(1), epoch_key(2))
        boxless = whole(self._group.frozen, "boxless", public, signers, world.slots, box_rows=[], history=[1])
        fails("boxless", "a version without a box for this device", boxless.content, "box_missing")
        for name, title, keyring in (
            ("digest", "a digest of 31 bytes", {"digest": "00" * 31}),
            ("number", "a version number that is a text", {"version": "2"}),
            ("negative", "a negative version number", {"version": -1}),
        ):
            self._fails(f"heads-{name}", f"heads with {title}", [self._heads(own, **keyring)], {}, "remote_answer")
        self._fails("heads-empty", "heads without anything", [{}], {}, "remote_answer")
        short = {self._ann.preamble[32:40].hex(): self._head(self._ann)[self._ann.preamble[32:48].hex()]}
        self._fails("heads-stream", "heads with a stream id of 8 bytes", [self._heads(short)], {}, "remote_answer")

    def _add_logs(self) -> None:
        ann, ben = self._ann, self._ben
        own, theirs = self._head(ann), self._head(ben)
        stream = f"logs/{ben.preamble[32:48].hex()}"
        frozen, one = self._group.frozen, self._here.world.one
        half = {stream: ben.whole(ben.records[:1])}
        some = [*self._mine, memory(C)]

        def found(name: str, title: str, objects: Files, codes: str, memories: list[Map], *heads: Map) -> None:
            self._does(f"log-{name}", title, [self._heads(own, *(heads or (theirs,)))], objects, memories, codes=codes)

        found("withheld", "it promises two records and gives one", half, "withheld", some)
        found(
            "withheld-all",
            "it promises a log and gives no bytes of it",
            {stream: ben.whole([])},
            "withheld",
            self._mine,
        )
        found("not-there", "it promises a log and does not have it", {}, "not_found", self._mine)
        damaged = {stream: ben.whole([ben.records[0], flipped(ben.records[1], 500)])}
        found("damaged", "a flipped byte in the second record", damaged, "record_sealed", some)
        eve = made_log(frozen, "eve", EVE, 1, one)
        eve.put(meta(0, remember("e")), signer=EVE.sign)
        found(
            "stranger",
            "a log of a device that is not listed",
            self._objects(eve),
            "stream_mismatch",
            self._mine,
            self._head(eve),
        )
        foreign = made_log(frozen, "foreign", EVE, 1, one, vault=OTHER_VAULT)
        foreign.put(meta(0, remember("e")), signer=EVE.sign)
        found(
            "foreign",
            "a log of another vault",
            self._objects(foreign),
            "vault_mismatch",
            self._mine,
            self._head(foreign),
        )
        ahead = made_log(frozen, "ahead", BEN, 2, self._here.world.three)
        ahead.put(meta(0, remember("e")), signer=BEN.sign)
        found(
            "ahead", "a log of an epoch to come", self._objects(ahead), "keyring_behind", self._mine, self._head(ahead)
        )
        other = made_log(frozen, "other", BEN, 1, one, random=b"othr")
        other.put(meta(0, remember("e")), signer=BEN.sign)
        swapped = {stream: other.whole()}
        found(
            "swapped",
            "another log's bytes under this stream",
            swapped,
            "stream_mismatch",
            self._mine,
            self._head(ben, 1),
        )
        forged = made_log(frozen, "forged", BEN, 1, one, random=b"forg")
        forged.put(meta(0, remember("e")), signer=BEN.sign)
        forged.put(meta(1, remember("f")), signer=EVE.sign)
        title = "the last record of another device's log is signed by somebody else: it does not count"
        found(
            "forged",
            title,
            self._objects(forged),
            "signature_invalid",
            [*self._mine, memory(remember("e"))],
            self._head(forged),
        )
        waits = made_log(frozen, "waits", BEN, 1, one, random=b"wait")
        waits.put(meta(0, remember("e")), signer=BEN.sign)
        waits.put(meta(1, remember("f")), signer=None)
        title = "records that no signature covers yet wait, and nothing is wrong"
        heads = [self._heads(own, self._head(waits))]
        self._does("log-waits", title, heads, self._objects(waits), [*self._mine, memory(remember("e"))])
        branch = MadeLog(frozen, "branch", ben.preamble, ben.key)
        branch.take(ben.records[0])
        branch.put(meta(2, remember("branch")), signer=BEN.sign)
        title = "another history of a log that is here: it is left alone"
        forked = [self._heads(own, self._head(branch))]
        self._does(
            "log-forked", title, forked, {stream: branch.whole()}, self._all, files=self._files(ben), codes="forked"
        )
        lied = [self._heads(own, self._head(ben, chain=seed("another chain").hex()))]
        title = "heads claim another chain of a log that is here, and show nothing else"
        self._does("log-claimed", title, lied, self._objects(ben), self._all, files=self._files(ben), codes="forked")
        named = made_log(frozen, "named", BEN, 1, one, random=b"name")
        absent = [seed("absent stream", 16), 4, seed("chain"), 5]
        named.put(meta(0, remember("e"), heads=[absent]), signer=BEN.sign)
        title = "a record names a log that the server does not show"
        memories = [*self._mine, memory(remember("e"))]
        found("named", title, self._objects(named), "withheld", memories, self._head(named))

    def _add_floors(self) -> None:
        """The server has a floor that is new to this device, which has all logs whole."""
        floor, three = self._floor, self._here.world.three
        manifest, part = floor.names
        files = {**self._here.files(), **self._here.keyring(3)}
        checkpoint = {"checkpoint": manifest.removeprefix("checkpoints/"), "whole": True}
        ends = [self._head(self._ann), self._head(self._ben), self._head(self._here.later)]
        heads = self._heads(*ends, at=floor.version) | {"floor": checkpoint}
        objects = {"keyring/4": floor.version.content, manifest: floor.manifest, part: floor.part}
        memories = self._here.memories()

        def does(name: str, title: str, objects: Files, codes: str = "", puts: Sequence[str] = ()) -> None:
            self._does(f"floor-{name}", title, [heads], objects, memories, puts, files=files, codes=codes)

        does("taken", "a floor is taken over, with its checkpoint", objects)
        does("no-manifest", "the manifest is not given", without(objects, manifest), "checkpoint_missing")
        does("no-part", "the part is not given", without(objects, part), "checkpoint_missing")
        does(
            "other-manifest",
            "a flipped bit in the manifest",
            objects | {manifest: flipped(floor.manifest, -1)},
            "checkpoint_mismatch",
        )
        title = "a log in the place of the manifest"
        does("log-for-manifest", title, objects | {manifest: self._ann.whole()}, "kind_mismatch")
        does("log-for-part", "a log in the place of the part", objects | {part: self._ann.whole()}, "kind_mismatch")
        held = {f"{name}.mseal": content for name, content in ((manifest, floor.manifest), (part, floor.part))}
        four = {"keyring/00000003.mseal": three.stripped(), "keyring/00000004.mseal": floor.version.content}
        lost = heads | {"floor": checkpoint | {"whole": False}}
        title = "the server lost what the floor names: it is put back"
        self._does("floor-lost", title, [lost], {}, memories, [manifest, part], files=files | four | held)

    def _add_puts(self) -> None:
        heads = [self._heads()]
        for code in ("limit", "too_large", "segment_invalid", "segment_conflict", "key_ended", "server_error"):
            self._fails(
                f"put-{code.replace('_', '-')}", f"the server refuses what is put: {code}", heads, {}, code, put=code
            )
        self._fails(
            "put-closed", "the server takes no new vaults", [None], {}, "registration_closed", put="registration_closed"
        )
