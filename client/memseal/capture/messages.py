"""The messages of a conversation, and which of their words are the user's own."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from memseal.recall.given import without_given

USER: Final = "user"
# More of one message is a document, and no statement about who sent it.
MAX_CHARS: Final = 20_000
_CODE: Final = re.compile(
    r"^[^\S\n]*(?:```|~~~).*?(?:^[^\S\n]*(?:```|~~~)[^\S\n]*$|\Z)|`[^`\n]*`", re.DOTALL | re.MULTILINE
)
_QUOTED_LINE: Final = re.compile(r"^[^\S\n]*(?:>|\|).*$", re.MULTILINE)
# A quotation of several words is somebody else's; one of a word or two is a name.
_QUOTED: Final = re.compile(r"[\"“„«](?:[^\"“”„«»\n]*\s){3,}[^\"“”„«»\n]*[\"”“»]")
_END: Final = re.compile("(?<=[.!?…。\uff01\uff1f])[\"'”\u2019)\\]]*\\s+")
# A full stop after these ends no sentence: half a statement may say something else.
_ABBREVIATED: Final = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|No|Nr|vs|etc|e\.g|i\.e|z\.B|bzw|ca|approx|[A-Z])\.$")
_BULLET: Final = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+")


class Message(NamedTuple):
    """What one side said: `role` as chat programs name it, and when, if that is known."""

    role: str
    text: str
    at: datetime | None = None


def messages_of(given: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return messages from maps with `role`, `content` (a text, or parts with a `text`) and maybe an aware `at`.

    Raises `TypeError` for what has no role, or a content of another shape; a tool call's missing content is empty.
    """
    return [_message(number, each) for number, each in enumerate(given)]


def _message(number: int, value: Mapping[str, Any]) -> Message:
    if not isinstance(value, Mapping):
        raise TypeError(f"message {number} is a map with role and content, not {type(value).__name__}")
    role, content, at = value.get("role"), value.get("content"), value.get("at")
    if not isinstance(role, str):
        raise TypeError(f"message {number} has no role: each is a map with role and content")
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        raise TypeError(f"message {number}: at is an aware datetime")
    return Message(role, _text(number, content), at)


def _text(number: int, content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts: list[Any] = content
    if type(parts) is not list:
        raise TypeError(f"message {number}: content is a text, or a list of parts with a text")
    texts = [cast("Mapping[str, Any]", part).get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def own_words(message: Message) -> str:
    """Return what the user wrote: without recalled text, code, and what is quoted; nothing of other roles."""
    if message.role != USER:
        return ""
    text = without_given(message.text[:MAX_CHARS])
    return _QUOTED.sub(" … ", _QUOTED_LINE.sub("", _CODE.sub("\n", text)))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with single spaces."""
    for line in text.splitlines():
        begun = ""
        for piece in _END.split(_BULLET.sub("", line)):
            begun = f"{begun} {piece}".strip()
            if not _ABBREVIATED.search(begun):
                if begun:
                    yield " ".join(begun.split())
                begun = ""
        if begun:
            yield " ".join(begun.split())
