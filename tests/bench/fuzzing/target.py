"""What a fuzzer runs: one decoder, the inputs to begin with, and how they are changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

Mutate = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Target:
    """A decoder that may refuse an input with these errors, and with no other."""

    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    refusals: tuple[type[Exception], ...]
    mutate: Mutate | None = None
    """Changes an input and keeps whole what surrounds the change (lengths, checksums, signatures)."""
