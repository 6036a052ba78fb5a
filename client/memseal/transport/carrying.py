"""Carry the requests of a session, the next one before the last is answered where the transport can."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from memseal.sync.messages import Answer, Refused, Request
from memseal.transport import ManyAtOnce, Sent, Transport

# A segment that was sent early and came to another process of the server than the one before it (sync-protocol §6).
_TOO_EARLY = "segment_order"


class Carrier(AbstractContextManager["Carrier"]):
    """Sends one request ahead, so that the network is busy while the remote stores and this device checks."""

    def __init__(self, transport: Transport) -> None:
        """Take the way to the remote."""
        self._transport = transport
        self._ahead: tuple[Request, Sent] | None = None
        self._hurries = True

    def carry(self, request: Request, following: Callable[[], Request | None] | None) -> Answer:
        """Return a request's answer; `following` gives what is asked next if that is as expected, where it is known."""
        early = self._taken(request)
        following = following if self._hurries else None
        if not isinstance(self._transport, ManyAtOnce) or (early is None and following is None):
            return self._transport.send(request)
        sent = early or self._transport.begin(request)
        after = None if following is None else following()
        if after is not None:
            self._ahead = (after, self._transport.begin(after))
        answer = sent.answer()
        if early is not None and isinstance(answer, Refused) and answer.code == _TOO_EARLY:
            self._hurries = False  # it would be so each time
            return self._transport.send(request)
        return answer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop what was sent ahead and is not wanted any more."""
        self._drop()

    def _taken(self, request: Request) -> Sent | None:
        """Return the request that was sent ahead, if it is this one."""
        if self._ahead is None or self._ahead[0] != request:
            self._drop()
            return None
        sent, self._ahead = self._ahead[1], None
        return sent

    def _drop(self) -> None:
        if self._ahead is not None:
            self._ahead[1].drop()
            self._ahead = None
