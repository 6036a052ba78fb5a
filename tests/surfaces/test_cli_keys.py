import os
import shutil
import sys
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import PASSPHRASE, Command

NEW = "two otters in a raincoat"


def joined(text: str) -> str:
    """A kit as it is printed, over several lines and within a frame, in one piece."""
    words = text.replace("│", " ").split()
    start = next(place for place, word in enumerate(words) if word.startswith("MSEAL1-"))
    pieces = [words[start]]
    while pieces[-1].endswith("-"):
        pieces.append(words[start + len(pieces)])
    return "".join(pieces)


def test_init_makes_a_vault_and_shows_its_kit_and_what_it_is_for(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "new"
    run = cli("init", "--vault", str(path))
    assert run.code == exits.DONE
    assert "nobody can recover the memories" in run.out
    assert "a new device joins this vault" in run.out
    assert joined(run.out) == cli("kit", "--vault", str(path), "--json").document["emergency_kit"]


def test_init_tells_path_id_and_kit_to_programs(cli: Command, tmp_path: Path) -> None:
    document = cli("init", "--vault", str(tmp_path / "new"), "--device-name", "desk", "--json").document
    assert set(document) == {"vault", "emergency_kit"}
    assert document["vault"]["path"] == str(tmp_path / "new")
    status = cli("status", "--vault", str(tmp_path / "new"), "--json").document
    assert (status["vault_id"], status["devices"][0]["name"]) == (document["vault"]["id"], "desk")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_DATA_HOME is where Linux keeps user data")
def test_vault_lies_with_the_users_data_unless_they_say_otherwise(cli: Command, tmp_path: Path) -> None:
    run = cli("init", "--json", MEMSEAL_VAULT=None)
    assert run.document["vault"]["path"] == str(tmp_path / "data" / "memseal" / "default.vault")
    assert cli("status", "--json", MEMSEAL_VAULT=None).code == exits.DONE


@pytest.mark.skipif(sys.platform == "win32", reason="Windows names no /dev/null/…")
def test_place_that_the_system_refuses_is_an_error_of_the_disk(cli: Command) -> None:
    run = cli("init", "--json", MEMSEAL_VAULT=None, XDG_DATA_HOME="/dev/null")
    assert (run.code, run.error["code"]) == (6, "disk")


def test_init_where_something_is_leaves_it_alone(cli: Command, vault: Path) -> None:
    before = sorted(path.read_bytes() for path in vault.rglob("*.mseal"))
    run = cli("init", "--json")
    assert (run.code, run.error["code"]) == (3, "vault_exists")
    assert sorted(path.read_bytes() for path in vault.rglob("*.mseal")) == before


def test_wrong_passphrase_has_the_exit_code_of_the_user(cli: Command) -> None:
    run = cli("list", "--json", MEMSEAL_PASSPHRASE="wrong horse")
    assert (run.code, run.error["code"]) == (4, "passphrase_wrong")
    assert "wrong horse" not in run.err


def test_empty_passphrase_makes_no_vault(cli: Command, tmp_path: Path) -> None:
    run = cli("init", "--vault", str(tmp_path / "new"), "--json", MEMSEAL_PASSPHRASE="  ")
    assert (run.code, run.error["code"]) == (4, "passphrase_empty")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", ["--passphrase", "--new-passphrase", "--kit"])
@pytest.mark.parametrize("command", ["init", "join", "passwd", "list"])
def test_no_argument_takes_a_secret(cli: Command, command: str, option: str) -> None:
    run = cli(command, option, "hunter2hunter2", "--json")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")
    assert "No such option" in run.error["message"]


def test_without_a_terminal_or_any_passphrase_it_says_what_to_do(program: Command) -> None:
    run = program("list", "--json", variables={"MEMSEAL_PASSPHRASE": ""}, start_new_session=True)
    assert run.code == exits.USAGE
    assert "set MEMSEAL_PASSPHRASE, or use --passphrase-fd" in run.error["message"]


def test_passphrase_comes_from_a_descriptor_and_the_memory_after_it(cli: Command) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{PASSPHRASE}\nthe next line stays".encode())
    run = cli("list", "--passphrase-fd", str(reader), "--json", MEMSEAL_PASSPHRASE="wrong")
    assert run.code == exits.DONE
    assert os.read(reader, 100) == b"the next line stays"
    os.close(reader)
    os.close(writer)


def test_descriptor_zero_gives_first_the_passphrase_and_then_the_memory(program: Command) -> None:
    run = program("remember", "-", "--passphrase-fd", "0", "--json", stdin=f"{PASSPHRASE}\nA tea.\n".encode())
    assert run.document["memory"]["content"] == "A tea."


@pytest.mark.parametrize(
    ("given", "message"), [(b"\xff\n", "not UTF-8"), (b"x" * 70_000, "no end of line")], ids=["not UTF-8", "endless"]
)
def test_descriptor_that_gives_no_passphrase_is_refused(program: Command, given: bytes, message: str) -> None:
    run = program("list", "--passphrase-fd", "0", "--json", stdin=given)
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")
    assert message in run.error["message"]


def test_closed_descriptor_is_refused(program: Command) -> None:
    run = program("list", "--passphrase-fd", "63", "--json")
    assert run.code == exits.USAGE
    assert "descriptor 63 cannot be read" in run.error["message"]


def test_changed_passphrase_opens_and_the_old_one_no_more(cli: Command) -> None:
    cli("remember", "kettle")
    before = cli("kit", "--json").document["emergency_kit"]
    run = cli("passwd", "--json", MEMSEAL_NEW_PASSPHRASE=NEW)
    assert (run.code, set(run.document)) == (exits.DONE, {"emergency_kit", "devices_with_old_passphrase"})
    assert run.document["emergency_kit"] != before
    assert cli("list", "--json").code == 4
    assert cli("list", "--json", MEMSEAL_PASSPHRASE=NEW).document["total"] == 1
    assert cli("kit", "--json", MEMSEAL_PASSPHRASE=NEW).document["emergency_kit"] == run.document["emergency_kit"]


def test_new_passphrase_comes_from_its_own_descriptor(cli: Command) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{PASSPHRASE}\n{NEW}\n".encode())
    run = cli("passwd", "--passphrase-fd", str(reader), "--new-passphrase-fd", str(reader))
    os.close(reader)
    os.close(writer)
    assert run.code == exits.DONE
    assert "nobody can recover the memories" in run.out
    assert cli("list", MEMSEAL_PASSPHRASE=NEW).code == exits.DONE


def test_joined_device_has_the_memories(cli: Command, server: str, tmp_path: Path) -> None:
    cli("remember", "The kettle is blue.")
    assert cli("sync", server).code == exits.DONE
    kit = cli("kit", "--json").document["emergency_kit"]
    phone = str(tmp_path / "phone")
    run = cli("join", "--vault", phone, "--device-name", "phone", "--json", MEMSEAL_KIT=kit)
    assert (run.code, set(run.document)) == (exits.DONE, {"vault", "server", "memories"})
    assert (run.document["server"], run.document["memories"]) == (server, 1)
    assert "blue" in cli("recall", "kettle", "--vault", phone).out


def test_kit_comes_from_a_descriptor_as_it_was_printed(cli: Command, server: str, tmp_path: Path) -> None:
    cli("sync", server)
    kit = cli("kit", "--json").document["emergency_kit"]
    reader, writer = os.pipe()
    os.write(writer, f" {kit.lower()} \n".encode())
    run = cli("join", "--vault", str(tmp_path / "phone"), "--kit-fd", str(reader), "--json")
    os.close(reader)
    os.close(writer)
    assert run.code == exits.DONE


def test_other_device_takes_on_a_passphrase_that_was_changed_here(cli: Command, server: str, tmp_path: Path) -> None:
    phone = ("--vault", str(tmp_path / "phone"))
    cli("sync", server)
    kit = cli("kit", "--json").document["emergency_kit"]
    cli("join", *phone, "--device-name", "phone", MEMSEAL_KIT=kit)
    cli("sync")
    run = cli("passwd", "--json", MEMSEAL_NEW_PASSPHRASE=NEW)
    assert run.document["devices_with_old_passphrase"] == ["phone"]
    cli("remember", "said under the new key", MEMSEAL_PASSPHRASE=NEW)
    cli("sync", MEMSEAL_PASSPHRASE=NEW)
    cli("sync", *phone)
    taken_on = cli("passwd", *phone, "--json", MEMSEAL_NEW_PASSPHRASE=NEW)
    assert taken_on.document == {**run.document, "devices_with_old_passphrase": []}
    assert cli("list", *phone, "--json").code == 4
    assert cli("list", *phone, "--json", MEMSEAL_PASSPHRASE=NEW).document["total"] == 1


@pytest.mark.parametrize(
    ("kit", "code", "word"),
    [("MSEAL1-0000", 4, "kit_malformed"), (None, 4, "kit_or_passphrase")],
    ids=["mistyped", "wrong passphrase"],
)
def test_failed_join_leaves_nothing_behind(
    cli: Command, server: str, tmp_path: Path, kit: str | None, code: int, word: str
) -> None:
    cli("sync", server)
    given = kit or cli("kit", "--json").document["emergency_kit"]
    phone = tmp_path / "phone"
    run = cli("join", server, "--vault", str(phone), "--json", MEMSEAL_KIT=given, MEMSEAL_PASSPHRASE="wrong")
    assert (run.code, run.error["code"]) == (code, word)
    assert given not in run.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vault"]


def test_no_secret_is_in_an_environment_error(cli: Command, vault: Path) -> None:
    shutil.rmtree(vault / "keyring")
    run = cli("list")
    assert run.code not in (exits.DONE, exits.INTERNAL)
    assert PASSPHRASE not in run.out + run.err
