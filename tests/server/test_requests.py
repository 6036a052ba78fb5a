"""Malformed requests, unknown paths, and what is not signed: health and metrics."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from tests.server.building import Draft, Log
from tests.server.calling import Caller

UNKNOWN = bytes(16).hex()


def log_path(log: Log) -> str:
    return f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}"


# Malformed requests.


@pytest.mark.parametrize(
    "target",
    [
        f"/v1/vaults/{'A' * 32}/heads",
        f"/v1/vaults/{'a' * 31}/heads",
        f"/v1/vaults/{UNKNOWN}/keyring/01",
        f"/v1/vaults/{UNKNOWN}/keyring/+1",
        f"/v1/vaults/{UNKNOWN}/keyring/newest",
        f"/v1/vaults/{UNKNOWN}/keyring/10000000000",
        f"/v1/vaults/{UNKNOWN}/keyring/{'9' * 40}",
        f"/v1/vaults/{UNKNOWN}/keyring/1?part=secret",
        f"/v1/vaults/{UNKNOWN}/logs/{'g' * 32}",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=-1",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=01",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=1&from=2",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from={'9' * 40}",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?limit=0",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?limit=many",
    ],
)
async def test_malformed_path_or_query_is_refused(caller: Caller, target: str) -> None:
    assert (await caller.send_as_is("GET", target)).outcome == (400, "request_invalid")


@pytest.mark.parametrize("query", ["wait=61", "wait=-1", "wait=1.5", "wait="])
async def test_malformed_wait_is_refused(caller: Caller, first: Draft, query: str) -> None:
    await caller.register(first)
    assert (await caller.get_heads(first.vault, query=query)).outcome == (400, "request_invalid")


@pytest.mark.parametrize("target", ["seq 00", "refill=yes"])
async def test_malformed_segment_request_is_refused(caller: Caller, log: Log, target: str) -> None:
    seq, query = ("00", "") if target == "seq 00" else ("0", target)
    answer = await caller.send("PUT", f"{log_path(log)}/{seq}", body=b"x", query=query)
    assert answer.outcome == (400, "request_invalid")


@pytest.mark.parametrize(
    "target", ["/", "/v1", "/v2/vaults", "/v1/vaults//heads", f"/v1/vaults/{UNKNOWN}", "/favicon.ico"]
)
async def test_unknown_path_is_a_problem_document(caller: Caller, target: str) -> None:
    assert (await caller.send_as_is("GET", target)).outcome == (404, "route_unknown")


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("POST", f"/v1/vaults/{UNKNOWN}/heads", "GET"),
        ("DELETE", f"/v1/vaults/{UNKNOWN}/keyring/1", "GET,PUT"),
        ("PUT", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}", "GET"),
        ("GET", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}/0", "PUT"),
        ("PATCH", "/metrics", "GET"),
    ],
)
async def test_unknown_method_is_a_problem_document(caller: Caller, method: str, target: str, allow: str) -> None:
    answer = await caller.send_as_is(method, target)
    assert answer.outcome == (405, "method_unknown")
    assert answer.headers["Allow"] == allow


# Operation.


async def test_health_and_readiness_need_no_signature(caller: Caller) -> None:
    for target in ("/healthz", "/readyz"):
        answer = await caller.send_as_is("GET", target)
        assert (answer.status, answer.body) == (200, b"ok")


async def test_metrics_count_requests_and_what_is_stored(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    content = log.segment(0, 3)
    await caller.put_segment(log, 0, content)
    await caller.send_as_is("GET", "/elsewhere")
    answer = await caller.send_as_is("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    segments = 'method="PUT",route="/v1/vaults/{vault}/logs/{stream}/{seq}"'
    assert f'memseal_requests_total{{{segments},status="201"}} 1.0' in lines
    assert 'memseal_requests_total{method="GET",route="unmatched",status="404"} 1.0' in lines
    assert f"memseal_request_seconds_count{{{segments}}} 1.0" in lines
    assert "memseal_vaults 1.0" in lines
    assert "memseal_objects 4.0" in lines  # the version's open part, its sealed part, the segment, the log's name
    assert f"memseal_stored_bytes {float(len(first.build()) + len(content) + 32)}" in lines
    assert "memseal_waiters 0.0" in lines


async def test_answers_are_not_for_caches_and_name_no_software_version(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for answer in (await caller.get_heads(first.vault), await caller.send_as_is("GET", "/elsewhere")):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"] == "memseal-server"


# What is not HTTP.


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"\x16\x03\x01MARK\r\n\r\n", id="another protocol"),
        pytest.param(b"MARK MARK MARK MARK\r\n\r\n", id="no request line"),
        pytest.param(b"GET /MARK HTTP/MARK\r\n\r\n", id="no version"),
        pytest.param(b"GET / HTTP/1.1\r\nMA RK: MARK\r\n\r\n", id="no header"),
        pytest.param(b"GET /" + b"MARK" * 2_000 + b" HTTP/1.1\r\n\r\n", id="a long path"),
        pytest.param(b"GET / HTTP/1.1\r\nX-Long: " + b"MARK" * 2_000 + b"\r\n\r\n", id="a long header"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: MARK\r\n\r\n", id="no length"),
    ],
)
async def test_what_is_not_http_is_neither_quoted_nor_logged(
    caller: Caller, head: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    origin = urlsplit(caller.origin)
    reader, writer = await asyncio.open_connection(origin.hostname, origin.port)
    writer.write(head)
    answer, _, body = (await reader.read()).partition(b"\r\n\r\n")  # to the end: the connection is closed
    writer.close()
    await writer.wait_closed()
    assert answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
    assert b"Content-Type: application/problem+json" in answer
    assert b"Server: memseal-server" in answer
    assert json.loads(body)["code"] == "request_invalid"
    for text in (answer.decode(), body.decode(), caplog.text, *capfd.readouterr()):
        assert "MARK" not in text
