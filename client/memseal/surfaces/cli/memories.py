"""Commands that write and read single memories."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, cast, get_args

import typer

from memseal.memory.memory import Memory
from memseal.memory.memory import State as MemoryState
from memseal.memory.types import TYPES
from memseal.recall.late import Effort
from memseal.recall.query import TimeRule
from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.options import (
    At,
    Author,
    Content,
    Filters,
    Kind,
    Limit,
    MemoryId,
    Position,
    Reason,
    Tags,
    Thread,
    content_of,
    one_of,
    text_of,
)
from memseal.surfaces.cli.output import advise, screen, write_json, write_text
from memseal.surfaces.cli.pictures import show_list, show_memory, show_packet
from memseal.surfaces.display import visible
from memseal.vault.writes.masking import SecretRule

_SOURCE = "cli"
_NO_BUDGET: Final = 1_000_000_000


@dataclass(frozen=True)
class Details:
    """Options of commands that write a memory: what is said of it beside its text, and how it is let in."""

    source: Annotated[str, typer.Option(metavar="NAME", help="Where it came from.")] = _SOURCE
    kind: Kind = None
    memory_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            parser=one_of(TYPES),
            metavar="TYPE",
            help=f"One of {', '.join(TYPES)}; found by rules if not given.",
        ),
    ] = None
    tag: Tags = None
    author: Author = None
    thread: Thread = None
    position: Position = None
    at: At = None
    secrets: Annotated[
        str,
        typer.Option(
            parser=one_of(get_args(SecretRule)),
            metavar="RULE",
            help="A key or password in the text: refuse, redact or keep it.",
        ),
    ] = "refuse"
    untrusted: Annotated[bool, typer.Option("--untrusted", help="Hold it for review instead of storing it.")] = False

    def given(self) -> dict[str, Any]:
        """Return those that were given, as the vault calls them."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        names = {"memory_type": "type", "tag": "tags", "at": "captured_at"}
        trusted = not said.pop("untrusted")
        return {names.get(name, name): value for name, value in said.items()} | {"trusted": trusted}


def remember(text: Content, *, details: Details, access: Access) -> int:
    """Store a memory. The same text, kind, author, thread and time again is the same memory."""
    with access.open() as opened:
        content = content_of(text)
        before = opened.count(state="all")
        memory = opened.remember(content, **details.given())
        is_new = opened.count(state="all") > before
    if access.as_json:
        write_json({"memory": documents.of_memory(memory), "new": is_new})
    elif memory.state == MemoryState.HELD:
        _say("held for review (`memseal proposals`)", memory)
    else:
        _say("remembered" if is_new else "known already", memory)
    return exits.DONE


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or words to look for.")],
    limit: Limit = 10,
    budget: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=_NO_BUDGET,
            show_default="no limit",
            help="At most this many characters of text for a model.",
        ),
    ] = _NO_BUDGET,
    prompt: Annotated[bool, typer.Option("--prompt", help="Write only the text for a model.")] = False,
    time: Annotated[
        str,
        typer.Option(
            parser=one_of(get_args(TimeRule)), metavar="RULE", help="A time in the query: prefer, only or ignore."
        ),
    ] = "prefer",
    floor: Annotated[
        float | None, typer.Option(metavar="X", min=-1, max=1, help="The likeness from which meaning counts.")
    ] = None,
    effort: Annotated[
        str,
        typer.Option(
            parser=one_of(get_args(Effort)),
            metavar="EFFORT",
            help="How closely meaning counts: economy, default, best.",
        ),
    ] = "default",
    *,
    filters: Filters,
    access: Access,
) -> int:
    """Find memories by words, meaning and time ("last Tuesday"), best first, each with its reasons."""
    rule, means = cast("TimeRule", time), cast("Effort", effort)
    with access.open(read_only=True) as opened:
        packet = opened.recall(query, budget, limit=limit, floor=floor, time=rule, effort=means, **filters.given())
    if access.as_json:
        write_json(documents.of_packet(query, packet))
    elif prompt:
        write_text(packet.text)
    else:
        show_packet(screen(), packet)
    return exits.DONE


def list_memories(
    limit: Limit = 20,
    offset: Annotated[int, typer.Option(metavar="N", min=0, max=2**53, help="Leave out this many first.")] = 0,
    *,
    filters: Filters,
    access: Access,
) -> int:
    """List memories by time, newest first."""
    chosen = filters.given()
    with access.open(read_only=True) as opened:
        memories, total = opened.list(limit=limit, offset=offset, **chosen), opened.count(**chosen)
    if access.as_json:
        rows = [documents.of_memory(memory) for memory in memories]
        write_json({"memories": rows, "total": total, "limit": limit, "offset": offset})
        return exits.DONE
    show_list(screen(), memories)
    if len(memories) < total:
        advise(f"{len(memories)} of {total}: --limit and --offset show more.")
    return exits.DONE


def show(memory_id: MemoryId, *, access: Access) -> int:
    """Show one memory with all its fields, whatever its state."""
    with access.open(read_only=True) as opened:
        memory = opened.get(memory_id)
    if access.as_json:
        write_json({"memory": documents.of_memory(memory)})
    else:
        show_memory(screen(), memory)
    return exits.DONE


def supersede(memory_id: MemoryId, text: Content, reason: Reason = None, *, details: Details, access: Access) -> int:
    """Replace a memory by a new one; what is not given carries over, and the old one stays to look up."""
    with access.open() as opened:
        memory = opened.supersede(memory_id, content_of(text), reason=reason, **details.given())
    held = memory.state == MemoryState.HELD
    return _done("held for review (`memseal proposals`)" if held else "superseded by", memory, as_json=access.as_json)


def retract(
    memory_id: MemoryId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept with the memory.")],
    *,
    access: Access,
) -> int:
    """Take a memory out of recall; `restore` undoes it."""
    with access.open() as opened:
        memory = opened.retract(memory_id, reason=reason)
    return _done("retracted", memory, as_json=access.as_json)


def restore(memory_id: MemoryId, reason: Reason = None, *, access: Access) -> int:
    """Undo a retraction."""
    with access.open() as opened:
        memory = opened.restore(memory_id, reason=reason)
    return _done("restored", memory, as_json=access.as_json)


def tag(
    memory_id: MemoryId,
    add: Annotated[list[str] | None, typer.Option(parser=text_of, metavar="TAG", help="Repeat for several.")] = None,
    remove: Annotated[list[str] | None, typer.Option(parser=text_of, metavar="TAG", help="Repeat for several.")] = None,
    *,
    access: Access,
) -> int:
    """Add and remove tags of a memory. A tag that another device adds at the same time stays."""
    if not add and not remove:
        raise exits.WrongUsage("give --add TAG or --remove TAG")
    with access.open() as opened:
        memory = opened.tag(memory_id, add=add or (), remove=remove or ())
    return _done(f"tagged {', '.join(map(visible, memory.tags)) or 'with nothing'}:", memory, as_json=access.as_json)


def _done(what: str, memory: Memory, *, as_json: bool) -> int:
    if as_json:
        write_json({"memory": documents.of_memory(memory)})
    else:
        _say(what, memory)
    return exits.DONE


def _say(what: str, memory: Memory) -> None:
    screen().print(f"{what} {memory.id}", soft_wrap=True)
