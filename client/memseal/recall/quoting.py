"""Quote a stored text so that nothing in it acts on a prompt or a screen, and nothing of it is lost (recall.md §5)."""

import json
import re
import unicodedata
from typing import Final

# What has no shape: besides controls and formats (Cc, Cf, Cs, Zl, Zp), the letters, marks and selectors that are drawn
# as nothing, in which a message could be hidden. The selector U+FE0F stays, without it emoji change their looks.
_SHAPELESS: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# With these a tag, a fence or the end of the quotation could be written, also by what a model reads as the same sign.
_SIGNS: Final = "<\uff1c\ufe64`\uff40\uff02"
_SUSPECT: Final = re.compile(
    rf"[^ -\u02ff]|[\x7f-\xa0\xad{_SIGNS}{_SHAPELESS}]"
    r"|\[(?=/?[A-Z][A-Z_]+\])"  # [INST] and its like, which end a user's turn for some models
    r"|\[(?<=!\[)|(?<=\])[(\[:]"  # a Markdown picture is fetched by whoever shows it, and the address tells them what
)
_ALWAYS: Final = frozenset(_SIGNS + "[(:")
_UNSAFE_CATEGORIES: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_INVISIBLE: Final = re.compile(f"[{_SHAPELESS}]")
# These join letters of Persian, of Indic scripts and of emoji, and stay between two of them; elsewhere they are
# invisible, and could hide something.
_JOINERS: Final = "\u200c\u200d"


def quoted(text: str) -> str:
    """Return a JSON string of the text on one line, with everything that could act on a reader as an escape.

    `json.loads` gives the text back.
    """
    plain = json.dumps(text, ensure_ascii=False)
    return _SUSPECT.sub(lambda match: _escaped(match, plain), plain)


def _escaped(match: re.Match[str], plain: str) -> str:
    character = match[0]
    if character in _ALWAYS or _is_unsafe(character) or (character in _JOINERS and not _joins(match, plain)):
        return json.dumps(character)[1:-1] if character > "\x7f" else f"\\u{ord(character):04x}"
    return character


def _is_unsafe(character: str) -> bool:
    if character in _JOINERS:
        return False
    return unicodedata.category(character) in _UNSAFE_CATEGORIES or bool(_INVISIBLE.match(character))


def _joins(match: re.Match[str], plain: str) -> bool:
    """Whether a joiner stands between two characters that it may join: beyond ASCII, and no joiners themselves."""
    beside = plain[match.start() - 1], plain[match.end()]
    return all(character > "\x7f" and character not in _JOINERS for character in beside)


def cut(text: str, most: int) -> str:
    """Return the first characters of a text, at most that many, without tearing one from its marks and joiners."""
    end = min(most, len(text))
    while 0 < end < len(text) and _continues(text[end - 1], text[end]):
        end -= 1
    return text[:end]


def _continues(before: str, character: str) -> bool:
    joined = before in _JOINERS or character in _JOINERS
    return joined or unicodedata.category(character)[0] == "M" or unicodedata.category(character) == "Sk"
