"""Figures for Prometheus: well formed, true, and of nobody in particular."""

from pathlib import Path

from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from memseal_server import __version__
from memseal_server.blobs import BlobStore
from memseal_server.invitations import Invitations
from tests.server.building import Draft, Log, first_version, private_key, public
from tests.server.calling import Caller

LARGE_RECORD = 100_000  # such a segment lies in a file of its own


async def samples(caller: Caller) -> dict[tuple[str, ...], float]:
    """The figures by name and the values of labels."""
    text = (await caller.send_as_is("GET", "/metrics")).body.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_refusals_are_counted_by_their_code(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for _ in range(2):
        await caller.get_heads(first.vault, "stranger")
    await caller.send_as_is("GET", "/elsewhere")
    found = await samples(caller)
    assert found["memseal_problems_total", "key_unknown"] == 2
    assert found["memseal_problems_total", "route_unknown"] == 1


async def test_bytes_of_bodies_are_counted(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    before = await samples(caller)
    content = log.segment(0, 3)
    await caller.put_segment(log, 0, content)
    await caller.get_log(log)
    after = await samples(caller)
    metrics_bytes = len((await caller.send_as_is("GET", "/metrics")).body)
    received, sent = ("memseal_received_bytes_total",), ("memseal_sent_bytes_total",)
    assert after[received] - before[received] == len(content)
    # The first figures were an answer, too.
    assert 0 < after[sent] - before[sent] - len(log.content()) < 2 * metrics_bytes


async def test_what_the_store_is_asked_is_counted_and_where_it_fails(
    caller: Caller, store: BlobStore, first: Draft, tmp_path: Path
) -> None:
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(1, LARGE_RECORD)
    await caller.register(first)
    await caller.push(log, [0, 1])
    [file] = [path for path in (tmp_path / "store" / "large").iterdir() if path.suffix != ".lock"]
    file.unlink()
    assert (await caller.get_log(log)).outcome == (503, "store_unavailable")
    found = await samples(caller)
    assert found["memseal_store_operations_total", "put_new", "done"] >= 3
    assert found["memseal_store_operations_total", "get", "failed"] == 1
    puts = found["memseal_store_seconds_count", "put_new"]
    assert puts == found["memseal_store_operations_total", "put_new", "done"]


async def test_figures_say_what_runs_and_name_nobody(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.push(log, [0, 3])
    names = {value for _, *values in await samples(caller) for value in values}
    assert __version__ in names
    text = (await caller.send_as_is("GET", "/metrics")).body.decode()
    for secret in (first.vault, log.stream, public(private_key("alice"))):
        assert secret.hex() not in text
    assert "127.0.0.1" not in text


async def test_vaults_are_counted_without_pairings_and_invitations(
    caller: Caller, store: BlobStore, first: Draft
) -> None:
    await caller.register(first)
    await caller.register(first_version("somebody else"), key="somebody else")
    assert (await samples(caller))["memseal_vaults",] == 2
    await Invitations(store).make(uses=1, seconds=60)
    path = f"/v1/vaults/{first.vault.hex()}/pairing/04821/1"
    assert (await caller.send("PUT", path, "alice", b"opening")).status == 201
    assert (await samples(caller))["memseal_vaults",] == 2


async def test_connections_that_are_open_are_counted(caller: Caller) -> None:
    before = (await samples(caller))["memseal_connections",]
    async with ClientSession() as another:
        await Caller(another, caller.origin).send_as_is("GET", "/healthz")
        assert (await samples(caller))["memseal_connections",] == before + 1
