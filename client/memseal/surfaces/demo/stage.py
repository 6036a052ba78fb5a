"""What the demo shows, and the claims it proves on the way."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from memseal.memory.memory import Memory
from memseal.surfaces.display import shortened, visible

_INDENT = 3
_NARROW = 116
_ROWS = 13


@dataclass(frozen=True)
class Claim:
    """One thing that had to hold, and whether it did."""

    text: str
    holds: bool


class Stage:
    """Prints the steps of the demo and keeps its claims."""

    def __init__(self, console: Console) -> None:
        """Take the console to print on."""
        self.console = console
        self.claims: list[Claim] = []
        self._step = 0

    def opening(self, title: str, about: str) -> None:
        """Print what this is."""
        text = Text.assemble((title, "bold cyan"), "\n", about)
        self.console.print(Panel(text, border_style="cyan", padding=(0, 2), expand=False))

    def step(self, title: str) -> None:
        """Begin a step."""
        self._step += 1
        self.console.print()
        self.console.print(Text.assemble((f" {self._step} ", "bold reverse cyan"), " ", (title, "bold")))

    def say(self, *parts: str | tuple[str, str]) -> None:
        """Print a line of the present step; parts are texts, or texts with a style."""
        self._print(Text.assemble(*parts), "")

    @contextmanager
    def progress(self, what: str, total: int) -> Generator[Callable[[int], None]]:
        """Show a bar on a terminal until it is over; yields the function to call with the steps taken."""
        columns = (TextColumn(" " * (_INDENT - 1) + what), BarColumn(), MofNCompleteColumn())
        terminal = self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=not terminal) as bar:
            task = bar.add_task(what, total=total)

            def advance(steps: int) -> None:
                bar.advance(task, steps)

            yield advance

    def quote(self, text: str, beside: int) -> str:
        """Return a text in quotation marks, cut to what fits on a line beside so many columns of others."""
        return f"“{shortened(text, max(20, self.console.width - _INDENT - beside - 2))}”"

    def claim(self, text: str, holds: bool) -> None:
        """Print a claim and whether it holds."""
        self.claims.append(Claim(text, holds))
        mark = Text("✓ ", "bold green") if holds else Text("✗ ", "bold red")
        self._print(Text(visible(text), "" if holds else "red"), mark)

    def _print(self, text: Text, mark: Text | str) -> None:
        lines = text.wrap(self.console, self.console.width - _INDENT - len(mark))
        for number, line in enumerate(lines):
            lead = Text(" " * _INDENT) + (mark if not number else " " * len(mark))
            self.console.print(lead + line, soft_wrap=True)

    def side_by_side(self, memory: Memory, sealed: bytes, name: str) -> None:
        """Print a memory as its owner sees it beside the bytes that the server has of it."""
        width = min(self.console.width - _INDENT, 130)
        per_row = 8 if self.console.width < _NARROW else 16
        right = 3 * per_row + per_row + 15
        left = Panel(
            _as_seen(memory), title="on your devices", border_style="green", width=width - right - 1, height=_ROWS + 3
        )
        dump = Panel(
            _dump(sealed, per_row, name), title="on the server", border_style="red", width=right, height=_ROWS + 3
        )
        self.console.print(Columns([Text(" " * (_INDENT - 1)), left, dump], padding=(0, 1, 0, 0)))

    def closing(self, totals: Sequence[str]) -> None:
        """Print one line of totals, in the colour of the outcome."""
        style = "bold green" if self.is_proven else "bold red"
        failed = sum(not claim.holds for claim in self.claims)
        verdict = "all of it held" if self.is_proven else f"{failed} of {len(self.claims)} claims did not hold"
        self.console.print()
        self._print(Text(" · ".join((*totals, verdict)), style), Text("✓ " if self.is_proven else "✗ ", style))

    @property
    def is_proven(self) -> bool:
        """Whether every claim so far holds, and there were some."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)


def _as_seen(memory: Memory) -> Group:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan")
    facts.add_column(overflow="fold")
    rows = {"kind": memory.kind, "author": memory.author, "tags": ", ".join(memory.tags), "source": memory.source}
    for name, value in rows.items():
        facts.add_row(name, Text(visible(value or "")))
    return Group(Text(f"“{visible(memory.content)}”", "bold"), Text(), facts)


def _dump(sealed: bytes, per_row: int, name: str) -> Text:
    dump = Text(no_wrap=True)
    for start in range(0, min(len(sealed), _ROWS * per_row), per_row):
        row = sealed[start : start + per_row]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in row)
        dump.append(f"{start:06x}  ", "dim").append(f"{row.hex(' '):<{3 * per_row}}").append(f" {letters}\n", "red")
    return dump.append(f"{name}, {len(sealed):,} bytes", "dim")
