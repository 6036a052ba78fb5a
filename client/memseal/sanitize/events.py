"""Streamed events, each with a type: of OpenAI's responses, of Anthropic's messages, and of helpers around them."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from memseal.sanitize.answers import Answers, in_json
from memseal.sanitize.chunks import Chunks
from memseal.sanitize.records import get, put
from memseal.sanitize.texts import Key, Texts

_BLOCK, _HELPER = "content_block", "helper"  # begin the keys of Anthropic's texts
_BLOCK_FIELDS: Final = ("text", "thinking", "partial_json")
_HELPER_FIELDS: Final = {"text": "text", "thinking": "thinking", "input_json": "partial_json"}
_PLACES: Final = ("output_index", "content_index", "summary_index", "command_index", "index")
_BYTES: Final = "response.audio.delta"
_ITEM_DONE: Final = "response.output_item.done"
_LAST: Final = frozenset(("response.completed", "response.failed", "response.incomplete", "message_stop", "error"))
_SO_FAR: Final = ("snapshot", "arguments", "parsed", "parsed_arguments")  # of a text, beside its newest piece


class _Piece(NamedTuple):
    """Where in an event a piece of a text stands, and of which text it is."""

    holder: str  # a field of the event, or nothing for the event itself
    name: str
    key: Key
    escape: Callable[[str], str]

    def within(self, event: Any) -> Any:
        return get(event, self.holder) if self.holder else event


class Events:
    """Restores one answer's events; what was held back of a text comes as one more event before the text's end."""

    def __init__(self, answers: Answers) -> None:
        """Take what restores whole values."""
        self._answers = answers
        self._texts = Texts(answers.sanitizer)
        self._chunks = Chunks(answers.sanitizer)  # of the helper that wraps chat completions
        self._last: dict[Key, tuple[Any, _Piece]] = {}  # the event that each text came in last

    def take(self, event: Any) -> Iterator[Any]:
        """Return what is to be said now: the event, and before it the rests of the texts that it ends."""
        for key in self._texts.open():
            if _ends(event, key):
                yield from self._rest(key)
        pieces = _pieces_of(event)
        if not pieces:
            yield self._whole(event)
            return
        changed = copy.deepcopy(event)
        for piece in pieces:
            self._last[piece.key] = changed, piece
            holder = piece.within(changed)
            put(holder, piece.name, self._texts.push(piece.key, get(holder, piece.name), piece.escape))
            self._say_so_far(changed, piece)
        yield changed

    def rest(self) -> Iterator[Any]:
        """Return events with what is held back still, where an answer broke off."""
        for key in self._texts.open():
            yield from self._rest(key)

    def _whole(self, event: Any) -> Any:
        if get(event, "type") != "chunk":
            return self._answers.restored(event)
        changed = copy.copy(event)
        put(changed, "chunk", self._chunks.take(get(event, "chunk")))
        put(changed, "snapshot", self._answers.restored(get(event, "snapshot")))
        return changed

    def _rest(self, key: Key) -> Iterator[Any]:
        last, piece = self._last.pop(key)
        rest, shown, written = self._texts.end(key)
        if piece.name == "thinking":
            self._answers.thoughts.keep(shown, written)
        if not rest:
            return
        made = copy.deepcopy(last)
        put(piece.within(made), piece.name, rest)
        if isinstance(get(made, "snapshot"), str):
            put(made, "snapshot", shown)
        yield made

    def _say_so_far(self, event: Any, piece: _Piece) -> None:
        for name in _SO_FAR:
            value = get(event, name)
            if name == piece.name or value is None:
                continue
            shown = self._texts.shown(piece.key) if isinstance(value, str) else self._answers.restored(value, "parsed")
            put(event, name, shown)


def _pieces_of(event: Any) -> list[_Piece]:
    kind = get(event, "type")
    if kind == "content_block_delta":
        found = [
            _Piece("delta", name, (_BLOCK, get(event, "index"), name), in_json if name == "partial_json" else str)
            for name in _BLOCK_FIELDS
        ]
    elif kind in _HELPER_FIELDS:
        name = _HELPER_FIELDS[kind]
        found = [_Piece("", name, (_HELPER, kind), in_json if name == "partial_json" else str)]
    elif isinstance(kind, str) and kind.endswith(".delta") and kind != _BYTES:
        stem, places = kind.removesuffix(".delta"), _places(event)
        escape = in_json if stem.endswith("arguments") else str
        found = [
            _Piece("", "delta", (stem, places), escape),
            _Piece("", "arguments_delta", (stem, places), escape),
            *(_Piece("delta", name, (stem, places, name), str) for name in ("stdout", "stderr")),
        ]
    else:
        return []
    return [piece for piece in found if isinstance(get(piece.within(event), piece.name), str)]


def _ends(event: Any, key: Key) -> bool:
    """Whether a text is over when an event comes."""
    kind = get(event, "type")
    if kind in _LAST:
        return True
    if kind == "content_block_stop":
        return key[0] == _HELPER or key[:2] == (_BLOCK, get(event, "index"))
    if key[0] in (_BLOCK, _HELPER):
        return False
    places: Key = key[1]
    if kind == _ITEM_DONE:
        return places[:1] == (get(event, _PLACES[0]),)
    return kind == f"{key[0]}.done" and places == _places(event)


def _places(event: Any) -> Key:
    return tuple(get(event, name) for name in _PLACES)
