"""Vectors of files of traces (§8e)."""

import struct
from collections.abc import Sequence
from typing import Any

from making.book import Book, Repeated, Value
from making.containers import SESSION, TRACE, MadeLog, flipped, frame, pack, preamble, u64
from making.keyrings import Map
from making.people import ANN, BEN, OTHER_VAULT, VAULT, seed
from memseal.format import primitives

RULE = "vault-format §8e"
AT = 1_767_225_600_000_000
NONCE = u64(AT) + b"four"
A, B = seed("memory a", 16), seed("memory b", 16)


def trace(number: int, **changes: Any) -> Map:
    """A recall that gave out one memory of two."""
    return {
        "id": u64(AT + number) + seed(f"trace {number}", 8),
        "at": AT + number,
        "surface": "recall",
        "turn": "a turn",
        "about": None,
        "query": "which food makes me ill?",
        "searched": "food makes ill",
        "terms": ["food", "ill"],
        "time": {"phrase": "last week", "spans": [[AT - 604_800_000_000, AT]]},
        "engine": "hybrid",
        "embedder": "a model",
        "floor": 0.25,
        "considered": 2,
        "candidates": [[A, 1.5, 0.75, 0.5, 1, 1], [B, -0.125, 0.0, None, 0, 0]],
        "stages": [["read", 12], ["score", 340]],
        "served": [[A, 0, 0, 1]],
        "pieces": [[None, "<memories>\n"], [A, '- "I react badly to cashews"\n'], [None, "</memories>"]],
        "receipt": {"status": "ok", "served": [{"id": A.hex()}]},
        "erased": [],
    } | changes


FIRST, SECOND = trace(0), trace(1, surface="search", turn=None, time=None, pieces=None, receipt=None)


def given(content: bytes | Repeated, **changes: Any) -> Map:
    """What a case gives of a file that should be the one of `NONCE`."""
    named = {"nonce": NONCE, "local": ANN.local, "vault_id": VAULT, "device_id": ANN.id}
    return {"content": content, **named} | changes


def add(book: Book) -> None:
    _Traces(book).add()


class _Traces:
    def __init__(self, book: Book) -> None:
        self._group = book.group("trace")
        self._begin = preamble(TRACE, stream=ANN.id, nonce=NONCE)
        self._run = self._made("sound", [FIRST, SECOND])
        self._whole = self._run.whole()

    def add(self) -> None:
        self._add_sound()
        self._add_preambles()
        self._add_records()
        self._add_contents()
        self._add_fields()

    def _add_sound(self) -> None:
        self._opens("two", "a recall and a search", self._whole, [FIRST, SECOND])
        self._opens("none", "a file that was only begun", self._begin, [])
        self._opens("torn", "a process was killed while it wrote: no finding", self._whole[:-1], [FIRST])
        self._opens("torn-header", "it was killed inside a header", self._whole[: 64 + 5], [])
        for case, title, changes in (
            ("unknown", "a field that is not known is kept", {"mood": ["calm", 3, None, {"a": b"b"}]}),
            ("early", "before 1970: the id says 1970", {"id": bytes(8) + seed("trace 0", 8), "at": -5}),
            ("at-least", "the earliest time that there is", {"at": -(1 << 63)}),
            ("at-most", "the latest time that there is", {"at": (1 << 63) - 1}),
            ("surface", "a surface to come", {"surface": "dream"}),
            ("considered", "the highest count", {"considered": (1 << 32) - 1}),
            ("erased", "the memory that was served is erased", {"pieces": [[A, None]], "served": [], "erased": [A]}),
        ):
            self._opens_made(case, title, trace(0, **changes))

    def _add_preambles(self) -> None:
        rest = b"".join(self._run.records)

        def refused(case: str, title: str, content: bytes, code: str) -> None:
            self._group.refused(f"preamble-{case}", RULE, title, "open_traces", given(content), code)

        def begin(**changes: Any) -> bytes:
            kind = changes.pop("kind", TRACE)
            return preamble(kind, **{"stream": ANN.id, "nonce": NONCE} | changes) + rest

        refused("short", "63 bytes", self._whole[:63], "preamble_short")
        refused("magic", "another magic", begin(magic=b"\x89MSEAX\r\n"), "preamble_magic")
        refused("flipped", "a flipped bit", flipped(self._whole, 50), "preamble_damaged")
        refused("newer", "of a newer format", begin(version=2), "version_unknown")
        refused("suite", "of another suite", begin(suite=2), "suite_unknown")
        refused("kind", "a kept session in its place", begin(kind=SESSION), "kind_mismatch")
        refused("reserved", "byte 11 is not zero", begin(reserved=1), "preamble_reserved")
        refused("vault", "of another vault", begin(vault=OTHER_VAULT), "vault_mismatch")
        refused("epoch", "it has an epoch", begin(epoch=1), "trace_invalid")
        refused("device", "of another device", begin(stream=BEN.id), "trace_invalid")
        refused("nonce", "its nonce is not the one that names the file", begin(nonce=seed("n", 12)), "trace_invalid")
        large = Repeated(self._begin, b"\0", (64 << 20) - 63)
        self._group.refused("large", RULE, "a byte over 64 MiB", "open_traces", given(large), "trace_invalid")

    def _add_records(self) -> None:
        first, second = self._run.records
        whole = self._whole
        self._found("flipped", "a flipped bit in the first", flipped(whole, 300), "record_sealed", [SECOND])
        self._found("header", "a flipped bit in the first header", flipped(whole, 66), "record_header", [SECOND])
        self._found("dropped", "the first is missing", self._begin + second, "record_order", [SECOND])
        self._found("twice", "the first twice", self._begin + first + first + second, "record_order", [FIRST, SECOND])
        reframed = self._begin + frame(0, second[12:]) + frame(1, first[12:])
        self._found("reframed", "in another order, with headers for it", reframed, "record_sealed", [])
        self._found("local", "under another local key", whole, "record_sealed", [], local=BEN.local)
        other = self._made("other", [trace(7), trace(8)])
        spliced = self._begin + first + other.records[1]
        self._found("spliced", "the second of another run", spliced, "chain_broken", [FIRST, trace(8)])

    def _add_contents(self) -> None:
        options: list[tuple[str, str, Map, str]] = [
            ("signed", "is signed", {"signer": ANN.sign}, "trace_invalid"),
            ("flags", "has a flag that is not known", {"flags": 8}, "record_flags"),
            ("meta-length", "has a meta longer than its content", {"meta_length": 5000}, "record_content"),
            ("not-zstd", "says that it is compressed, and is not", {"flags": 4}, "zstd_invalid"),
        ]
        for case, title, option, code in options:
            made = MadeLog(self._group.frozen, case, self._begin, self._key)
            made.put(FIRST, **{"signer": None} | option)
            made.put(SECOND, signer=None)
            self._found(case, f"the first {title}", made.whole(), code, [SECOND])
        for case, title, meta, code in (
            ("no-msgpack", "no msgpack", b"\xc1", "msgpack_invalid"),
            ("array", "an array", pack([FIRST]), "msgpack_invalid"),
        ):
            self._found(case, f"the first is {title}", self._made(case, [meta, SECOND]).whole(), code, [SECOND])

    def _add_fields(self) -> None:
        infinite = struct.unpack(">d", b"\x7f\xf0" + bytes(6))[0]
        row = FIRST["candidates"][0]
        for case, title, changes in (
            ("id-short", "an id of 15 bytes", {"id": FIRST["id"][:15]}),
            ("id-text", "a text for an id", {"id": FIRST["id"].hex()}),
            ("at-beyond", "a time beyond 64 bits with a sign", {"at": 1 << 63}),
            ("at-float", "a float for a time", {"at": float(AT)}),
            ("surface-nil", "no surface", {"surface": None}),
            ("turn-number", "a number for a turn", {"turn": 1}),
            ("about-short", "an `about` of 8 bytes", {"about": A[:8]}),
            ("query-bytes", "bytes for a query", {"query": b"food"}),
            ("terms-text", "a text for terms", {"terms": "food"}),
            ("terms-number", "a number among terms", {"terms": ["food", 1]}),
            ("time-array", "an array for a time", {"time": []}),
            ("engine-nil", "no engine", {"engine": None}),
            ("floor-integer", "an integer for a floor", {"floor": 1}),
            ("floor-infinite", "an infinite floor", {"floor": infinite}),
            ("considered-negative", "a negative count", {"considered": -1}),
            ("considered-beyond", "a count of 2^32", {"considered": 1 << 32}),
            ("candidate-short", "a candidate of five entries", {"candidates": [row[:5]]}),
            ("candidate-id", "a candidate without an id", {"candidates": [[None, *row[1:]]]}),
            ("candidate-score", "an integer for a score", {"candidates": [[A, 1, *row[2:]]]}),
            ("candidate-infinite", "an infinite cosine", {"candidates": [[A, 1.5, 0.75, infinite, 1, 1]]}),
            ("candidate-flag", "a candidate that is served 2", {"candidates": [[*row[:5], 2]]}),
            ("candidate-true", "true for a flag", {"candidates": [[*row[:5], True]]}),
            ("stage-negative", "a stage of negative length", {"stages": [["read", -1]]}),
            ("served-short", "a served row of three entries", {"served": [[A, 0, 0]]}),
            ("served-state", "a text for a state", {"served": [[A, "active", 0, 0]]}),
            ("piece-id", "a piece of an id of 15 bytes", {"pieces": [[A[:15], "text"]]}),
            ("piece-bytes", "bytes for a piece", {"pieces": [[A, b"text"]]}),
            ("receipt-text", "a text for a receipt", {"receipt": "ok"}),
            ("erased-nil", "nil for what was erased", {"erased": None}),
            ("erased-short", "an erased id of 15 bytes", {"erased": [A[:15]]}),
        ):
            run = self._made(case, [trace(0, **changes), SECOND])
            self._found(case, f"the first has {title}", run.whole(), "trace_invalid", [SECOND])
        for field in ("about", "floor", "pieces", "erased"):
            lacking = {name: value for name, value in FIRST.items() if name != field}
            run = self._made(f"no {field}", [lacking, SECOND])
            self._found(f"{field}-missing", f"the first has no `{field}`", run.whole(), "trace_invalid", [SECOND])

    @property
    def _key(self) -> bytes:
        return primitives.derive(ANN.local, b"", "memseal/v1/trace", VAULT, ANN.id, NONCE)

    def _made(self, name: str, metas: Sequence[Map | bytes]) -> MadeLog:
        made = MadeLog(self._group.frozen, name, self._begin, self._key)
        for meta in metas:
            made.put(meta, signer=None)
        return made

    def _opens_made(self, case: str, title: str, value: Map) -> None:
        self._opens(case, title, self._made(case, [value]).whole(), [value])

    def _opens(self, case: str, title: str, content: bytes, traces: Sequence[Map]) -> None:
        self._group.ok(case, RULE, title, "open_traces", given(content), traces=list(map(Value, traces)))

    def _found(self, case: str, title: str, content: bytes, codes: str, traces: Sequence[Map], **changes: Any) -> None:
        shown = list(map(Value, traces))
        self._group.found(case, RULE, title, "open_traces", given(content, **changes), codes, traces=shown)
