"""The program: `memseal-server --store ./data` serves; other commands look after a store."""

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from memseal_server import __version__, commands, config, logs
from memseal_server.addresses import Refusal
from memseal_server.blobs import StoreUnavailable
from memseal_server.config import FILE_VARIABLE, OPTIONS, Config, ConfigError, Setting
from memseal_server.serving import serve

_COMMANDS = {
    "serve": "answer requests, until SIGTERM or SIGINT; this is what it does without a command",
    "invite": "write an invitation for a new vault, for where registration is `token`",
    "fsck": "read everything in the store, and say what is damaged; exit code 1 where something is",
    "usage": "say what each vault takes",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit code: 1 where it failed, 2 where the configuration is wrong."""
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        name = unknown[0].partition("=")[0]
        parser.error(f"{name} is no option{config.near(name, {option.flag: option for option in OPTIONS})}")
    if options.command not in _COMMANDS:
        parser.error(f"{options.command!r} is no command; there are {', '.join(_COMMANDS)}")
    file = options.config or os.environ.get(FILE_VARIABLE)
    flags = {option.name: getattr(options, option.name) for option in OPTIONS if getattr(options, option.name)}
    try:
        found = config.settings(flags, os.environ, Path(file) if file else None)
        read = config.read(found)
        if options.check_config:
            config.check_folder(read.store)
            _show(found)
            return 0
        work = _work(options, read)
    except (ConfigError, Refusal) as error:
        parser.error(str(error))
    return _run(read, work, options.command)


def _work(options: argparse.Namespace, read: Config) -> Coroutine[Any, Any, int]:
    match options.command:
        case "invite":
            uses, seconds = commands.read_uses(options.uses), commands.read_time(options.expires)
            return commands.invite(read.store, uses, seconds, as_json=options.json)
        case "fsck":
            return commands.fsck(read.store, as_json=options.json)
        case "usage":
            return commands.usage(read.store, as_json=options.json)
        case _:
            return serve(read)


def _run(read: Config, work: Coroutine[Any, Any, int], command: str) -> int:
    logs.start(read.log_level, read.log_format)
    try:
        return asyncio.run(work)
    except (StoreUnavailable, OSError) as error:
        if command == "serve":
            logs.failed("start_failed", error)
        sys.stderr.write(f"memseal-server: cannot {'start' if command == 'serve' else command}: {_said(error)}\n")
        return 1


def _said(error: BaseException) -> str:
    cause = error.__cause__
    return f"{error}: {cause}" if isinstance(cause, OSError) else str(error)


def _show(found: Mapping[str, Setting]) -> None:
    for name, setting in found.items():
        shown = " ".join(setting.texts) or "none"
        sys.stdout.write(f"{name:<20} {shown:<24} {setting.origin}\n")
    sys.stdout.write("This configuration can be used.\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memseal-server",
        # One line: all options before each refusal would hide what is wrong.
        usage="%(prog)s [command] --store PLACE [options]",
        allow_abbrev=False,
        description="Keep vaults for others, without being able to read them.\n\ncommands:\n"
        + "\n".join(f"  {name:<8} {meaning}" for name, meaning in _COMMANDS.items()),
        epilog=f"Each option that names something of the server can also stand in the environment, as\n"
        f"{OPTIONS[0].variable} does for --store, or in a TOML file, as `store`. A flag comes before\n"
        "the environment, the environment before the file.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", default="serve", metavar="command")
    parser.add_argument("--version", action="version", version=f"memseal-server {__version__}")
    parser.add_argument("--config", metavar="FILE", help=f"TOML file with options; {FILE_VARIABLE} in the environment")
    parser.add_argument("--check-config", action="store_true", help="show the options and where they stand, and end")
    for option in OPTIONS:
        default = f" ({option.default})" if option.default else ""
        parser.add_argument(option.flag, action="append", metavar="X", help=option.meaning + default)
    parser.add_argument("--uses", default="1", metavar="N", help="invite: how many new vaults it is good for (1)")
    parser.add_argument("--expires", default="7d", metavar="T", help="invite: how long it is good, like 12h or 7d (7d)")
    parser.add_argument("--json", action="store_true", help="invite, fsck, usage: write lines of JSON")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
