"""ChatGPT's export: `conversations.json`, an array of conversations, each a tree of messages.

Of a tree the branch that was last looked at counts (`current_node`). What the assistant was told to keep (messages to
`bio`) and the custom instructions become memories of their own.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from memseal.surfaces.importing.conversations import USER, Message, read_messages, text_of
from memseal.surfaces.importing.items import ImportItem, Reading

NAME: Final = "ChatGPT"
_MEMORY = "bio"
"""To whom the assistant sends what it is to keep of its user."""
_SPOKEN = ("text", "multimodal_text")
_AUTHORS: Final = {"user": USER, "assistant": NAME}
_INSTRUCTIONS = ("user_profile", "user_instructions")
_Fields = Mapping[str, object]


def is_conversation(value: object) -> bool:
    """Return whether a parsed item looks like one of ChatGPT's conversations."""
    return isinstance(value, dict) and "mapping" in value


def read_chatgpt(conversations: Iterable[object], reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each message of the parsed conversations; an error's line is the message's number."""
    return read_messages(messages(conversations), "chatgpt", NAME, reading)


def messages(conversations: Iterable[object]) -> Iterator[Message]:
    """Yield all that will be read; a conversation of another shape is one message that cannot be."""
    instructions = set[str]()
    for number, conversation in enumerate(conversations, start=1):
        fields = _fields(conversation)
        mapping = _fields(fields.get("mapping"))
        identity = text_of(fields, "conversation_id") or text_of(fields, "id")
        if not mapping or not identity:
            yield Message(problem=f"conversation {number} has no id or no messages that could be read")
            continue
        for message in _of_conversation(fields, mapping, identity):
            if message.conversation:
                yield message
            elif message.id not in instructions:
                # Every conversation repeats them.
                instructions.add(message.id)
                yield message


def _of_conversation(conversation: _Fields, mapping: _Fields, identity: str) -> Iterator[Message]:
    title, began = text_of(conversation, "title"), conversation.get("create_time")
    for position, node in enumerate(_path(mapping, conversation.get("current_node")), start=1):
        fields = _fields(mapping[node]).get("message")
        message = _fields(fields)
        content = _fields(message.get("content"))
        if content.get("content_type") == "user_editable_context":
            yield from _instructions(content)
        elif (kept := _kept(message, content)) is not None:
            author, text, kind, tags = kept
            time = message.get("create_time") or began
            yield Message(identity, title, position, text_of(message, "id") or node, author, text, time, kind, tags)


def _kept(message: _Fields, content: _Fields) -> tuple[str, str, str, tuple[str, ...]] | None:
    """Return author, text, kind and tags of a message to keep; None for tools, thoughts and what was never shown."""
    author = _AUTHORS.get(text_of(_fields(message.get("author")), "role"))
    metadata, recipient = _fields(message.get("metadata")), message.get("recipient")
    if author is None or metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    if recipient == _MEMORY:
        text = _text(content) or text_of(content, "text")
        return (author, text, "fact", ("memory",)) if text.strip() else None
    if content.get("content_type") not in _SPOKEN or recipient not in (None, "", "all"):
        return None
    text = _text(content)
    return (author, text, "episode", ()) if text.strip() else None


def _text(content: _Fields) -> str:
    """Return what is said in a message's parts; pictures have no text."""
    parts = content.get("parts")
    found = list[str]()
    for part in cast("list[object]", parts) if isinstance(parts, list) else []:
        text = part if isinstance(part, str) else text_of(_fields(part), "text")
        if text:
            found.append(text)
    return "\n".join(found)


def _instructions(content: _Fields) -> Iterator[Message]:
    for name in _INSTRUCTIONS:
        if (text := text_of(content, name)).strip():
            # Named by what they say: a changed instruction is another memory.
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            yield Message(id=f"{name}/{digest}", author=USER, text=text, kind="preference", tags=("instructions",))


def _path(mapping: _Fields, current: object) -> list[str]:
    """Return the nodes from the first to the current one; the last that was added where none is named."""
    node = current if isinstance(current, str) and current in mapping else next(reversed(list(mapping)))
    path, seen = list[str](), set[str]()
    while node in mapping and node not in seen:
        seen.add(node)
        path.append(node)
        parent = _fields(mapping[node]).get("parent")
        node = parent if isinstance(parent, str) else ""
    return path[::-1]


def _fields(value: object) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}
