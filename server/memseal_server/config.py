"""Read the server's options: from flags, else from the environment, else from a TOML file, else their defaults."""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from memseal_server.addresses import Refusal, read_listen, read_store, read_url
from memseal_server.limits import Limits
from memseal_server.segments import MAX_SEGMENT_BYTES

PREFIX = "MEMSEAL_SERVER_"
# Names the file; so it is no option in it.
FILE_VARIABLE = PREFIX + "CONFIG"

_UNITS = {
    "": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE = re.compile(r"([0-9]{1,18})\s*([A-Za-z]*)")


class ConfigError(Exception):
    """The configuration cannot be used; the message says which value, where it stands, and what would do."""


@dataclass(frozen=True)
class Option:
    """One option: its name in the file, how its text is read (`Refusal`), its default, and what it is for."""

    name: str
    read: Callable[[str], Any]
    default: str | None
    meaning: str
    many: bool = False

    @property
    def flag(self) -> str:
        """Its name as a flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.name.upper()


@dataclass(frozen=True)
class Setting:
    """An option's text (texts, where it takes many) and where it stands: `the default`, a flag, a variable, a line."""

    option: Option
    texts: tuple[str, ...]
    origin: str

    def value(self) -> Any:
        """Return what the text says; `ConfigError` where it says nothing that can be used."""
        try:
            values = [self.option.read(text) for text in self.texts]
        except Refusal as refusal:
            raise ConfigError(f"{self.option.name} ({self.origin}): {refusal}") from None
        return tuple(values) if self.option.many else values[0] if values else None


def _choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise Refusal(f"{text!r} is not one of {', '.join(words)}")
        return text

    return read


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise Refusal(f"{text!r} is not a number from 0 on")
    return int(text)


def _seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
        raise Refusal(f"{text!r} is not a number of seconds")
    return float(text)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None or match[2].upper() not in _UNITS:
        raise Refusal(f"{text!r} is not a size like 10737418240, 500MB or 10GiB")
    return int(match[1]) * _UNITS[match[2].upper()]


def _object_size(text: str) -> int:
    return min(_size(text), MAX_SEGMENT_BYTES)


OPTIONS = (
    Option("store", read_store, None, "where the objects lie: a folder, or s3://bucket/prefix"),
    Option("listen", read_listen, "127.0.0.1:8420", "host:port to listen on; port 0 takes any free one"),
    Option("url", read_url, None, "address that clients use, like https://host or https://host/path", many=True),
    Option("registration", _choice("open", "token", "closed"), "open", "who may bring new vaults: open, token, closed"),
    Option("max_vault_bytes", _size, "10GiB", "room for one vault; 0 is no limit"),
    Option("max_vault_objects", _count, "1000000", "objects of one vault; 0 is no limit"),
    Option("max_object_bytes", _object_size, "68MiB", "largest object, at most 68 MiB"),
    Option("max_vault_requests", _count, "100", "requests to one vault in a second, in the long run; 0 is no limit"),
    Option(
        "max_pairing_requests",
        _count,
        "10",
        "requests of new devices from one address, and to one pairing, in a second, in the long run; 0 is no limit",
    ),
    Option("max_waiters", _count, "10000", "requests that may wait for a change at a time"),
    Option("max_connections", _count, "12000", "connections at a time"),
    Option("recheck_seconds", _seconds, "3", "how often a waiting request looks what other processes have stored"),
    Option("body_seconds", _seconds, "60", "time that a body may take to arrive, and an answer to be taken"),
    Option("drain_seconds", _seconds, "0", "time between the first signal to end, which turns /readyz, and the end"),
    Option("shutdown_seconds", _seconds, "10", "time that requests then have to be finished"),
    Option("log_level", _choice("debug", "info", "warning", "error"), "info", "least level of the lines on stderr"),
    Option("log_format", _choice("json", "logfmt"), "json", "how those lines are written: json, logfmt"),
)
_BY_NAME = {option.name: option for option in OPTIONS}


@dataclass(frozen=True)
class Config:
    """What the options say."""

    store: str
    listen: tuple[str, int]
    urls: tuple[tuple[str, str], ...]  # origin and path
    limits: Limits
    drain_seconds: float
    shutdown_seconds: float
    log_level: str
    log_format: str


def settings(
    flags: Mapping[str, Sequence[str]], environment: Mapping[str, str], file: Path | None
) -> Mapping[str, Setting]:
    """Return every option's setting by its name; `ConfigError` for names that are no options.

    `flags` are the texts given for each name. An empty variable counts as one that is not set.
    """
    found = {option.name: Setting(option, _default(option), "the default") for option in OPTIONS}
    found |= _from_file(file) if file is not None else {}
    found |= _from_environment(environment)
    found |= {name: Setting(_BY_NAME[name], tuple(texts), _BY_NAME[name].flag) for name, texts in flags.items()}
    return found


def read(found: Mapping[str, Setting]) -> Config:
    """Return what the settings say; `ConfigError` for the first that cannot be used."""
    values = {name: setting.value() for name, setting in found.items()}
    if values["store"] is None:
        raise ConfigError("store: say where the objects lie, with --store FOLDER, MEMSEAL_SERVER_STORE or in the file")
    host, _ = values["listen"]
    if host in ("0.0.0.0", "::") and not values["url"]:  # noqa: S104  named to refuse them as an identity
        raise ConfigError("url: it is needed where the server listens on every address: say what clients use")
    return Config(
        store=values["store"],
        listen=values["listen"],
        urls=values["url"],
        limits=_limits(values),
        drain_seconds=values["drain_seconds"],
        shutdown_seconds=values["shutdown_seconds"],
        log_level=values["log_level"],
        log_format=values["log_format"],
    )


def check_folder(store: str) -> None:
    """Refuse with `ConfigError` a store that is a folder which cannot be written; nothing is made."""
    folder = Path(store)
    if store.startswith("s3://"):
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(f"store: {there} is a file, where a folder is needed")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"store: {there} cannot be written by this user")


def _limits(values: Mapping[str, Any]) -> Limits:
    return Limits(
        registration=values["registration"],
        max_object_bytes=values["max_object_bytes"],
        max_vault_bytes=values["max_vault_bytes"] or None,
        max_vault_objects=values["max_vault_objects"] or None,
        max_vault_requests=values["max_vault_requests"] or None,
        max_pairing_requests=values["max_pairing_requests"] or None,
        max_waiters=values["max_waiters"],
        max_connections=values["max_connections"],
        recheck_seconds=values["recheck_seconds"],
        body_seconds=values["body_seconds"],
    )


def _default(option: Option) -> tuple[str, ...]:
    return () if option.default is None else (option.default,)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    by_variable = {option.variable: option for option in OPTIONS}
    found: dict[str, Setting] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE or not text:
            continue
        option = by_variable.get(variable)
        if option is None:
            raise ConfigError(f"{variable} in the environment is no option{near(variable, by_variable)}")
        found[option.name] = Setting(option, tuple(text.split()) if option.many else (text,), variable)
    return found


def _from_file(path: Path) -> dict[str, Setting]:
    text, content = _parse(path)
    found: dict[str, Setting] = {}
    for name, value in content.items():
        place = f"{path}, line {_line_of(name, text)}"
        option = _BY_NAME.get(name)
        if isinstance(value, dict):
            raise ConfigError(f"{place}: options stand at the top of the file, not in a table [{name}]")
        if option is None:
            raise ConfigError(f"{place}: {name} is no option{near(name, _BY_NAME)}")
        found[name] = Setting(option, _texts(option, value, place), place)
    return found


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _texts(option: Option, value: Any, place: str) -> tuple[str, ...]:
    values = cast("list[object]", value if isinstance(value, list) and option.many else [value])
    for each in values:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise ConfigError(f"{place}: {option.name} takes a text or a number" + " or a list" * option.many)
    return tuple(str(each) for each in values)


def _line_of(name: str, text: str) -> int:
    pattern = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[].=]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def near(name: str, names: Mapping[str, Option]) -> str:
    """Return how to go on after a name that is no option: with the one that was meant, or with all there are."""
    close = difflib.get_close_matches(name, names, 1)
    return f": did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"
