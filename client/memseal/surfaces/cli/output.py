"""Write results to standard output, and everything else to standard error."""

import io
import json
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from memseal.surfaces.display import is_unsafe, visible

_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


def use_utf8() -> None:
    """Speak UTF-8 with LF line ends on all three streams, whatever the locale or Windows would choose."""
    for stream, errors in ((sys.stdin, "strict"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        # A program that runs commands inside itself may have put something else there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")


def screen() -> Console:
    """Return the console for results."""
    return _console(sys.stdout)


def notes() -> Console:
    """Return the console for progress, advice and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # Markup, emoji codes and highlighting would let a stored text choose how it looks.
    return Console(
        file=stream, force_terminal=stream.isatty(), markup=False, emoji=False, highlight=False, soft_wrap=False
    )


def write_lines(console: Console, text: Text, indent: int = 0, mark: Text | None = None) -> None:
    """Print a paragraph: wrapped with a hanging indent on a terminal, one line for other programs.

    `mark` is what the first line has in its indent; it is as wide.
    """
    margin = Text(" " * indent)
    lines = text.wrap(console, max(20, console.width - indent)) if console.is_terminal else [text]
    for number, line in enumerate(lines):
        console.print((mark if mark and not number else margin) + line, soft_wrap=True)


def advise(sentence: str) -> None:
    """Say something useful to a person; other programs are spared it."""
    console = notes()
    if console.is_terminal:
        write_lines(console, Text(visible(sentence), "dim"))


def write_text(text: str) -> None:
    """Write a text as it is, for another program; nothing where there is none."""
    if text:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def write_json(document: Mapping[str, Any]) -> None:
    """Write the one JSON document of a command to standard output."""
    sys.stdout.write(json_text(document, indent=2) + "\n")
    sys.stdout.flush()


def json_text(document: Mapping[str, Any], indent: int | None = None) -> str:
    """Return JSON that means the same text, with what could draw on a terminal or end a line as escapes."""
    # Below U+007F the encoder has escaped what is in texts, and the line ends that are left are its own.
    return _BEYOND_ASCII.sub(_json_escape, json.dumps(document, ensure_ascii=False, indent=indent))


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if not is_unsafe(character):
        return character
    return json.dumps(character)[1:-1] if character > "\x7f" else r"\u007f"


def write_error(code: str, message: str, *, as_json: bool) -> None:
    """Write an error for a person or a program."""
    if as_json:
        sys.stderr.write(json_text({"error": {"code": code, "message": message}}) + "\n")
        return
    text = (
        Text("memseal: ", "bold red").append(visible(message), "default not bold").append(f" ({code})", "dim not bold")
    )
    write_lines(notes(), text)
