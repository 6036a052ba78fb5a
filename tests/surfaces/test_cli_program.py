"""The command line as people run it: a program of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import PASSPHRASE, Command


def test_one_life_of_a_memory(program: Command, tmp_path: Path) -> None:
    where = ("--vault", str(tmp_path / "new"))
    (tmp_path / "stick").mkdir()
    runs = [program("init", *where)]
    runs.append(program("remember", "The kettle is blue.", *where, "--tag", "kitchen", "--json"))
    first = runs[-1].document["memory"]["id"]
    runs.append(program("recall", "kettle", *where))
    assert "The kettle is blue." in runs[-1].out
    runs.append(program("supersede", first, "The kettle is red.", *where, "--json"))
    second = runs[-1].document["memory"]["id"]
    runs += [program("retract", second, *where, "--reason", "sold"), program("recall", "kettle", *where)]
    assert "kettle" not in runs[-1].out
    runs += [program("sync", str(tmp_path / "stick"), *where), program("verify", *where)]
    runs += [program("restore", second, *where), program("export", str(tmp_path / "out.jsonl"), *where)]
    runs.append(program("import", str(tmp_path / "out.jsonl"), "--json"))
    assert runs[-1].document["new"] == 1
    assert [run.code for run in runs] == [exits.DONE] * len(runs)
    assert not any(PASSPHRASE in run.out + run.err for run in runs)
    assert not any("\x1b" in run.out + run.err for run in runs)
    assert "".join(run.err for run in runs) == ""


def test_program_speaks_utf8_whatever_the_locale(program: Command) -> None:
    variables = {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}
    run = program("remember", "-", "--source", "日記", "--json", stdin="雨が降る".encode(), variables=variables)
    assert (run.document["memory"]["content"], run.document["memory"]["source"]) == ("雨が降る", "日記")
    assert "雨が降る" in program("list", variables=variables).out


def test_wrong_passphrase_ends_the_program_with_its_code(program: Command) -> None:
    run = program("list", variables={"MEMSEAL_PASSPHRASE": "wrong horse"})
    assert run.code == 4
    assert run.err.count("\n") == 1
    assert "wrong horse" not in run.err


@pytest.mark.skipif(sys.platform == "win32", reason="the pipe is made by a shell of Unix")
def test_reader_that_goes_away_is_no_error_on_the_screen(
    program: Command, vault: Path, environment: dict[str, str]
) -> None:
    for number in range(3):
        program("remember", f"{number} " + "x" * 60_000)
    command = f"'{sys.executable}' -m memseal export - | head -c 1"
    variables = {**os.environ, **environment, "MEMSEAL_VAULT": str(vault)}
    done = subprocess.run(["sh", "-c", command], env=variables, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"{", b"")


def test_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['typer'] = None; from memseal.surfaces.cli import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == exits.USAGE
    assert done.stderr == "memseal: the command line needs typer: pip install 'memseal[cli]'\n"


def test_interface_of_a_program_is_one_document(program: Command) -> None:
    run = program("list", "--json")
    assert json.loads(run.out) == {"memories": [], "total": 0, "limit": 20, "offset": 0}
    assert run.err == ""
