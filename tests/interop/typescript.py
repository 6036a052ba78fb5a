"""The implementation in TypeScript, built from its sources, and the command line it is compared with."""

import atexit
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from memseal.surfaces.importing.jsonl import TRAITS

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "interop-vectors"
PACKAGE = Path("interop-vectors", "readers", "typescript")
VIEWER = Path("examples", "viewer")
PASSPHRASE = "correct horse battery staple"
OLDEST_NODE = 20
# What npm says when it does not get through to where packages come from.
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED")


@cache
def built_package() -> Path:
    """Install and build a copy of the package (and of the viewer beside it), once in a test process."""
    tree = Path(mkdtemp(prefix="memseal-typescript-"))
    atexit.register(shutil.rmtree, tree, ignore_errors=True)
    leave_out = shutil.ignore_patterns("node_modules", "dist")
    for folder in (PACKAGE, VIEWER):
        shutil.copytree(ROOT / folder, tree / folder, ignore=leave_out)
    install(tree / PACKAGE)
    checked([program("npm"), "run", "--silent", "build"], cwd=tree / PACKAGE)
    return tree / PACKAGE


def install(package: Path) -> None:
    """Install the packages of the lock file, or skip where they cannot be fetched."""
    node_version = checked([program("node"), "--version"]).removeprefix("v")
    if int(node_version.split(".")[0]) < OLDEST_NODE:
        pytest.skip(f"node {node_version.strip()} is older than {OLDEST_NODE}")
    command = [program("npm"), "ci", "--no-audit", "--no-fund", "--prefer-offline"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, encoding="utf-8", timeout=300)
    if done.returncode and any(code in done.stderr for code in OFFLINE):
        pytest.skip("npm cannot fetch the packages of the TypeScript implementation")
    assert done.returncode == 0, done.stderr


def program(name: str) -> str:
    """Return where a program is, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def checked(command: list[str], cwd: Path | None = None, stdin: str = "", env: dict[str, str] | None = None) -> str:
    """Run a program that must succeed, and return what it prints."""
    done = ran(command, cwd, stdin, env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ran(
    command: list[str], cwd: Path | None = None, stdin: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env=dict(os.environ) | (env or {}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def reader(*arguments: str | Path, stdin: str = "", passphrase: str = PASSPHRASE) -> subprocess.CompletedProcess[str]:
    """Run the command line of the implementation in TypeScript."""
    command = [program("node"), "dist/cli.js", *map(str, arguments)]
    return ran(command, built_package(), stdin, {"MEMSEAL_PASSPHRASE": passphrase})


def read(path: Path, passphrase: str = PASSPHRASE) -> Any:
    return json.loads(reader("read", path, passphrase=passphrase).stdout)


def memseal(*arguments: str | Path, env: dict[str, str] | None = None) -> Any:
    """Run our own command line on a vault without embeddings, and return its JSON."""
    command = shutil.which("memseal", path=Path(sys.executable).parent)
    assert command is not None
    setting = {"MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none"} | (env or {})
    done = ran([command, *map(str, arguments), "--json"], env=setting)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def listed(vault: Path) -> Any:
    """Return all memories, newest first, as our command line lists them, without what only our recall says of them."""
    rows = memseal("list", "--vault", vault, "--state", "all", "--limit", "100000")["memories"]
    return [{name: value for name, value in row.items() if name not in TRAITS} for row in rows]
