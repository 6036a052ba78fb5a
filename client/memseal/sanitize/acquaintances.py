"""The people that a vault knows by name: who said what is remembered, whose it is, who is tagged, whose devices."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from memseal.privacy.lexicon import NOT_NAMES, Lexicon

_PAGE: Final = 500
_WORD: Final = re.compile(r"[^\W\d_]+")


class HasMemories(Protocol):
    """A vault, as far as the sanitizer looks into it."""

    def list(self, /, *, limit: int = 100, offset: int = 0, **filters: Any) -> Sequence[Any]:
        """Return some of the memories."""
        ...


class KeepsSessions(HasMemories, Protocol):
    """A vault that keeps sessions, sealed."""

    def session_fence(self) -> bytes:
        """Return bytes that change with every erase."""
        ...

    def keep_session(self, name: str, session: dict[str, Any], fence: bytes) -> None:
        """Keep a session that began under a fence."""
        ...

    def kept_session(self, name: str) -> dict[str, Any] | None:
        """Return a session that was kept, or None."""
        ...


def acquaintances(vault: HasMemories, lexicon: Lexicon) -> set[str]:
    """Return the names of people in a vault: authors and owners as they are, of tags and devices what is a name."""
    names: set[str] = set()
    for memory in _memories(vault):
        names.update(
            name
            for name in (memory.author, getattr(memory, "owner", None))
            if name and name.casefold() not in NOT_NAMES
        )
        for tag in getattr(memory, "tags", ()):
            names.update(_names_in(tag, lexicon))
    for name in _device_names(vault):
        names.update(_names_in(name, lexicon))
    return names


def _device_names(vault: Any) -> list[str]:
    return [device.name or "" for device in vault.devices()] if hasattr(vault, "devices") else []


def _memories(vault: HasMemories) -> Iterator[Any]:
    offset = 0
    while page := vault.list(limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)


def _names_in(label: str, lexicon: Lexicon) -> Iterable[str]:
    """Return the first names in a label, each with the last name after it: sarah-chen, Ada's phone."""
    words = iter(_WORD.findall(label))
    for word in words:
        if not _is_name(word, lexicon) or not lexicon.is_first(word.casefold()):
            continue
        yield word
        following = next(words, "")
        if following.casefold() in lexicon.last and _is_name(following, lexicon):
            yield f"{word} {following}"


def _is_name(word: str, lexicon: Lexicon) -> bool:
    return len(word) > 1 and not lexicon.is_word(word.casefold())
