"""The texts of one streamed answer, which arrive side by side, each in pieces of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memseal.privacy.restoring import Stream

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

Key = tuple[Any, ...]
"""Which of the texts a piece belongs to."""


@dataclass
class _Text:
    stream: Stream
    written: list[str] = field(default_factory=list[str])
    shown: list[str] = field(default_factory=list[str])


class Texts:
    """Restores each text by itself, and holds back the end of it where that may become a stand-in yet."""

    def __init__(self, sanitizer: "Sanitizer") -> None:
        """Take the session."""
        self._sanitizer = sanitizer
        self._texts: dict[Key, _Text] = {}

    def open(self) -> list[Key]:
        """Return which texts have not ended."""
        return list(self._texts)

    def push(self, key: Key, piece: str, escape: Callable[[str], str] = str) -> str:
        """Take the next piece of a text and return what can be said already."""
        if key not in self._texts:
            self._texts[key] = _Text(self._sanitizer.stream(escape))
        text = self._texts[key]
        text.written.append(piece)
        text.shown.append(text.stream.push(piece))
        return text.shown[-1]

    def shown(self, key: Key) -> str:
        """Return all that was said of a text until now."""
        return "".join(self._texts[key].shown)

    def end(self, key: Key) -> tuple[str, str, str]:
        """Return what was held back of a text, all of it as it is shown, and all of it as it was written."""
        text = self._texts.pop(key)
        rest = text.stream.end()
        return rest, "".join((*text.shown, rest)), "".join(text.written)
