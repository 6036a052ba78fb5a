"""Stories of a server with an operator: a vault that is full, one that comes by invitation, a server below a path."""

import subprocess
import sys
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import RemoteRefused, RemoteUnknown
from tests.scenarios.conftest import StartServer

PASSPHRASE = "correct horse battery staple"
LIMIT = 60_000


def laptop(path: Path) -> Vault:
    return Vault.create(path / "laptop", PASSPHRASE, device_name="laptop", embedder=None)


def refusal_of(vault: Vault, url: str) -> str:
    try:
        vault.sync(url)
    except RemoteRefused as error:
        return error.code
    return ""


def fill(vault: Vault, url: str) -> int:
    """Write and synchronise until the server takes no more; return how many memories there are then."""
    for count in range(1, 200):
        vault.remember(f"note {count}: " + "x" * 2_000, source="me")
        if refusal_of(vault, url) == "limit":
            return count
    raise AssertionError("the vault has no limit")


def test_write_rejected_for_quota_arrives_once_there_is_room(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server("store", "--max-vault-bytes", str(LIMIT))
    with laptop(tmp_path) as one:
        count = fill(one, server.url)
        port = int(server.url.rpartition(":")[2])
        with Vault.join(tmp_path / "phone", one.emergency_kit, PASSPHRASE, server.url, embedder=None) as two:
            assert len(two.list()) == count - 1  # reading goes on, and so do keyring versions
            server.stop()
            start_server("store", "--max-vault-bytes", str(10 * LIMIT), port=port)
            later = one.remember("and this one later", source="me")
            one.sync()  # the same program: it was not opened anew
            two.sync()
            assert len(two.list()) == count + 1
            assert two.get(later.id).content == "and this one later"
            assert one.state_digest() == two.state_digest()


def test_full_vault_is_compacted_and_what_was_refused_arrives_without_a_higher_limit(
    tmp_path: Path, start_server: StartServer
) -> None:
    server = start_server("store", "--max-vault-bytes", str(LIMIT))
    with laptop(tmp_path) as one:
        count = fill(one, server.url)
        first = one.list(limit=1)[0]
        assert one.compact()
        one.sync()
        later = one.remember("and this one later", source="me")
        one.sync()
        with Vault.join(tmp_path / "phone", one.emergency_kit, PASSPHRASE, server.url, embedder=None) as two:
            assert len(two.list(limit=500)) == count + 1
            assert {first.id, later.id} <= {memory.id for memory in two.list(limit=500)}
            assert one.state_digest() == two.state_digest()
        assert one.erase(first.id).done
        assert one.sync().findings == []


def test_full_vault_can_be_compacted_again_and_again(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server("store", "--max-vault-bytes", str(LIMIT))
    with laptop(tmp_path) as one:
        for _ in range(3):
            fill(one, server.url)
            assert one.compact()
            one.sync()
        assert one.verify() == []
        assert one.status().findings == []


def invite(store: Path, *options: str) -> str:
    command = [sys.executable, "-m", "memseal_server", "invite", "--store", str(store), *options]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout.strip()


def test_new_vault_comes_in_by_invitation_and_its_devices_need_none(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server("store", "--registration", "token")
    with laptop(tmp_path) as one:
        memory = one.remember("The boiler code is 4711", source="me")
        with pytest.raises(RemoteRefused) as needed:
            one.sync(server.url)
        assert needed.value.code == "invitation_needed"
        with pytest.raises(RemoteRefused) as refused:
            one.sync(server.url, invitation="of another server")
        assert refused.value.code == "invitation_refused"
        one.sync(server.url, invitation=invite(server.store))
        with Vault.join(tmp_path / "phone", one.emergency_kit, PASSPHRASE, server.url, embedder=None) as two:
            assert two.get(memory.id) == memory
    assert "invitation" not in server.log.read_text(encoding="utf-8").replace("invitation_", "")


def test_command_line_takes_an_invitation_from_the_environment_and_never_from_an_argument(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server("store", "--registration", "token")
    laptop(tmp_path).close()
    command = [sys.executable, "-m", "memseal", "sync", server.url, "--vault", str(tmp_path / "laptop")]
    monkeypatch.setenv("MEMSEAL_PASSPHRASE", PASSPHRASE)
    without = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert without.returncode != 0
    assert "invitation" in without.stderr
    monkeypatch.setenv("MEMSEAL_INVITATION", invite(server.store))
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_two_servers_below_paths_of_one_origin_are_two_remotes(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server("store", "--url", "http://127.0.0.1:8420/ours", "--url", "http://127.0.0.1:8420/theirs")
    # The identity is the origin that clients use; here that is where the server listens.
    port = server.url.rpartition(":")[2]
    server.stop()
    urls = [f"http://127.0.0.1:{port}/{path}" for path in ("ours", "theirs/vaults")]
    server = start_server("store", "--url", urls[0], "--url", urls[1], port=int(port))
    with laptop(tmp_path) as one:
        memory = one.remember("The boiler code is 4711", source="me")
        assert one.sync(urls[0] + "/").remote == urls[0]
        assert one.sync(urls[1]).remote == urls[1]
        assert one.status().findings == []
        with Vault.join(tmp_path / "phone", one.emergency_kit, PASSPHRASE, embedder=None) as two:
            assert two.get(memory.id) == memory
        with pytest.raises(RemoteRefused) as refused:
            one.sync(f"http://127.0.0.1:{port}/elsewhere")
        assert refused.value.code == "route_unknown"


@pytest.mark.parametrize("path", ["/a//b", "/a/../b", "/a%2Fb", "/ä"])
def test_path_that_would_be_written_otherwise_on_the_way_is_refused(tmp_path: Path, path: str) -> None:
    with laptop(tmp_path) as one, pytest.raises(RemoteUnknown):
        one.sync("http://127.0.0.1:1" + path)
