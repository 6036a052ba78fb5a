"""A vault that follows a server by itself."""

import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from memseal import AsyncVault, SyncState, Vault
from memseal.errors import (
    DeviceEnded,
    KeyringForked,
    RemoteRefused,
    RemoteUnknown,
    RemoteUnreachable,
    RolledBack,
    VaultClosed,
    VaultReadOnly,
)
from memseal.sync.messages import GetHeads, PutSegment, Request
from memseal.transport.http import HttpTransport
from memseal.vault.folder import opening
from memseal.vault.remote import background
from memseal.vault.remote.standing import is_final
from tests.ports import silent_port
from tests.scenarios.conftest import StartServer
from tests.transport.conftest import PASSPHRASE, PATIENCE_SECONDS, States, opened
from tests.vault.small_vault import cheap_stretch

Pair = tuple[Vault, Vault]
SOONER_SECONDS = 40  # than an answer that is held for fifty comes by itself


def requests_of(url: str, *, words: str = "/v1/") -> int:
    """How many requests the server has answered whose labels hold these words, by its own count."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310  our own server
        text = answer.read().decode()
    counts = re.findall(r"^memseal_requests_total\{(.*)\} ([0-9.]+)$", text, re.MULTILINE)
    return int(sum(float(count) for labels, count in counts if words in labels and "/v1/" in labels))


@pytest.fixture(autouse=True)
def no_argon2id(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For vaults that a test makes itself; `world` remembers what it made of its passphrase."""
    if "world" not in request.fixturenames:
        monkeypatch.setattr(opening, "stretch", cheap_stretch)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that goes out from here, as it goes."""
    requests, send = list[Request](), HttpTransport.send

    def noted(transport: HttpTransport, request: Request) -> object:
        requests.append(request)
        return send(transport, request)

    monkeypatch.setattr(HttpTransport, "send", noted)
    return requests


def test_what_one_device_writes_is_found_on_the_other_without_any_call(pair: Pair) -> None:
    one, two = pair
    here, heard = States(), States()
    with one.sync_in_background(on_state=here), two.sync_in_background(on_state=heard):
        memory = one.remember("the spare key is under the blue pot", source="one")
        heard.until(lambda: two.count() == 1)
        assert [hit.memory for hit in two.search("where is the spare key")] == [memory]
        there = two.retract(memory.id, reason="moved")
        here.until(lambda: one.get(memory.id).state == there.state)
    assert one.state_digest() == two.state_digest()


def test_searching_goes_on_while_an_answer_is_awaited(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = pair
    one.remember("the boiler code is 4711", source="one")
    asked, found, send = threading.Event(), threading.Event(), HttpTransport.send

    def waiting(transport: HttpTransport, request: Request) -> object:
        asked.set()
        assert found.wait(PATIENCE_SECONDS)
        return send(transport, request)

    monkeypatch.setattr(HttpTransport, "send", waiting)
    with one.sync_in_background() as live:
        assert asked.wait(PATIENCE_SECONDS)
        assert len(one.search("boiler code")) == 1
        one.remember("and the cellar key hangs beside it", source="one")
        found.set()
        assert live.wait_until_synced(PATIENCE_SECONDS)
    assert one.status().unsent_bytes == 0


def test_a_thousand_writes_in_a_burst_make_few_rounds(pair: Pair, sent: list[Request]) -> None:
    one, two = pair
    with one.sync_in_background() as live:
        assert live.wait_until_synced(PATIENCE_SECONDS)
        for number in range(1_000):
            one.remember(f"number {number}", source="one")
        assert live.wait_until_synced(PATIENCE_SECONDS)
    rounds = sum(isinstance(each, GetHeads) for each in sent)
    segments = sum(isinstance(each, PutSegment) for each in sent)
    assert 1 <= rounds <= 200
    assert 1 <= segments <= 200
    two.sync()
    assert two.count() == 1_000


def test_idle_it_asks_once_per_held_answer_and_nothing_else(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_HOLD_SECONDS", 1)
    server, asked, go_on = start_server(), threading.Semaphore(0), threading.Semaphore(0)
    listen = HttpTransport.listen

    def counted(transport: HttpTransport, tag: str, seconds: int) -> object:
        if seconds:
            asked.release()
            go_on.acquire()
        return listen(transport, tag, seconds)

    monkeypatch.setattr(HttpTransport, "listen", counted)
    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        vault.sync(server.url)
        with vault.sync_in_background() as live:
            assert live.wait_until_synced(PATIENCE_SECONDS)
            assert asked.acquire(timeout=PATIENCE_SECONDS)
            before = requests_of(server.url)
            for _ in range(3):
                go_on.release()
                assert asked.acquire(timeout=PATIENCE_SECONDS)
            assert requests_of(server.url) - before == 3
            assert requests_of(server.url, words='status="304"') == 3
            go_on.release()


def test_after_the_computer_has_slept_it_asks_anew(
    world: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, drifts, listen = threading.Semaphore(0), [0.0], HttpTransport.listen

    def counted(transport: HttpTransport, tag: str, seconds: int) -> object:
        if seconds:
            asked.release()
        return listen(transport, tag, seconds)

    monkeypatch.setattr(HttpTransport, "listen", counted)
    monkeypatch.setattr(background, "_drift", lambda: drifts[-1])
    monkeypatch.setattr(background, "_LOOK_SECONDS", 0.05)
    with opened(world / "one") as vault, vault.sync_in_background(start_server().url) as live:
        for _ in range(3):
            assert asked.acquire(timeout=SOONER_SECONDS)
            drifts.append(drifts[-1] + 3_600)
        assert live.wait_until_synced(PATIENCE_SECONDS)


def test_a_server_that_was_killed_and_comes_back_is_followed_again(tmp_path: Path, start_server: StartServer) -> None:
    server, told = start_server(), States()
    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        vault.sync(server.url)
        with vault.sync_in_background(on_state=told) as live:
            told.until_phase("synced")
            server.kill()
            offline = told.until_phase("offline")
            assert isinstance(offline.error, RemoteUnreachable)
            assert offline.next_try_at is not None
            vault.remember("written while the server was away", source="me")
            again = start_server(port=int(server.url.rpartition(":")[2]))
            assert again.url == server.url
            live.try_now()
            told.until_phase("synced")
            assert live.wait_until_synced(PATIENCE_SECONDS)
        assert vault.status().unsent_bytes == 0


class Interrupted(threading.Event):
    """Just before it is cleared for the first time, somebody says that the network is back."""

    def __init__(self, live: background.LiveSync) -> None:
        super().__init__()
        self._live: background.LiveSync | None = live

    def clear(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.try_now()
        super().clear()


def test_word_that_the_network_is_back_is_heard_also_just_before_it_begins_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for an hour, and looks at nothing meanwhile.
    for name in ("_BACKOFF_SECONDS", "_BACKOFF_MOST_SECONDS", "_LOOK_SECONDS"):
        monkeypatch.setattr(background, name, 3_600.0)
    monkeypatch.setattr(background._random, "uniform", lambda least, most: most)
    told, pause = States(), background.LiveSync._pause

    def interrupted(live: background.LiveSync) -> None:
        if told.phases.count("offline") == 1:
            live._woken = Interrupted(live)
        pause(live)

    monkeypatch.setattr(background.LiveSync, "_pause", interrupted)
    with (
        silent_port() as port,
        Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault,
        vault.sync_in_background(f"http://127.0.0.1:{port}", on_state=told),
    ):
        told.until(lambda: told.phases.count("offline") == 2)


def test_a_server_restored_from_a_backup_stops_it_and_is_filled_up_with_consent(
    tmp_path: Path, start_server: StartServer
) -> None:
    server, told = start_server(), States()
    port = int(server.url.rpartition(":")[2])
    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        vault.sync(server.url)
        server.stop()
        shutil.copytree(server.store, tmp_path / "backup")
        server = start_server(port=port)
        vault.remember("what the backup does not have", source="me")
        vault.sync()
        server.stop()
        start_server("backup", port=port)
        with vault.sync_in_background(on_state=told) as live:
            assert live.wait_until_stopped(PATIENCE_SECONDS)
        state = live.state
        assert (state.phase, state.advice) == ("stopped", "memseal sync --accept-rollback")
        assert isinstance(state.error, RolledBack)
        vault.sync(accept_rollback=True)
        with vault.sync_in_background() as live:
            assert live.wait_until_synced(PATIENCE_SECONDS)


def test_a_device_that_is_removed_meanwhile_stops_and_keeps_what_it_has(pair: Pair) -> None:
    one, two = pair
    two.remember("what the phone had", source="two")
    two.sync()
    told = States()
    with two.sync_in_background(on_state=told) as live:
        assert live.wait_until_synced(PATIENCE_SECONDS)
        one.revoke(two_id(two), PASSPHRASE)
        assert live.wait_until_stopped(PATIENCE_SECONDS)
        assert isinstance(live.state.error, DeviceEnded)
        assert live.state.phase == "stopped"
    assert two.count() == 1


def two_id(two: Vault) -> str:
    (device,) = [device for device in two.status().devices if device.this_device]
    return device.id


def test_a_change_of_passphrase_here_goes_on_with_the_new_key(pair: Pair) -> None:
    one, two = pair
    with one.sync_in_background() as live:
        assert live.wait_until_synced(PATIENCE_SECONDS)
        one.change_passphrase(PASSPHRASE, "a new passphrase altogether")
        one.remember("under the new key", source="one")
        assert live.wait_until_synced(PATIENCE_SECONDS)
        assert live.state.error is None
    two.sync()
    assert two.count() == 1


def test_a_sync_by_hand_and_compactions_beside_it_lose_nothing(pair: Pair) -> None:
    one, two = pair
    with one.sync_in_background() as first, two.sync_in_background() as second:
        for number in range(6):
            one.remember(f"from one {number}", source="one")
            two.remember(f"from two {number}", source="two")
            (one.sync, two.sync, one.compact, one.rekey, two.compact, two.sync)[number]()
        for live in (first, second, first, second):
            assert live.wait_until_synced(PATIENCE_SECONDS)
            assert live.state.error is None
    one.sync()
    two.sync()
    one.sync()
    assert one.count() == two.count() == 12
    assert one.state_digest() == two.state_digest()


def test_closing_the_vault_ends_it_within_a_held_answer(tmp_path: Path, start_server: StartServer) -> None:
    told = States()
    vault = Vault.create(tmp_path / "v", PASSPHRASE, embedder=None)
    vault.sync(start_server().url)
    live = vault.sync_in_background(on_state=told)
    assert live.wait_until_synced(PATIENCE_SECONDS)
    vault.close()
    assert not live._thread.is_alive()
    assert live.state.phase == told.phases[-1] == "stopped"
    assert live.state.error is None
    live.stop()
    with pytest.raises(VaultClosed):
        vault.sync_in_background()


def test_an_error_in_the_callback_is_reported_and_ends_nothing(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = list[threading.ExceptHookArgs]()
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def broken(state: SyncState) -> None:
        raise LookupError(state.phase)

    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        with vault.sync_in_background(start_server().url, on_state=broken) as live:
            assert live.wait_until_synced(PATIENCE_SECONDS)
            vault.remember("after the error", source="me")
            assert live.wait_until_synced(PATIENCE_SECONDS)
        assert vault.status().unsent_bytes == 0
    assert {each.exc_type for each in reported} == {LookupError}


def test_a_callback_may_stop_it_and_close_the_vault(tmp_path: Path, start_server: StartServer) -> None:
    closed, vaults = threading.Event(), list[Vault]()

    def close(state: SyncState) -> None:
        if state.phase == "synced":
            vaults[0].close()
            closed.set()

    vaults.append(Vault.create(tmp_path / "v", PASSPHRASE, embedder=None))
    live = vaults[0].sync_in_background(start_server().url, on_state=close)
    assert closed.wait(PATIENCE_SECONDS)
    live._thread.join(PATIENCE_SECONDS)
    assert not live._thread.is_alive()


def test_an_address_that_is_none_is_told_at_once(tmp_path: Path) -> None:
    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        for address in (None, "ftp://example.org", "https://name:password@example.org"):
            with pytest.raises(RemoteUnknown):
                vault.sync_in_background(address)
    reader = Vault.open(tmp_path / "v", PASSPHRASE, read_only=True, embedder=None)
    with reader, pytest.raises(VaultReadOnly):
        reader.sync_in_background("http://127.0.0.1:1")


def test_which_refusals_only_the_person_can_heal() -> None:
    assert is_final(RemoteRefused("key_unknown", 401, ""))
    assert is_final(RolledBack(""))
    assert not is_final(RemoteRefused("limit", 507, ""))
    assert not is_final(RemoteRefused("rate", 429, "", 30.0))
    assert not is_final(RemoteUnreachable(""))


def test_a_server_that_is_full_is_tried_again_and_gets_what_it_refused(
    tmp_path: Path, start_server: StartServer
) -> None:
    server, told = start_server("store", "--max-vault-bytes", "4000"), States()
    port = int(server.url.rpartition(":")[2])
    vault = Vault.create(tmp_path / "v", PASSPHRASE, embedder=None)
    with vault, vault.sync_in_background(server.url, on_state=told) as live:
        for number in range(10):
            vault.remember(f"number {number}", source="me")
        refused = told.until_phase("offline")
        assert refused.error is not None
        assert refused.error.code == "limit"
        server.stop()
        start_server("store", "--max-vault-bytes", "0", port=port)
        live.try_now()
        assert live.wait_until_synced(PATIENCE_SECONDS)
        assert vault.status().unsent_bytes == 0


def test_a_program_that_ends_without_closing_ends_cleanly(tmp_path: Path, start_server: StartServer) -> None:
    program = (
        "import sys; from memseal import Vault\n"
        "vault = Vault.create(sys.argv[1], sys.argv[2], embedder=None)\n"
        "live = vault.sync_in_background(sys.argv[3])\n"
        "assert live.wait_until_synced(60)\n"
    )
    # Not `-X dev`, under which asyncio also says what took a tenth of a second.
    command = [sys.executable, "-W", "default", "-c", program, str(tmp_path / "v"), PASSPHRASE, start_server().url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_the_async_vault_tells_its_event_loop(tmp_path: Path, start_server: StartServer) -> None:
    threads, url = set[int](), start_server().url
    async with await AsyncVault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        async with await vault.sync_in_background(url, on_state=lambda _: threads.add(threading.get_ident())) as live:
            await vault.remember("from a coroutine", source="me")
            assert await live.wait_until_synced(PATIENCE_SECONDS)
            assert live.state.phase == "synced"
        assert await live.wait_until_stopped(PATIENCE_SECONDS)
        assert (await vault.status()).unsent_bytes == 0
    assert threads == {threading.get_ident()}


def test_a_join_of_two_branches_is_followed_and_none_is_made_without_consent(
    world: Path, start_server: StartServer
) -> None:
    server = start_server()
    port, backup = int(server.url.rpartition(":")[2]), world / "backup"
    with opened(world / "one") as one, opened(world / "two") as two:
        one.sync(server.url)
        two.sync(server.url)
        kit = one.emergency_kit
        server.stop()
        shutil.copytree(server.store, backup)
        server = start_server(port=port)
        one.rekey()
        two.sync()
        server.stop()
        start_server("backup", port=port)
        with Vault.join(world / "three", kit, PASSPHRASE, server.url, embedder=None) as three:
            with two.sync_in_background() as live:
                assert live.wait_until_stopped(PATIENCE_SECONDS)
                assert isinstance(live.state.error, KeyringForked)
                assert live.state.advice == "memseal sync --accept-rollback"
            one.sync(accept_rollback=True)
            with two.sync_in_background() as live:
                assert live.wait_until_synced(PATIENCE_SECONDS)
            three.remember("on the branch that was joined", source="three")
            for vault in (three, one, two):
                vault.sync()
            assert one.state_digest() == two.state_digest() == three.state_digest()
