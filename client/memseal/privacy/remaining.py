"""What a second look finds in an outgoing text, and where in the original that stood."""

from collections.abc import Iterator, Sequence
from typing import Final

from memseal.privacy.lexicon import NOT_NAMES, Lexicon
from memseal.privacy.replacing import Replacement
from memseal.privacy.spans import NATURAL, Span

_WORDS_BESIDES: Final = 8  # letters


def counts(span: Span) -> bool:
    """Whether a detection in an outgoing text says something about the original."""
    # The model sees other sentences than before and imagines other organisations and places in them.
    return span.type not in NATURAL or (span.type == "PERSON" and span.source != "mentioned again")


def originals(text: str, made: Sequence[Replacement], span: Span, lexicon: Lexicon) -> Iterator[Span]:
    """Return what of a finding in the outgoing text no stand-in covers, where it stood in the original."""
    start = span.start
    shift = 0
    for replacement in made:
        if replacement.end <= span.start:
            shift = replacement.span.end - replacement.end
        elif replacement.start >= span.end:
            break
        else:
            yield from _piece(text, span, start + shift, replacement.start + shift, lexicon)
            start, shift = replacement.end, replacement.span.end - replacement.end
    yield from _piece(text, span, start + shift, span.end + shift, lexicon)


def _piece(text: str, span: Span, start: int, end: int, lexicon: Lexicon) -> Iterator[Span]:
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    if start >= end:
        return
    words = [word for word in text[start:end].split() if word[:1].isupper() or not word.isascii()]
    plain = all(
        lexicon.is_word(word.strip(".,:;'\"()").casefold()) or word.casefold().strip(".,:'") in NOT_NAMES
        for word in words
    )
    if span.type in NATURAL and span.source != "known in this session" and plain:
        return
    if span.type not in NATURAL and span.source != "known in this session" and (end - start) < span.end - span.start:
        return  # the rest of a shape around a stand-in, such as the host of an address: no value of its own
    yield span._replace(start=start, end=end)


def says_more(output: str, made: Sequence[Replacement]) -> bool:
    """Whether a text has words besides its stand-ins: without, anyone's text could be the same by chance."""
    standins = sum(sum(map(str.isalnum, output[item.start : item.end])) for item in made)
    return sum(map(str.isalnum, output)) - standins >= _WORDS_BESIDES
