"""Connections that break off anywhere: nothing half is ever visible, and little is sent twice."""

import os
import random
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import RemoteUnreachable
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import places
from memseal.format.segment import decode_segment
from memseal.sync.messages import GetObject, Request
from memseal.transport import http
from memseal.transport.http import HttpTransport
from memseal.vault.remote import replica
from tests.scenarios.conftest import StartServer
from tests.transport.conftest import PASSPHRASE, opened
from tests.transport.cutting import Cutter, Direction, cutting

# What a request or answer has beside its body: its head, and those of the questions before and after it.
HEADS_BYTES = 6_000


@pytest.fixture
def cutter(world: Path, start_server: StartServer) -> Iterator[Cutter]:
    """A relay before the server, which goes by the relay's address."""
    # The port is known when the relay listens, and the relay's target when the server does: a server of its own is
    # started on a port that the relay was told before.
    first = start_server("store")
    port = int(first.url.rpartition(":")[2])
    with cutting(port) as relay:
        first.stop()
        start_server("store", "--url", f"http://127.0.0.1:{relay.port}", "--url", first.url, port=port)
        yield relay


@pytest.fixture
def devices(world: Path, cutter: Cutter) -> Iterator[tuple[Vault, Vault]]:
    url = f"http://127.0.0.1:{cutter.port}"
    with opened(world / "one") as one, opened(world / "two") as two:
        one.sync(url)
        two.sync(url)
        yield one, two


def text(size: int, seed: int) -> str:
    """Text that does not compress to less than three quarters."""
    return random.Random(seed).randbytes(size * 3 // 4).hex()[:size]


def round_bytes(cutter: Cutter, vault: Vault, direction: Direction) -> bytes:
    """What one whole synchronisation sends or receives."""
    cutter.begin()
    vault.sync()
    return bytes(cutter.passed[direction])


def messages(traffic: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each HTTP message of a direction begins, where its body does, and where it ends."""
    at = 0
    while at < len(traffic):
        body = traffic.index(b"\r\n\r\n", at) + 4
        length = re.search(rb"content-length: (\d+)", traffic[at:body].lower())
        end = body + (int(length[1]) if length else 0)
        yield at, body, end
        at = end


def boundaries(traffic: bytes, bodies: list[int]) -> list[int]:
    """Every class of places: around each head, body and message, and around each record of a body of records."""
    found = set[int]()
    for at, body, end in messages(traffic):
        found |= {at + 1, (at + body) // 2, body - 1, body, body + 1, end - 1, end}
        for offset in bodies:
            found |= {body + offset - 1, body + offset, body + offset + 1} if body + offset < end else set()
    return sorted(place for place in found if 0 < place <= len(traffic))


def write(vault: Vault, number: int) -> None:
    """Write two records of three memories each."""
    for record in range(2):
        vault.remember_many(
            {"content": f"{number}/{record}/{each} {text(300, 10 * number + each)}", "source": "one"}
            for each in range(3)
        )


def record_offsets(segment: bytes) -> list[int]:
    """Where records of a segment begin and end, and where their headers do."""
    decoded = decode_segment(segment)
    start, head = decoded.start, len(segment) - len(decoded.piece)
    found = places(memoryview(decoded.piece), PREAMBLE_SIZE if start.length == 0 else 0, start.records)
    return [head, *(head + offset for each in found for offset in (each.offset, each.offset + 12, each.end))]


def last_body(traffic: bytes) -> bytes:
    *_, (_, body, end) = messages(traffic)
    return traffic[body:end]


def stored_bytes(cutter: Cutter) -> int:
    """What the vault has on its server, by the server's own count."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cutter.port}/metrics") as answer:
        (found,) = re.findall(r"^memseal_stored_bytes ([0-9.e+]+)$", answer.read().decode(), re.MULTILINE)
    return int(float(found))


def test_an_upload_that_is_cut_anywhere_leaves_all_or_nothing_and_the_next_one_completes(
    devices: tuple[Vault, Vault], cutter: Cutter
) -> None:
    one, two = devices
    write(one, 0)
    clean = round_bytes(cutter, one, "up")
    cuts = boundaries(clean, record_offsets(last_body(clean)))
    assert len(cuts) > 25
    for number, cut in enumerate(cuts, 1):
        write(one, number)
        cutter.begin(up=cut)
        try:
            one.sync()
        except RemoteUnreachable:
            assert cutter.is_cut()
        cutter.begin()
        report = two.sync()
        assert report.findings == []
        assert two.count() in (6 * number, 6 * number + 6)
        cutter.begin()
        one.sync()
        assert cutter.count("up") <= len(clean) + HEADS_BYTES
        two.sync()
        assert two.count() == 6 * number + 6
    assert one.state_digest() == two.state_digest()
    assert two.verify() == []


def test_a_download_that_is_cut_anywhere_applies_whole_writes_and_the_next_one_completes(
    devices: tuple[Vault, Vault], cutter: Cutter
) -> None:
    one, two = devices
    write(one, 0)
    segment = last_body(round_bytes(cutter, one, "up"))
    clean = round_bytes(cutter, two, "down")
    head = len(segment) - len(decode_segment(segment).piece)
    cuts = boundaries(clean, [max(0, offset - head) for offset in record_offsets(segment)])
    assert len(cuts) > 25
    for number, cut in enumerate(cuts, 1):
        write(one, number)
        cutter.begin()
        one.sync()
        cutter.begin(down=cut)
        try:
            two.sync()
        except RemoteUnreachable:
            assert cutter.is_cut()
        assert two.count() in (6 * number, 6 * number + 3, 6 * number + 6)
        cutter.begin()
        report = two.sync()
        assert report.findings == []
        assert cutter.count("down") <= len(clean) + HEADS_BYTES
        assert two.count() == 6 * number + 6
    assert one.state_digest() == two.state_digest()
    assert two.verify() == []


def test_a_long_upload_goes_on_from_the_last_whole_segment(
    devices: tuple[Vault, Vault], cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "SEGMENT_TARGET", 32 << 10)
    one, two = devices
    for number in range(40):
        one.remember(text(8_000, number), source="one")
    cutter.begin(up=120_000)
    with pytest.raises(RemoteUnreachable):
        one.sync()
    cutter.begin()
    one.sync()
    whole = sum(log.end.length for log in one._opened.logbook.logs.values() if one._opened.logbook.is_own(log))
    # At most two were for nothing: the one that was on its way, and the one before it, whose answer was.
    assert 120_000 + cutter.count("up") <= whole + 2 * (32 << 10) + 2 * HEADS_BYTES
    two.sync()
    assert two.count() == 40


def test_a_long_download_keeps_the_whole_writes_that_came(devices: tuple[Vault, Vault], cutter: Cutter) -> None:
    one, two = devices
    for number in range(40):
        one.remember(text(8_000, number), source="one")
    one.sync()
    cutter.begin(down=100_000)
    with pytest.raises(RemoteUnreachable):
        two.sync()
    kept = two.count()
    assert 10 <= kept < 40
    cutter.begin()
    two.sync()
    whole = sum(log.end.length for log in one._opened.logbook.logs.values() if one._opened.logbook.is_own(log))
    assert 100_000 + cutter.count("down") <= whole + 10_000 + 2 * HEADS_BYTES
    assert two.count() == 40


def test_a_part_of_a_checkpoint_goes_on_where_it_broke_off_also_after_closing(
    world: Path, devices: tuple[Vault, Vault], cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_OBJECT_PIECE", 16 << 10)
    one, two = devices
    one.remember_many({"content": text(8_000, number), "source": "one"} for number in range(40))
    one.sync()
    assert one.compact() is not None
    cutter.begin(down=100_000)
    with pytest.raises(RemoteUnreachable):
        two.sync()
    (begun,) = (world / "two" / "parts").glob("*.begun")
    assert begun.stat().st_size >= 64 << 10
    two.close()
    asked, send = list[Request](), HttpTransport.send

    def noted(transport: HttpTransport, request: Request) -> object:
        asked.append(request)
        return send(transport, request)

    monkeypatch.setattr(HttpTransport, "send", noted)
    kept = begun.stat().st_size
    cutter.begin()
    with opened(world / "two") as again:
        assert again.sync().findings == []
        assert again.count() == 40
        assert again.state_digest() == one.state_digest()
    first = next(each for each in asked if isinstance(each, GetObject) and each.shelf == "parts")
    assert first.start == kept
    assert list((world / "two" / "parts").glob("*.begun")) == []


def test_a_device_that_is_killed_while_it_fetches_a_part_goes_on_where_it_was(
    world: Path, devices: tuple[Vault, Vault], cutter: Cutter
) -> None:
    one, two = devices
    two.close()
    one.remember_many({"content": text(8_000, number), "source": "one"} for number in range(40))
    one.sync()
    assert one.compact() is not None
    program = (
        "import sys; from memseal.transport import http; from memseal.surfaces.cli import main\n"
        "http._OBJECT_PIECE = 16 << 10\n"
        "sys.exit(main(['sync', '--vault', sys.argv[1]]))"
    )
    environment = {**os.environ, "MEMSEAL_PASSPHRASE": PASSPHRASE, "MEMSEAL_MODEL": "none"}
    cutter.begin(stall=True, down=100_000)
    process = subprocess.Popen([sys.executable, "-c", program, str(world / "two")], env=environment)
    try:
        assert cutter.stalled.wait(60)
    finally:
        process.kill()
        process.wait()
    (begun,) = (world / "two" / "parts").glob("*.begun")
    kept = begun.stat().st_size
    assert kept >= 64 << 10
    cutter.begin()
    size = stored_bytes(cutter)
    cutter.begin()
    with opened(world / "two") as again:
        assert again.sync().findings == []
        assert again.state_digest() == one.state_digest()
    assert cutter.count("down") <= size - kept + HEADS_BYTES


def test_what_was_kept_of_a_part_and_is_spoilt_is_fetched_again(
    world: Path, devices: tuple[Vault, Vault], cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_OBJECT_PIECE", 16 << 10)
    one, two = devices
    one.remember_many({"content": text(8_000, number), "source": "one"} for number in range(20))
    one.sync()
    assert one.compact() is not None
    cutter.begin(down=60_000)
    with pytest.raises(RemoteUnreachable):
        two.sync()
    (begun,) = (world / "two" / "parts").glob("*.begun")
    begun.write_bytes(bytes(begun.stat().st_size))
    stale = world / "two" / "parts" / f"{bytes(16).hex()}.mseal.begun"
    stale.write_bytes(b"of a checkpoint that no floor names any more")
    cutter.begin()
    assert two.sync().findings == []
    assert two.count() == 20
    assert two.verify() == []
    assert not stale.exists()


def test_a_join_of_a_compacted_vault_takes_the_checkpoint_and_no_log_below_the_floor(
    world: Path, devices: tuple[Vault, Vault], cutter: Cutter
) -> None:
    one, _ = devices
    for number in range(30):
        one.remember(text(8_000, number), source="one")
        one.supersede(one.list(limit=1)[0].id, text(8_000, 100 + number), source="one")
    one.sync()
    assert one.compact() is not None
    one.remember("after the floor", source="one")
    one.sync()
    cutter.begin()
    with Vault.join(world / "three", one.emergency_kit, PASSPHRASE, embedder=None) as three:
        assert three.state_digest() == one.state_digest()
    came, asked_for = cutter.count("down"), bytes(cutter.passed["up"])
    assert came <= 1.1 * stored_bytes(cutter) + HEADS_BYTES
    begins = [log.start.length for log in one._opened.logbook.logs.values()]
    asked = re.findall(rb"GET /v1/vaults/[0-9a-f]+/logs/[0-9a-f]+\?from=(\d+)", asked_for)
    assert {int(each) for each in asked} <= set(begins)
