"""A folder as a remote: a stick, a synced folder, a copy of a bucket, and what goes wrong with them."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import RemoteUnreachable, RolledBack
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.vault.remote import background
from memseal_server.blobs.sqlite import SqliteStore
from tests.scenarios.conftest import StartServer
from tests.transport.conftest import PASSPHRASE, PATIENCE_SECONDS, States, opened

Pair = tuple[Vault, Vault]


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    folder = tmp_path / "stick"
    folder.mkdir()
    return folder


@pytest.fixture
def alone(world: Path) -> Iterator[Pair]:
    """Two devices of one vault whose server is away."""
    with opened(world / "one") as one, opened(world / "two") as two:
        yield one, two


def files_of(stick: Path, vault: Vault, below: str = "") -> list[str]:
    root = stick / vault.status().vault_id
    found = [path.relative_to(root).as_posix() for path in (root / below).rglob("*") if path.is_file()]
    return sorted(found)


def segments_of(stick: Path, vault: Vault) -> list[Path]:
    return sorted((stick / vault.status().vault_id / "logs").glob("*/??????????"))


def settle(stick: Path, *vaults: Vault) -> None:
    for vault in (*vaults, *vaults):
        vault.sync(str(stick))


def is_same(one: Vault, two: Vault) -> bool:
    return one.state_digest() == two.state_digest()


# ── what it carries ─────────────────────────────────────────────────────────────────────────────────


def test_a_device_that_sees_only_the_folder_takes_over_a_checkpoint_and_its_floor(pair: Pair, stick: Path) -> None:
    one, two = pair
    for number in range(20):
        one.remember(f"number {number}", source="one")
    settle(stick, one, two)
    before = segments_of(stick, one)
    assert one.compact() is not None
    one.remember("after the floor", source="one")
    settle(stick, one)
    assert not set(before) & set(segments_of(stick, one))
    assert two.sync(str(stick)).findings == []
    assert is_same(one, two)
    assert two.status().keyring_version == one.status().keyring_version
    logbook = two._opened.logbook
    assert all(log.start.length > PREAMBLE_SIZE for log in logbook.logs.values() if not logbook.is_own(log))
    two.remember("back by stick", source="two")
    settle(stick, two, one)
    assert is_same(one, two)
    one.sync()
    two.sync()
    assert two.verify() == one.verify() == []


def test_a_device_that_sees_only_the_folder_learns_of_a_new_epoch(pair: Pair, stick: Path) -> None:
    one, two = pair
    settle(stick, one, two)
    two.remember("under the old key, not yet carried", source="two")
    one.rekey()
    one.remember("under the new key", source="one")
    settle(stick, one, two)
    assert two.status().epoch == one.status().epoch == 2
    assert is_same(one, two)
    assert one.count() == 2


def test_an_erase_reaches_the_folder(pair: Pair, stick: Path) -> None:
    one, two = pair
    gone = one.remember("what is to be erased", source="one")
    one.remember("what stays", source="one")
    settle(stick, one, two)
    held = {path: path.read_bytes() for path in segments_of(stick, one)}
    one.erase(gone.id)
    settle(stick, one, two)
    assert not [path for path in held if path.exists()]
    assert [name.split("-")[0] for name in files_of(stick, one, "sealed")] == [
        f"sealed/{one.status().keyring_version:010d}"
    ]
    assert two.count() == 1
    assert is_same(one, two)


def test_an_empty_folder_gets_all_of_a_compacted_vault(pair: Pair, stick: Path) -> None:
    one, two = pair
    one.remember_many({"content": f"number {number}", "source": "one"} for number in range(20))
    one.sync()
    assert one.compact() is not None
    one.remember("after the floor", source="one")
    assert one.sync(str(stick)).findings == []
    assert two.sync(str(stick)).findings == []
    assert is_same(one, two)
    assert {name.split("/")[0] for name in files_of(stick, one)} == {
        "checkpoints",
        "keyring",
        "logs",
        "parts",
        "sealed",
    }
    again = one.sync(str(stick))
    assert (again.pulled_bytes, again.pushed_bytes) == (0, 0)


def test_a_device_that_was_removed_learns_of_it_from_the_folder(pair: Pair, stick: Path) -> None:
    one, two = pair
    settle(stick, one, two)
    (device,) = [device for device in two.status().devices if device.this_device]
    one.revoke(device.id, PASSPHRASE)
    one.sync(str(stick))
    with pytest.raises(Exception, match="join"):
        two.sync(str(stick))
    assert one.sync(str(stick)).findings == []


def test_what_came_by_folder_is_no_rollback_for_the_server(pair: Pair, stick: Path) -> None:
    one, two = pair
    one.remember("by server and stick", source="one")
    one.rekey()
    one.sync()
    settle(stick, one, two)
    two.remember("and back", source="two")
    assert two.sync().findings == []
    assert one.sync().findings == []
    assert is_same(one, two)


# ── what is not believed ────────────────────────────────────────────────────────────────────────────


def test_a_forged_keyring_version_is_named_and_the_logs_go_on(pair: Pair, stick: Path) -> None:
    one, two = pair
    one.remember("as it was", source="one")
    one.rekey()
    settle(stick, one)
    root = stick / one.status().vault_id
    newest = max((root / "keyring").iterdir())
    content = bytearray(newest.read_bytes())
    content[-10] ^= 1  # in a signature
    newest.write_bytes(content)
    report = two.sync(str(stick))
    assert {finding.where for finding in report.findings} == {"keyring"}
    assert two.status().epoch == 1
    assert two.count() == 1


def test_another_vaults_folder_is_left_alone(alone: Pair, stick: Path, tmp_path: Path) -> None:
    one, two = alone
    with Vault.create(tmp_path / "other", PASSPHRASE, embedder=None) as other:
        other.remember("of somebody else", source="other")
        other.sync(str(stick))
        before = files_of(stick, other)
        one.remember("of one", source="one")
        settle(stick, one, two)
        assert files_of(stick, other) == before
        assert is_same(one, two)
        assert other.sync(str(stick)).findings == []


# ── SYNC_CASES: an empty or wrong target was read as "everything deleted" ───────────────────────────


@pytest.mark.parametrize("damage", ["emptied", "vault removed", "half of a log gone", "all logs gone"])
def test_an_empty_or_half_listed_folder_deletes_nothing_and_the_error_names_it(
    alone: Pair, stick: Path, damage: str
) -> None:
    one, two = alone
    for number in range(4):
        one.remember(f"number {number}", source="one")
        settle(stick, one)
    settle(stick, two, one)
    before, root = one.state_digest(), stick / one.status().vault_id
    match damage:
        case "emptied":
            shutil.rmtree(stick)
            stick.mkdir()
        case "vault removed":
            shutil.rmtree(root)
        case "half of a log gone":
            for path in segments_of(stick, one)[1::2]:
                path.unlink()
        case _:
            shutil.rmtree(root / "logs")
    with pytest.raises(RolledBack, match="nothing is lost here"):
        one.sync(str(stick))
    assert one.state_digest() == before
    assert one.verify() == []
    one.sync(str(stick), accept_rollback=True)
    two.sync(str(stick), accept_rollback=True)
    assert one.sync(str(stick)).findings == []
    assert is_same(one, two)


def test_a_folder_that_is_away_is_told_and_may_come_back(alone: Pair, stick: Path) -> None:
    one, two = alone
    settle(stick, one, two)
    stick.rename(stick.with_name("unplugged"))
    with pytest.raises(RemoteUnreachable, match="drive"):
        one.sync(str(stick))
    stick.with_name("unplugged").rename(stick)
    one.remember("after it came back", source="one")
    settle(stick, one, two)
    assert is_same(one, two)


# ── what programs that copy and synchronise leave behind ────────────────────────────────────────────


def test_a_folder_whose_path_no_system_takes_is_told(alone: Pair, stick: Path) -> None:
    one, _ = alone
    with pytest.raises(RemoteUnreachable, match="check its path"):
        one.sync(str(stick / ("x" * 5_000)))


def test_conflict_copies_temporary_files_and_strangers_are_passed_over(alone: Pair, stick: Path) -> None:
    one, two = alone
    one.remember("number 0", source="one")
    settle(stick, one, two)
    root = stick / one.status().vault_id
    for path in [path for path in root.rglob("*") if path.is_file()]:
        strange = bytes(path.stat().st_size)
        path.with_name(f"{path.name}.sync-conflict-20260101-120000-ABCDEFG").write_bytes(strange)
        path.with_name(f".syncthing.{path.name}.tmp").write_bytes(strange[:10])
        path.with_name(f"~syncthing~{path.name}.tmp").write_bytes(b"")
        path.with_name(f".{'0' * 16}.new").write_bytes(strange)
    (stick / ".stfolder").mkdir()
    (stick / "desktop.ini").write_bytes(b"")
    (root / "logs" / "Thumbs.db").write_bytes(b"x")
    (root / "logs" / ("f" * 32)).mkdir()
    one.remember("number 1", source="one")
    settle(stick, one, two)
    assert is_same(one, two)
    assert two.sync(str(stick)).findings == one.sync(str(stick)).findings == []


@pytest.mark.parametrize("left", [0, 1, 51, 52, 200, -1])
def test_a_segment_that_is_half_copied_waits_and_counts_when_it_is_whole(alone: Pair, stick: Path, left: int) -> None:
    one, two = alone
    settle(stick, one, two)
    one.remember("half-way", source="one")
    one.sync(str(stick))
    newest = max(segments_of(stick, one), key=lambda path: path.stat().st_mtime_ns)
    content = newest.read_bytes()
    for half in (content[:left], content[:left].ljust(len(content), b"\0")):
        newest.write_bytes(half)
        two.sync(str(stick))
        assert two.count() == 0
    newest.write_bytes(content)
    assert two.sync(str(stick)).findings == []
    assert is_same(one, two)


@pytest.mark.parametrize("shelf", ["keyring", "sealed", "checkpoints", "parts"])
def test_keys_and_checkpoints_that_are_half_copied_wait_and_count_when_they_are_whole(
    pair: Pair, stick: Path, shelf: str
) -> None:
    one, two = pair
    one.remember("number 0", source="one")
    settle(stick, one, two)
    assert one.compact() is not None
    one.sync(str(stick))
    paths = list((stick / one.status().vault_id / shelf).iterdir())
    newest = max(paths, key=lambda path: (path.name if shelf in ("keyring", "sealed") else "", path.stat().st_mtime_ns))
    content = newest.read_bytes()
    for half in (b"", content[: len(content) // 2]):
        newest.write_bytes(half)
        with pytest.raises(RemoteUnreachable, match="not whole") if shelf in ("keyring", "sealed") else nullcontext():
            two.sync(str(stick))
        assert two.count() == 1
    newest.write_bytes(content)
    assert two.sync(str(stick)).findings == []
    assert two.status().keyring_version == one.status().keyring_version
    assert is_same(one, two)


def test_files_larger_than_any_may_be_are_not_read(alone: Pair, stick: Path) -> None:
    one, two = alone
    one.remember("number 0", source="one")
    settle(stick, one)
    root = stick / one.status().vault_id
    for path in [*segments_of(stick, one)[:1], root / "keyring" / f"{9:010d}", root / "parts" / ("0" * 32)]:
        huge = path.with_name(f"{int(path.name[:10], 16) + 7:010d}" if path.parent.name != "parts" else path.name)
        huge.parent.mkdir(exist_ok=True)
        with huge.open("wb") as file:
            file.truncate(1 << 40)  # a hole: it takes no room
    assert two.sync(str(stick)).findings == []
    assert is_same(one, two)


def test_a_file_system_that_shows_capital_letters_is_read(alone: Pair, stick: Path) -> None:
    one, two = alone
    one.remember("number 0", source="one")
    one.sync(str(stick))
    for folder in list((stick / one.status().vault_id / "logs").iterdir()):
        folder.rename(folder.with_name(folder.name.upper()))
    assert two.sync(str(stick)).findings == []
    assert is_same(one, two)


def test_two_writers_that_race_for_one_number_lose_nothing(alone: Pair, stick: Path, tmp_path: Path) -> None:
    one, two = alone
    settle(stick, one, two)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(stick, elsewhere)
    one.remember("first", source="one")
    one.sync(str(stick))
    two.sync(str(stick))
    one.remember("second", source="one")
    one.sync(str(elsewhere))  # both writes in one segment, under a number that the first has alone in the other folder
    shutil.copytree(elsewhere, stick, dirs_exist_ok=True)
    settle(stick, one, two)
    assert is_same(one, two)
    assert two.count() == 2


# ── a bucket without its server ─────────────────────────────────────────────────────────────────────


async def copy_store(store: Path, folder: Path) -> None:
    """Write each object of a server's store to a file that has the object's key as its path."""
    source = await SqliteStore.open(store)
    after = ""
    while found := await source.listed("", after, 100):
        for key, _ in found:
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(await source.get(key) or b"")
        after = found[-1].key
    await source.close()


def test_a_copy_of_a_bucket_is_read_as_a_folder(world: Path, start_server: StartServer, stick: Path) -> None:
    server = start_server()
    with opened(world / "one") as one, opened(world / "two") as two:
        one.sync(server.url)
        one.remember_many({"content": f"number {number}", "source": "one"} for number in range(20))
        one.sync()
        assert one.compact() is not None
        one.rekey()
        one.remember("after the floor", source="one")
        one.sync()
        server.stop()
        asyncio.run(copy_store(world / "store", stick))
        assert two.sync(str(stick)).findings == []
        assert is_same(one, two)
        assert two.status().epoch == one.status().epoch


# ── followed in the background ──────────────────────────────────────────────────────────────────────


def test_a_folder_is_followed_in_the_background(alone: Pair, stick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_PACE_SECONDS", 0.1)
    one, two = alone
    heard = States()
    with one.sync_in_background(str(stick)) as live, two.sync_in_background(str(stick), on_state=heard):
        one.remember("by way of a stick", source="one")
        assert live.wait_until_synced(PATIENCE_SECONDS)
        heard.until(lambda: two.count() == 1)


def test_what_comes_by_server_goes_on_to_the_folder(pair: Pair, stick: Path, start_server: StartServer) -> None:
    one, two = pair
    told = States()
    with one.sync_in_background(), one.sync_in_background(str(stick), on_state=told) as carried:
        assert carried.wait_until_synced(PATIENCE_SECONDS)
        before = len(segments_of(stick, one))
        two.remember("from two", source="two")
        two.sync()
        told.until(lambda: len(segments_of(stick, one)) > before)
    assert one.count() == 1
