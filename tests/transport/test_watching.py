"""`memseal sync --watch`: a program that follows a server."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memseal import SyncState, Vault
from memseal.errors import RemoteUnreachable
from memseal.surfaces.cli.watching import line_of
from tests.scenarios.conftest import StartServer
from tests.transport.conftest import PASSPHRASE, PATIENCE_SECONDS, opened


@contextmanager
def watching(vault: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    environment = {**os.environ, "MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none"}
    process = subprocess.Popen(
        [sys.executable, "-m", "memseal", "sync", "--watch", "--vault", str(vault), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def states_of(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_tells_each_change_as_a_line_and_ends_cleanly(
    world: Path, start_server: StartServer, number: signal.Signals
) -> None:
    url = start_server().url
    with opened(world / "two") as two, watching(world / "one", url, "--json") as process:
        two.sync(url)
        states = states_of(process)
        assert next(state for state in states if state["state"] == "synced")["error"] is None
        two.remember("heard of by watching", source="two")
        two.sync()
        came = next(state for state in states if state["report"] and state["report"]["pulled_bytes"])
        assert (came["state"], came["remote"]) == ("synced", url)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, errors) == (0, "")
    with opened(world / "one") as one:
        assert one.count() == 1


def test_a_terminal_shows_one_line_and_ctrl_c_ends_it(world: Path, start_server: StartServer) -> None:
    pty = pytest.importorskip("pty", reason="pseudo-terminals are of Unix", exc_type=ImportError)
    end, theirs = pty.openpty()
    environment = {**os.environ, "MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "memseal", "sync", start_server().url, "--watch", "--vault", str(world / "one")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    while b": synced at" not in seen:
        seen += os.read(end, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # Linux says so when the program has closed its side
        while piece := os.read(end, 4096):
            seen += piece
    os.close(end)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert b"Traceback" not in seen


def test_watch_ends_with_the_error_where_the_person_has_to_act(world: Path, start_server: StartServer) -> None:
    url = start_server("store", "--registration", "closed").url
    Vault.create(world / "new", PASSPHRASE, embedder=None).close()
    with watching(world / "new", url, "--json") as process:
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 8
        assert json.loads(errors)["error"]["code"] == "registration_closed"


def test_a_line_says_why_it_is_offline_and_cannot_draw_on_the_terminal() -> None:
    line = line_of(SyncState("offline", "http://example.org\x1b[31m", RemoteUnreachable("no way there"))).plain
    assert "no way there" in line
    assert "\x1b" not in line
