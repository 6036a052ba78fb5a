"""What README, guide and list of commands say works, and what the documents point at is there."""

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from memseal import Vault

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDE = ROOT / "client" / "GUIDE.md"
COMMANDS = ROOT / "client" / "COMMANDS.md"
OPERATING = ROOT / "server" / "OPERATING.md"
BENCH = ROOT / "tests" / "bench" / "README.md"
DOCUMENTS = sorted(
    path
    for path in [
        *(README, GUIDE, COMMANDS, OPERATING, BENCH),
        *ROOT.glob("format-spec/**/*.md"),
        *ROOT.glob("interop-vectors/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
    if "node_modules" not in path.parts
)


def _text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def _said(document: Path, number: int, folder: Path) -> list[str]:
    """Run one of a document's programs, and return the lines that it prints."""
    programs = re.findall(r"```python\n(.*?)```", _text(document), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", programs[number]],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def _said_commands() -> list[str]:
    """Return each call of `memseal` in the documents' shell blocks, without what stands before a pipe."""
    blocks = [
        block for document in (README, COMMANDS) for block in re.findall(r"```sh\n(.*?)```", _text(document), re.S)
    ]
    lines = [line.rpartition("| ")[2] for block in blocks for line in block.splitlines()]
    return sorted({line for line in lines if line.startswith("memseal ")})


def _verbs(document: Path) -> set[str]:
    """Return what stands in code in the first column of a document's tables of verbs."""
    tables = re.findall(r"\| verb \| does \|\n\|---\|---\|\n((?:\|.*\n)+)", _text(document))
    first = "\n".join(row.split(" | ")[0] for table in tables for row in table.splitlines())
    return set(re.findall(r"`([\w.]+)`", first))


def test_python_of_the_readme_runs_and_finds_by_meaning(tmp_path: Path) -> None:
    kit, first, *rest = _said(README, 0, tmp_path)
    assert kit.startswith("MSEAL1-")
    assert "cashews" in first
    assert any("moved to Friday at nine" in line for line in rest)


def test_what_the_readme_sends_to_a_model_has_no_name_in_it_and_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    sent, back = _said(README, 1, tmp_path)
    assert not {"Sarah", "Chen", "acme"} & set(re.findall(r"\w+", sent))
    assert sent.endswith("before Friday.")
    assert back == "I wrote to Sarah."


def test_the_guide_opens_recalls_and_explains(tmp_path: Path) -> None:
    *packet, terms, explained, code = _said(GUIDE, 0, tmp_path)
    assert any("choir" in line for line in packet)
    assert (terms, explained, code) == ("[('sing',)]", "True", "passphrase_wrong")


def test_the_guide_follows_a_folder_from_asyncio(tmp_path: Path) -> None:
    (tmp_path / "shared-folder").mkdir()
    assert _said(GUIDE, 1, tmp_path) == ["20 notes", "True"]


def test_every_verb_of_a_vault_is_in_the_guide() -> None:
    public = {name for name, _ in inspect.getmembers(Vault) if not name.startswith("_")}
    named = {verb.removeprefix("Vault.") for verb in _verbs(GUIDE)}
    assert public - named == {"create", "open", "close"}  # its first section is about these
    assert named - public == {"memseal.open_bundle"}


def test_verbs_of_the_readme_are_in_the_guide() -> None:
    assert _verbs(README)
    assert _verbs(README) <= _verbs(GUIDE)


@pytest.mark.parametrize("line", _said_commands())
def test_command_of_a_document_is_one_with_these_options(line: str) -> None:
    typer = pytest.importorskip("typer")
    from memseal.surfaces.cli.application import application

    command = typer.main.get_command(application)
    for word in shlex.split(line, comments=True)[1:]:
        if word.startswith("--"):
            assert word in [name for option in command.params for name in option.opts]
        elif hasattr(command, "commands") and word in command.commands:
            command = command.commands[word]
        else:
            assert command.name != "memseal"


def test_every_command_is_in_the_list() -> None:
    typer = pytest.importorskip("typer")
    from memseal.surfaces.cli.application import application

    text = _text(COMMANDS)
    names = typer.main.get_command(application).commands
    assert [name for name in names if f"memseal {name}" not in text] == []


def test_exit_codes_of_the_list_are_those_of_the_program() -> None:
    pytest.importorskip("typer")
    from memseal.surfaces.cli import exits

    rows = re.findall(r"^\| (\d+) \| (.*) \|$", _text(COMMANDS), re.MULTILINE)
    assert [(int(code), meaning) for code, meaning in rows] == list(exits.EXPLAINED)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)", _text(document))
    assert [target for target in targets if "://" not in target and not _leads(document, target)] == []


def _leads(document: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    path = document.parent / file if file else document
    if not path.exists():
        return False
    if not anchor or path.suffix != ".md":
        return True
    headings = re.findall(r"^#+ (.*)$", _text(path), re.MULTILINE)
    return anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
