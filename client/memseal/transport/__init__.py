"""What carries requests to a remote and brings its answers back: it knows no rules."""

from typing import Protocol

from memseal.sync.messages import Answer, Request


class Transport(Protocol):
    """A way to one remote and one vault on it."""

    @property
    def address(self) -> str:
        """What names this remote among a device's marks: a server identity, or a folder's path."""
        ...

    @property
    def carries_keys(self) -> bool:
        """Whether keyring versions can be stored there."""
        ...

    def send(self, request: Request) -> Answer:
        """Carry a request and return its answer; raises `RemoteUnreachable` or `RemoteAnswer`."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
