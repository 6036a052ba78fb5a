"""A vault for each test, and two ways to run the command line: in this process, and as a program."""

import functools
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memseal.format import primitives
from memseal.surfaces.cli import main
from memseal.surfaces.demo.server import running_server
from memseal.vault.folder import opening
from memseal.vault.vault import Vault

PASSPHRASE = "an otter in a raincoat"


@dataclass(frozen=True)
class Run:
    """What one command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed

    @property
    def error(self) -> dict[str, str]:
        """The JSON object of an error."""
        parsed: dict[str, dict[str, str]] = json.loads(self.err)
        assert set(parsed) == {"error"}
        return parsed["error"]


Command = Callable[..., Run]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty vault, made once: each making pays for Argon2id twice."""
    path = tmp_path_factory.mktemp("template") / "vault"
    Vault.create(path, PASSPHRASE, device_name="here", embedder=None).close()
    return path


@pytest.fixture
def vault(template: Path, tmp_path: Path) -> Path:
    """An empty vault of the test's own."""
    path = tmp_path / "vault"
    shutil.copytree(template, path)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What commands find in the environment, without the vault."""
    return {"MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none", "XDG_DATA_HOME": str(tmp_path / "data")}


# Argon2id's answers, kept: every test's vault is a copy of one, with the same salt.
remembered_stretch = functools.cache(primitives.stretch)


@pytest.fixture
def cli(
    vault: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command in this process, on the test's vault."""
    monkeypatch.setattr(opening, "stretch", remembered_stretch)

    def run(*arguments: str, stdin: bytes = b"", **variables: str | None) -> Run:
        with monkeypatch.context() as patch:
            for name, value in {**environment, "MEMSEAL_VAULT": str(vault), **variables}.items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = main(arguments)
        out, err = capsys.readouterr()
        return Run(code, out, err)

    return run


@pytest.fixture
def program(vault: Path, environment: dict[str, str]) -> Command:
    """Run a command as a program of its own, on the test's vault."""

    def run(*arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None, **options: Any) -> Run:
        given = {**os.environ, **environment, "MEMSEAL_VAULT": str(vault), **(variables or {})}
        command = [sys.executable, "-m", "memseal", *arguments]
        done = subprocess.run(command, input=stdin, env=given, capture_output=True, check=False, **options)
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with an empty store; the tests' vaults are copies, and must not meet on one."""
    folder = tmp_path_factory.mktemp("server")
    with running_server(folder / "store", folder / "log") as address:
        yield address
