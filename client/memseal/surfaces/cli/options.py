"""The options that commands share, and how their values are read."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from memseal.errors import Finding
from memseal.index.filters import STATES
from memseal.memory.memory import KINDS
from memseal.memory.traits import TIERS
from memseal.memory.types import TYPES
from memseal.surfaces.cli import asking, exits
from memseal.surfaces.cli.output import notes, write_lines
from memseal.surfaces.cli.places import vault_place
from memseal.vault.held import EmbedderChoice
from memseal.vault.vault import Vault

MODEL: Final = "MEMSEAL_MODEL"
DEFAULT_STATE: Final = "active"


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:  # what was no UTF-8 on the command line reaches Python as lone surrogates
        raise typer.BadParameter("give it in UTF-8") from None
    return value


def _kind(value: str) -> str:
    if value not in KINDS:
        raise typer.BadParameter(f"choose one of {', '.join(KINDS)}")
    return value


def _type(value: str) -> str:
    if value not in TYPES:
        raise typer.BadParameter(f"choose one of {', '.join(TYPES)}")
    return value


def _tier(value: str) -> str:
    if value not in TIERS:
        raise typer.BadParameter(f"choose one of {', '.join(TIERS)}")
    return value


def _state(value: str) -> str:
    if value not in STATES:
        raise typer.BadParameter(f"choose one of {', '.join(STATES)}")
    return value


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
Kind = Annotated[str | None, typer.Option(parser=_kind, metavar="KIND", help=f"One of {', '.join(KINDS)}.")]
Type = Annotated[
    str | None,
    typer.Option("--type", parser=_type, metavar="TYPE", help=f"One of {', '.join(TYPES)}; by rules where not said."),
]
Tier = Annotated[str | None, typer.Option(parser=_tier, metavar="TIER", help=f"One of {', '.join(TIERS)}.")]
State = Annotated[str, typer.Option(parser=_state, metavar="STATE", help=f"One of {', '.join(STATES)}.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", parser=_text, metavar="TAG", help="Repeat for several.")]
Author = Annotated[str | None, typer.Option(parser=_text, metavar="NAME", help="Who said or wrote it.")]
Thread = Annotated[
    str | None, typer.Option(parser=_text, metavar="NAME", help="The conversation or document it belongs to.")
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
Source = Annotated[str | None, typer.Option(parser=_text, metavar="NAME", help="Where it came from.")]
Content = Annotated[str, typer.Argument(metavar="TEXT", help="The memory, or - to read it from standard input.")]
MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, 32 hex digits.")]


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


def filters(**given: Any) -> dict[str, Any]:
    """Return the filters that were given; of a day, the state if not given is not only what is active now."""
    if given.get("as_of") and given.get("state") == DEFAULT_STATE:
        del given["state"]
    return {name: value for name, value in given.items() if value}


def embedder_choice() -> EmbedderChoice:
    """Return what the environment says of the model: it can be switched off, and words alone then count."""
    chosen = os.environ.get(MODEL, "")
    if chosen not in ("", "default", "none"):
        raise exits.WrongUsage(f"{MODEL} is `default` or `none`")
    return None if chosen == "none" else "default"


# Findings that cost no memory which was there before.
_HARMLESS = frozenset("record_torn counter_false column_value operation_unknown withheld stream_ended".split())

_INCOMPLETE = "! Part of this vault cannot be read, so memories are missing here: `memseal verify` says which files."


@contextmanager
def open_vault(
    path: Path | None,
    descriptor: int | None,
    *,
    read_only: bool = False,
    warn: bool = True,
    passphrase: str | None = None,
) -> Generator[Vault]:
    """Open the vault that the options name, and close it afterwards; `warn` where memories are missing from it."""
    embedder, place = embedder_choice(), vault_place(path)
    with Vault.open(
        place, passphrase or asking.passphrase(descriptor), read_only=read_only, embedder=embedder
    ) as vault:
        if warn and any(_is_loss(finding) for finding in vault.status().findings):
            # Other programs are told as well: an export without them would pass for whole.
            write_lines(notes(), Text(_INCOMPLETE))
        yield vault


def _is_loss(finding: Finding) -> bool:
    return finding.where.startswith(("logs/", "parts/", "checkpoints/")) and finding.code not in _HARMLESS
