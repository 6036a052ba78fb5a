"""The texts within messages and tool calls, and the same structure with other texts."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from memseal.errors import SanitizerInput

# Fields that programs read: what they hold is no prose, and a stand-in there would break the call.
_LEFT: Final = frozenset(
    (
        "role",
        "type",
        "id",
        "tool_call_id",
        "call_id",
        "object",
        "model",
        "finish_reason",
        "index",
        "detail",
        "mime_type",
        "media_type",
    )
)
_FUNCTION_NAME: Final = "name"
_JSON: Final = frozenset(("arguments", "partial_json"))
_ALL: Final = "\0all"  # stands for the name of any field: nothing under it is a program's
_DEEPEST: Final = 64


def texts_of(content: Any) -> list[str]:
    """Return all texts in a structure, those in the JSON of tool calls too, in order."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    _walk(content, keep, "", 0)
    return found


def with_texts(content: Any, texts: Sequence[str]) -> Any:
    """Return the structure with other texts, as many as `texts_of` found."""
    rest: Iterator[str] = iter(texts)
    return _walk(content, lambda _: str(next(rest)), "", 0)


def every_text(content: Any, change: Callable[[str], str]) -> Any:
    """Return JSON with all of its texts changed, whatever their fields are called."""
    return _walk(content, change, _ALL, 0)


def _walk(content: Any, change: Callable[[str], str], key: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise SanitizerInput("the content is nested too deeply")
    if isinstance(content, str):
        return _text(content, change, key, depth)
    if isinstance(content, Mapping):
        fields = cast("Mapping[str, Any]", content)
        if key == _ALL:
            return {name: _walk(value, change, _ALL, depth + 1) for name, value in fields.items()}
        return _fields(fields, change, depth)
    if isinstance(content, (list, tuple)):
        return [_walk(value, change, key, depth + 1) for value in cast("list[Any]", content)]
    if content is None or isinstance(content, (bool, int, float)):
        return content
    raise SanitizerInput(
        f"{type(content).__name__} is none of the shapes that messages have: give text, lists and mappings"
    )


def _fields(content: Mapping[str, Any], change: Callable[[str], str], depth: int) -> dict[str, Any]:
    return {
        name: value if _is_left(name, content) else _walk(value, change, name, depth + 1)
        for name, value in content.items()
    }


def _text(content: str, change: Callable[[str], str], key: str, depth: int) -> str:
    if key in _JSON:
        try:
            parsed = json.loads(content)
        except ValueError:
            return change(content)
        if isinstance(parsed, (dict, list)):
            return json.dumps(_walk(parsed, change, _ALL, depth + 1), ensure_ascii=False)
    return content if content.startswith("data:") and ";base64," in content[:80] else change(content)


def _is_left(name: str, content: Mapping[Any, Any]) -> bool:
    if name == _FUNCTION_NAME:  # of a function, not of a person
        return "arguments" in content or "parameters" in content or content.get("type") in ("function", "tool_use")
    return name in _LEFT and isinstance(content[name], (str, int))
