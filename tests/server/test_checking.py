"""The walk through a store: what it finds wanting, what it takes for left by a crash, and what a vault takes."""

import sqlite3
from pathlib import Path

import pytest

from memseal_server.blobs import BlobStore, Listed, numbered
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.checking import Finding, VaultUsage, check_store, usage
from tests.server.building import (
    BODY_SIZE,
    Draft,
    Log,
    manifest,
    object_id,
    part,
    private_key,
    record,
    sha256,
    some_bytes,
)
from tests.server.calling import Caller


async def findings(store: BlobStore) -> list[Finding]:
    return [finding async for finding in check_store(store)]


async def codes(store: BlobStore) -> list[str]:
    return [finding.code for finding in await findings(store)]


async def serious(store: BlobStore) -> list[str]:
    return [finding.code for finding in await findings(store) if finding.serious]


def folder(log: Log) -> str:
    return f"{log.vault.hex()}/logs/{log.stream.hex()}/"


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log with six records, in segments of two."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(6)


@pytest.fixture
async def floor(caller: Caller, first: Draft, log: Log) -> Draft:
    """Version 3 of a vault with a floor at four of the log's records, and Bob's log of one segment."""
    await caller.register(first, second := first.next("alice").add("bob"))
    await caller.push(log, [0, 2, 4, 6])
    bobs = Log(first.vault, private_key("bob"), 1, first.digest()).append(2)
    await caller.push(bobs, [0, 2], "bob")
    return await caller.commit(second, "one", ["a", "b"], log.row(4, 2))


@pytest.mark.usefixtures("floor")
async def test_store_that_is_whole_has_no_findings(store: BlobStore) -> None:
    assert await findings(store) == []


async def test_empty_store_has_no_findings(store: BlobStore) -> None:
    assert await findings(store) == []
    assert [each async for each in usage(store)] == []


async def test_usage_has_each_vaults_figures(caller: Caller, store: BlobStore, floor: Draft, log: Log) -> None:
    [figures] = [each async for each in usage(store)]
    there = await store.usage(f"{floor.vault.hex()}/")
    assert figures == VaultUsage(
        vault=floor.vault.hex(),
        versions=3,
        logs=2,
        objects=there.objects,
        bytes=there.bytes,
        log_bytes=len(log.segment(4, 6)) + len(log.segment(0, 2)),
        checkpoint_bytes=2 * len(part(floor.vault, "a")) + len(manifest(floor.vault, "one")),
    )


async def test_version_that_is_gone_in_between_is_a_gap(store: BlobStore, floor: Draft) -> None:
    await store.delete([numbered(f"{floor.vault.hex()}/keyring/", 2)])
    assert (await serious(store))[0] == "gap"


async def test_segment_that_is_gone_in_between_is_a_gap(
    caller: Caller, store: BlobStore, first: Draft, log: Log
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2, 4, 6])
    await store.delete([numbered(folder(log), 1)])
    assert [(each.code, each.key) for each in await findings(store)] == [("gap", numbered(folder(log), 1))]


async def test_first_segment_above_the_floor_that_is_gone_is_a_gap(
    caller: Caller, store: BlobStore, floor: Draft, log: Log
) -> None:
    log.append(2)
    assert (await caller.put_segment(log, 3, log.segment(6, 8))).status == 201
    await store.delete([numbered(folder(log), 2)])
    assert [(each.code, each.key) for each in await findings(store)] == [("gap", numbered(folder(log), 2))]


async def test_log_that_is_gone_whole_is_missing(caller: Caller, store: BlobStore, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2])
    await store.delete([numbered(folder(log), 0)])
    assert await codes(store) == ["log_missing"]


@pytest.mark.parametrize("name", ["a", "b", "one"])
async def test_file_of_the_newest_floor_that_is_gone_is_missing(store: BlobStore, floor: Draft, name: str) -> None:
    kind = "checkpoints" if name == "one" else "parts"
    await store.delete([f"{floor.vault.hex()}/{kind}/{object_id(name).hex()}"])
    assert await codes(store) == ["missing"]


async def test_keyring_that_is_gone_is_missing(store: BlobStore, floor: Draft) -> None:
    await store.delete([numbered(f"{floor.vault.hex()}/keyring/", number) for number in (1, 2, 3)])
    assert await serious(store) == ["keyring_missing"]


async def test_sealed_part_of_the_newest_version_that_is_gone_is_missing(store: BlobStore, floor: Draft) -> None:
    digest = sha256(floor.sealed_part).hex()
    await store.delete([f"{numbered(f'{floor.vault.hex()}/sealed/', 3)}-{digest}"])
    assert await codes(store) == ["sealed_missing"]


@pytest.mark.parametrize("size", [10, 100_000])
async def test_bytes_that_changed_on_the_disk_are_found(
    tmp_path: Path, caller: Caller, store: BlobStore, first: Draft, size: int
) -> None:
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(1, max(size, BODY_SIZE))
    await caller.register(first)
    await caller.push(log, [0, 1])
    if size > 10:
        [file] = [path for path in (tmp_path / "store" / "large").iterdir() if path.suffix != ".lock"]
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    else:
        with sqlite3.connect(tmp_path / "store" / "objects.db") as database:
            database.execute("UPDATE objects SET content = content || '?' WHERE key LIKE '%/logs/%'")
        database.close()
    assert "digest" in await serious(store)


async def test_version_that_another_replaced_breaks_the_chain(store: BlobStore, floor: Draft, first: Draft) -> None:
    other = first.next("alice").add("carol")
    key = numbered(f"{floor.vault.hex()}/keyring/", 2)
    await store.delete([key])
    await store.put_new(key, other.stripped())
    [finding] = [each for each in await findings(store) if each.serious]
    assert (finding.code, finding.key) == ("version_invalid", numbered(f"{floor.vault.hex()}/keyring/", 3))
    assert "keyring_chain" in finding.detail


async def test_segment_of_another_branch_does_not_continue_the_log(
    caller: Caller, store: BlobStore, first: Draft, log: Log
) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2])
    log.pieces[1] = record(1, some_bytes("another branch", BODY_SIZE))
    await store.put_new(numbered(folder(log), 1), log.segment(2, 4))
    assert await codes(store) == ["segment_order"]


async def test_damaged_objects_are_named(caller: Caller, store: BlobStore, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, [0, 2])
    await store.put_new(numbered(folder(log), 1), log.segment(2, 4)[:-1])
    await store.put_new(f"{first.vault.hex()}/parts/{object_id('a').hex()}", part(first.vault, "b"))
    await store.put_new(numbered(f"{first.vault.hex()}/streams/", 1), b"no name")
    assert await serious(store) == ["name_damaged", "segment_invalid", "object_invalid"]


async def test_what_crashes_leave_is_named_and_not_serious(
    caller: Caller, store: BlobStore, floor: Draft, log: Log
) -> None:
    vault = floor.vault.hex()
    unnamed = Log(floor.vault, private_key("alice"), 1, floor.digest(), b"more").append(1)
    left = [
        f"{numbered(f'{vault}/sealed/', 4)}-{'0' * 64}",
        numbered(folder(log), 1),
        numbered(folder(unnamed), 0),
        f"{vault}/parts/{object_id('c').hex()}",
        f"{vault}/what/is/this",
        "probe/0/twice",
    ]
    contents = [b"", log.segment(2, 4), unnamed.segment(0, 1), part(floor.vault, "c"), b"", b""]
    for key, content in zip(left, contents, strict=True):
        await store.put_new(key, content)
    found = await findings(store)
    assert not any(finding.serious for finding in found)
    assert {finding.key for finding in found} == {*left[:2], folder(unnamed), *left[3:5], "probe/"}
    # It only looks.
    assert await store.missing(left) == []


async def test_folder_of_other_things_is_passed_over_where_it_is_known(store: BlobStore) -> None:
    await store.put_new("others/1", b"")
    assert [finding async for finding in check_store(store, {"others"})] == []


class ForgetfulStore(SqliteStore):
    """Its listings leave out every other object of a page."""

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        return (await super().listed(folder, after, limit))[::2]


async def test_listing_that_leaves_objects_out_makes_nothing_look_lost(tmp_path: Path, floor: Draft) -> None:
    store = await ForgetfulStore.open(tmp_path / "store")
    assert await serious(store) == []
    await store.close()
