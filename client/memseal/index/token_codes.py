"""The token vectors of texts that late interaction has looked at: kept in RAM alone, and made anew where they went."""

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Final

from memseal.recall.late import TokenCode

BOUND_BYTES: Final = 256 << 20


class TokenCodes:
    """Codes by kind and text, the least used going first; all methods may be called from any thread."""

    def __init__(self, bound: int = BOUND_BYTES) -> None:
        """Keep codes of at most `bound` bytes."""
        self._codes: OrderedDict[bytes, TokenCode] = OrderedDict()
        self._bound = bound
        self._lock = Lock()
        self.size = 0
        """Bytes of what is kept."""

    def __len__(self) -> int:
        return len(self._codes)

    def get(self, kind: str, text: str) -> TokenCode | None:
        """Return the code of a text, or None where it has to be made."""
        key = _key(kind, text)
        with self._lock:
            code = self._codes.get(key)
            if code is not None:
                self._codes.move_to_end(key)
            return code

    def put(self, kind: str, text: str, code: TokenCode) -> None:
        """Keep a code."""
        key = _key(kind, text)
        with self._lock:
            if key not in self._codes:
                self._codes[key] = code
                self.size += code.size
            while self.size > self._bound:
                self.size -= self._codes.popitem(last=False)[1].size

    def clear(self) -> None:
        """Forget all: what was erased must not be guessed from its tokens."""
        with self._lock:
            self._codes.clear()
            self.size = 0


def _key(kind: str, text: str) -> bytes:
    # By the text and not by its memory: numbers change when a state is built anew.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind.encode()).digest()
