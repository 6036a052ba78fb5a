"""All commands, and what happens to their errors."""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import memseal
from memseal.errors import DiskError, MemsealError
from memseal.surfaces.cli import (
    consolidating,
    devices,
    exits,
    export,
    files,
    giving_up,
    keys,
    lifecycle,
    looking_back,
    memories,
    mending,
    pairing,
    recovery,
    reviewing,
    sanitize,
    story,
    upkeep,
)
from memseal.surfaces.cli.output import use_utf8, write_error
from memseal.surfaces.cli.spreading import spread
from memseal.transport.network import CA_FILE, use_ca_file

_PROGRAM = "memseal"
_ABOUT = """Memories for AI apps, sealed on this device and synchronised through a server that cannot read them.

The passphrase comes from --passphrase-fd, from MEMSEAL_PASSPHRASE, or from a hidden prompt; never from an argument.
MEMSEAL_VAULT names the vault, MEMSEAL_MODEL=none switches the embedding model off, NO_COLOR the colours.
Begin with `memseal demo` or `memseal init`; `memseal COMMAND --help` says more of each."""
_EXITS = "\n".join(("Exit codes:", *(f"{code:>4}  {meaning}" for code, meaning in exits.EXPLAINED)))
_EXTRA_OF = {
    **dict.fromkeys(("PIL", "segno"), "cli"),
    **dict.fromkeys(("onnxruntime", "tokenizers"), "embed"),
}
_OF_DEVICES = "The vault and its devices"
_COMMANDS: dict[str, tuple[tuple[str, Callable[..., int]], ...]] = {
    "To begin with": (
        ("demo", story.demo),
        ("init", keys.init),
        ("join", keys.join),
    ),
    "Memories": (
        ("remember", memories.remember),
        ("recall", memories.recall),
        ("list", memories.list_memories),
        ("show", memories.show),
        ("supersede", memories.supersede),
        ("retract", memories.retract),
        ("restore", memories.restore),
        ("tag", memories.tag),
        ("forget", reviewing.forget),
        ("erase", giving_up.erase),
        ("erasures", giving_up.erasures),
        ("consolidate", consolidating.consolidate),
        ("trace", looking_back.trace),
        ("sql", looking_back.sql),
        ("import", files.import_file),
        ("export", export.export_file),
    ),
    "What is believed, and what waits": (
        ("believed", lifecycle.believed),
        ("history", lifecycle.history),
        ("diff", lifecycle.diff),
        ("revert", lifecycle.revert),
        ("conflicts", lifecycle.conflicts),
        ("resolve", lifecycle.resolve),
        ("proposals", reviewing.proposals),
        ("accept", reviewing.accept),
        ("reject", reviewing.reject),
        ("hold", reviewing.hold),
        ("capture", reviewing.capture),
        ("audit", reviewing.audit),
    ),
    _OF_DEVICES: (
        ("pair", pairing.pair),
        ("sync", upkeep.sync),
        ("kit", keys.kit),
        ("passwd", keys.passwd),
        ("rekey", keys.rekey),
        ("recovery-code", recovery.recovery_code),
        ("recover", recovery.recover),
        ("status", upkeep.status),
        ("verify", upkeep.verify),
        ("repair", mending.repair),
        ("quarantine", giving_up.quarantine),
        ("dismiss", giving_up.dismiss),
        ("compact", upkeep.compact),
        ("reindex", upkeep.reindex),
    ),
    "What leaves the device": (("sanitize", sanitize.sanitize),),
}


def _application() -> typer.Typer:
    made = typer.Typer(
        name=_PROGRAM,
        help=_ABOUT,
        epilog=_EXITS,
        # Locals hold passphrases and memories; no traceback may show them.
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
    )
    made.callback()(_program)
    for panel, commands in _COMMANDS.items():
        for name, command in commands:
            _add(made, name, command, panel)
    made.add_typer(_of_devices(), name="devices", rich_help_panel=_OF_DEVICES)
    return made


def _of_devices() -> typer.Typer:
    made = typer.Typer(help=_flowing(devices.list_devices.__doc__ or ""))
    made.callback(invoke_without_command=True)(spread(devices.list_devices))
    for name, command in (("rename", devices.rename), ("revoke", devices.revoke)):
        _add(made, name, command)
    return made


def _add(group: typer.Typer, name: str, command: Callable[..., int], panel: str | None = None) -> None:
    """Add a command: its own page says all of its docstring, the list of all commands the first sentence."""
    text = _flowing(command.__doc__ or "")
    first = text.partition(". ")[0].rstrip(".") + "."
    group.command(name, help=text, short_help=first, rich_help_panel=panel)(spread(command))


def _flowing(text: str) -> str:
    """Take the line breaks out of each paragraph, so that help breaks its lines where the terminal does."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{_PROGRAM} {memseal.__version__}\n")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca-file",
            envvar=CA_FILE,
            metavar="PATH",
            help="PEM file of the authorities that servers' certificates are checked with, instead of the system's.",
        ),
    ] = None,
) -> None:
    use_ca_file(ca_file)


application = _application()


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors become one line on standard error, or one JSON object."""
    use_utf8()
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    try:
        code = _command(list(arguments) or ["--help"])
    except typer.TyperException as error:
        return _wrong_usage(_with_a_next_step(error), as_json=as_json)
    except exits.WrongUsage as error:
        return _wrong_usage(str(error), as_json=as_json)
    except MemsealError as error:
        write_error(error.code, str(error), as_json=as_json)
        return exits.code_of(error)
    except (exits.Interrupted, typer.Abort) as error:
        return _interrupted(str(error), as_json=as_json)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        write_error(
            DiskError.code, f"the system refused ({reason}): check path, permissions and space", as_json=as_json
        )
        return exits.code_of(DiskError())
    except ModuleNotFoundError as error:
        return _not_installed(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001  the last place that can keep its text, which may hold a memory, off the screen
        write_error("internal", _place(error), as_json=as_json)
        return exits.INTERNAL
    return _interrupted("", as_json=as_json) if code == exits.INTERRUPTED else code


def _not_installed(error: ModuleNotFoundError, *, as_json: bool) -> int:
    """Name the extra that a command needs; what is in none is missing from an installation of ours."""
    extra = _EXTRA_OF.get((error.name or "").partition(".")[0])
    if extra is None:
        write_error("internal", _place(error), as_json=as_json)
        return exits.INTERNAL
    return _wrong_usage(f"this needs {error.name}: pip install 'memseal[{extra}]'", as_json=as_json)


def _with_a_next_step(error: typer.TyperException) -> str:
    """Return what is wrong, and which page says what would be right, unless it names a command itself."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if "`" in message:
        return message
    page = _PROGRAM if context is None else context.command_path
    return f"{message.rstrip('.')}: `{page} --help` says what there is"


def _wrong_usage(message: str, *, as_json: bool) -> int:
    write_error("usage", message, as_json=as_json)
    return exits.USAGE


def _interrupted(message: str, *, as_json: bool) -> int:
    write_error("interrupted", message or "interrupted: what was acknowledged is stored", as_json=as_json)
    return exits.INTERRUPTED


def _command(arguments: list[str]) -> int:
    """Run the command that the arguments name; its errors come out as they are."""
    command = typer.main.get_command(application)
    _show_no_type_of_flags(command)
    outcome = command.main(arguments, prog_name=_PROGRAM, standalone_mode=False)
    return outcome if isinstance(outcome, int) else exits.DONE


def _show_no_type_of_flags(command: Any) -> None:
    """Keep Typer from writing `<bool>` beside options that take no value, as if one had to be given."""
    for option in command.params:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for each in getattr(command, "commands", {}).values():
        _show_no_type_of_flags(each)


def _place(error: Exception) -> str:
    """Return where an error that nobody expected arose; its own words may hold anything."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"an error inside memseal: please report {type(error).__name__} at {place}, version {memseal.__version__}"
