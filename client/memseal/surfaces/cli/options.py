"""The options that commands share, and how their values are read."""

import sys
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from memseal.index.filters import STATES
from memseal.memory.memory import KINDS
from memseal.memory.texts import parse_id
from memseal.memory.traits import TIERS
from memseal.memory.types import TYPES
from memseal.surfaces.cli import exits

DEFAULT_STATE: Final = "active"


def text_of(value: str) -> str:
    """Return a text that can be stored; raises `typer.BadParameter`."""
    try:
        value.encode()
    except UnicodeEncodeError:  # what was no UTF-8 on the command line reaches Python as lone surrogates
        raise typer.BadParameter("give it in UTF-8") from None
    return value


def one_of(choices: Collection[str]) -> Callable[[str], str]:
    """Return the check of a value that is one of a few words."""

    def chosen(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"choose one of {', '.join(choices)}")
        return value

    return chosen


def id_shown_by(command: str) -> Callable[[str], str]:
    """Return the check of an id, which is made before a passphrase is asked for; it says what shows such ids."""

    def checked(value: str) -> str:
        try:
            parse_id(value)
        except ValueError:
            raise typer.BadParameter(f"an id has 32 hex digits: `{command}` shows it") from None
        return value

    return checked


def moment_of(value: str | datetime) -> datetime:
    """Return an aware UTC time from ISO 8601; raises `typer.BadParameter`."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter("give an ISO 8601 time, such as 2025-03-01 or 2025-03-01T14:30+01:00") from None


VaultPath = Annotated[
    Path | None,
    typer.Option(
        "--vault",
        envvar="MEMSEAL_VAULT",
        metavar="PATH",
        help="Folder of the vault; if not given, memseal/default.vault where this system keeps user data.",
    ),
]
PassphraseFd = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Read the passphrase as one line from this file descriptor."),
]
FilePassphraseFd = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Read the file's own passphrase as one line from this file descriptor."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON document, texts verbatim.")]
Kind = Annotated[str | None, typer.Option(parser=one_of(KINDS), metavar="KIND", help=f"One of {', '.join(KINDS)}.")]
Type = Annotated[
    str | None,
    typer.Option("--type", parser=one_of(TYPES), metavar="TYPE", help=f"One of {', '.join(TYPES)}."),
]
Tier = Annotated[str | None, typer.Option(parser=one_of(TIERS), metavar="TIER", help=f"One of {', '.join(TIERS)}.")]
State = Annotated[str, typer.Option(parser=one_of(STATES), metavar="STATE", help=f"One of {', '.join(STATES)}.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", parser=text_of, metavar="TAG", help="Repeat for several.")]
Author = Annotated[str | None, typer.Option(parser=text_of, metavar="NAME", help="Who said or wrote it.")]
Thread = Annotated[
    str | None, typer.Option(parser=text_of, metavar="NAME", help="The conversation or document it belongs to.")
]
Position = Annotated[int | None, typer.Option(metavar="N", help="Its place within the thread.")]
At = Annotated[
    datetime | None,
    typer.Option(parser=moment_of, metavar="TIME", help="When it happened, ISO 8601; UTC if it names no offset."),
]
Since = Annotated[datetime | None, typer.Option(parser=moment_of, metavar="TIME", help="From this time on, ISO 8601.")]
Until = Annotated[datetime | None, typer.Option(parser=moment_of, metavar="TIME", help="Before this time, ISO 8601.")]
AsOf = Annotated[
    datetime | None,
    typer.Option(parser=moment_of, metavar="TIME", help="What was believed then; of any state but retracted."),
]
Source = Annotated[str | None, typer.Option(parser=text_of, metavar="NAME", help="Where it came from.")]
Content = Annotated[str, typer.Argument(metavar="TEXT", help="The memory, or - to read it from standard input.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it is kept.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="At most this many.")]
MemoryId = Annotated[
    str, typer.Argument(parser=id_shown_by("memseal list"), metavar="ID", help="The memory's id, 32 hex digits.")
]


@dataclass(frozen=True)
class Filters:
    """Options of commands that show memories: which ones."""

    kind: Kind = None
    memory_type: Type = None
    tier: Tier = None
    tag: Tags = None
    author: Author = None
    thread: Thread = None
    source: Source = None
    since: Since = None
    until: Until = None
    as_of: AsOf = None
    state: State = DEFAULT_STATE

    def given(self) -> dict[str, Any]:
        """Return those that were given, as the vault calls them."""
        chosen = asdict(self)
        if self.as_of and self.state == DEFAULT_STATE:  # what was active on a day may not be now
            del chosen["state"]
        return given(type=chosen.pop("memory_type"), tags=chosen.pop("tag"), **chosen)


def content_of(text: str) -> str:
    """Return the text of an argument, `-` standing for all of standard input without its last line end."""
    if text != "-":
        return text
    content = _standard_input()
    if content is None:
        raise exits.WrongUsage("standard input is not UTF-8: encode it so")
    return content.removesuffix("\n").removesuffix("\r")


def _standard_input() -> str | None:
    # The error is dealt with here: it holds the text, and another one would carry it as its context.
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        return None


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value}
