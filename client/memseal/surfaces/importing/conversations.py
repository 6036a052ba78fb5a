"""Messages of an assistant's exported conversations, whoever made the export."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from memseal.surfaces.importing.items import (
    BadRow,
    ImportItem,
    Reading,
    Said,
    checked,
    items_of,
    moment_of,
    without_surrogates,
)

USER = "user"


@dataclass(frozen=True)
class Message:
    """One message as it was found, to become one memory; `problem` where it cannot be one."""

    conversation: str = ""
    title: str = ""
    position: int | None = None
    id: str = ""
    author: str | None = None
    text: str = ""
    time: object = None
    kind: str = "episode"
    tags: tuple[str, ...] = ()
    problem: str | None = None


def read_messages(messages: Iterable[Message], program: str, name: str, reading: Reading) -> Iterator[ImportItem]:
    """Yield one item for each message; `program` is for origins and threads, `name` is what people call it."""
    return items_of(enumerate(messages, start=1), lambda message: _item_of(message, program, name), reading.on_error)


def _item_of(message: Message, program: str, name: str) -> ImportItem:
    if message.problem is not None:
        raise BadRow(message.problem)
    title = without_surrogates(message.title).strip()
    said = Said(
        content=message.text,
        source=f"{name}: {title}" if title else name,
        kind=message.kind,
        tags=list(message.tags),
        author=message.author,
        thread=f"{program}/{message.conversation}" if message.conversation else None,
        position=message.position,
        captured_at=moment_of({"time": message.time}, "time"),
    )
    return checked(said, f"{program}:{message.conversation}/{message.id}")


def text_of(value: Mapping[str, object], name: str) -> str:
    """Return a field that should be a text, empty where it is not one."""
    found = value.get(name)
    return found if isinstance(found, str) else ""
