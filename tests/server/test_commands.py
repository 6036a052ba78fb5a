"""The commands that look after a store: invite, fsck, usage."""

import asyncio
import io
import json
import re
from pathlib import Path

import pytest

from memseal_server import commands
from memseal_server.__main__ import main
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.invitations import Invitations
from tests.server.building import Draft, Log
from tests.server.calling import Caller


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


async def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: str) -> tuple[int, list[str], str]:
    return await asyncio.to_thread(run, capsys, *arguments, "--store", str(tmp_path / "store"))


async def test_invitation_is_written_alone_and_is_good(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store: SqliteStore, first: Draft
) -> None:
    code, [invitation], said = await command(capsys, tmp_path, "invite", "--uses", "2", "--expires", "12h")
    assert code == 0
    assert re.fullmatch("[A-Za-z0-9_-]{43}", invitation)
    assert said.startswith("Good for 2 new vaults until 20")
    await Invitations(store).spend(invitation, first.vault)
    code, [line], _ = await command(capsys, tmp_path, "invite", "--json")
    assert json.loads(line).keys() == {"invitation", "uses", "expires"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--uses", "0"], "--uses: '0' is not a number from 1 to 1000"),
        (["--uses", "1001"], "is not a number from 1 to 1000"),
        (["--expires", "7"], "--expires: '7' is not a time like 30m, 12h or 7d"),
        (["--expires", "0d"], "is not a time like"),
    ],
)
def test_invitation_for_nobody_or_no_time_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["invite", "--store", str(tmp_path), *options])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-waiter", "5"], "--max-waiter is no option: did you mean --max-waiters?"),
        (["--max-waiter=5"], "--max-waiter is no option: did you mean --max-waiters?"),
        (["--zebra"], "--zebra is no option; there are --store, "),
        (["server"], "'server' is no command; there are serve, invite, fsck, usage"),
    ],
    ids=["beginning", "equals", "unknown", "command"],
)
def test_what_is_no_option_or_command_is_named_with_what_there_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--store", str(tmp_path), "--check-config", *arguments])
    usage, error = capsys.readouterr().err.splitlines()
    assert usage == "usage: memseal-server [command] --store PLACE [options]"
    assert said in error


async def test_sound_store_has_no_findings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, caller: Caller, first: Draft, log: Log
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2, 3])
    await command(capsys, tmp_path, "invite")
    assert await command(capsys, tmp_path, "fsck") == (0, ["0 findings, 0 of them damage."], "")


async def test_damage_is_named_and_gives_exit_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, caller: Caller, store: SqliteStore, first: Draft, log: Log
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 1, 2, 3])
    key = f"{first.vault.hex()}/logs/{log.stream.hex()}/0000000001"
    await store.delete([key])
    code, lines, _ = await command(capsys, tmp_path, "fsck")
    assert code == 1
    assert [line for line in lines if line.startswith("damage ") and key in line]
    code, lines, _ = await command(capsys, tmp_path, "fsck", "--json")
    assert code == 1
    assert {json.loads(line)["key"] for line in lines} >= {key}


async def test_usage_says_what_each_vault_takes_and_all_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, caller: Caller, first: Draft, log: Log
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 3])
    _, lines, _ = await command(capsys, tmp_path, "usage")
    heading, row, total = [line.split() for line in lines]
    assert heading == ["vault", "versions", "logs", "objects", "bytes", "log_bytes", "checkpoint_bytes"]
    assert row[:3] == [first.vault.hex(), "1", "1"]
    assert row[5] == str(len(log.segment(0, 3)))
    assert total[:3] == ["1", "in", "all"]
    assert total[3:] == row[1:]
    _, [line], _ = await command(capsys, tmp_path, "usage", "--json")
    assert json.loads(line)["bytes"] == int(row[4])


@pytest.mark.parametrize("name", ["invite", "fsck", "usage"])
def test_store_that_is_not_there_is_not_made(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    code, lines, said = run(capsys, name, "--store", str(tmp_path / "typo"))
    assert (code, lines) == (1, [])
    assert said.startswith(f"memseal-server: cannot {name}: no store is at {tmp_path / 'typo'}: name one in --store")
    assert not (tmp_path / "typo").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("out", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_progress_is_shown_to_a_person_alone_and_wiped_away(out: io.StringIO) -> None:
    progress = commands._Progress(out)
    progress.count("get", 0.0, failed=False)
    progress.end()
    assert out.getvalue() == ("\r1 reads\r\x1b[K" if out.isatty() else "")


def test_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sevre", "--store", "x"])
    assert "'sevre' is no command" in capsys.readouterr().err
