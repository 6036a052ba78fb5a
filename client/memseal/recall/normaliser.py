"""Take the question out of a question, where an app asks for it."""

import re
from typing import Final, Protocol

_LIMIT: Final = 3
_PREAMBLE: Final = re.compile(
    r"\s*(?:(?:please|hey|hi|ok|okay|so|and|well)\b[\s,]*"
    r"|(?:can|could|would|will) you (?:please )?"
    r"|(?:do|did|does) (?:you|we|i) (?:still )?(?:know|remember|recall|have)\b(?: anything)?"
    r"|(?:tell|remind|show) me\b(?: again)?|i (?:want|need|would like) to know\b"
    r"|what (?:do|did|does|can|have) (?:i|you|we) (?:already )?(?:know|remember|recall|say|said|note|write|have)\b"
    r"|what(?: is|['\u2019]s| was| are| were)? (?:known|there)\b"
    r"|(?:search|look|find|recall|list)\b(?: for| up)?)"
    r"(?:\s+(?:about|of|on|that|everything|anything|all|what|regarding|concerning)\b)*[\s:,]*",
    re.IGNORECASE,
)
_END: Final = re.compile(r"[\s?!.]+$")


class QueryNormaliser(Protocol):
    """Something that says a query in other words before it is searched for."""

    def normalise(self, text: str) -> str:
        """Return what to search for; an empty text stands for the query itself."""
        ...


class QuestionNormaliser:
    """Strips what English questions begin with: "What do I know about boats?" is a search for "boats"."""

    def normalise(self, text: str) -> str:
        """Return the text without its preamble and question mark."""
        rest = text
        for _ in range(_LIMIT):
            match = _PREAMBLE.match(rest)
            if match is None:
                break
            rest = rest[match.end() :]
        return _END.sub("", rest).strip()
