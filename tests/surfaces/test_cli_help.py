"""What `--help` shows, and how options that belong together reach a command as one value."""

import inspect
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.errors import ExtraMissing
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.spreading import spread
from tests.surfaces.conftest import Command


@dataclass(frozen=True)
class Pair:
    """Two options."""

    left: int = 1
    right: int = 2


def add(first: int, *, pair: Pair) -> int:
    return first + pair.left + pair.right


def test_command_with_a_group_shows_its_fields_in_the_place_of_the_group() -> None:
    shown = inspect.signature(spread(add)).parameters
    assert [(each.name, each.default) for each in shown.values()] == [
        ("first", inspect.Parameter.empty),
        ("left", 1),
        ("right", 2),
    ]


def test_command_with_a_group_gets_one_value() -> None:
    assert spread(add)(first=10, left=20, right=30) == 60


def test_option_that_two_groups_have_is_refused_before_anything_runs() -> None:
    def twice(*, pair: Pair, other: Pair) -> int:
        return pair.left + other.left

    with pytest.raises(ValueError, match="duplicate"):
        spread(twice)


def test_help_begins_with_what_one_begins_with(cli: Command) -> None:
    run = cli("--help")
    assert run.code == exits.DONE
    places = [run.out.index(word) for word in ("demo ", "init ", "remember ", "believed ", "sync ", "sanitize ")]
    assert places == sorted(places)


def test_list_of_commands_has_the_first_sentence_of_each_and_its_page_has_all(cli: Command) -> None:
    second = "same text, kind, author"
    assert "Store a memory." in cli("--help").out
    assert second not in cli("--help").out
    assert second in cli("remember", "--help").out


@pytest.mark.parametrize("command", [["recall"], ["sync"], ["kit"], ["devices", "revoke"]], ids=" ".join)
def test_option_without_a_value_is_not_shown_as_if_it_took_one(cli: Command, command: list[str]) -> None:
    lines = [line for line in cli(*command, "--help").out.splitlines() if "<bool>" in line]
    assert [line for line in lines if "--help" not in line] == []


@pytest.mark.parametrize("command", ["show", "retract", "history", "accept", "trace", "erase"])
def test_what_is_no_id_is_refused_before_a_passphrase_is_asked_for(cli: Command, command: str) -> None:
    rest = ("--reason", "x") if command == "retract" else ()
    run = cli(command, "12", *rest, MEMSEAL_PASSPHRASE=None)
    assert run.code == exits.USAGE
    assert "32 hex digits: `memseal " in run.err


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (("bogus",), "memseal"),
        (("list", "--nope"), "memseal list"),
        (("show",), "memseal show"),
        (("devices", "x"), "memseal devices"),
    ],
    ids=["command", "option", "argument", "part"],
)
def test_wrong_usage_names_the_page_that_says_what_is_right(
    cli: Command, arguments: tuple[str, ...], page: str
) -> None:
    run = cli(*arguments)
    assert run.code == exits.USAGE
    assert f"`{page} --help`" in run.err


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("aiohttp", ["sync", "http://127.0.0.1:9"], "sync"),
        ("spake2", ["pair", "--remote", "http://127.0.0.1:9"], "sync"),
        ("PIL", ["kit", "--png", "kit.png"], "cli"),
        ("segno", ["kit", "--html", "kit.html"], "cli"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_command_that_needs_an_extra_names_it(
    vault: Path, environment: dict[str, str], tmp_path: Path, module: str, command: list[str], extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; from memseal.surfaces.cli import main; sys.exit(main({command}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment, "MEMSEAL_VAULT": str(vault)},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == (exits.code_of(ExtraMissing()) if extra == "sync" else exits.USAGE)
    assert f"this needs {module}" in done.stderr
    assert f"pip install 'memseal[{extra}]'" in done.stderr
