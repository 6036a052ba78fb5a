"""What a model thought, as it wrote it: providers sign it, and take it back only without a changed letter."""

import hashlib
from typing import Final

_MOST: Final = 1_024  # thoughts of one guarded client; a chat sends back those of its last turns


class Thoughts:
    """Finds the words that came from the provider for thoughts that the app was given with real values."""

    def __init__(self) -> None:
        """Begin with none."""
        self._written: dict[bytes, str] = {}

    def keep(self, restored: str, written: str) -> None:
        """Remember what was written for what the app got."""
        self._written[_digest(restored)] = written
        for oldest in list(self._written)[: len(self._written) - _MOST]:
            self._written.pop(oldest, None)

    def written(self, restored: str) -> str | None:
        """Return the provider's own words, or nothing where these are somebody else's."""
        return self._written.get(_digest(restored))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
