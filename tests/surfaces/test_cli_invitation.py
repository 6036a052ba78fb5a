"""`sync` at a server that takes new vaults by invitation alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command


@dataclass(frozen=True)
class Inviting:
    """A server that wants invitations."""

    address: str
    store: Path

    def invite(self) -> str:
        command = [sys.executable, "-m", "memseal_server", "invite", "--store", str(self.store)]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()


@pytest.fixture
def inviting(tmp_path: Path) -> Iterator[Inviting]:
    store = tmp_path / "store"
    options = ["--store", str(store), "--listen", "127.0.0.1:0", "--registration", "token", "--log-level", "error"]
    with subprocess.Popen(
        [sys.executable, "-m", "memseal_server", *options], stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        yield Inviting(process.stdout.readline().split()[-1], store)
        process.terminate()


def test_invitation_comes_from_a_descriptor(cli: Command, inviting: Inviting) -> None:
    reader, writer = os.pipe()
    os.write(writer, f" {inviting.invite()} \n".encode())
    run = cli("sync", inviting.address, "--invitation-fd", str(reader))
    os.close(reader)
    os.close(writer)
    assert run.code == exits.DONE
    assert cli("sync").code == exits.DONE  # the vault is known there now


def test_invitation_comes_from_the_environment(cli: Command, inviting: Inviting) -> None:
    assert cli("sync", inviting.address, MEMSEAL_INVITATION=inviting.invite()).code == exits.DONE


def test_without_an_invitation_the_vault_is_not_taken_and_it_says_so(cli: Command, inviting: Inviting) -> None:
    run = cli("sync", inviting.address)
    assert run.code != exits.DONE
    assert "invitation" in run.err


@pytest.mark.parametrize("given", ["A" * 43, "two words", "A" * 129])
def test_what_is_no_invitation_here_is_refused(cli: Command, inviting: Inviting, given: str) -> None:
    run = cli("sync", inviting.address, MEMSEAL_INVITATION=given)
    assert run.code != exits.DONE
    assert "invitation" in run.err
    assert given not in run.err


def test_invitation_that_is_to_be_asked_for_needs_a_terminal(cli: Command, inviting: Inviting) -> None:
    run = cli("sync", inviting.address, "--invitation")
    assert run.code == exits.USAGE
    assert "--invitation-fd" in run.err
