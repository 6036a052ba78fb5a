"""What an erase leaves of traces (vault-format §8e)."""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from memseal.format.trace import Piece, Trace

# A shorter text stands in too many others: it is looked for as the whole of them alone.
_LEAST_CHARS: Final = 4
_ITEM: Final = re.compile(r'- (?=")')


def shown_texts(traces: Iterable[Trace], erased: Collection[str]) -> set[str]:
    """Return what traces show of the content of memories: whole, or the beginning that was given out."""
    found = set[str]()
    for trace in traces:
        for piece in trace.pieces or ():
            if piece.memory in erased and piece.text is not None:
                found.add(_content(piece.text))
    return found - {""}


def without(trace: Trace, erased: Collection[str], texts: Collection[str]) -> Trace:
    """Return what may be left of a trace when memories with these ids and texts are erased: itself, if it has none.

    The ids stay, as they do in the vault; `erased` lists them.
    """
    gone = {each for each in trace.memories if each in erased}
    told = [_plain(text) for text in texts]
    pieces = trace.pieces if trace.pieces is None else tuple(_left(piece, gone, told) for piece in trace.pieces)
    asked = (trace.query, trace.searched, trace.turn)
    if _is_telling(trace, gone) or any(_holds(text, told) for text in asked if text is not None):
        trace = replace(trace, query=None, searched=None, turn=None, terms=(), time=None, receipt=None)
    if not gone and pieces == trace.pieces:
        return trace
    return replace(trace, pieces=pieces, erased=tuple(sorted({*trace.erased, *gone})))


def _is_telling(trace: Trace, gone: Collection[str]) -> bool:
    """Whether what was asked says something of a memory that went: it was given out for that, or shares a word."""
    return any(each.memory in gone for each in trace.served) or any(
        each.memory in gone and each.lexical > 0 for each in trace.candidates
    )


def _left(piece: Piece, gone: Collection[str], told: list[str]) -> Piece:
    if piece.text is None or not (piece.memory in gone or (piece.memory is None and _holds(piece.text, told))):
        return piece
    return piece._replace(text=None)


def _holds(text: str, told: list[str]) -> bool:
    plain = _plain(text)
    return any(plain == each or (len(each) >= _LEAST_CHARS and each in plain) for each in told)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _content(line: str) -> str:
    """Return the content that a rendered line quotes; another piece is taken as it is."""
    if not (start := _ITEM.match(line)):
        return line.strip()
    try:
        content, _ = json.JSONDecoder().raw_decode(line, start.end())
    except ValueError:
        return line.strip()
    return str(content)
