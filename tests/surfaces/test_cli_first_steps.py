"""What somebody meets who is new: the wrong place, two vaults, a name of a file, an address with a slip."""

import shutil
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from memseal.vault.compaction import compacting
from tests.surfaces.conftest import Command

NEW = "two otters in a raincoat"
NOTHING_GIVEN = {"MEMSEAL_PASSPHRASE": None, "MEMSEAL_KIT": None}
USERS = (
    ["remember", "a text"],
    ["recall", "a text"],
    ["status"],
    ["sync", "http://127.0.0.1:1"],
    ["kit"],
    ["passwd"],
    ["compact"],
    ["export", "out.jsonl"],
    ["repair", "--to", "copy"],
    ["devices"],
)


@pytest.mark.parametrize("arguments", USERS, ids=lambda arguments: arguments[0])
def test_where_no_vault_is_nothing_is_asked_and_the_ways_to_one_are_named(
    cli: Command, tmp_path: Path, arguments: list[str]
) -> None:
    run = cli(*arguments, "--json", MEMSEAL_VAULT=str(tmp_path / "nowhere"), **NOTHING_GIVEN)
    assert (run.code, run.error["code"]) == (3, "vault_missing")
    for way in ("memseal init", "memseal join", "--vault"):
        assert way in run.error["message"]


@pytest.mark.parametrize("command", [["init"], ["join", "http://127.0.0.1:1"]], ids=["init", "join"])
def test_where_a_vault_is_nothing_is_asked_and_another_place_is_named(
    cli: Command, vault: Path, command: list[str]
) -> None:
    run = cli(*command, "--json", **NOTHING_GIVEN)
    assert (run.code, run.error["code"]) == (3, "vault_exists")
    assert "a vault is at" in run.error["message"]
    assert "--vault PATH" in run.error["message"]


@pytest.mark.parametrize("command", [["init"], ["join", "http://127.0.0.1:1"]], ids=["init", "join"])
def test_where_something_else_is_it_is_said_what(cli: Command, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").write_text("a letter", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "letter").write_text("a letter", encoding="utf-8")
    for name, said in (("file", "a file is at"), ("folder", "a folder with other things in it is at")):
        run = cli(*command, "--json", MEMSEAL_VAULT=str(tmp_path / name), **NOTHING_GIVEN)
        assert (run.code, run.error["code"]) == (3, "vault_exists")
        assert said in run.error["message"]


def test_two_vaults_stand_beside_one_another(cli: Command, tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    ids = {cli("init", "--vault", place, "--json").document["vault"]["id"] for place in (one, two)}
    assert len(ids) == 2
    cli("remember", "in the first", "--vault", one)
    assert cli("list", "--vault", two, "--json").document["memories"] == []
    assert len(cli("list", "--vault", one, "--json").document["memories"]) == 1


# ── export ──────────────────────────────────────────────────────────────────────────────────────────


def test_ending_of_a_file_chooses_what_is_written(cli: Command, tmp_path: Path) -> None:
    cli("remember", "a text of an otter")
    for name, begin in (("a.md", b"#"), ("b.jsonl", b"{"), ("c.txt", b"{"), ("d.mseal", b"\x89MSEAL"), ("e.MD", b"#")):
        run = cli("export", str(tmp_path / name), MEMSEAL_FILE_PASSPHRASE=NEW)
        assert run.code == exits.DONE
        assert (tmp_path / name).read_bytes().startswith(begin)


def test_format_that_is_named_comes_before_the_ending(cli: Command, tmp_path: Path) -> None:
    cli("remember", "a text of an otter")
    cli("export", str(tmp_path / "a.md"), "--format", "jsonl")
    cli("export", str(tmp_path / "b.jsonl"), "--bundle", MEMSEAL_FILE_PASSPHRASE=NEW)
    cli("export", str(tmp_path / "c.mseal"), "--format", "markdown")
    assert [(tmp_path / name).read_bytes()[:1] for name in ("a.md", "b.jsonl", "c.mseal")] == [b"{", b"\x89", b"#"]


def test_what_an_export_leaves_out_is_told_with_the_reason(cli: Command, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        cli("remember", text)
    first, second, _ = (memory["id"] for memory in cli("list", "--json").document["memories"])
    cli("supersede", first, "newer")
    cli("retract", second, "--reason", "wrong")
    out = cli("export", str(tmp_path / "out.jsonl")).out
    assert "2 were left out (1 superseded, 1 retracted)" in out


# ── addresses ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("port", ["99999", "65536", "0", "8x", "-1"])
def test_port_that_is_none_is_named(cli: Command, port: str) -> None:
    run = cli("sync", f"http://127.0.0.1:{port}", "--json")
    assert (run.code, run.error["code"]) == (3, "remote_unknown")
    assert "65535" in run.error["message"]


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────


def test_device_that_takes_a_new_passphrase_on_is_told_so_and_shown_no_new_kit(
    cli: Command, tmp_path: Path, server: str
) -> None:
    cli("sync", server)
    phone = str(tmp_path / "phone")
    kit = cli("kit", "--json").document["emergency_kit"]
    cli("join", server, "--vault", phone, MEMSEAL_KIT=kit)
    cli("passwd", MEMSEAL_NEW_PASSPHRASE=NEW)
    cli("sync", "--vault", phone)
    run = cli("passwd", "--vault", phone, MEMSEAL_NEW_PASSPHRASE=NEW)
    assert run.code == exits.DONE
    assert "This device has the new passphrase now" in run.out
    assert "opens nothing any more" not in run.out
    assert "Another device changed the passphrase" in run.err
    assert cli("status", "--vault", phone, MEMSEAL_PASSPHRASE=NEW).code == exits.DONE


def test_recovery_code_still_works_after_it_was_used_and_this_is_said(cli: Command, tmp_path: Path) -> None:
    code = cli("recovery-code", "new", "--json").document["recovery_code"]
    for passphrase in (NEW, "three otters in a raincoat"):
        run = cli("recover", "--local", MEMSEAL_RECOVERY_CODE=code, MEMSEAL_NEW_PASSPHRASE=passphrase)
        assert run.code == exits.DONE
        assert "The recovery code still works: keep it." in run.out
        assert cli("status", MEMSEAL_PASSPHRASE=passphrase).code == exits.DONE


# ── damage without a server ─────────────────────────────────────────────────────────────────────────


def test_damaged_checkpoint_of_a_vault_without_a_server_names_repair(
    cli: Command, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compacting, "_SMALL_PART", 1)
    cli("remember", "a text of an otter")
    cli("compact")
    (part,) = (vault / "parts").iterdir()
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    shutil.rmtree(vault / "cache", ignore_errors=True)
    cli("remember", "another text")
    runs = [cli("compact", "--thorough", "--json"), cli("verify", "--read-data", "--json"), cli("status", "--json")]
    assert ["memseal repair --to COPY" in run.out + run.err for run in runs[:2]] == [True, True]
    assert [": sync" in run.out + run.err for run in runs] == [False] * 3
    assert cli("repair", "--to", str(vault.parent / "copy"), "--yes").code in (exits.DONE, exits.NOT_ALL)


def test_data_class_is_chosen_when_the_vault_is_made(cli: Command, tmp_path: Path) -> None:
    place = str(tmp_path / "medical")
    assert cli("init", "--vault", place, "--data-class", "secret").code == exits.USAGE
    assert cli("init", "--vault", place, "--data-class", "medical").code == exits.DONE
    assert cli("status", "--vault", place, "--json").document["data_class"] == "medical"
    assert "medical" in cli("status", "--vault", place).out
