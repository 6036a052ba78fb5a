"""A real server for the stories, started as a process and ended by its own id."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import own_port


@dataclass
class ServerProcess:
    """A running server: its address, store and log."""

    url: str
    store: Path
    log: Path
    process: subprocess.Popen[str]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=120)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=120)
        if self.process.stdout is not None:
            self.process.stdout.close()


StartServer = Callable[..., ServerProcess]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Start servers; `store` is a bucket's address or names a folder below the test's, `options` are more words."""
    running: list[ServerProcess] = []

    def start(store: str = "store", *options: str, port: int | None = None) -> ServerProcess:
        address = store if "://" in store else str(tmp_path / store)
        log = tmp_path / f"{store.rpartition('/')[2]}.log"
        listen = f"127.0.0.1:{port or own_port()}"
        command = [sys.executable, "-m", "memseal_server", "--store", address, "--listen", listen]
        with log.open("a", encoding="utf-8") as output:
            process = subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=output, text=True, encoding="utf-8"
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), log.read_text(encoding="utf-8")
        server = ServerProcess(line.split()[2], tmp_path / store, log, process)
        running.append(server)
        return server

    yield start
    for server in running:
        if server.process.poll() is None:
            server.stop()
