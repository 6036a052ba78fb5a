"""The program: `memseal-server --store ./data` serves; other commands look after a store."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memseal_server import __version__, config, logs
from memseal_server.blobs import StoreUnavailable
from memseal_server.config import FILE_VARIABLE, OPTIONS, Config, ConfigError, Setting
from memseal_server.serving import serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit code: 1 where it failed, 2 where the configuration is wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    file = options.config or os.environ.get(FILE_VARIABLE)
    flags = {option.name: getattr(options, option.name) for option in OPTIONS if getattr(options, option.name)}
    try:
        found = config.settings(flags, os.environ, Path(file) if file else None)
        read = config.read(found)
        if options.check_config:
            config.check_folder(read.store)
            _show(found)
            return 0
    except ConfigError as error:
        parser.error(str(error))
    return _run(read)


def _run(read: Config) -> int:
    logs.start(read.log_level, read.log_format)
    try:
        asyncio.run(serve(read))
    except (StoreUnavailable, OSError) as error:
        logs.failed("start_failed", error)
        sys.stderr.write(f"memseal-server: cannot start: {_with_cause(error)}\n")
        return 1
    return 0


def _with_cause(error: BaseException) -> str:
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
        description="Keep vaults for others, without being able to read them.",
        epilog=f"Each option can also stand in the environment, as {OPTIONS[0].variable} does for --store, or in a"
        " TOML file, as `store`. A flag comes before the environment, the environment before the file.",
    )
    parser.add_argument("--version", action="version", version=f"memseal-server {__version__}")
    parser.add_argument("--config", metavar="FILE", help=f"TOML file with options; {FILE_VARIABLE} in the environment")
    parser.add_argument("--check-config", action="store_true", help="show the options and where they stand, and end")
    for option in OPTIONS:
        default = f" ({option.default})" if option.default else ""
        parser.add_argument(option.flag, action="append", metavar="X", help=option.meaning + default)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
