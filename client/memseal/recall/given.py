"""Know text again that was given out by a recall, so that it is never taken in as news (lifecycle.md §6)."""

import re
from typing import Final

from memseal.recall.rendering import CLOSING, OPENING

# What is quoted within the frame has no angle bracket of its own, so the first closing mark ends it.
_FRAME: Final = OPENING.partition("\n")[0]
_FRAMED: Final = re.compile(rf"{re.escape(_FRAME)}.*?(?:{re.escape(CLOSING)}|\Z)", re.DOTALL)
_ENTRY: Final = re.compile(r"^.*; id [0-9a-f]{32}\][^\S\n]*$", re.MULTILINE)


def without_given(text: str) -> str:
    """Return a text without what a packet's text put into it: the frame with all that is in it, and single entries."""
    return _ENTRY.sub("", _FRAMED.sub("\n", text))


def is_given(text: str) -> bool:
    """Return whether a text has a packet's frame or entry in it."""
    return bool(_FRAMED.search(text) or _ENTRY.search(text))
