"""Follow a remote until Ctrl-C, and show how it stands: one live line for a person, one JSON line per change else."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from rich.live import Live
from rich.text import Text

from memseal.surfaces.cli import documents, exits
from memseal.surfaces.cli.output import json_text, notes, screen, write_error
from memseal.surfaces.cli.pictures import size
from memseal.surfaces.display import visible
from memseal.vault.remote.standing import SyncState
from memseal.vault.vault import Vault

# Windows delivers Ctrl-C to a waiting thread only between two waits.
_SLICE_SECONDS = 0.5 if os.name == "nt" else threading.TIMEOUT_MAX


def watch(vault: Vault, remote: str | None, *, as_json: bool) -> int:
    """Follow a remote; ends with Ctrl-C or SIGTERM, or where the person has to act, which is told as an error."""
    with _shown(as_json) as show, _ending_by_signal(), vault.sync_in_background(remote, on_state=show) as live:
        try:
            while not live.wait_until_stopped(_SLICE_SECONDS):
                pass
        except KeyboardInterrupt:
            return exits.DONE
        state = live.state
    if state.error is None:
        return exits.INTERNAL
    write_error(state.error.code, f"{state.error}: {state.advice}", as_json=as_json)
    return exits.code_of(state.error)


@contextmanager
def _shown(as_json: bool) -> Generator[Callable[[SyncState], None]]:
    if as_json:
        yield _write_line
        return
    console = screen()
    if not console.is_terminal:
        yield lambda state: console.print(line_of(state), soft_wrap=True)
        return
    with Live(Text("connecting"), console=notes(), auto_refresh=False, transient=True) as line:
        yield lambda state: line.update(line_of(state), refresh=True)


def _write_line(state: SyncState) -> None:
    sys.stdout.write(json_text(documents.of_sync_state(state)) + "\n")
    sys.stdout.flush()


def line_of(state: SyncState) -> Text:
    """Return one line that says how it stands."""
    since = f" at {state.synced_at.astimezone():%H:%M:%S}" if state.phase == "synced" and state.synced_at else ""
    words = [f"{visible(state.remote)}: {state.phase}{since}"]
    if state.error is not None:
        words.append(visible(str(state.error)))
    elif state.report is not None:
        report = state.report
        words.append(f"{size(report.pulled_bytes)} received, {size(report.pushed_bytes)} sent")
        words += [f"{len(report.findings)} findings: `memseal status`"] if report.findings else []
    if state.next_try_at is not None:
        words.append(f"next try at {state.next_try_at.astimezone():%H:%M:%S}")
    return Text(", ".join(words))


@contextmanager
def _ending_by_signal() -> Generator[None]:
    """Let SIGTERM end it as Ctrl-C does: the vault is closed in order."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
