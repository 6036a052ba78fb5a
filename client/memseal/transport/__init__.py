"""What carries requests to a remote and brings its answers back: it knows no rules."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memseal.sync.messages import Answer, Request
from memseal.sync.relaying import Hear, Say


@dataclass(frozen=True)
class Heard:
    """What a remote said to somebody who listens: its heads or a refusal (None: nothing new), and its tag for these."""

    answer: Answer | None
    tag: str


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


class Sent(Protocol):
    """A request that is on its way."""

    def answer(self) -> Answer:
        """Wait for its answer; raises `RemoteUnreachable` or `RemoteAnswer`."""
        ...

    def drop(self) -> None:
        """Break it off, if it is still on its way: nobody waits for its answer."""
        ...


@runtime_checkable
class ManyAtOnce(Protocol):
    """A transport on which a request can be sent before the one before it is answered."""

    def begin(self, request: Request) -> Sent:
        """Send a request, and do not wait."""
        ...


class LiveTransport(Transport, Protocol):
    """A way to a remote that can be followed; one thread sends, another may break it off."""

    def listen(self, tag: str, seconds: int) -> Future[Heard]:
        """Ask for heads other than those with this tag (empty: any); the remote may hold the answer for so long."""
        ...

    def break_off(self) -> None:
        """Let whatever is being sent or listened to fail at once, and all that is sent later."""
        ...


class Relay(Protocol):
    """A way to a server that relays the messages of a pairing."""

    @property
    def address(self) -> str:
        """The server's identity."""
        ...

    def relay(self, message: Say | Hear) -> Answer:
        """Carry a message, or wait for one; raises `RemoteUnreachable` or `RemoteAnswer`."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
