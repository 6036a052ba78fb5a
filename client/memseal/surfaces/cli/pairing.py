"""Commands for letting a new device in by a short code."""

import sys
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memseal.surfaces.cli import exits
from memseal.surfaces.cli.access import Access
from memseal.surfaces.cli.devices import of_device
from memseal.surfaces.cli.keys import Remote
from memseal.surfaces.cli.output import advise, json_text, notes, screen, write_json, write_lines
from memseal.surfaces.display import visible

_QUIET_ZONE = 4
"""Light modules around a QR code, as ISO/IEC 18004 asks for."""
_BLOCKS = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def pair(
    qr: Annotated[
        bool, typer.Option("--qr", help="Show a QR code, with a longer secret and the server in it.")
    ] = False,
    remote: Remote = None,
    *,
    access: Access,
) -> int:
    """Show a code by which a new device joins: type it there, at `memseal join REMOTE --code`.

    It is good for two minutes and one attempt. For programs the code is on standard error, as one line of JSON.
    """
    with access.open() as opened, ExitStack() as waiting:

        def show(code: str) -> None:
            _show(code, as_json=access.as_json, qr=qr)
            # Not before: what moves on a terminal and what is printed there would run into each other.
            waiting.enter_context(notes().status("waiting for the new device"))

        device = opened.pair(show, scanned=qr, remote=remote)
    if access.as_json:
        write_json({"device": of_device(device)})
    else:
        write_lines(screen(), Text(visible(f"{device.name} joined ({device.id})")))
        advise("If that is not your new device: `memseal devices revoke` removes it.")
    return exits.DONE


def _show(code: str, *, as_json: bool, qr: bool) -> None:
    if as_json:
        sys.stderr.write(json_text({"pairing_code": code}) + "\n")
        sys.stderr.flush()
        return
    console = screen()
    if qr:
        show_qr(console, code)
    console.print(Text(code, "bold"), soft_wrap=True)
    sys.stdout.flush()
    advise("On the new device: memseal join REMOTE --code. The code is good for two minutes and one attempt.")


def show_qr(console: Console, text: str) -> None:
    """Draw a QR code, two rows of modules on a line; dark on light whatever the terminal's colours are."""
    import segno

    rows = [list(row) for row in segno.make(text, error="m", micro=False).matrix_iter(border=_QUIET_ZONE)]
    rows += [[0] * len(rows[0])] if len(rows) % 2 else []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        line = "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))
        console.print(Text(line, "black on white"), soft_wrap=True)
