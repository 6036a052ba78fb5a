"""Whatever stands in an argument, a command says what is wrong with it, in words that draw nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command

NOT_UTF8 = os.fsdecode(b"caf\xe9\xff")
HUGE = "9" * 5_000
KNOWN = {code for code, _ in exits.EXPLAINED} - {exits.INTERNAL, exits.INTERRUPTED}

ARGUMENTS: list[list[str]] = [
    ["remember", NOT_UTF8],
    ["remember", "x", "--tag", NOT_UTF8],
    ["remember", "x", "--kind", NOT_UTF8],
    ["remember", ""],
    ["remember", "x", "--position", HUGE],
    ["remember", "x", "--position", "-9223372036854775809"],
    ["remember", "x", "--at", "9999-12-31T23:59:59-23:59"],
    ["remember", "x", "--at", "0001-01-01T00:00+23:59"],
    ["remember", "x", "--at", NOT_UTF8],
    ["recall", NOT_UTF8],
    ["recall", ""],
    ["recall", "a" * 100_000],
    ["recall", "x", "--limit", HUGE],
    ["recall", "x", "--limit", "-1"],
    ["list", "--offset", "9223372036854775807"],
    ["list", "--since", "9999-12-31T23:59:59-23:59"],
    ["list", "--author", NOT_UTF8],
    ["show", NOT_UTF8],
    ["retract", "ab" * 16, "--reason", ""],
    ["supersede", "ab" * 16, NOT_UTF8],
    ["import", ""],
    ["import", NOT_UTF8],
    ["import", "/dev/null"],
    ["import", "."],
    ["export", "."],
    ["export", "/nowhere/x"],
    ["status", "--vault", ""],
    ["status", "--vault", NOT_UTF8],
    ["status", "--vault", "x" * 5_000],
    ["status", "--vault", "~nobody-of-this-name/x"],
    ["status", "--vault", "/dev/null"],
    ["status", "--passphrase-fd", HUGE],
    ["status", "--passphrase-fd", "999999"],
    ["init", "--vault", "/dev/null"],
    ["init", "--vault", "/dev/null/x"],
    ["sync", NOT_UTF8],
    ["sync", "/dev/null"],
    ["sync", "~nobody-of-this-name/x"],
    ["\x1b[31m"],
    [NOT_UTF8],
    ["--\u202e"],
]


@pytest.mark.parametrize(
    "arguments", ARGUMENTS, ids=lambda words: " ".join(words)[:40].encode("unicode_escape").decode()
)
def test_odd_argument_is_an_answer_or_said_to_be_wrong(cli: Command, arguments: list[str]) -> None:
    run = cli(*arguments)
    assert run.code in KNOWN, run.err
    assert bool(run.err) == (run.code != exits.DONE) or not run.err
    assert "Traceback" not in run.err
    assert all(character.isprintable() or character == "\n" for character in run.err)


ADDRESSES = [
    "http://",
    "http://:99999",
    "http://127.0.0.1:99999",
    "http://[::1",
    "http://a b",
    "http://\u202e",
    "http://m\u00fcller.example",
    "https://" + "a" * 300,
    "https://" + "a." * 200 + "example",
    "https://a..example",
    "https://user:word@a.example",
    "https://a.example/?query",
    "file:",
    "file:relative",
    "ftp://a.example",
    "gopher:",
    "~nobody-of-this-name/x",
]


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address[:40].encode("unicode_escape").decode())
def test_address_of_nothing_is_named_before_anything_is_asked(cli: Command, address: str) -> None:
    run = cli("sync", address, "--json")
    assert run.error["code"] == "remote_unknown"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("where", ["device.mseal", "keyring/00000001.mseal"])
def test_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(
    vault: Path, environment: dict[str, str], where: str
) -> None:
    (vault / where).unlink()
    os.mkfifo(vault / where)
    command = [sys.executable, "-m", "memseal", "status", "--vault", str(vault)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=False, timeout=60)
    assert done.returncode in KNOWN - {exits.DONE}
    assert b"Traceback" not in done.stderr
