"""What people see: every stored text goes through `visible`, so that no memory can draw on the screen."""

from collections.abc import Iterable
from datetime import datetime

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from memseal.errors import Finding
from memseal.memory.data_class import GENERAL
from memseal.memory.memory import Memory, State
from memseal.memory.traits import ATOM, Location
from memseal.recall.packet import Packet, Recalled
from memseal.recall.receipt import EXPLAINED
from memseal.surfaces.cli.output import write_lines
from memseal.surfaces.display import shortened, visible
from memseal.vault.remote.branches import Joined
from memseal.vault.remote.status import Status

_KIT_GROUPS = 8
_KIT_WIDTH = 74
_INDENT = 4


def show_packet(console: Console, packet: Packet) -> None:
    """Print what was recalled, best first, each with its reasons, and what is left out."""
    if packet.reason is not None:
        sentence = EXPLAINED[packet.reason]
        console.print(f"{sentence[0].upper()}{sentence[1:]}.")
    for number, hit in enumerate(packet.hits, start=1):
        _show_entry(console, f"{number:>2}  ", hit.memory, _reasons(hit))
    if packet.gap:
        write_lines(console, Text(packet.gap, "dim"))


def show_list(console: Console, memories: Iterable[Memory]) -> None:
    """Print memories, one after the other."""
    for memory in memories:
        _show_entry(console, "•   ", memory, None)


def _show_entry(console: Console, mark: str, memory: Memory, reasons: str | None) -> None:
    write_lines(console, Text(visible(memory.content)), _INDENT, Text(mark, "bold cyan"))
    write_lines(console, Text(_origin_line(memory), "dim"), _INDENT)
    if reasons is not None:
        write_lines(console, Text(reasons, "green"), _INDENT)
    write_lines(console, Text(memory.id, "dim"), _INDENT)


def _origin_line(memory: Memory) -> str:
    parts = [memory.kind, moment(memory.captured_at or memory.written_at), shortened(memory.source)]
    if memory.author is not None:
        parts.append(shortened(memory.author))
    if memory.tags:
        parts.append(shortened(", ".join(memory.tags)))
    if memory.state != State.ACTIVE:
        parts.append(state_word(memory.state))
    return " · ".join(parts)


def _reasons(hit: Recalled) -> str:
    parts = [f"score {hit.score:.2f}"]
    if hit.why.cosine is not None:
        parts.append(f"meaning {hit.why.cosine:.2f}")
    if hit.why.late is not None:
        parts.append(f"word by word {hit.why.late:.2f}")
    if hit.why.terms:
        parts.append(f"words: {visible(', '.join(hit.why.terms))}")
    if hit.why.earlier:
        parts.append("an earlier version of it")
    if hit.why.date > 0:
        parts.append("its time")
    if hit.why.context > 0:
        parts.append("neighbours in its thread")
    return " · ".join(parts)


def state_word(state: State) -> str:
    """Return a state as people say it."""
    return "superseded and retracted" if state == State.BOTH else state.name.lower()


def moment(when: datetime) -> str:
    """Return a time in UTC to the minute."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def show_memory(console: Console, memory: Memory) -> None:
    """Print one memory with all its fields."""
    write_lines(console, Text(visible(memory.content), "bold"))
    rows: list[tuple[str, str | None]] = [
        ("id", memory.id),
        ("kind", memory.kind),
        ("type", memory.type),
        ("tier", None if memory.tier == ATOM else memory.tier),
        ("state", state_word(memory.state)),
        ("reason", memory.reason),
        ("source", shortened(memory.source)),
        ("author", memory.author),
        ("thread", memory.thread),
        ("position", None if memory.position is None else str(memory.position)),
        ("tags", ", ".join(memory.tags) or None),
        ("captured", None if memory.captured_at is None else moment(memory.captured_at)),
        ("written", moment(memory.written_at)),
        ("origin", memory.origin),
        ("owner", memory.owner),
        ("location", _location(memory.location)),
        ("made of", f"{len(memory.derived_from)} memories" if memory.derived_from else None),
        ("made in run", None if memory.derivation is None else memory.derivation.run),
        ("supersedes", memory.supersedes),
        ("superseded by", memory.superseded_by),
    ]
    show_rows(console, rows)


def _location(location: Location | None) -> str | None:
    if location is None:
        return None
    degrees = None if location.lat is None else f"{location.lat:.5f}, {location.lon:.5f}"
    return " · ".join(each for each in (location.place, degrees) if each)


def show_rows(console: Console, rows: Iterable[tuple[str, str | None]]) -> None:
    """Print names and values in two columns, leaving out what is not there."""
    for name, value in rows:
        if value is not None:
            write_lines(console, Text(f"{name:<14}", "cyan").append(visible(value), "default"), 2)


def show_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print findings: code, place, and what to do."""
    for finding in findings:
        line = (
            Text("! ", "bold yellow").append(visible(finding.code), "bold").append(f"  {visible(finding.where)}", "dim")
        )
        write_lines(console, line)
        write_lines(console, Text(visible(finding.detail)), _INDENT)


def show_status(console: Console, status: Status) -> None:
    """Print what a vault says of itself."""
    model = status.model or "none yet"
    if status.without_vector:
        model += f" ({status.without_vector} without a vector: `memseal reindex`)"
    rows: list[tuple[str, str | None]] = [
        ("vault", status.path),
        ("id", status.vault_id),
        ("data class", None if status.data_class == GENERAL else status.data_class),
        ("memories", f"{status.active} active, {status.superseded} superseded, {status.retracted} retracted"),
        ("model", model),
        ("keys", f"epoch {status.epoch}, keyring version {status.keyring_version}"),
        (
            "server",
            f"{status.server} ({_unsent(status.unsent_bytes)})" if status.server else "none: `memseal sync ADDRESS`",
        ),
        ("traces", f"{size(status.trace_bytes)}, on this device only" if status.trace_files else "none"),
        ("kept sessions", f"{status.kept_sessions}, on this device only" if status.kept_sessions else None),
    ]
    show_rows(console, rows)
    for device in status.devices:
        notes = ["this device"] if device.this_device else []
        if device.old_passphrase:
            notes.append("still behind the old passphrase")
        remark = f" ({', '.join(notes)})" if notes else ""
        show_rows(console, [("device", (device.name or device.id) + remark)])
    show_findings(console, status.findings)


def _unsent(size_bytes: int) -> str:
    return f"{size(size_bytes)} not sent yet" if size_bytes else "everything is there"


def size(size_bytes: int) -> str:
    """Return a size as people read it."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1024:,.1f} KiB" if size_bytes < 1 << 20 else f"{size_bytes / (1 << 20):,.1f} MiB"


def show_joined(console: Console, joined: Joined) -> None:
    """Print that two branches were joined, and the secrets that are new."""
    console.print("The server's keyring had gone another way: both were joined, and nothing was lost.", soft_wrap=True)
    if joined.emergency_kit is not None:
        show_kit(console, joined.emergency_kit)
    if joined.recovery_code is not None:
        purpose = (
            "This code alone opens the vault if the passphrase is lost.\nThe one of before opens nothing any more."
        )
        show_secret(console, "recovery code", joined.recovery_code, purpose, "It is not shown again.")


def show_kit(console: Console, kit: str) -> None:
    """Print the emergency kit in a frame, with what it is for."""
    purpose = (
        "With this kit and the passphrase, a new device joins this vault."
        "\nPrint it or write it down, and keep it away from your devices:"
        "\nit is a secret."
    )
    show_secret(
        console,
        "emergency kit",
        kit,
        purpose,
        "If the passphrase is lost and there is no recovery code,\nnobody can recover the memories.",
    )


def show_secret(console: Console, title: str, secret: str, purpose: str, warning: str) -> None:
    """Print a string to keep in a frame, with what it is for."""
    groups = secret.split("-")
    lines = ["-".join(groups[start : start + _KIT_GROUPS]) for start in range(0, len(groups), _KIT_GROUPS)]
    text = Text.assemble(("-\n".join(lines), "bold"), f"\n\n{purpose}\n\n", (warning, "bold yellow"))
    width = min(console.width, max(_KIT_WIDTH, max(map(len, lines)) + 6))
    console.print(Panel(text, title=title, border_style="yellow", padding=(1, 2), width=width))
