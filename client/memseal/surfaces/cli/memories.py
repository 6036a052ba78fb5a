"""Commands that write and read single memories."""

from collections.abc import Callable
from typing import Annotated, Any, Final, cast, get_args

import typer

from memseal.memory.memory import DEFAULT_KIND, Memory
from memseal.memory.memory import State as MemoryState
from memseal.memory.texts import parse_id
from memseal.recall.late import Effort
from memseal.recall.query import TimeRule
from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.options import (
    DEFAULT_STATE,
    AsJson,
    AsOf,
    At,
    Author,
    Content,
    Kind,
    MemoryId,
    PassphraseFd,
    Position,
    Since,
    Source,
    State,
    Tags,
    Thread,
    Tier,
    Type,
    Until,
    VaultPath,
    content_of,
    filters,
    open_vault,
)
from memseal.surfaces.cli.output import advise, screen, write_json, write_text
from memseal.surfaces.cli.pictures import show_list, show_memory, show_packet
from memseal.vault.masking import SecretRule

_SOURCE = "cli"
_NO_BUDGET: Final = 1_000_000_000


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def chosen(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"choose one of {', '.join(choices)}")
        return value

    return chosen


Secrets = Annotated[
    str,
    typer.Option(
        parser=_one_of(get_args(SecretRule)),
        metavar="RULE",
        help="A key or password in the text: refuse, redact or keep it.",
    ),
]
Untrusted = Annotated[bool, typer.Option("--untrusted", help="Hold it for review instead of storing it.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="At most this many.")]


def remember(
    text: Content,
    source: Annotated[str, typer.Option(metavar="NAME", help="Where it came from.")] = _SOURCE,
    kind: Kind = None,
    memory_type: Type = None,
    tag: Tags = None,
    author: Author = None,
    thread: Thread = None,
    position: Position = None,
    at: At = None,
    secrets: Secrets = "refuse",
    untrusted: Untrusted = False,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Store a memory. The same text, kind, author, thread and time again is the same memory."""
    with open_vault(vault, passphrase_fd) as opened:
        content = content_of(text)
        before = opened.count(state="all")
        memory = opened.remember(
            content,
            source=source,
            kind=kind or DEFAULT_KIND,
            type=memory_type,
            tags=tag or (),
            author=author,
            thread=thread,
            position=position,
            captured_at=at,
            secrets=cast("SecretRule", secrets),
            trusted=not untrusted,
        )
        is_new = opened.count(state="all") > before
    if as_json:
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
        int, typer.Option(metavar="N", min=0, max=_NO_BUDGET, help="At most this many characters of text for a model.")
    ] = _NO_BUDGET,
    prompt: Annotated[bool, typer.Option("--prompt", help="Write only the text for a model.")] = False,
    time: Annotated[
        str,
        typer.Option(
            parser=_one_of(get_args(TimeRule)), metavar="RULE", help="A time in the query: prefer, only or ignore."
        ),
    ] = "prefer",
    floor: Annotated[
        float | None, typer.Option(metavar="X", min=-1, max=1, help="The likeness from which meaning counts.")
    ] = None,
    effort: Annotated[
        str,
        typer.Option(
            parser=_one_of(get_args(Effort)),
            metavar="EFFORT",
            help="How closely meaning counts: economy, default, best.",
        ),
    ] = "default",
    kind: Kind = None,
    memory_type: Type = None,
    tier: Tier = None,
    tag: Tags = None,
    author: Author = None,
    thread: Thread = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    state: State = DEFAULT_STATE,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Find memories by words, meaning and time ("last Tuesday"), best first, each with its reasons."""
    chosen = filters(
        kind=kind, type=memory_type, tier=tier, tags=tag, author=author, thread=thread, source=source, since=since,
        until=until, as_of=as_of, state=state,
    )  # fmt: skip
    rule, means = cast("TimeRule", time), cast("Effort", effort)
    with open_vault(vault, passphrase_fd, read_only=True) as opened:
        packet = opened.recall(query, budget, limit=limit, floor=floor, time=rule, effort=means, **chosen)
    if as_json:
        write_json(documents.of_packet(query, packet))
    elif prompt:
        write_text(packet.text)
    else:
        show_packet(screen(), packet)
    return exits.DONE


def list_memories(
    limit: Limit = 20,
    offset: Annotated[int, typer.Option(metavar="N", min=0, max=2**53, help="Leave out this many first.")] = 0,
    kind: Kind = None,
    memory_type: Type = None,
    tier: Tier = None,
    tag: Tags = None,
    author: Author = None,
    thread: Thread = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    state: State = DEFAULT_STATE,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """List memories by time, newest first."""
    chosen = filters(
        kind=kind, type=memory_type, tier=tier, tags=tag, author=author, thread=thread, source=source, since=since,
        until=until, as_of=as_of, state=state,
    )  # fmt: skip
    with open_vault(vault, passphrase_fd, read_only=True) as opened:
        memories, total = opened.list(limit=limit, offset=offset, **chosen), opened.count(**chosen)
    if as_json:
        rows = [documents.of_memory(memory) for memory in memories]
        write_json({"memories": rows, "total": total, "limit": limit, "offset": offset})
        return exits.DONE
    show_list(screen(), memories)
    if len(memories) < total:
        advise(f"{len(memories)} of {total}: --limit and --offset show more.")
    return exits.DONE


def show(
    memory_id: MemoryId, vault: VaultPath = None, passphrase_fd: PassphraseFd = None, as_json: AsJson = False
) -> int:
    """Show one memory with all its fields, whatever its state."""
    check_id(memory_id)
    with open_vault(vault, passphrase_fd, read_only=True) as opened:
        memory = opened.get(memory_id)
    if as_json:
        write_json({"memory": documents.of_memory(memory)})
    else:
        show_memory(screen(), memory)
    return exits.DONE


def supersede(
    memory_id: MemoryId,
    text: Content,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it changed.")] = None,
    source: Annotated[str, typer.Option(metavar="NAME", help="Where it came from.")] = _SOURCE,
    kind: Kind = None,
    tag: Tags = None,
    author: Author = None,
    thread: Thread = None,
    position: Position = None,
    at: At = None,
    secrets: Secrets = "refuse",
    untrusted: Untrusted = False,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Replace a memory by a new one; what is not given carries over, and the old one stays to look up."""
    check_id(memory_id)
    given: dict[str, Any] = {
        "kind": kind, "tags": tag, "author": author, "thread": thread, "position": position, "captured_at": at,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    with open_vault(vault, passphrase_fd) as opened:
        memory = opened.supersede(
            memory_id,
            content_of(text),
            source=source,
            reason=reason,
            secrets=cast("SecretRule", secrets),
            trusted=not untrusted,
            **changes,
        )
    held = memory.state == MemoryState.HELD
    return _done("held for review (`memseal proposals`)" if held else "superseded by", memory, as_json)


def retract(
    memory_id: MemoryId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept with the memory.")],
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Take a memory out of recall; `restore` undoes it."""
    check_id(memory_id)
    with open_vault(vault, passphrase_fd) as opened:
        memory = opened.retract(memory_id, reason=reason)
    return _done("retracted", memory, as_json)


def restore(
    memory_id: MemoryId,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it is kept with the memory.")] = None,
    vault: VaultPath = None,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Undo a retraction."""
    check_id(memory_id)
    with open_vault(vault, passphrase_fd) as opened:
        memory = opened.restore(memory_id, reason=reason)
    return _done("restored", memory, as_json)


def check_id(memory_id: str) -> None:
    """Refuse what is no id before a passphrase is asked for."""
    try:
        parse_id(memory_id)
    except ValueError as error:
        raise exits.WrongUsage(f"{error}: `memseal list` shows it") from None


def _done(what: str, memory: Memory, as_json: bool) -> int:
    if as_json:
        write_json({"memory": documents.of_memory(memory)})
    else:
        _say(what, memory)
    return exits.DONE


def _say(what: str, memory: Memory) -> None:
    screen().print(f"{what} {memory.id}", soft_wrap=True)
