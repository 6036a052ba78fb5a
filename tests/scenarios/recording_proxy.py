"""A TCP relay on loopback that keeps every byte that passes."""

import contextlib
import socket
import threading
from collections.abc import Callable


class RecordingProxy:
    """Listens on a port of its own and relays each connection to the port that `target` names."""

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.recorded = bytearray()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`, which a close leaves waiting
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target()))
            for source, sink in ((client, server), (server, client)):
                thread = threading.Thread(target=self._relay, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while content := source.recv(1 << 16):
                with self._lock:
                    self.recorded += content
                sink.sendall(content)
        except OSError:
            pass  # one side has gone: so does the other
        finally:
            for end in (source, sink):
                with contextlib.suppress(OSError):  # it was closed already
                    end.shutdown(socket.SHUT_RDWR)
            source.close()
