"""Traces: what a device has given out, one sealed record each (vault-format §8e)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from memseal.errors import Finding, FormatError
from memseal.format.content import Content, chain_next, content_pieces
from memseal.format.fields import U32, Fields
from memseal.format.keys import RecordKey
from memseal.format.part import read_run, start_of_part
from memseal.format.preamble import ID_SIZE, PREAMBLE_SIZE, Kind, Preamble, decode_preamble
from memseal.format.records import seal_pieces

NONCE_SIZE: Final = 12
FILE_LIMIT: Final = 1 << 26
"""Bytes of a file beyond which a reader refuses it."""
TRACE_LIMIT: Final = 1 << 20
"""Bytes of a trace beyond which a writer leaves parts of it out."""
CANDIDATES_MOST: Final = 50
"""Candidates of one trace, beside those that were served."""
_SERVED_LEAST: Final = 1000
_I64: Final = 1 << 63
_CODE: Final = "trace_invalid"


class Candidate(NamedTuple):
    """A memory that was scored: its own two scores, and whether it is related to the query, and was given out."""

    memory: str
    score: float
    lexical: float
    cosine: float | None
    related: bool
    served: bool


class Given(NamedTuple):
    """A memory that was given out: the version with this id, in this state then; whether cut, and secrets masked."""

    memory: str
    state: int
    truncated: bool = False
    masked: bool = False


class Piece(NamedTuple):
    """A stretch of a text that was given out, and the memory that it shows; `text` is None where it was erased."""

    memory: str | None
    text: str | None


@dataclass(frozen=True)
class Trace:
    """What one search, recall, injection, capture or proposal gave out, and how it came about.

    Ids are 32 hex digits, its own begins with `at`, which is µs since 1970 UTC; `stages` are names and µs. `pieces`
    joined are the exact text; None where only memories as they are were given out. The `repr` shows no text.
    """

    id: str
    at: int
    surface: str
    turn: str | None = field(default=None, repr=False)
    about: str | None = None
    query: str | None = field(default=None, repr=False)
    searched: str | None = field(default=None, repr=False)
    terms: tuple[str, ...] = field(default=(), repr=False)
    time: Mapping[str, Any] | None = field(default=None, repr=False)
    engine: str = "none"
    embedder: str | None = None
    floor: float | None = None
    considered: int = 0
    candidates: tuple[Candidate, ...] = ()
    stages: tuple[tuple[str, int], ...] = ()
    served: tuple[Given, ...] = ()
    pieces: tuple[Piece, ...] | None = field(default=None, repr=False)
    receipt: Mapping[str, Any] | None = field(default=None, repr=False)
    erased: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Fields of newer software, carried on."""

    @property
    def text(self) -> str | None:
        """The exact text that was given out; None where there was none, or a part of it was erased since."""
        if self.pieces is None or any(piece.text is None for piece in self.pieces):
            return None
        return "".join(piece.text or "" for piece in self.pieces)

    @property
    def memories(self) -> frozenset[str]:
        """The ids of all memories that it names, but those that were erased."""
        shown = (piece.memory for piece in self.pieces or () if piece.memory is not None and piece.text is not None)
        named = {*(each.memory for each in self.candidates), *(each.memory for each in self.served), *shown}
        return frozenset(named - set(self.erased))


# ── one trace ───────────────────────────────────────────────────────────────────────────────────────


def encode_trace(trace: Trace) -> dict[str, Any]:
    """Return the map of a trace."""
    return {
        **trace.others,
        "id": bytes.fromhex(trace.id),
        "at": trace.at,
        "surface": trace.surface,
        "turn": trace.turn,
        "about": _octets(trace.about),
        "query": trace.query,
        "searched": trace.searched,
        "terms": list(trace.terms),
        "time": None if trace.time is None else dict(trace.time),
        "engine": trace.engine,
        "embedder": trace.embedder,
        "floor": trace.floor,
        "considered": trace.considered,
        "candidates": [
            [bytes.fromhex(each.memory), each.score, each.lexical, each.cosine, int(each.related), int(each.served)]
            for each in trace.candidates
        ],
        "stages": [list(stage) for stage in trace.stages],
        "served": [
            [bytes.fromhex(each.memory), each.state, int(each.truncated), int(each.masked)] for each in trace.served
        ],
        "pieces": None if trace.pieces is None else [[_octets(each.memory), each.text] for each in trace.pieces],
        "receipt": None if trace.receipt is None else dict(trace.receipt),
        "erased": [bytes.fromhex(each) for each in trace.erased],
    }


_KNOWN: Final = frozenset(each.name for each in fields(Trace) if each.name != "others")


def decode_trace(value: Any) -> Trace:
    """Return the trace that a map holds; raises `FormatError` `trace_invalid`."""
    fields = Fields(value, _CODE, "trace")
    return Trace(
        id=fields.size("id", ID_SIZE).hex(),
        at=fields.count("at", -_I64, _I64),
        surface=fields.text("surface"),
        turn=_optional_text(fields, "turn"),
        about=None if fields.optional("about") is None else fields.size("about", ID_SIZE).hex(),
        query=_optional_text(fields, "query"),
        searched=_optional_text(fields, "searched"),
        terms=tuple(_text(each, "terms") for each in fields.array("terms")),
        time=_optional_map(fields, "time"),
        engine=fields.text("engine"),
        embedder=_optional_text(fields, "embedder"),
        floor=_optional_number(fields.optional("floor"), "floor"),
        considered=fields.count("considered"),
        candidates=tuple(_candidate(row) for row in fields.tuples("candidates", 6)),
        stages=tuple((_text(name, "stages"), _count(spent, "stages")) for name, spent in fields.tuples("stages", 2)),
        served=tuple(_given(row) for row in fields.tuples("served", 4)),
        pieces=None if fields.optional("pieces") is None else tuple(_piece(row) for row in fields.tuples("pieces", 2)),
        receipt=_optional_map(fields, "receipt"),
        erased=tuple(_id(each, "erased") for each in fields.array("erased")),
        others=fields.others(_KNOWN),
    )


def _candidate(row: list[Any]) -> Candidate:
    memory, score, lexical, cosine, related, served = row
    where = "candidates"
    return Candidate(
        _id(memory, where),
        _number(score, where),
        _number(lexical, where),
        _optional_number(cosine, where),
        _flag(related, where),
        _flag(served, where),
    )


def _given(row: list[Any]) -> Given:
    memory, state, truncated, masked = row
    return Given(_id(memory, "served"), _count(state, "served"), _flag(truncated, "served"), _flag(masked, "served"))


def _piece(row: list[Any]) -> Piece:
    memory, text = row
    return Piece(
        None if memory is None else _id(memory, "pieces"),
        None if text is None else _text(text, "pieces"),
    )


# ── a file of traces ────────────────────────────────────────────────────────────────────────────────


def trace_id(at: int, random: bytes) -> str:
    """Return the id of a trace that is made at a time, in µs since 1970 UTC; 8 random bytes."""
    return (max(0, at).to_bytes(8, "big") + random).hex()


def made_at(trace: str) -> int:
    """Return when a trace was made, in µs since 1970 UTC, by its id."""
    return int(trace[:16], 16)


def trace_nonce(began: int, random: bytes) -> bytes:
    """Return the nonce of a file that is begun now: `began` in µs since 1970 UTC, 4 random bytes."""
    return max(0, began).to_bytes(8, "big") + random


def began_of(nonce: bytes) -> int:
    """Return when a file was begun, in µs since 1970 UTC."""
    return int.from_bytes(nonce[:8], "big")


def trace_preamble(vault_id: bytes, device_id: bytes, nonce: bytes) -> bytes:
    """Return the preamble of a file of traces."""
    return Preamble(Kind.TRACE, 0, vault_id, device_id, nonce).to_bytes()


def check_trace_preamble(content: bytes | memoryview, vault_id: bytes, device_id: bytes, nonce: bytes) -> None:
    """Raise `FormatError` unless this is how the file of that device and nonce begins."""
    decode_preamble(content, Kind.TRACE, vault_id)
    if bytes(content[:PREAMBLE_SIZE]) != trace_preamble(vault_id, device_id, nonce):
        raise FormatError(_CODE, "a file of another device, or under another's name: it goes with its age")


def check_trace_size(size: int) -> None:
    """Raise `FormatError` where a file of traces has more bytes than one may."""
    if size > FILE_LIMIT:
        raise FormatError(_CODE, "larger than a file of traces may be: it is passed over")


class Sealed(NamedTuple):
    """One trace as stored, and the chain after it."""

    record: bytes
    chain: bytes


def seal_trace(key: RecordKey, preamble: bytes, index: int, chain: bytes, trace: Trace) -> Sealed:
    """Return the record of a trace at its place; of one that is too large parts are left out."""
    for lesser in _lesser(trace):
        content = content_pieces(Content(chain, False, encode_trace(lesser), ()))
        if sum(map(len, content)) <= TRACE_LIMIT:
            record = bytes(seal_pieces(key, preamble, index, content))
            return Sealed(record, chain_next(chain, record))
    raise FormatError(_CODE, "a trace is larger than one may be, without what could be left out")


def _lesser(trace: Trace) -> Iterator[Trace]:
    """Yield a trace, and what is left of it without one part after the other."""
    yield trace
    yield (trace := replace(trace, candidates=()))
    yield (trace := replace(trace, pieces=None))
    yield replace(trace, served=trace.served[:_SERVED_LEAST], receipt=None)


def read_traces(name: str, key: RecordKey, content: memoryview) -> Iterator[Trace | Finding]:
    """Yield the traces of a file, its preamble already checked, and what is wrong with it; `name` is for findings.

    A record that is incomplete at the end is what a process that was killed leaves, and is passed over.
    """
    try:
        check_trace_size(len(content))
    except FormatError as error:
        yield Finding(error.code, name, str(error))
        return
    for found in read_run(name, key, content, start_of_part(bytes(content[:PREAMBLE_SIZE]))):
        if isinstance(found, Finding):
            if found.code == "checkpoint_invalid":  # a run's word for a record that is signed
                yield replace(found, code=_CODE, detail="a record is signed, which no trace is")
            elif found.code != "record_torn":
                yield found
            continue
        try:
            yield decode_trace(found.meta)
        except FormatError as error:
            yield Finding(error.code, name, str(error))


# ── values ──────────────────────────────────────────────────────────────────────────────────────────


def _octets(memory_id: str | None) -> bytes | None:
    return None if memory_id is None else bytes.fromhex(memory_id)


def _wrong(where: str) -> FormatError:
    return FormatError(_CODE, f"trace.{where} is missing or not what it must be")


def _id(value: Any, where: str) -> str:
    if type(value) is not bytes or len(value) != ID_SIZE:
        raise _wrong(where)
    return value.hex()


def _text(value: Any, where: str) -> str:
    if type(value) is not str:
        raise _wrong(where)
    return value


def _count(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < U32:
        raise _wrong(where)
    return value


def _flag(value: Any, where: str) -> bool:
    if type(value) is not int or value not in (0, 1):
        raise _wrong(where)
    return value == 1


def _number(value: Any, where: str) -> float:
    if type(value) is not float or not math.isfinite(value):
        raise _wrong(where)
    return value


def _optional_number(value: Any, where: str) -> float | None:
    return None if value is None else _number(value, where)


def _optional_text(fields: Fields, name: str) -> str | None:
    return None if fields.optional(name) is None else fields.text(name)


def _optional_map(fields: Fields, name: str) -> dict[str, Any] | None:
    value: dict[str, Any] | None = fields.optional(name)
    fields.check(value is None or type(value) is dict, name)
    return value
