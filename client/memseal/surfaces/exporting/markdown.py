"""Memories as a Markdown document, by day or by thread: the same memories give the same document.

What is in a memory cannot change what is around it: texts stand in quotes, with all that Markdown or HTML could read as
more than text escaped.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from memseal.memory.memory import Memory, State
from memseal.surfaces.display import visible
from memseal.surfaces.exporting.reading import moment_of, oldest_first
from memseal.vault.vault import Vault

GROUPS: Final = ("day", "thread")
_ACTIVE_IN_TEXT = re.compile(r"([\\`*_{}\[\]<>#|~&$^])")
# At the start of a line these begin a list, a rule, a heading's underline or a definition.
_ACTIVE_AT_START = re.compile(r"^([-+=:]|[0-9]+(?=[.)]))")
_STATES: Final = {
    State.SUPERSEDED: "superseded",
    State.RETRACTED: "retracted",
    State.BOTH: "superseded and retracted",
}


def markdown(vault: Vault, state: str, group: str) -> Iterator[str]:
    """Yield the document's lines, without line ends."""
    yield "# Memories"
    sections = _by_thread(vault, state) if group == "thread" else _by_day(vault, state)
    for title, memories in sections:
        yield from ("", f"## {title}")
        for memory in memories:
            yield from ("", *_entry(memory))


def _by_day(vault: Vault, state: str) -> Iterator[tuple[str, Iterable[Memory]]]:
    for day, some in groupby(oldest_first(vault, state), lambda memory: moment_of(memory).date()):
        yield day.isoformat(), sorted(some, key=_order)


def _by_thread(vault: Vault, state: str) -> Iterator[tuple[str, Iterable[Memory]]]:
    threads = dict.fromkeys(memory.thread for memory in oldest_first(vault, state))
    for thread in threads:
        if thread is not None:
            memories = vault.list(limit=vault.count(thread=thread, state=state), thread=thread, state=state)
            yield _escaped(thread), sorted(memories, key=_order_in_thread)
    if None in threads:
        loose = (memory for memory in oldest_first(vault, state) if memory.thread is None)
        yield "Without a thread", loose


def _order(memory: Memory) -> tuple[object, ...]:
    return moment_of(memory), memory.id


def _order_in_thread(memory: Memory) -> tuple[object, ...]:
    return memory.position is None, memory.position or 0, moment_of(memory), memory.id


def _entry(memory: Memory) -> Iterator[str]:
    """Yield the lines of one memory: when and who, the text, and what else is known."""
    moment = moment_of(memory)
    head = [f"**{moment:%Y-%m-%d %H:%M:%S} UTC**", memory.kind, memory.author, _place(memory)]
    yield " · ".join(_escaped(each) if number else each for number, each in enumerate(head) if each)
    yield from ("", *_quoted(memory.content), "")
    yield " · ".join(_escaped(each) for each in _rest(memory))


def _place(memory: Memory) -> str | None:
    if memory.thread is None:
        return None
    return memory.thread if memory.position is None else f"{memory.thread} ({memory.position})"


def _rest(memory: Memory) -> Iterator[str]:
    yield f"source: {memory.source}"
    if memory.tags:
        yield f"tags: {', '.join(memory.tags)}"
    if memory.state:
        reason = f" ({memory.reason})" if memory.reason else ""
        yield f"{_STATES[memory.state]}{reason}"
    if memory.supersedes:
        yield f"supersedes {memory.supersedes}"
    if memory.superseded_by:
        yield f"superseded by {memory.superseded_by}"
    yield f"id {memory.id}"


def _quoted(text: str) -> Iterator[str]:
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        shown = _escaped(line)
        # A backslash keeps the line's end, where a line of the same paragraph follows.
        yield f"> {shown}".rstrip() + ("\\" if shown and following.strip() else "")


def _escaped(text: str) -> str:
    """Return a text on one line that is nothing but text to Markdown; spaces at its start do not make it code."""
    shown = visible(text.rstrip(" \t"))
    body = shown.lstrip(" ")
    indent = "\u00a0" * (len(shown) - len(body))
    # What `visible` shows with a backslash is to be seen with it.
    escaped = _ACTIVE_AT_START.sub(_at_start, _ACTIVE_IN_TEXT.sub(r"\\\1", body))
    return indent + escaped


def _at_start(match: re.Match[str]) -> str:
    # A number is left as it is and what follows is escaped: a backslash before a digit would be seen.
    return f"{match[1]}\\" if match[1].isdigit() else f"\\{match[1]}"
