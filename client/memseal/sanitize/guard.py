"""A client of a provider, wrapped: what is called with it is sanitized, what it answers is restored."""

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from memseal.privacy.restoring import Stream
from memseal.privacy.structures import every_text

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

# What calls hand over that a person may have written; settings such as the model's name stay as they are.
_SANITIZED: Final = frozenset(("messages", "input", "prompt", "instructions", "system", "user", "metadata", "query"))
_TEXT: Final = frozenset(("content", "text", "refusal", "output_text", "reasoning_content"))
_ARGUMENTS: Final = frozenset(("arguments", "partial_json"))
_DEEPEST: Final = 32


class Guarded:
    """Stands for a client or a part of one; everything that is called through it passes the sanitizer."""

    def __init__(self, inner: Any, sanitizer: "Sanitizer") -> None:
        """Take the client."""
        self._inner = inner
        self._sanitizer = sanitizer

    def __repr__(self) -> str:
        return f"<guarded {type(self._inner).__name__}>"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return (
            found if isinstance(found, (str, int, float, bool, bytes, type(None))) else Guarded(found, self._sanitizer)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what is wrapped with stand-ins, and return its answer with real values."""
        clean = {name: self._clean(value) if name in _SANITIZED else value for name, value in kwargs.items()}
        return self._answer(self._inner(*map(self._clean, args), **clean))

    def _clean(self, value: Any) -> Any:
        # Plain types: clients look at them when they write JSON.
        value = _plain(value)
        if isinstance(value, str):
            return self._sanitizer.sanitize(value).text
        if isinstance(value, list):
            return list(self._sanitizer.sanitize(list(cast("Sequence[Any]", value))))
        return dict(self._sanitizer.sanitize(cast("dict[str, Any]", value))) if isinstance(value, dict) else value

    def _answer(self, answer: Any) -> Any:
        if hasattr(answer, "__await__"):
            return self._awaited(answer)
        if hasattr(answer, "__aiter__"):
            return self._async_pieces(answer)
        if _is_stream(answer):
            return self._pieces(answer)
        if _is_value(answer):
            return _changed(answer, "", self._restored, 0)
        return Guarded(answer, self._sanitizer)  # such as a raw response: what its methods return is an answer

    async def _awaited(self, answer: Any) -> Any:
        return self._answer(await answer)

    def _restored(self, text: str, key: str) -> str:
        if key in _ARGUMENTS:
            try:
                parsed = json.loads(text)
            except ValueError:
                return self._sanitizer.restorer().restore(text, _in_json)
            return json.dumps(every_text(parsed, self._sanitizer.restorer().restore), ensure_ascii=False)
        return self._sanitizer.restore(text)

    def _pieces(self, pieces: Any) -> Iterator[Any]:
        streams = _Streams(self._sanitizer.stream)
        for piece in pieces:
            yield streams.take(piece)
        yield from streams.rest()

    async def _async_pieces(self, pieces: Any) -> AsyncIterator[Any]:
        streams = _Streams(self._sanitizer.stream)
        async for piece in pieces:
            yield streams.take(piece)
        for piece in streams.rest():
            yield piece


class _Streams:
    """The texts that arrive side by side in one streamed answer: of each choice, and of each of its tool calls."""

    def __init__(self, begin: Callable[[Callable[[str], str]], Stream]) -> None:
        self._begin = begin
        self._streams: dict[tuple[Any, ...], Stream] = {}
        self._last: dict[tuple[Any, ...], Any] = {}  # the piece that each text came in last

    def take(self, piece: Any) -> Any:
        """Return a piece with what can be said already, and all that is held back where the answer ends."""
        changed = copy.deepcopy(piece)
        for choice in _listed(changed, "choices"):
            number = _get(choice, "index") or 0
            delta = _get(choice, "delta")
            if delta is None:
                self._push(changed, choice, "text", (number, "text"))
            else:
                self._take_delta(changed, delta, number)
            if _get(choice, "finish_reason") is not None:
                self._finish(changed, choice, delta, number)
        return changed

    def rest(self) -> Iterator[Any]:
        """Return pieces with what is held back still, where an answer broke off."""
        for key, stream in list(self._streams.items()):
            if text := stream.end():
                yield _only(self._last[key], key, text)

    def _take_delta(self, piece: Any, delta: Any, number: int) -> None:
        for name in ("content", "refusal", "reasoning_content"):
            self._push(piece, delta, name, (number, name))
        for call in _listed(delta, "tool_calls"):
            function = _get(call, "function")
            if function is not None:
                self._push(piece, function, "arguments", (number, "tool", _get(call, "index") or 0), _in_json)

    def _push(
        self, piece: Any, holder: Any, name: str, key: tuple[Any, ...], escape: Callable[[str], str] = str
    ) -> None:
        text = _get(holder, name)
        if not isinstance(text, str):
            return
        stream = self._streams.setdefault(key, self._begin(escape))
        self._last[key] = piece
        _set(holder, name, stream.push(text))

    def _finish(self, piece: Any, choice: Any, delta: Any, number: int) -> None:
        for key in [key for key in self._streams if key[0] == number]:
            text = self._streams.pop(key).end()
            if text and key[1] != "tool":
                holder = choice if delta is None else delta
                _set(holder, key[1], (_get(holder, key[1]) or "") + text)
            elif text:
                _append_arguments(self._last[key], piece, delta, key[2], text)


def _append_arguments(last: Any, piece: Any, delta: Any, index: int, text: str) -> None:
    """Put the rest of a tool call's arguments into a piece, whose delta need not speak of that call yet."""
    for call in _listed(delta, "tool_calls"):
        if (_get(call, "index") or 0) == index:
            function = _get(call, "function")
            _set(function, "arguments", (_get(function, "arguments") or "") + text)
            return
    for choice in _listed(last, "choices"):
        for call in _listed(_get(choice, "delta"), "tool_calls"):
            if (_get(call, "index") or 0) == index:
                more = copy.deepcopy(call)
                _set(_get(more, "function"), "arguments", text)
                _set(delta, "tool_calls", [*_listed(delta, "tool_calls"), more])
                return


def _only(piece: Any, key: tuple[Any, ...], text: str) -> Any:
    """Return a copy of a piece that carries nothing but the rest of one text."""
    made = copy.deepcopy(piece)
    for choice in _listed(made, "choices"):
        delta = _get(choice, "delta")
        holder = choice if delta is None else delta
        if key[1] != "tool":
            _set(holder, key[1], text)
            continue
        for call in _listed(delta, "tool_calls"):
            _set(_get(call, "function"), "arguments", text)
    return made


def _changed(value: Any, key: str, change: Callable[[str, str], str], depth: int) -> Any:
    """Return an answer with its texts changed; objects of a client are copied, and keep their type."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, str):
        return change(value, key) if not key or key in _TEXT or key in _ARGUMENTS else value
    if isinstance(value, list):
        return [_changed(item, key, change, depth + 1) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {name: _changed(item, name, change, depth + 1) for name, item in cast("dict[str, Any]", value).items()}
    if not _is_record(value):
        return value
    made = copy.copy(value)
    fields = dict(cast("dict[str, Any]", vars(value)))
    for name, item in fields.items():
        if not name.startswith("_") and (isinstance(item, (str, list, dict)) or _is_record(item)):
            _set(made, name, _changed(item, name, change, depth + 1))
    return made


def _is_value(answer: Any) -> bool:
    """Whether an answer is data all through, rather than an object that goes and gets some."""
    return answer is None or isinstance(answer, (str, bytes, int, float, list, dict, tuple)) or _is_record(answer)


def _is_record(value: Any) -> bool:
    """Whether an object is one of a client's data classes."""
    if isinstance(value, type):
        return False
    return hasattr(value, "model_dump") or is_dataclass(value) or isinstance(value, SimpleNamespace)


def _plain(value: Any) -> Any:
    """Return messages with the client's data classes as mappings: what it answered is often sent back to it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in cast("dict[str, Any]", value).items()}
    return value


def _is_stream(answer: Any) -> bool:
    """Whether an answer arrives in pieces; models of a client can be iterated as well, but have fields."""
    return hasattr(answer, "__next__") or (
        hasattr(answer, "__iter__") and not isinstance(answer, (str, list, dict, tuple)) and not _is_record(answer)
    )


def _get(holder: Any, name: str) -> Any:
    return cast("dict[str, Any]", holder).get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _set(holder: Any, name: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)


def _listed(holder: Any, name: str) -> list[Any]:
    return _get(holder, name) or []


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
