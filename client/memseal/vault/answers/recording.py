"""Traces of searches, recalls and injections: from what was found to what is kept of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memseal.format.trace import Candidate, Given, Piece
from memseal.recall.packet import Packet
from memseal.recall.query import MAX_CHARS
from memseal.recall.receipt import time_value
from memseal.recall.rendering import pieces_of
from memseal.vault.answers.recalling import Looked, engine_of
from memseal.vault.answers.searching import Found, Hits
from memseal.vault.folder.opening import Opened
from memseal.vault.folder.tracing import note, readable


def searched(
    opened: Opened,
    found: Found,
    candidates: tuple[Candidate, ...],
    query: str | None,
    turn: str | None,
    embedder: str | None,
) -> Hits:
    """Return the hits of a search, and leave its trace."""
    trace_id = note(
        opened,
        "search",
        turn=turn,
        query=None if query is None else readable(query[:MAX_CHARS]),
        served=[Given(hit.memory.id, int(hit.memory.state)) for hit in found.hits],
        candidates=candidates,
        time=time_value(found.query.period, "prefer"),
        embedder=None if found.vector is None else embedder,
        **_of(found),
    )
    return Hits(found.hits, trace_id)


def recalled(opened: Opened, looked: Looked, packet: Packet, turn: str | None) -> Packet:
    """Return a packet with the id of its trace, which is left here."""
    found, receipt = looked.found, packet.receipt
    found.stages.done("pack")
    shown = {hit.memory.id for hit in packet.hits}
    trace_id = note(
        opened,
        "recall",
        turn=turn,
        query=receipt.query,
        served=[Given(each.id, each.state, each.truncated, each.masked) for each in receipt.served],
        pieces=[Piece(*piece) for piece in pieces_of(packet.text)],
        candidates=tuple(each._replace(served=each.memory in shown) for each in looked.candidates),
        time=receipt.time,
        receipt=receipt.to_value(),
        embedder=receipt.embedder,
        **_of(found),
    )
    return replace(packet, trace_id=trace_id)


def injected(opened: Opened, text: str, about: str | None, turn: str | None) -> str | None:
    """Leave the trace of a text that went to a model, and return its id."""
    pieces = [Piece(*piece) for piece in pieces_of(text)]
    served = dict.fromkeys(piece.memory for piece in pieces if piece.memory is not None)
    return note(
        opened, "injection", turn=turn, about=about, pieces=pieces, served=[Given(memory, 0) for memory in served]
    )


def _of(found: Found) -> Mapping[str, Any]:
    """Return what every trace of a question has."""
    return {
        "searched": found.query.text,
        "terms": found.query.terms,
        "engine": engine_of(found),
        "floor": None if found.vector is None else found.floor,
        "considered": found.considered,
        "stages": tuple(found.stages.spent),
    }
