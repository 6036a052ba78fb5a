"""A streamed answer with real values, in whichever shape a client hands out its pieces."""

from collections.abc import Iterator
from typing import Any

from memseal.sanitize.answers import Answers
from memseal.sanitize.chunks import Chunks
from memseal.sanitize.events import Events
from memseal.sanitize.records import get
from memseal.sanitize.texts import Texts

_TEXT = ("text",)


class Pieces:
    """Restores the pieces of one answer: plain texts, chunks with choices, or events with a type."""

    def __init__(self, answers: Answers) -> None:
        """Take what restores whole values."""
        self._answers = answers
        self._texts = Texts(answers.sanitizer)
        self._chunks = Chunks(answers.sanitizer)
        self._events = Events(answers)

    def take(self, piece: Any) -> Iterator[Any]:
        """Return what is to be said when a piece has come: mostly that piece."""
        if isinstance(piece, str):
            yield self._texts.push(_TEXT, piece)
        elif get(piece, "choices") is not None:
            yield self._chunks.take(piece)
        elif isinstance(get(piece, "type"), str):
            yield from self._events.take(piece)
        else:
            yield self._answers.restored(piece)

    def rest(self) -> Iterator[Any]:
        """Return what is held back still where the answer ends."""
        yield from self._chunks.rest()
        yield from self._events.rest()
        for key in self._texts.open():
            rest, _, _ = self._texts.end(key)
            if rest:
                yield rest
