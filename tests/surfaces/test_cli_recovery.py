"""Kits and recovery codes on the command line: renewed, written to sheets, used."""

import io
import stat
import sys
from pathlib import Path

import pytest
import zxingcpp
from PIL import Image

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command
from tests.surfaces.test_cli_keys import NEW, joined

needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def scanned(path: Path) -> str:
    with Image.open(io.BytesIO(path.read_bytes())) as picture:
        (found,) = zxingcpp.read_barcodes(picture)
        return found.text


# ── sheets ──────────────────────────────────────────────────────────────────────────────────────────


def test_kit_is_written_as_picture_and_page(cli: Command, tmp_path: Path) -> None:
    png, html = tmp_path / "kit.png", tmp_path / "kit.html"
    kit = cli("kit", "--json").document["emergency_kit"]
    run = cli("kit", "--png", str(png), "--html", str(html))
    assert run.code == exits.DONE
    assert "MSEAL1" not in run.out
    assert (str(png) in run.out, str(html) in run.out) == (True, True)
    assert scanned(png) == kit
    assert kit[:20] in html.read_text(encoding="utf-8")


@needs_modes
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_sheet_is_the_owners_alone(cli: Command, tmp_path: Path, force: tuple[str, ...]) -> None:
    path = tmp_path / "kit.png"
    cli("kit", "--png", str(path), *force)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kit.png", "vault"]


@needs_modes
def test_file_of_others_that_is_replaced_is_the_owners_alone(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "kit.html"
    path.write_text("before", encoding="utf-8")
    path.chmod(0o644)
    assert cli("kit", "--html", str(path), "--force").code == exits.DONE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "before" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [("kit",), ("kit", "new"), ("recovery-code", "new")])
def test_file_that_is_there_is_left_alone_and_nothing_is_renewed(
    cli: Command, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "there.png"
    path.write_bytes(b"before")
    run = cli(*command, "--png", str(path), "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")
    assert "--force" in run.error["message"]
    assert path.read_bytes() == b"before"
    assert cli("status", "--json").document["keyring_version"] == 1


def test_place_that_is_no_file_is_refused_before_anything_is_renewed(cli: Command, tmp_path: Path) -> None:
    for path in (tmp_path / "no folder" / "kit.png", tmp_path):
        run = cli("recovery-code", "new", "--png", str(path), "--force", "--json")
        assert (run.code, run.out) == (exits.USAGE, "")
    assert cli("status", "--json").document["keyring_version"] == 1


def test_text_is_the_whole_sheet(cli: Command) -> None:
    run = cli("kit", "--text")
    assert run.out.startswith("MEMSEAL EMERGENCY KIT\n")
    assert "Vault in words:" in run.out
    assert joined(run.out) == cli("kit", "--json").document["emergency_kit"]


def test_passphrase_is_on_no_sheet(cli: Command, environment: dict[str, str], tmp_path: Path) -> None:
    html = tmp_path / "kit.html"
    text = cli("kit", "--text", "--html", str(html)).out
    assert environment["MEMSEAL_PASSPHRASE"] not in text + html.read_text(encoding="utf-8")


# ── new kit, rekey ──────────────────────────────────────────────────────────────────────────────────


def test_new_kit_is_shown_and_is_the_one_from_now_on(cli: Command) -> None:
    before = cli("kit", "--json").document["emergency_kit"]
    run = cli("kit", "new", "--json")
    assert (run.code, set(run.document), run.document["files"]) == (exits.DONE, {"emergency_kit", "files"}, [])
    assert run.document["emergency_kit"] not in ("", before)
    assert cli("kit", "--json").document["emergency_kit"] == run.document["emergency_kit"]
    again = cli("kit", "new")
    assert "opens nothing any more" in again.out
    assert joined(again.out) == cli("kit", "--json").document["emergency_kit"]


def test_new_kit_joins_and_the_old_one_no_more(cli: Command, server: str, tmp_path: Path) -> None:
    cli("sync", server)
    old = cli("kit", "--json").document["emergency_kit"]
    new = cli("kit", "new", "--json").document["emergency_kit"]
    refused = cli("join", "--vault", str(tmp_path / "phone"), "--json", MEMSEAL_KIT=old)
    assert refused.error["code"] == "kit_or_passphrase"
    assert cli("join", "--vault", str(tmp_path / "phone"), "--json", MEMSEAL_KIT=new).code == exits.DONE


def test_rekey_begins_an_epoch(cli: Command) -> None:
    cli("remember", "kettle")
    kit = cli("kit", "--json").document["emergency_kit"]
    run = cli("rekey", "--json")
    assert run.document == {"epoch": 2, "keyring_version": 2}
    assert "Epoch 3" in cli("rekey").out
    assert cli("list", "--json").document["total"] == 1
    assert cli("kit", "--json").document["emergency_kit"] == kit


@pytest.mark.parametrize("command", [("kit", "old"), ("recovery-code", "old"), ("recovery-code",)])
def test_another_action_is_refused(cli: Command, command: tuple[str, ...]) -> None:
    run = cli(*command, "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")


# ── recovery ────────────────────────────────────────────────────────────────────────────────────────


def test_recovery_code_is_shown_with_what_it_is(cli: Command, tmp_path: Path) -> None:
    png = tmp_path / "code.png"
    run = cli("recovery-code", "new", "--png", str(png))
    assert run.code == exits.DONE
    assert "opens your vault alone" in run.out
    assert scanned(png).startswith("MSEAL1R-")


def test_lost_passphrase_is_replaced_where_the_vault_lies(cli: Command) -> None:
    cli("remember", "kettle")
    code = cli("recovery-code", "new", "--json").document["recovery_code"]
    given = {"MEMSEAL_PASSPHRASE": None, "MEMSEAL_RECOVERY_CODE": code.lower(), "MEMSEAL_NEW_PASSPHRASE": NEW}
    run = cli("recover", "--json", **given)
    assert run.code == exits.DONE
    assert set(run.document) == {"vault", "server", "memories", "emergency_kit", "devices_with_old_passphrase"}
    assert (run.document["server"], run.document["memories"], run.document["devices_with_old_passphrase"]) == (
        None,
        1,
        [],
    )
    assert cli("list", "--json").error["code"] == "passphrase_wrong"
    assert cli("list", "--json", MEMSEAL_PASSPHRASE=NEW).document["total"] == 1
    kit = cli("kit", "--json", MEMSEAL_PASSPHRASE=NEW).document["emergency_kit"]
    assert kit == run.document["emergency_kit"]
    assert joined(cli("recover", **given).out) == kit


def test_recovery_elsewhere_fetches_the_memories(cli: Command, server: str, tmp_path: Path) -> None:
    cli("remember", "kettle")
    cli("sync", server)
    code = cli("recovery-code", "new", "--json").document["recovery_code"]
    new = {"MEMSEAL_RECOVERY_CODE": code, "MEMSEAL_NEW_PASSPHRASE": NEW}
    laptop = ("--vault", str(tmp_path / "laptop"))
    run = cli("recover", *laptop, "--json", **new)
    assert (run.document["server"], run.document["memories"]) == (server, 1)
    assert run.document["devices_with_old_passphrase"] == ["here"]
    phone = ("--vault", str(tmp_path / "phone"))
    kit = {"MEMSEAL_KIT": run.document["emergency_kit"], "MEMSEAL_PASSPHRASE": NEW}
    assert cli("join", *phone, "--json", **kit).document["memories"] == 1
    # The device that was there takes the new passphrase on.
    cli("sync")
    assert cli("passwd", "--json", MEMSEAL_NEW_PASSPHRASE=NEW).document["devices_with_old_passphrase"] == []
    assert cli("list", "--json", MEMSEAL_PASSPHRASE=NEW).document["total"] == 1


def test_recovery_where_the_vault_lies_asks_its_server(cli: Command, server: str, tmp_path: Path) -> None:
    cli("sync", server)
    code = cli("recovery-code", "new", "--json").document["recovery_code"]
    cli("remember", "not sent yet")
    run = cli("recover", "--json", MEMSEAL_RECOVERY_CODE=code, MEMSEAL_NEW_PASSPHRASE=NEW)
    assert (run.document["server"], run.document["memories"]) == (server, 1)
    kit = {"MEMSEAL_KIT": run.document["emergency_kit"], "MEMSEAL_PASSPHRASE": NEW}
    assert cli("join", "--vault", str(tmp_path / "phone"), "--json", **kit).document["memories"] == 1


@pytest.mark.parametrize(
    ("code", "new", "word"),
    [("MSEAL1R-0000", NEW, "kit_malformed"), (None, "another", "recovery_code"), (None, " ", "passphrase_empty")],
    ids=["mistyped", "replaced", "empty passphrase"],
)
def test_failed_recovery_changes_nothing(cli: Command, vault: Path, code: str | None, new: str, word: str) -> None:
    given = code or cli("recovery-code", "new", "--json").document["recovery_code"]
    cli("recovery-code", "new")
    before = sorted(path.read_bytes() for path in vault.rglob("*.mseal"))
    run = cli("recover", "--json", MEMSEAL_RECOVERY_CODE=given, MEMSEAL_NEW_PASSPHRASE=new)
    assert (run.code, run.error["code"]) == (4, word)
    assert given not in run.err
    assert sorted(path.read_bytes() for path in vault.rglob("*.mseal")) == before


def test_local_recovery_takes_no_address(cli: Command) -> None:
    run = cli("recover", "https://memory.example", "--local", "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")


@pytest.mark.parametrize("command", ["kit", "rekey", "recovery-code", "recover"])
@pytest.mark.parametrize("option", ["--passphrase", "--code", "--new-passphrase"])
def test_no_argument_takes_a_secret(cli: Command, command: str, option: str) -> None:
    run = cli(command, option, "hunter2hunter2", "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")
    assert "No such option" in run.error["message"]
