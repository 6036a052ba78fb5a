"""Make stored text safe to show: what a person sees on a screen, a model in a prompt, a reader in a log."""

import re
import unicodedata
from typing import Final

SOURCE_MOST: Final = 80
"""Characters of a source that a screen shows; data keeps all of them."""

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# These two join letters of Persian, of Indic scripts and of emoji; they move nothing on the screen.
_JOINERS = "\u200c\u200d"
# Controls, formats (bidi overrides, invisible tag letters), surrogates, line and paragraph separators.
_UNSAFE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_SUSPECT = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u02ff]")


def visible(text: str) -> str:
    """Return the text on one line, with everything that could move, hide or colour what is shown escaped."""
    return _SUSPECT.sub(lambda match: _escaped(match[0]) if is_unsafe(match[0]) else match[0], text)


def shortened(text: str, most: int = SOURCE_MOST) -> str:
    """Return the text as `visible` does, cut to `most` characters with an ellipsis for the rest."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def is_unsafe(character: str) -> bool:
    """Return whether a character is a control, a line terminator, a bidi override or otherwise without a shape."""
    return unicodedata.category(character) in _UNSAFE_CATEGORIES and character not in _JOINERS


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
