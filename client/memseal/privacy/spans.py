"""Stretches of a text that are personal, and which of several that overlap counts."""

from collections.abc import Iterable
from typing import Final, NamedTuple

# What people read as part of a sentence; the rest is data, of which half a number would be of no use.
NATURAL: Final = frozenset(("PERSON", "ORGANIZATION", "LOCATION"))


class Span(NamedTuple):
    """One detection: text[start:end] is of this type, as sure as the score says, found by this rule."""

    start: int
    end: int
    type: str
    score: float
    source: str = ""


def resolve(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return spans in order that do not overlap and cover every letter and digit that the given ones cover."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (-span.score, span.start - span.end, span)):
        kept = _settled(text, kept, span)
    return sorted(kept)


def trimmed(text: str, span: Span) -> Span | None:
    """Return the span without white space and quotes at its edges, or nothing if nothing else is in it."""
    start, end = max(0, span.start), min(span.end, len(text))
    while start < end and (text[start].isspace() or text[start] in "\"'`"):
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] in "\"'`"):
        end -= 1
    return span._replace(start=start, end=end) if start < end else None


def _settled(text: str, kept: list[Span], span: Span) -> list[Span]:
    rivals = [other for other in kept if other.start < span.end and span.start < other.end]
    if not rivals:
        return [*kept, span]
    if span.type in NATURAL or any(other.type in NATURAL for other in rivals):
        if all(_is_part(span, other) for other in rivals):
            return [*(other for other in kept if other not in rivals), span]
        return [*kept, *_rest(text, span, rivals)]
    # Two readings of one run of digits: whatever either covers becomes one value.
    union = rivals[0]._replace(
        start=min(span.start, *(other.start for other in rivals)), end=max(span.end, *(other.end for other in rivals))
    )
    return _settled(text, [other for other in kept if other not in rivals], union)


def _is_part(whole: Span, part: Span) -> bool:
    """Whether the part is but a word of a longer name: "Park" in "Park & Sons"."""
    return (
        {whole.type, part.type} <= NATURAL
        and whole.start <= part.start
        and part.end <= whole.end
        and whole.end - whole.start > part.end - part.start
    )


def _rest(text: str, span: Span, rivals: list[Span]) -> list[Span]:
    """Return what others leave of a span, where letters or digits are in it."""
    pieces: list[Span] = []
    start = span.start
    for other in sorted(rivals):
        if start < other.start:
            pieces.append(span._replace(start=start, end=other.start))
        start = max(start, other.end)
    if start < span.end:
        pieces.append(span._replace(start=start))
    return [piece for found in pieces if (piece := _tight(text, found)) is not None]


def _tight(text: str, span: Span) -> Span | None:
    start, end = span.start, span.end
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    return span._replace(start=start, end=end) if start < end else None
