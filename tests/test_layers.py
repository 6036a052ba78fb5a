"""The contracts between the layers name what exists, and stop an import that breaks them."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BELOW_THE_LINE = ["format", "memory", "privacy", "recall", "sync"]


def _contracts() -> list[dict[str, Any]]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = pyproject["tool"]["importlinter"]["contracts"]
    return contracts


def _lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(tree / "client"), str(tree / "server")])
    program = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert program
    return subprocess.run(
        [program, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of both packages, to break."""
    only_code = shutil.ignore_patterns("__pycache__", "data")
    for side in ("client", "server"):
        shutil.copytree(ROOT / side, tmp_path / side, ignore=only_code)
    return tmp_path


@pytest.mark.parametrize("layer", BELOW_THE_LINE)
def test_layer_below_the_line_is_under_the_contract_once_it_exists(layer: str) -> None:
    [contract] = [contract for contract in _contracts() if contract["name"].startswith("Below the line")]
    exists = (ROOT / "client" / "memseal" / layer / "__init__.py").exists()
    assert (f"memseal.{layer}" in contract["source_modules"]) == exists


@pytest.mark.parametrize(
    ("offender", "line", "contract"),
    [
        ("client/memseal/format/offender.py", "import memseal.recall", "Imports point downwards only"),
        ("client/memseal/offender.py", "", "every module has a layer"),
        ("client/memseal/recall/offender.py", "import time", "Below the line there is no I/O"),
        ("client/memseal/recall/offender.py", "import memseal_server", "Client and server share"),
        ("server/memseal_server/offender.py", "import memseal", "Client and server share"),
        ("client/memseal/recall/offender.py", "import cryptography", "Only memseal.format.primitives"),
        ("client/memseal/recall/offender.py", "import faiss", "Only memseal.index touches"),
        ("client/memseal/recall/offender.py", "import aiohttp", "Only memseal.transport.http"),
    ],
)
def test_import_that_breaks_a_contract_is_stopped(tree: Path, offender: str, line: str, contract: str) -> None:
    (tree / offender).write_text(line + "\n", encoding="utf-8")
    run = _lint_imports(tree)
    assert run.returncode == 1
    [verdict] = [row for row in run.stdout.splitlines() if contract in row and "BROKEN" in row]
    assert verdict
    assert ".offender" in run.stdout
