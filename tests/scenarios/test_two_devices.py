"""Stories of two devices and a real server."""

import shutil
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import (
    FolderKeys,
    KitMalformed,
    KitOrPassphrase,
    PassphraseWrong,
    RemoteRefused,
    RemoteUnknown,
    RemoteUnreachable,
    RolledBack,
    VaultExists,
)
from memseal.vault.folder import opening
from tests.scenarios.conftest import StartServer
from tests.vault.small_vault import cheap_stretch

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(autouse=True)
def no_argon2id(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be two thirds of the time of these stories."""
    monkeypatch.setattr(opening, "stretch", cheap_stretch)


def laptop(path: Path) -> Vault:
    return Vault.create(path / "laptop", PASSPHRASE, device_name="laptop", embedder=None)


def phone(path: Path, kit: str, passphrase: str = PASSPHRASE, remote: str | None = None) -> Vault:
    return Vault.join(path / "phone", kit, passphrase, remote, device_name="phone", embedder=None)


def test_what_one_device_wrote_the_other_finds(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        memory = one.remember("The boiler code is 4711", source="me", tags=["house"], kind="fact")
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            assert [hit.memory for hit in two.search("boiler code")] == [memory]
            assert [device.name for device in two.status().devices] == ["laptop", "phone"]
            assert two.status().findings == []


def test_both_write_offline_and_end_in_the_same_state(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        kept, gone = one.remember_many([{"content": f"shared {n}", "source": "me"} for n in range(2)])
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            one.supersede(kept.id, "as the laptop sees it", source="laptop")
            two.supersede(kept.id, "as the phone sees it", source="phone")
            two.retract(gone.id, reason="wrong")
            one.tag(gone.id, add=["x"])
            for vault in (one, two, one):
                vault.sync()
            assert one.state_digest() == two.state_digest()
            ((current, rival),) = one.conflicts()
            assert {current.content, rival.content} == {"as the laptop sees it", "as the phone sees it"}
            assert [memory.content for memory in two.list()] == [current.content]
            assert two.get(gone.id).tags == ("x",)
            assert one.status().findings == two.status().findings == []


def test_a_memory_written_twice_offline_is_one_memory(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            first = one.remember("the same thing", source="laptop", tags=["a"])
            second = two.remember("the same thing", source="phone", tags=["b"])
            for vault in (one, two, one):
                vault.sync()
            for vault in (one, two):
                assert [memory.tags for memory in vault.list()] == [("a", "b")]
                assert vault.get(first.id) == vault.get(second.id)
                assert len(vault.search("same thing")) == 1


def test_wrong_kit_passphrase_or_place_leaves_nothing_behind(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        kit = one.emergency_kit
        with pytest.raises(KitOrPassphrase):
            phone(tmp_path, kit, "wrong")
        with pytest.raises(KitMalformed):
            phone(tmp_path, kit.replace(kit[9], "Z" if kit[9] != "Z" else "Y", 1))
        (tmp_path / "usb").mkdir()
        with pytest.raises(FolderKeys):
            phone(tmp_path, kit, remote=str(tmp_path / "usb"))
        assert not (tmp_path / "phone").exists()
        with pytest.raises(VaultExists):
            Vault.join(tmp_path / "laptop", kit, PASSPHRASE)
        assert [device.name for device in one.status().devices] == ["laptop"]
        phone(tmp_path, kit.lower().replace("-", " ")).close()


def test_unreachable_server_loses_nothing(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        port = int(server.url.rsplit(":", 1)[1])
        server.stop()
        one.remember("written while the server was away", source="me")
        with pytest.raises(RemoteUnreachable):
            one.sync()
        assert one.status().unsent_bytes > 0
        start_server(port=port)
        one.sync()
        assert one.status().unsent_bytes == 0


def test_no_remote_and_no_such_remote_are_said(tmp_path: Path) -> None:
    with laptop(tmp_path) as one:
        with pytest.raises(RemoteUnknown):
            one.sync()
        with pytest.raises(RemoteUnknown):
            one.sync("ftp://example.com")
        with pytest.raises(RemoteUnreachable):
            one.sync(str(tmp_path / "no such folder"))


def test_old_passphrase_and_old_kit_end_with_a_change(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember("before", source="me")
        one.sync(server.url)
        old_kit = one.emergency_kit
        one.change_passphrase(PASSPHRASE, "another passphrase")
        one.remember("after", source="me")
        one.sync()
        with pytest.raises(KitOrPassphrase):
            phone(tmp_path, old_kit, "another passphrase")
        with pytest.raises(KitOrPassphrase):
            phone(tmp_path, one.emergency_kit, PASSPHRASE)
        with phone(tmp_path, one.emergency_kit, "another passphrase") as two:
            assert two.state_digest() == one.state_digest()
    with pytest.raises(PassphraseWrong):
        Vault.open(tmp_path / "laptop", PASSPHRASE)


def test_a_passphrase_change_reaches_the_other_device(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            one.change_passphrase(PASSPHRASE, "another passphrase")
            two.remember("written under the old epoch, not yet sent", source="phone")
            two.sync()
            assert [device.old_passphrase for device in two.status().devices if device.this_device] == [True]
            with pytest.raises(KitOrPassphrase):
                two.change_passphrase(PASSPHRASE, "a third passphrase")
            two.change_passphrase(PASSPHRASE, "another passphrase")
            two.sync()
            one.sync()
            assert one.state_digest() == two.state_digest()
            assert one.status().findings == two.status().findings == []
            assert not any(device.old_passphrase for device in one.status().devices)
    with pytest.raises(PassphraseWrong):
        Vault.open(tmp_path / "phone", PASSPHRASE)
    Vault.open(tmp_path / "phone", "another passphrase", embedder=None).close()


def test_two_devices_change_the_passphrase_at_once(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            one.change_passphrase(PASSPHRASE, "from the laptop")
            # The phone has not heard of it: it is told that another passphrase counts, and nothing changes.
            with pytest.raises(KitOrPassphrase):
                two.change_passphrase(PASSPHRASE, "from the phone")
            two.change_passphrase(PASSPHRASE, "from the laptop")
            one.sync()
            assert one.state_digest() == two.state_digest()


def test_a_wiped_server_is_noticed_and_filled_up_again_on_consent(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember("from the laptop", source="me")
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            two.remember("from the phone", source="me")
            two.sync()
            one.sync()
            port = int(server.url.rsplit(":", 1)[1])
            server.stop()
            start_server("another store", port=port)
            with pytest.raises(RolledBack):
                one.sync()
            assert one.count() == 2
            one.sync(accept_rollback=True)
            with pytest.raises(KitOrPassphrase):
                Vault.join(tmp_path / "third", two.emergency_kit, "wrong", embedder=None)
            two.sync()
            with Vault.join(tmp_path / "third", two.emergency_kit, PASSPHRASE, embedder=None) as three:
                assert three.state_digest() == one.state_digest() == two.state_digest()


def test_a_passphrase_changed_before_the_first_server_leaves_nothing_under_the_old_keys(
    tmp_path: Path, start_server: StartServer
) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember("written under the first passphrase", source="me")
        one.change_passphrase(PASSPHRASE, "another passphrase")
        digest = one.state_digest()
        one.sync(server.url)
        assert one.state_digest() == digest
        with phone(tmp_path, one.emergency_kit, "another passphrase") as two:
            assert two.state_digest() == digest
            assert two.status().findings == []


def test_a_device_that_joined_later_fills_up_a_wiped_server(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember("from the laptop", source="me")
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            port = int(server.url.rsplit(":", 1)[1])
            server.stop()
            start_server("another store", port=port)
            two.sync(accept_rollback=True)
            one.remember("and goes on", source="me")
            one.sync(accept_rollback=True)
            two.sync()
            assert one.state_digest() == two.state_digest()
            assert one.status().findings == two.status().findings == []


def test_a_folder_carries_what_two_joined_devices_write(tmp_path: Path, start_server: StartServer) -> None:
    server, stick = start_server(), tmp_path / "stick"
    stick.mkdir()
    with laptop(tmp_path) as one:
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            one.sync()
            server.stop()
            one.remember("by stick", source="laptop")
            two.remember("back by stick", source="phone")
            for vault in (one, two, one):
                vault.sync(str(stick))
            assert one.state_digest() == two.state_digest()
            assert one.count() == 2
            with pytest.raises(RemoteUnreachable):
                two.sync()


def test_a_server_of_strangers_refuses_in_words(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server("store", "--registration", "closed")
    with laptop(tmp_path) as one:
        with pytest.raises(RemoteRefused) as caught:
            one.sync(server.url)
        assert caught.value.code == "registration_closed"
        assert one.status().server == ""


def test_a_large_write_crosses_in_pieces_and_counts_as_one(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember_many([{"content": f"entry {n} " + "x" * 2000, "source": "me"} for n in range(6000)])
        one.sync(server.url)
        with phone(tmp_path, one.emergency_kit) as two:
            assert two.count() == 6000
            assert one.state_digest() == two.state_digest()


def test_a_device_put_back_from_a_backup_and_its_copy_lose_nothing(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server()
    with laptop(tmp_path) as one:
        one.remember("before the backup", source="me")
        one.sync(server.url)
    shutil.copytree(tmp_path / "laptop", tmp_path / "copy")
    with Vault.open(tmp_path / "laptop", PASSPHRASE, embedder=None) as one:
        one.remember("after the backup", source="me")
        one.sync()
        with Vault.open(tmp_path / "copy", PASSPHRASE, embedder=None) as twin:
            twin.remember("written on the copy", source="me")
            twin.remember("and more", source="me")
            report = twin.sync()
            assert "forked" in {finding.code for finding in report.findings}
            one.remember("meanwhile", source="me")
            for vault in (one, twin, one, twin):
                report = vault.sync()
            assert report.findings == []
            assert twin.count() == one.count() == 5
            assert twin.state_digest() == one.state_digest()
            with phone(tmp_path, one.emergency_kit) as two:
                assert two.state_digest() == one.state_digest()
