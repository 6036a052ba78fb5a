"""Devices on the command line: listed, renamed, removed, and let in by a code."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import zxingcpp
from PIL import Image
from rich.console import Console

from memseal.format.pairing_code import parse_pairing_code
from memseal.surfaces.cli import exits
from memseal.surfaces.cli.pairing import show_qr
from tests.surfaces.conftest import PASSPHRASE, Command


@pytest.fixture
def phone(cli: Command, server: str, tmp_path: Path) -> Path:
    """A second device of the test's vault."""
    assert cli("sync", server).code == exits.DONE
    kit = cli("kit", "--json").document["emergency_kit"]
    path = tmp_path / "phone"
    assert cli("join", "--vault", str(path), "--device-name", "phone", MEMSEAL_KIT=kit).code == exits.DONE
    assert cli("sync").code == exits.DONE
    return path


def devices(cli: Command, *arguments: str) -> list[tuple[str, str]]:
    return [(each["name"], each["status"]) for each in cli("devices", *arguments, "--json").document["devices"]]


def test_devices_are_listed_with_what_is_known_of_them(cli: Command, phone: Path) -> None:
    cli("remember", "a memory", "--source", "test")
    here, there = cli("devices", "--json").document["devices"]
    assert (here["name"], here["status"], here["this_device"], here["records"]) == ("here", "this", True, 1)
    assert here["last_written_at"].endswith("+00:00")
    assert (there["name"], there["status"], there["ended"], there["last_written_at"]) == ("phone", "active", None, None)
    shown = cli("devices").out
    assert "here  this device" in shown
    assert there["id"] in shown


def test_device_gets_another_name_everywhere(cli: Command, phone: Path) -> None:
    assert cli("devices", "rename", "phone", "old phone").code == exits.DONE
    cli("sync", "--vault", str(phone))
    assert devices(cli, "--vault", str(phone)) == [("here", "active"), ("old phone", "this")]


@pytest.mark.parametrize("name", ["", "a\x1b[2Jb", "x" * 65, "here"])
def test_name_that_cannot_be_is_refused(cli: Command, phone: Path, name: str) -> None:
    run = cli("devices", "rename", "phone", name, "--json")
    assert (run.code, run.error["code"]) == (3, "device_name")
    assert "\x1b" not in run.err


def test_removed_device_is_out_and_the_new_secrets_are_shown(cli: Command, phone: Path) -> None:
    code = cli("recovery-code", "new", "--json").document["recovery_code"]
    before = cli("kit", "--json").document["emergency_kit"]
    removed = cli("devices", "revoke", "phone", "--yes", "--json").document["removed"]
    assert removed["name"] == "phone"
    assert removed["emergency_kit"] == cli("kit", "--json").document["emergency_kit"] != before
    assert removed["recovery_code"] not in (None, code)
    assert devices(cli) == [("here", "this"), ("phone", "ended")]
    run = cli("sync", "--vault", str(phone), "--json")
    assert (run.code, run.error["code"]) == (4, "device_ended")
    assert "removed" in run.error["message"]
    assert cli("list", "--vault", str(phone)).code == exits.DONE
    again = cli("devices", "revoke", "phone", "--yes", "--json")
    assert (again.code, again.error["code"]) == (3, "device_unknown")


def test_people_see_what_a_removal_means(cli: Command, phone: Path) -> None:
    cli("recovery-code", "new")
    run = cli("devices", "revoke", "phone", "--yes")
    assert "phone was removed" in run.out
    assert "MSEAL1-" in run.out
    assert "MSEAL1R-" in run.out
    assert "removed" in cli("devices").out


def test_nothing_is_removed_without_consent_or_with_another_passphrase(cli: Command, phone: Path) -> None:
    run = cli("devices", "revoke", "phone", "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")
    run = cli("devices", "revoke", "here", "--yes", "--json")
    assert (run.code, run.error["code"]) == (4, "device_is_this")
    run = cli("devices", "revoke", "nobody", "--yes", "--json")
    assert (run.code, run.error["code"]) == (3, "device_unknown")
    assert devices(cli) == [("here", "this"), ("phone", "active")]


@pytest.mark.parametrize("options", [["--vault", "elsewhere"], ["--json"]])
def test_option_before_the_word_that_says_what_to_do_is_not_passed_over(
    cli: Command, phone: Path, options: list[str]
) -> None:
    run = cli("devices", *options, "revoke", "phone", "--yes")
    assert run.code == exits.USAGE
    assert "after revoke" in run.err
    assert devices(cli) == [("here", "this"), ("phone", "active")]


# ── pairing ─────────────────────────────────────────────────────────────────────────────────────────


def pairing(vault: Path, environment: Mapping[str, str], *arguments: str) -> "subprocess.Popen[str]":
    given = {**os.environ, **environment, "MEMSEAL_VAULT": str(vault)}
    command = [sys.executable, "-m", "memseal", "pair", "--json", *arguments]
    return subprocess.Popen(
        command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


@pytest.mark.parametrize("qr", [False, True], ids=["typed", "scanned"])
def test_new_device_joins_by_the_code_that_is_shown(
    qr: bool, cli: Command, vault: Path, environment: dict[str, str], server: str, tmp_path: Path
) -> None:
    cli("remember", "a memory", "--source", "test")
    cli("sync", server)
    path = tmp_path / "phone"
    with pairing(vault, environment, *(["--qr"] if qr else [])) as shower:
        assert shower.stderr is not None
        assert shower.stdout is not None
        code = json.loads(shower.stderr.readline())["pairing_code"]
        given = () if qr else (server,)
        joined = cli(
            "join",
            *given,
            "--code",
            "--vault",
            str(path),
            "--device-name",
            "phone",
            "--json",
            MEMSEAL_PAIRING_CODE=code,
        )
        device = json.loads(shower.stdout.read())["device"]
        assert shower.wait(timeout=60) == exits.DONE
    assert joined.document["memories"] == 1
    assert (device["name"], device["status"]) == ("phone", "active")
    assert devices(cli, "--vault", str(path)) == [("here", "active"), ("phone", "this")]


def test_mistyped_code_is_told_at_once(cli: Command, server: str, tmp_path: Path) -> None:
    run = cli(
        "join",
        server,
        "--code",
        "--json",
        "--vault",
        str(tmp_path / "phone"),
        MEMSEAL_PAIRING_CODE="4821-3903-5174-2008",
    )
    assert (run.code, run.error["code"]) == (4, "pairing_code_malformed")
    assert "4821" not in run.err


def test_vault_on_no_server_cannot_pair(cli: Command) -> None:
    run = cli("pair", "--json")
    assert (run.code, run.error["code"]) == (3, "remote_unknown")


def test_qr_code_on_the_screen_reads_back_as_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    text = parse_pairing_code("4821-3903-5174-2007").to_text()
    show_qr(Console(width=200, force_terminal=False), text)
    lines = capsys.readouterr().out.splitlines()
    dark = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    rows = [[dark[each][half] for each in line] for line in lines for half in (0, 1)]
    picture = Image.new("L", (len(rows[0]), len(rows)), 255)
    picture.putdata([0 if module else 255 for row in rows for module in row])
    (found,) = zxingcpp.read_barcodes(picture.resize((8 * len(rows[0]), 8 * len(rows)), Image.Resampling.NEAREST))
    assert found.text == text


def test_passphrase_is_in_no_output(cli: Command, phone: Path) -> None:
    run = cli("devices", "revoke", "phone", "--yes")
    assert PASSPHRASE not in run.out + run.err
