"""A join by a code that is cut short, with a real kill, leaves no entry without its device."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memseal.errors import (
    PairingGone,
    PairingTaken,
    PassphraseWrong,
    RemoteUnreachable,
)
from memseal.vault.keys import revoking
from tests.scenarios.conftest import StartServer
from tests.scenarios.pairing_world import Laptop, join, names
from tests.vault.small_vault import PASSPHRASE, open_vault, stretch_of


@pytest.fixture
def laptop(tmp_path: Path, start_server: StartServer) -> Iterator[Laptop]:
    laptop = Laptop(tmp_path / "laptop", start_server().url)
    yield laptop
    laptop.close()


def kill_at(moment: str, folder: Path, code: str, server: str) -> None:
    command = [sys.executable, "-m", "tests.scenarios.pairing_process", str(folder), server, moment]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{code}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "halted\n"
        process.kill()


@pytest.mark.parametrize("moment", ["said 1", "keep", "put", "answer", "create", "say 2"])
def test_joiner_that_is_killed_leaves_no_entry_without_its_device(moment: str, laptop: Laptop, tmp_path: Path) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at(moment, phone, shown.code, laptop.server)
    shown.is_given_up()
    if not phone.exists():
        again = laptop.shows()
        join(phone, again.code, laptop.server)
        if not again.outcome.done() and not (tmp_path / ".phone.joining").exists() and moment in ("answer", "create"):
            again.is_given_up()  # the join of before was finished: no code was needed
        else:
            again.device()
    with open_vault(phone) as vault:
        vault.sync()
        assert vault.state_digest() == laptop.vault.state_digest()
    # However it went, the vault has one device more, and that is this one.
    assert names(laptop.vault) == ["laptop", "phone"]


def test_join_that_was_done_when_it_was_cut_short_is_finished_with_the_same_passphrase_alone(
    laptop: Laptop, tmp_path: Path
) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at("answer", phone, shown.code, laptop.server)
    shown.is_given_up()
    assert names(laptop.vault) == ["laptop", "phone"]
    assert PASSPHRASE.encode() not in (tmp_path / ".phone.joining").read_bytes()
    with pytest.raises((PairingTaken, PairingGone)):
        join(phone, shown.code, laptop.server, "another passphrase")
    join(phone, shown.code, laptop.server)
    assert not (tmp_path / ".phone.joining").exists()


def test_join_that_was_cut_short_before_its_device_was_removed_is_begun_anew(laptop: Laptop, tmp_path: Path) -> None:
    shown, phone = laptop.shows(), tmp_path / "phone"
    kill_at("answer", phone, shown.code, laptop.server)
    shown.is_given_up()
    laptop.vault.sync()
    with laptop.vault._writing() as opened:
        revoking.revoke(opened, "phone", stretch_of(PASSPHRASE), None, None)
    again = laptop.shows()
    join(phone, again.code, laptop.server)
    assert again.device().status == "active"
    assert [device.status for device in laptop.vault.devices()] == ["this", "ended", "active"]


def test_shower_that_cannot_reach_the_server_shows_no_code(laptop: Laptop, tmp_path: Path) -> None:
    laptop.server = "http://127.0.0.1:9"
    shown = laptop.shows()
    assert shown.code == ""
    with pytest.raises(RemoteUnreachable):
        shown.device()


def test_shower_that_is_killed_after_it_handed_the_key_over_begins_a_new_epoch_next_time(
    laptop: Laptop, tmp_path: Path
) -> None:
    """Who has the key and never joined is in no list, and is not to read on."""
    laptop.vault.close()
    command = [sys.executable, "-m", "tests.scenarios.showing_process", str(laptop.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        code = process.stdout.readline().strip()
        with pytest.raises(PassphraseWrong):
            join(tmp_path / "phone", code, laptop.server, "not the vault's")
        assert process.stdout.readline() == "halted\n"
        process.kill()
    laptop.vault = open_vault(laptop.folder)
    assert laptop.vault.status().epoch == 1
    laptop.vault.sync()
    assert laptop.vault.status().epoch == 2
    laptop.vault.sync()
    assert laptop.vault.status().epoch == 2
    assert [*laptop.vault.status().findings, *laptop.vault.verify()] == []
