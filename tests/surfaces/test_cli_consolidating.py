"""`memseal consolidate`, and the fields of what it makes on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command


@pytest.fixture
def diary(cli: Command, tmp_path: Path) -> Path:
    """Six memories of one habit, imported."""
    path = tmp_path / "diary.jsonl"
    rows = [
        {
            "content": f"I had coffee with oat milk, cup {number} of it today",
            "captured_at": f"2024-01-{1 + 5 * number:02}",
            "id": str(number),
        }
        for number in range(6)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert cli("import", str(path)).code == exits.DONE
    return path


def listed(cli: Command, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cli("list", "--json", *options).document["memories"]
    return rows


def test_plan_shows_and_writes_nothing(cli: Command, diary: Path) -> None:
    plan = cli("consolidate", "--plan", "--json").document
    assert (plan["plan"], plan["run"]) == (True, None)
    assert [each["id"] for each in plan["made"]] == [None] * len(plan["made"])
    assert len(listed(cli)) == 6
    assert "affinity, persona, 6 memories" in cli("consolidate", "--plan").out


def test_run_is_made_once_and_undone_by_its_id(cli: Command, diary: Path) -> None:
    done = cli("consolidate", "--json").document
    (affinity,) = listed(cli, "--tier", "affinity")
    assert affinity["derivation"]["run"] == done["run"]
    assert {each["id"] for each in done["made"]} == {each["id"] for each in listed(cli) if each["derived_from"]}
    assert cli("consolidate", "--json").document == {"plan": False, "run": None, "made": []}
    undone = cli("consolidate", "--undo", done["run"], "--json").document
    assert undone == {"run": done["run"], "taken_back": len(done["made"])}
    assert not listed(cli, "--tier", "affinity")


@pytest.mark.parametrize(
    "arguments",
    [["--undo", "x"], ["--undo", "0" * 32, "--plan"], ["--if-due", "--plan"], ["--if-due", "--undo", "0" * 32]],
)
def test_what_cannot_be_meant_is_refused(cli: Command, arguments: list[str]) -> None:
    assert cli("consolidate", *arguments).code == exits.USAGE


def test_run_of_this_week_is_not_made_again_where_it_is_due(cli: Command, diary: Path) -> None:
    assert cli("consolidate", "--if-due", "--json").document["made"]
    assert cli("consolidate", "--if-due", "--json").document == {"plan": False, "run": None, "made": []}


def test_run_that_never_was_is_named(cli: Command) -> None:
    run = cli("consolidate", "--undo", "0" * 32, "--json")
    assert run.error["code"] == "memory_unknown"


def test_type_is_found_by_rules_or_said_and_filters(cli: Command) -> None:
    cli("remember", "Yesterday I met Sam")
    cli("remember", "The moon is far", "--type", "episodic")
    cli("remember", "The moon is round")
    assert {each["content"] for each in listed(cli, "--type", "episodic")} == {"Yesterday I met Sam", "The moon is far"}
    recalled = cli("recall", "moon", "--type", "semantic", "--json").document["hits"]
    assert [hit["memory"]["content"] for hit in recalled] == ["The moon is round"]
    assert cli("list", "--type", "dream").code == exits.USAGE
    assert cli("list", "--tier", "molecule").code == exits.USAGE


def test_export_and_import_keep_what_was_derived(cli: Command, diary: Path, tmp_path: Path) -> None:
    cli("remember", "The moon is far", "--type", "episodic")
    cli("consolidate")
    export = tmp_path / "export.jsonl"
    assert cli("export", str(export)).code == exits.DONE
    rows = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()]
    assert sum("type" in row for row in rows if "derived_from" not in row) == 1
    other = str(tmp_path / "other")
    assert cli("init", "--vault", other, MEMSEAL_VAULT=None).code == exits.DONE
    assert cli("import", str(export), "--vault", other).code == exits.DONE
    names = ("id", "content", "type", "tier", "owner", "policy", "location", "derived_from", "derivation")
    one, two = (
        sorted(
            [
                tuple(map(str, map(row.get, names)))
                for row in cli("list", "--json", "--vault", place, "--limit", "99").document["memories"]
            ]
        )
        for place in (other, str(tmp_path / "vault"))
    )
    assert one == two
