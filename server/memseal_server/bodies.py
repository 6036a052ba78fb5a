"""What a request brings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    """Bytes that came whole, and their SHA-256, under which they were signed and are kept: it is computed once."""

    content: bytes
    digest: bytes
