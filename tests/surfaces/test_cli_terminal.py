"""The command line on a terminal: what is typed stays hidden, and colours are for people."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from memseal.vault.vault import Vault
from tests.surfaces.conftest import PASSPHRASE

pty = pytest.importorskip("pty", reason="pseudo-terminals are of Unix", exc_type=ImportError)


class Terminal:
    """A pseudo-terminal that a program of ours runs on."""

    def __init__(self, arguments: list[str], variables: dict[str, str]) -> None:
        self._end, theirs = pty.openpty()
        command = [sys.executable, "-m", "memseal", *arguments]
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
        )
        os.close(theirs)
        self.seen, self._read = b"", 0

    def wait_for(self, text: bytes) -> None:
        while (place := self.seen.find(text, self._read)) < 0:
            self.seen += os.read(self._end, 4096)
        self._read = place + len(text)

    def type(self, text: str) -> None:
        os.write(self._end, f"{text}\n".encode())

    def finish(self) -> int:
        try:
            while piece := os.read(self._end, 4096):
                self.seen += piece
        except OSError:  # Linux says so when the program has closed its side
            pass
        os.close(self._end)
        return self._process.wait()


@pytest.fixture
def terminal_variables(environment: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **environment, "MEMSEAL_PASSPHRASE": "", "TERM": "xterm", "COLUMNS": "100"}


def test_terminal_asks_twice_and_shows_nothing_of_what_is_typed(
    terminal_variables: dict[str, str], tmp_path: Path
) -> None:
    terminal = Terminal(["init", "--vault", str(tmp_path / "new")], terminal_variables)
    for typed in (PASSPHRASE, "something else"):
        terminal.wait_for(b": ")
        terminal.type(typed)
    terminal.wait_for(b"not the same")
    for _ in range(2):
        terminal.wait_for(b": ")
        terminal.type(PASSPHRASE)
    assert terminal.finish() == exits.DONE
    shown = terminal.seen.decode()
    assert PASSPHRASE not in shown
    assert "something else" not in shown
    assert "\x1b[" in shown
    with Vault.open(tmp_path / "new", PASSPHRASE, embedder=None) as opened:
        assert opened.count() == 0


def test_short_passphrase_is_taken_and_called_short(terminal_variables: dict[str, str], tmp_path: Path) -> None:
    seen = dict[str, str]()
    for name, passphrase in (("short", "otter"), ("long", PASSPHRASE)):
        terminal = Terminal(["init", "--vault", str(tmp_path / name)], terminal_variables)
        for _ in range(2):
            terminal.wait_for(b": ")
            terminal.type(passphrase)
        assert terminal.finish() == exits.DONE
        seen[name] = " ".join(terminal.seen.decode().split())
    assert "That is short" in seen["short"]
    assert "That is short" not in seen["long"]


def test_no_color_keeps_colours_off_a_terminal(vault: Path, terminal_variables: dict[str, str]) -> None:
    arguments, variables = ["kit", "--vault", str(vault)], {**terminal_variables, "MEMSEAL_PASSPHRASE": PASSPHRASE}
    coloured = Terminal(arguments, variables)
    plain = Terminal(arguments, {**variables, "NO_COLOR": "1"})
    assert (coloured.finish(), plain.finish()) == (exits.DONE, exits.DONE)
    assert b"\x1b[33m" in coloured.seen
    assert b"\x1b[33m" not in plain.seen


def test_import_shows_its_progress_to_a_person(vault: Path, terminal_variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"content": "one"}\n', encoding="utf-8")
    arguments = ["import", str(tmp_path / "notes.jsonl"), "--vault", str(vault)]
    terminal = Terminal(arguments, {**terminal_variables, "MEMSEAL_PASSPHRASE": PASSPHRASE})
    assert terminal.finish() == exits.DONE
    assert b"1/1" in terminal.seen
    assert b"1 new" in terminal.seen


def test_hostile_memory_cannot_draw_on_a_terminal(vault: Path, terminal_variables: dict[str, str]) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as opened:
        opened.remember("kettle \x1b]0;owned\x07 \x1b[2J \r \n \u202e", source="\x1b[5mblink")
    arguments = ["recall", "kettle", "--vault", str(vault)]
    terminal = Terminal(arguments, {**terminal_variables, "MEMSEAL_PASSPHRASE": PASSPHRASE})
    assert terminal.finish() == exits.DONE
    for drawn in (b"\x1b]0;", b"\x07", b"\x1b[2J", b"\x1b[5m", "\u202e".encode()):
        assert drawn not in terminal.seen
