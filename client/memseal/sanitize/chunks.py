"""Streamed chat completions: pieces with choices, each with a delta of its texts and tool calls."""

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from memseal.sanitize.answers import in_json
from memseal.sanitize.records import get, listed, put
from memseal.sanitize.texts import Key, Texts

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

_TEXTS: Final = ("content", "refusal", "reasoning_content", "reasoning")
_CALLS: Final = {"function": "arguments", "custom": "input"}  # of a tool call, where its words stand
_Escape = Callable[[str], str]


class Chunks:
    """Restores the pieces of one answer: of each choice its texts, and the words of each of its tool calls."""

    def __init__(self, sanitizer: "Sanitizer") -> None:
        """Take the session."""
        self._texts = Texts(sanitizer)
        self._last: dict[Key, Any] = {}  # the piece that each text came in last

    def take(self, piece: Any) -> Any:
        """Return a piece with what can be said already, and all that is held back where the answer ends."""
        changed = copy.deepcopy(piece)
        for choice in listed(changed, "choices"):
            number = get(choice, "index") or 0
            for holder, name, place, escape in _texts_of(choice):
                key = (number, place)
                self._last[key] = changed
                put(holder, name, self._texts.push(key, get(holder, name), escape))
            if get(choice, "finish_reason") is not None:
                self._finish(choice, number)
        return changed

    def rest(self) -> Iterator[Any]:
        """Return pieces with what is held back still, where an answer broke off."""
        for key in self._texts.open():
            rest, _, _ = self._texts.end(key)
            if rest:
                yield self._only(key, rest)

    def _finish(self, choice: Any, number: int) -> None:
        for key in self._texts.open():
            if key[0] != number:
                continue
            rest, _, _ = self._texts.end(key)
            if rest:
                _append(choice, self._last[key], key, rest)

    def _only(self, key: Key, rest: str) -> Any:
        """Return a copy of the piece that a text came in last, with nothing of any text but its rest."""
        made = copy.deepcopy(self._last[key])
        for choice in listed(made, "choices"):
            for holder, name, place, _ in _texts_of(choice):
                put(holder, name, rest if (get(choice, "index") or 0, place) == key else "")
        return made


def _texts_of(choice: Any) -> list[tuple[Any, str, Key, _Escape]]:
    """Return the texts of one choice: what holds each, in which field, which of the texts it is, and how it is set."""
    delta = get(choice, "delta")
    if delta is None:
        found: list[tuple[Any, str, Key, _Escape]] = [(choice, "text", ("text",), str)]
    else:
        found = [(delta, name, (name,), str) for name in _TEXTS]
        found.append((get(delta, "function_call"), "arguments", ("function_call",), in_json))
        found.append((get(delta, "audio"), "transcript", ("audio",), str))
        for call in listed(delta, "tool_calls"):
            index = get(call, "index") or 0
            found += [
                (get(call, kind), name, ("tool_calls", index, kind), in_json if name == "arguments" else str)
                for kind, name in _CALLS.items()
            ]
    return [each for each in found if isinstance(get(each[0], each[1]), str)]


def _append(choice: Any, last: Any, key: Key, rest: str) -> None:
    """Put the rest of a text into the last piece of its choice, whose delta need not speak of that text yet."""
    number, place = key
    for holder, name, other, _ in _texts_of(choice):
        if other == place:
            put(holder, name, get(holder, name) + rest)
            return
    delta = get(choice, "delta")
    if place[0] in _TEXTS:
        put(delta, place[0], rest)
        return
    for before in listed(last, "choices"):
        for holder, name, other, _ in _texts_of(before):
            if (get(before, "index") or 0, other) == (number, place):
                _carry(get(before, "delta"), delta, place, holder, name, rest)


def _carry(before: Any, delta: Any, place: Key, holder: Any, name: str, rest: str) -> None:
    """Give a delta the part of an earlier one that holds a text, with its rest."""
    if place[0] != "tool_calls":
        part = copy.deepcopy(holder)
        put(part, name, rest)
        put(delta, place[0], part)
        return
    call = next(each for each in listed(before, "tool_calls") if (get(each, "index") or 0) == place[1])
    more = copy.deepcopy(call)
    put(get(more, place[2]), name, rest)
    put(delta, "tool_calls", [*listed(delta, "tool_calls"), more])
