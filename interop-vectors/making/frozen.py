"""Bytes that were sealed, wrapped or compressed once: libraries draw their own salts, and their releases differ."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import zstandard

from memseal.format import primitives
from memseal.format.keys import RecordKey, WrappingKey


class Frozen:
    """The frozen bytes of one group, by name; what is not asked for any more goes."""

    def __init__(self, path: Path) -> None:
        """Take the file that holds them; it need not be there."""
        self._path = path
        stored: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._before = {name: base64.b64decode(text) for name, text in stored.items()}
        self._used = dict[str, bytes]()

    def sealed(self, name: str, key: bytes, context: bytes, plaintext: bytes) -> bytes:
        """Return the plaintext sealed under the key for the context."""
        return self._take(
            name,
            lambda: primitives.seal(RecordKey(key), context, plaintext),
            lambda sealed: primitives.open_sealed(RecordKey(key), context, sealed) == plaintext,
        )

    def wrapped(self, name: str, seed: bytes, info: bytes, content: bytes) -> bytes:
        """Return the content wrapped to the public half of a seed."""
        key = WrappingKey(seed)
        return self._take(
            name,
            lambda: primitives.wrap(primitives.public_wrapping_key(key), info, content),
            lambda wrapped: primitives.unwrap(key, info, wrapped) == content,
        )

    def compressed(self, name: str, content: bytes, level: int = 3, **options: bool) -> bytes:
        """Return a zstd frame of the content: another release of zstd may make another one."""
        return self._take(
            name,
            lambda: zstandard.ZstdCompressor(level=level, **options).compress(content),
            lambda frame: zstandard.ZstdDecompressor().decompressobj().decompress(frame) == content,
        )

    def _take(self, name: str, make: Callable[[], bytes], opens: Callable[[bytes], bool]) -> bytes:
        if name in self._used:
            raise ValueError(f"two things are frozen as {name}")
        frozen = self._before.get(name)
        if frozen is None:
            frozen = make()
        elif not _holds(frozen, opens):
            raise ValueError(f"{self._path.name}: {name} does not hold what it should: its inputs were changed")
        self._used[name] = frozen
        return frozen

    def text(self) -> str:
        """Return the file anew."""
        encoded = {name: base64.b64encode(content).decode() for name, content in sorted(self._used.items())}
        return json.dumps(encoded, indent=0) + "\n"


def _holds(frozen: bytes, opens: Callable[[bytes], bool]) -> bool:
    try:
        return opens(frozen)
    except primitives.NotAuthentic:
        return False
