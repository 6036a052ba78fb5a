"""Repair on the command line: a plan, a question, a copy."""

import os
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command


@pytest.fixture
def damaged(cli: Command, vault: Path) -> Path:
    """The log of the test's vault, with a damaged record."""
    for text in ("one", "two", "three"):
        cli("remember", text)
    [log] = (vault / "logs").glob("*.mseal")
    content = bytearray(log.read_bytes())
    content[1500] ^= 1
    log.write_bytes(content)
    return log


def test_repair_writes_a_copy_with_what_can_be_read(cli: Command, vault: Path, damaged: Path, tmp_path: Path) -> None:
    before = {name: name.read_bytes() for name in vault.rglob("*") if name.is_file()}
    run = cli("repair", "--to", str(tmp_path / "copy"), "--yes", "--json")
    assert run.code == exits.DONE
    plan, done = run.document["plan"], run.document["repaired"]
    assert set(plan) == {"damage", "files", "memories", "server", "remotes"}
    [file] = plan["files"]
    assert file == {"name": f"logs/{damaged.name}", "fate": "cut", "kept": 1, "saved": 1, "lost": 1}
    assert done == {"path": str(tmp_path / "copy"), "memories": 2, "same_state": True, "findings": []}
    assert {name: name.read_bytes() for name in vault.rglob("*") if name.is_file()} == before
    found = cli("list", "--vault", str(tmp_path / "copy"), "--json").document["memories"]
    assert {memory["content"] for memory in found} == {"one", "three"}
    assert cli("verify", "--read-data", "--vault", str(tmp_path / "copy"), "--json").document["ok"]


def test_vault_may_be_named_as_an_argument(cli: Command, vault: Path, damaged: Path, tmp_path: Path) -> None:
    run = cli("repair", str(vault), "--to", str(tmp_path / "copy"), "--yes", MEMSEAL_VAULT=str(tmp_path / "none"))
    assert run.code == exits.DONE
    assert (tmp_path / "copy" / "device.mseal").exists()


def test_plan_says_what_is_kept_and_lost_by_file_and_record(cli: Command, damaged: Path, tmp_path: Path) -> None:
    run = cli("repair", "--to", str(tmp_path / "copy"), "--yes")
    assert f"logs/{damaged.name}#1" in run.out
    assert "1 record kept, 1 record written again, 1 record lost" in run.out
    assert "2 memories can be read" in run.out


def test_nothing_is_written_without_yes_where_nobody_can_be_asked(cli: Command, damaged: Path, tmp_path: Path) -> None:
    run = cli("repair", "--to", str(tmp_path / "copy"))
    assert run.code == exits.USAGE
    assert "written again" in run.out
    assert "--yes" in run.err
    assert not (tmp_path / "copy").exists()


def test_json_without_yes_is_the_plan_alone(cli: Command, damaged: Path, tmp_path: Path) -> None:
    run = cli("repair", "--to", str(tmp_path / "copy"), "--json")
    assert (run.code, run.document["repaired"]) == (exits.NOT_ALL, None)
    assert run.document["plan"]["memories"] == 2
    assert not (tmp_path / "copy").exists()


def test_sound_vault_needs_no_copy(cli: Command, tmp_path: Path) -> None:
    cli("remember", "one")
    run = cli("repair", "--to", str(tmp_path / "copy"))
    assert (run.code, run.out) == (exits.DONE, "Nothing is damaged that a copy would mend: none is needed.\n")
    assert cli("repair", "--to", str(tmp_path / "copy"), "--json").document == {"plan": None, "repaired": None}


def test_damaged_keyring_says_what_to_do(cli: Command, vault: Path, tmp_path: Path) -> None:
    [version] = (vault / "keyring").glob("*.mseal")
    version.write_bytes(version.read_bytes()[:-9])
    run = cli("repair", "--to", str(tmp_path / "copy"), "--yes", "--json")
    assert run.code == 5
    assert "join again" in run.error["message"]


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are of Unix")
def test_terminal_shows_the_plan_and_asks_before_anything_is_written(
    vault: Path, damaged: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    from tests.surfaces.test_cli_terminal import Terminal

    variables = {**os.environ, **environment, "TERM": "xterm", "COLUMNS": "100"}
    terminal = Terminal(["repair", str(vault), "--to", str(tmp_path / "copy")], variables)
    terminal.wait_for(b"2 memories can be read")
    terminal.wait_for(b"[y/N]")
    assert not (tmp_path / "copy").exists()
    terminal.type("y")
    assert terminal.finish() == exits.DONE
    assert b"Go on with the copy alone" in terminal.seen
    assert (tmp_path / "copy" / "device.mseal").exists()
