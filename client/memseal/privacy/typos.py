"""Stand-ins that a reply spells with one letter wrong."""

from typing import Final

# A shorter word has too many others within one letter of it.
_SHORTEST: Final = 6


class Typos:
    """Long stand-ins of one word, found again where one letter is missing, added, another, or swapped with the next."""

    def __init__(self) -> None:
        """Begin with none."""
        self._names: dict[str, list[str]] = {}  # by first letter, which people and models hardly ever get wrong

    def take(self, name: str) -> None:
        """Take in a stand-in in small letters."""
        if len(name) >= _SHORTEST and name.isalpha():
            self._names.setdefault(name[0], []).append(name)

    def meant(self, word: str) -> str | None:
        """Return the only stand-in that a word in small letters is one letter away from, or nothing."""
        if not word.isalpha():
            return None
        near = [name for name in self._names.get(word[:1], ()) if _is_near(word, name)]
        return near[0] if len(near) == 1 else None

    def may_become(self, beginning: str) -> bool:
        """Whether the beginning of a word may still become one that `meant` knows."""
        return any(
            _is_near(beginning, name[:length])
            for name in self._names.get(beginning[:1], ())
            for length in range(max(1, len(beginning) - 1), len(beginning) + 2)
        )


def _is_near(word: str, name: str) -> bool:
    """Whether at most one letter is missing, added, another, or swapped with the next."""
    if abs(len(word) - len(name)) > 1:
        return False
    same = 0
    while same < min(len(word), len(name)) and word[same] == name[same]:
        same += 1
    rest, other = word[same:], name[same:]
    return (
        rest[1:] == other[1:]
        or rest[1:] == other
        or rest == other[1:]
        or (rest[:2] == other[1::-1] and len(other) > 1 and rest[2:] == other[2:])
    )
