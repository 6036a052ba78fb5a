"""A TCP relay that counts what passes, and cuts every connection after so many bytes in one direction."""

import contextlib
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["up", "down"]


@dataclass
class Cutter:
    """The relay's counters and its knife; all of it is about bytes since `begin`."""

    port: int = 0
    passed: dict[Direction, bytearray] = field(default_factory=lambda: {"up": bytearray(), "down": bytearray()})
    _at: dict[Direction, int] = field(default_factory=dict[Direction, int])
    _is_cut: bool = False
    _open: list[socket.socket] = field(default_factory=list[socket.socket])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stalls: bool = False
    stalled: threading.Event = field(default_factory=threading.Event)
    _goes_on: threading.Event = field(default_factory=threading.Event)

    def begin(self, *, stall: bool = False, **at: int) -> None:
        """Count from zero, and cut when so many bytes have passed `up` or `down` (none: never).

        With `stall` nothing passes from then on, and the connections stay open; `stalled` tells of it.
        """
        with self._lock:
            self._goes_on.set()
            self._goes_on, self._stalls = threading.Event(), stall
            self.stalled.clear()
            self._drop()
            self.passed = {"up": bytearray(), "down": bytearray()}
            self._at = {"up": at["up"]} if "up" in at else {"down": at["down"]} if "down" in at else {}
            self._is_cut = False

    def count(self, direction: Direction) -> int:
        with self._lock:
            return len(self.passed[direction])

    def take(self, direction: Direction, content: bytes) -> bytes:
        """Return as much as still passes; the connections end with it."""
        with self._lock:
            if self._is_cut:
                return b""
            left = self._at.get(direction, 1 << 62) - len(self.passed[direction])
            passing = content[:left]
            self.passed[direction] += passing
            self._is_cut = left <= len(content)
            return passing

    def is_cut(self) -> bool:
        with self._lock:
            return self._is_cut

    def join(self, *ends: socket.socket) -> bool:
        """Note an open connection; False where everything is cut."""
        with self._lock:
            self._open += [] if self._is_cut else ends
            return not self._is_cut

    def end(self) -> None:
        """Cut all connections, or keep those open that only stall."""
        with self._lock:
            stalls, goes_on = self._stalls, self._goes_on
        if stalls:
            self.stalled.set()
            goes_on.wait()  # who lets it go on has cut what was open; what is open by then is new
        else:
            self.drop()

    def drop(self) -> None:
        with self._lock:
            self._stalls = False
            self._goes_on.set()
            self._drop()

    def _drop(self) -> None:
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()


@contextlib.contextmanager
def cutting(server_port: int) -> Generator[Cutter]:
    """Relay to a port of this machine, from a port of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    cutter, threads = Cutter(listener.getsockname()[1]), list[threading.Thread]()

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", server_port))
            if not cutter.join(client, server):
                client.close()
                server.close()
                continue
            pair = threading.Barrier(2)
            for direction, source, sink in (("up", client, server), ("down", server, client)):
                thread = threading.Thread(target=_pass, args=(cutter, direction, source, sink, pair))
                threads.append(thread)
                thread.start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield cutter
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        listener.close()
        accepting.join()
        cutter.drop()
        for thread in threads:
            thread.join()


def _pass(
    cutter: Cutter, direction: Direction, source: socket.socket, sink: socket.socket, pair: threading.Barrier
) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(1 << 16):
            sink.sendall(cutter.take(direction, content))
            if cutter.is_cut():
                cutter.end()
                break
    for end in (source, sink):
        with contextlib.suppress(OSError):  # one side has gone: so does the other
            end.shutdown(socket.SHUT_RDWR)
    pair.wait()
    source.close()
