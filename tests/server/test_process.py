"""The program: how it starts, what it writes, how it ends, and what a kill leaves."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from tests.server.building import Draft, Log, first_version, private_key, public
from tests.server.calling import Caller
from tests.server.running import Running, end_all, start, start_process

pytestmark = pytest.mark.usefixtures("nothing_left_running")
only_with_signals = pytest.mark.skipif(os.name == "nt", reason="Windows ends processes otherwise")

LARGE_RECORD = 100_000


@pytest.fixture
async def nothing_left_running() -> AsyncIterator[None]:
    yield
    await end_all()


async def exit_of(*arguments: str) -> tuple[int, str]:
    process = await start_process(*arguments)
    _, errors = await process.communicate()
    return process.returncode or 0, errors.decode()


# Starting and ending.


@only_with_signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_server_ends_cleanly_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    server = await start(tmp_path / "store")
    code, errors = await server.end(number)
    assert code == 0
    assert [json.loads(line)["event"] for line in errors.splitlines()] == ["ending", "ended"]


@only_with_signals
async def test_waiting_requests_are_answered_when_the_server_ends(
    tmp_path: Path, session: ClientSession, first: Draft
) -> None:
    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    await caller.register(first)
    tag = (await caller.get_heads(first.vault)).headers["ETag"]
    poll = asyncio.create_task(caller.get_heads(first.vault, query="wait=60", more_headers={"If-None-Match": tag}))
    while b"memseal_waiters 1.0" not in (await caller.send_as_is("GET", "/metrics")).body:
        assert not poll.done()
    code, _ = await server.end(signal.SIGTERM)
    assert code == 0
    assert (await poll).status == 304


@only_with_signals
async def test_configured_urls_are_the_identities(tmp_path: Path, session: ClientSession, first: Draft) -> None:
    urls = ["--url", "HTTPS://Vaults.Example:443/", "--url", "http://vaults.internal:8420"]
    server = await start(tmp_path / "store", *urls)
    caller = Caller(session, server.origin)
    expected = ["https://vaults.example", "http://vaults.internal:8420"]
    refused = await caller.put_version(first)
    assert refused.outcome == (421, "server_identity")
    assert refused.json["identities"] == expected
    for identity, status in zip(expected, (201, 200), strict=True):
        assert (await caller.put_version(first, identity=identity)).status == status
    await server.end(signal.SIGTERM)


@only_with_signals
async def test_options_reach_the_server(tmp_path: Path, session: ClientSession, first: Draft, log: Log) -> None:
    server = await start(tmp_path / "store", "--max-object-bytes", "2000", "--max-vault-bytes", "7000")
    caller = Caller(session, server.origin)
    await caller.register(first)
    assert (await caller.put_segment(log, 0, log.segment(0, 2))).outcome == (413, "too_large")
    room = 7_000 - len(first.build())
    fitting = room // len(log.segment(0, 1))
    log.append(fitting)
    statuses = [(await caller.put_segment(log, seq, log.segment(seq, seq + 1))).status for seq in range(fitting + 1)]
    assert statuses == [201] * fitting + [507]
    await server.end(signal.SIGTERM)
    closed = await start(tmp_path / "store", "--registration", "closed")
    caller = Caller(session, closed.origin)
    assert (await caller.get_heads(first.vault)).status == 200
    assert (await caller.put_version(first_version("bob"), "bob")).outcome == (403, "registration_closed")
    await closed.end(signal.SIGTERM)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "127.0.0.1:0"],
        ["--store", "s4://bucket"],
        ["--store", "x", "--listen", "127.0.0.1"],
        ["--store", "x", "--listen", "127.0.0.1:70000"],
        ["--store", "x", "--listen", "0.0.0.0:0"],
        ["--store", "x", "--url", "vaults.example"],
        ["--store", "x", "--url", "https://vaults.example/path?query"],
        ["--store", "x", "--url", "https://vaults.example/a//b"],
        ["--store", "x", "--url", "https://user@vaults.example"],
        ["--store", "x", "--max-vault-bytes", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_before_anything_is_made(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, errors = asyncio.run(exit_of(*arguments))
    assert code == 2
    assert "usage: memseal-server" in errors
    assert not list(tmp_path.iterdir())


async def test_store_that_cannot_be_opened_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    code, errors = await exit_of("--store", str(tmp_path / "file"), "--listen", "127.0.0.1:0")
    assert code == 1
    assert "cannot start" in errors


# Log lines.


@only_with_signals
async def test_log_lines_are_structured_and_name_nobody(
    tmp_path: Path, session: ClientSession, first: Draft, log: Log
) -> None:
    server = await start(tmp_path / "store", "--log-level", "debug")
    caller = Caller(session, server.origin)
    await caller.register(first)
    content = log.segment(0, 3)
    await caller.put_segment(log, 0, content)
    await caller.get_log(log)
    await caller.get_heads(first.vault, "stranger")
    await caller.send_as_is("GET", f"/elsewhere/{first.vault.hex()}")
    await caller.send_as_is("GET", "/healthz", {"X-Long": "x" * 5_000})
    metrics = (await caller.send_as_is("GET", "/metrics")).body.decode()
    code, errors = await server.end(signal.SIGTERM)
    assert code == 0
    ids = [first.vault, log.stream, public(private_key("alice")), public(private_key("stranger"))]
    for text in (errors, metrics):
        assert not [name for name in ids if name.hex() in text]
        assert "127.0.0.1" not in text
    lines: list[dict[str, Any]] = [json.loads(line) for line in errors.splitlines()]
    segments = [line for line in lines if line.get("route") == "/v1/vaults/{vault}/logs/{stream}/{seq}"]
    [line] = segments
    assert line.pop("ms") > 0
    assert line.pop("at").endswith("+00:00")
    assert re.fullmatch("[0-9a-f]{12}", line.pop("vault"))
    assert line == {
        "level": "info",
        "event": "request",
        "method": "PUT",
        "route": "/v1/vaults/{vault}/logs/{stream}/{seq}",
        "status": 201,
        "received_bytes": len(content),
        "sent_bytes": 0,
    }
    assert ["unmatched", 404] in [[line.get("route"), line.get("status")] for line in lines]


@only_with_signals
async def test_failure_of_the_store_is_logged_by_its_place_and_not_its_words(
    tmp_path: Path, session: ClientSession, first: Draft
) -> None:
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(1, LARGE_RECORD)
    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    [file] = [path for path in (tmp_path / "store" / "large").iterdir() if path.suffix != ".lock"]
    file.unlink()
    assert (await caller.get_log(log)).outcome == (503, "store_unavailable")
    _, errors = await server.end(signal.SIGTERM)
    lines = [json.loads(line) for line in errors.splitlines()]
    [line] = [line for line in lines if line["event"] == "store_unavailable"]
    assert [cause.split()[0] for cause in line["causes"].split("; ")] == [
        "StoreUnavailable",
        "FileNotFoundError",
    ]
    assert file.name not in errors


# A kill.


async def push_until_killed(caller: Caller, log: Log, acknowledged: dict[bytes, int], killing: asyncio.Event) -> None:
    """Push segments one by one, noting how many were acknowledged, until the server is gone."""
    for seq in range(len(log.pieces)):
        try:
            answer = await caller.put_segment(log, seq, log.segment(seq, seq + 1))
        except (ClientError, ConnectionError):
            return
        assert answer.status == 201
        acknowledged[log.stream] = seq + 1
        if sum(acknowledged.values()) >= KILL_AFTER:
            killing.set()


KILL_AFTER = 12


async def push_and_kill(server: Running, caller: Caller, logs: list[Log]) -> dict[bytes, int]:
    acknowledged: dict[bytes, int] = {}
    killing = asyncio.Event()
    pushes = [asyncio.create_task(push_until_killed(caller, log, acknowledged, killing)) for log in logs]
    await killing.wait()
    await server.kill()
    await asyncio.gather(*pushes)
    return acknowledged


async def test_everything_acknowledged_is_there_whole_after_a_kill(tmp_path: Path, first: Draft) -> None:
    server = await start(tmp_path / "store")
    acknowledged: dict[bytes, int] = {}
    for number in range(20):
        # Half of the logs have records that lie in the database, half have ones that lie in files.
        logs = [
            Log(first.vault, private_key("alice"), 1, first.digest(), b"%02d%02d" % (number, stream)).append(
                8, (LARGE_RECORD, 2_000)[stream % 2]
            )
            for stream in range(6)
        ]
        async with ClientSession() as session:
            caller = Caller(session, server.origin)
            assert (await caller.put_version(first)).status == (201 if number == 0 else 200)
            acknowledged = await push_and_kill(server, caller, logs)
        server = await start(tmp_path / "store")
        async with ClientSession() as session:
            caller = Caller(session, server.origin)
            heads = (await caller.get_heads(first.vault)).json["logs"]
            for log in [log for log in logs if log.stream.hex() in heads]:
                stored = heads[log.stream.hex()]["records"]
                assert stored >= acknowledged.get(log.stream, 0)
                assert (await caller.get_log(log)).body == log.content(stored)
            assert {stream.hex() for stream in acknowledged} <= set(heads)
    await server.kill()
    assert sum(acknowledged.values()) >= KILL_AFTER
