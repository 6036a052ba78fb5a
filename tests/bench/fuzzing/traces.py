"""The decoder of traces, behind the sealing: what whoever has the device's local key can write."""

from collections.abc import Iterator
from dataclasses import replace

from memseal.errors import MemsealError
from memseal.format.trace import Candidate, Given, Piece, Trace, decode_trace, encode_trace, read_traces
from memseal.recall.forgetting import without
from tests.bench.fuzzing.mutation import bodies_of, framed, packed
from tests.bench.fuzzing.sealed import _CHANGE_RUN, _KEY, _claimed, _preamble_of, _sealed
from tests.bench.fuzzing.target import Target

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_A, _B = bytes(range(16)).hex(), bytes(range(16, 32)).hex()
_SAMPLE = Trace(
    id=_A,
    at=1_700_000_000_000_000,
    surface="recall",
    turn="a turn",
    query="where are the cashews?",
    terms=("cashews",),
    time={"phrase": "last week", "spans": [["2026-01-01", None]]},
    embedder="a model",
    floor=0.3,
    considered=2,
    candidates=(Candidate(_A, 1.5, 0.5, 0.4, True, True), Candidate(_B, -0.5, 0.0, None, False, False)),
    stages=(("read", 12),),
    served=(Given(_A, 0, True),),
    pieces=(Piece(None, "<memories>\n"), Piece(_A, '- "cashews" [note]\n'), Piece(_B, None)),
    receipt={"status": "ok", "served": [{"id": _A}]},
    erased=(_B,),
)


def _traces(content: bytes) -> None:
    fix, content = content[0] if content else 0, content[1:]
    preamble = _preamble_of(content)
    file = preamble + _sealed(_KEY, preamble, bodies_of(content), fix & 1)
    for found in read_traces("a file", _KEY, memoryview(file)):
        if isinstance(found, Trace):
            # A signed zero and a nested value that is equal to another are compared by what is shown of them.
            _claimed(repr(decode_trace(encode_trace(found))) == repr(found), "a trace that was read can be written")
            left = without(found, found.memories, {"cashews"})
            _claimed(not left.memories, "what is erased is named no more")


def _files() -> Iterator[bytes]:
    for traces in ([_SAMPLE], [_SAMPLE, replace(_SAMPLE, pieces=None, receipt=None)]):
        bodies = list[bytes]()
        for each in traces:
            meta = packed(encode_trace(each))
            bodies.append(bytes(33) + len(meta).to_bytes(4, "big") + meta)
        yield b"\1" + framed(bytes(64), bodies)


TARGETS = {"trace": Target(_traces, _files, REFUSALS, _CHANGE_RUN)}
