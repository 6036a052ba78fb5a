"""Claude's export: `conversations.json` with `chat_messages`, and `memories.json`.

The text of attachments that the export holds follows the message it was attached to.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final, cast

from memseal.surfaces.importing.conversations import USER, Message, read_messages, text_of
from memseal.surfaces.importing.items import ImportItem, Reading

NAME: Final = "Claude"
_AUTHORS: Final = {"human": USER, "user": USER, "assistant": NAME}
_MEMORIES = ("conversations_memory", "project_memories")
_Fields = Mapping[str, object]


def is_conversation(value: object) -> bool:
    """Return whether a parsed item looks like one of Claude's conversations, or what it keeps of its user."""
    return isinstance(value, dict) and ("chat_messages" in value or any(name in value for name in _MEMORIES))


def read_claude(conversations: Iterable[object], reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each message of the parsed conversations; an error's line is the message's number."""
    return read_messages(messages(conversations), "claude", NAME, reading)


def messages(conversations: Iterable[object]) -> Iterator[Message]:
    """Yield all that will be read; a conversation of another shape is one message that cannot be."""
    for number, conversation in enumerate(conversations, start=1):
        fields = _fields(conversation)
        if any(name in fields for name in _MEMORIES):
            yield from _memories(fields)
            continue
        identity, found = text_of(fields, "uuid"), fields.get("chat_messages")
        if not identity or not isinstance(found, list):
            yield Message(problem=f"conversation {number} has no id or no messages that could be read")
            continue
        yield from _of_conversation(fields, cast("list[object]", found), identity)


def _of_conversation(conversation: _Fields, found: list[object], identity: str) -> Iterator[Message]:
    title, began = text_of(conversation, "name"), conversation.get("created_at")
    for position, value in enumerate(found, start=1):
        message = _fields(value)
        author = _AUTHORS.get(text_of(message, "sender"))
        if author is None:
            yield Message(problem=f"message {position} of its conversation has no sender that is known")
        elif (text := _text(message)).strip():
            message_id = text_of(message, "uuid") or str(position)
            yield Message(identity, title, position, message_id, author, text, message.get("created_at") or began)


def _text(message: _Fields) -> str:
    """Return what is said: the text blocks (older exports: the text), then the texts that were attached."""
    blocks = [text_of(block, "text") for block in _objects(message.get("content")) if block.get("type") == "text"]
    said = "\n".join(block for block in blocks if block.strip()) or text_of(message, "text")
    attached = [_attachment(each) for each in _objects(message.get("attachments"))]
    return "\n\n".join(each for each in (said, *attached) if each)


def _attachment(attachment: _Fields) -> str:
    content = text_of(attachment, "extracted_content")
    name = text_of(attachment, "file_name") or "a file"
    return f"[attached: {name}]\n{content}" if content.strip() else ""


def _memories(fields: _Fields) -> Iterator[Message]:
    texts = [("conversations", text_of(fields, "conversations_memory"))]
    projects = _fields(fields.get("project_memories"))
    texts += [(f"project {name}", text_of(projects, name)) for name in projects]
    for name, text in texts:
        if text.strip():
            digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            yield Message(id=f"memory/{name}/{digest}", author=NAME, text=text, kind="note", tags=("memory",))


def _objects(value: object) -> list[_Fields]:
    return [_fields(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _fields(value: object) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}
