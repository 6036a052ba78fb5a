"""A backup of a folder in use, made as OPERATING.md says, is a whole store."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.server.building import Draft, Log, private_key
from tests.server.calling import Caller
from tests.server.running import end_all, start, start_process

BEFORE = 20
LARGE_RECORD = 100_000  # such a segment lies in a file of its own


@pytest.fixture(autouse=True)
async def nothing_left_running() -> AsyncIterator[None]:
    yield
    await end_all()


def back_up(store: Path, target: Path) -> None:
    """The steps of OPERATING.md: files, database, files again."""
    shutil.copytree(store / "large", target / "large", copy_function=copy_if_there)
    source, copy = sqlite3.connect(store / "objects.db"), sqlite3.connect(target / "objects.db")
    with copy:
        source.backup(copy)
    source.close()
    copy.close()
    shutil.copytree(store / "large", target / "large", copy_function=copy_if_there, dirs_exist_ok=True)


def copy_if_there(source: str, target: str) -> None:
    """As `cp` does, which names a file that went away after it was listed and goes on."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


async def push_on(
    caller: Caller, log: Log, acknowledged: list[int], enough: asyncio.Event, stop: asyncio.Event
) -> None:
    while not stop.is_set():
        seq = len(acknowledged)
        log.append(1, (LARGE_RECORD, 2_000)[seq % 2])
        assert (await caller.put_segment(log, seq, log.segment(seq, seq + 1))).status == 201
        acknowledged.append(seq)
        if seq >= BEFORE:
            enough.set()


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes otherwise")
async def test_backup_of_a_store_in_use_has_all_that_was_acknowledged_before(
    tmp_path: Path, session: ClientSession, first: Draft
) -> None:
    store, target = tmp_path / "store", tmp_path / "backup"
    server = await start(store)
    caller = Caller(session, server.origin)
    await caller.register(first)
    log = Log(first.vault, private_key("alice"), 1, first.digest())
    acknowledged: list[int] = []
    enough, stop = asyncio.Event(), asyncio.Event()
    pushing = asyncio.create_task(push_on(caller, log, acknowledged, enough, stop))
    await enough.wait()
    before = len(acknowledged)
    await asyncio.to_thread(back_up, store, target)
    stop.set()
    await pushing
    await server.end(signal.SIGTERM)

    restored = await start(target)
    caller = Caller(session, restored.origin)
    records = (await caller.get_heads(first.vault)).json["logs"][log.stream.hex()]["records"]
    assert before <= records <= len(acknowledged)
    assert (await caller.get_log(log)).body == log.content(records)
    await restored.end(signal.SIGTERM)
    check = await start_process("fsck", "--store", str(target), "--json")
    findings, _ = await check.communicate()
    assert [finding for line in findings.splitlines() if (finding := json.loads(line))["serious"]] == []
    assert check.returncode == 0
