"""The items of a JSON array one by one, so that a file of gigabytes is never held whole."""

import json
import re
from collections.abc import Iterator
from typing import Final, TextIO

from memseal.surfaces.importing.items import BadRow

_PIECE: Final = 1 << 20
ITEM_LIMIT: Final = 1 << 26
"""Characters of one item: what is held at most, a few times over. A conversation of years has some millions."""
_SEPARATOR = re.compile(r"[ \t\r\n]*[,\]]")
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")


def array_items(file: TextIO) -> Iterator[object]:
    """Yield each item of the array that a file holds; raises `BadRow` where it goes on no more."""
    buffer = _Buffer(file)
    if buffer.next_character() != "[":
        raise BadRow("the file is not a JSON array")
    buffer.skip(1)
    if buffer.next_character() == "]":
        return
    while True:
        yield buffer.item()
        separator = buffer.next_character()
        buffer.skip(1)
        if separator == "]":
            return
        if separator != ",":
            raise BadRow("the file ends, or is damaged, after this row")


class _Buffer:
    """What was read of a file and not yet used."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._place = 0
        self._decoder = json.JSONDecoder(parse_constant=_nothing)

    def next_character(self) -> str:
        """Return the next character that is not white space, or an empty text at the end."""
        while True:
            match = _SPACE.match(self._text, self._place)
            self._place = self._place if match is None else match.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more(_PIECE):
                return ""

    def skip(self, count: int) -> None:
        """Go past characters."""
        self._place += count

    def item(self) -> object:
        """Return the item that begins here."""
        self.next_character()
        while True:
            held = len(self._text) - self._place
            outcome = self._decoded()
            if outcome is not None and self._is_whole(*outcome):
                self._place = outcome[1]
                return outcome[0]
            if held > ITEM_LIMIT:
                raise BadRow("the row is damaged, or larger than can be read")
            # Twice as much each time: an item is parsed a few times at most, whatever its size.
            if not self._more(max(_PIECE, held)):
                raise BadRow("the row is not valid JSON: the file is damaged or cut, and what follows is not read")

    def _is_whole(self, item: object, end: int) -> bool:
        """Return whether an item ends where it seems to: of a number that is cut, the beginning is a number too."""
        return isinstance(item, dict | list | str) or _SEPARATOR.match(self._text, end) is not None

    def _decoded(self) -> tuple[object, int] | None:
        # The error is dealt with here: it holds the text.
        try:
            return self._decoder.raw_decode(self._text, self._place)
        except (ValueError, RecursionError):
            return None

    def _more(self, size: int) -> bool:
        piece = self._file.read(size)
        self._text = self._text[self._place :] + piece
        self._place = 0
        return bool(piece)


def _nothing(name: str) -> None:
    """Take NaN and infinity, which are not JSON, for nothing: one of them is no reason to lose what follows."""
