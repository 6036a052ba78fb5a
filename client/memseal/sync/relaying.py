"""The requests of a pairing to the server that relays it (sync-protocol, *Pairing*)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Say:
    """Store a message in a channel: the side's first, second or third."""

    channel: int
    number: int
    content: bytes


@dataclass(frozen=True)
class Hear:
    """Ask for a message of the other side; the relay may hold the answer for so many seconds."""

    channel: int
    number: int
    wait_seconds: int
