"""A new device joins by a code that another one shows, over a real server that relays."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from memseal.errors import (
    DeviceEnded,
    FolderKeys,
    PairingCodeMalformed,
    PairingCodeWrong,
    PairingExpired,
    PairingGone,
    PairingTaken,
    PassphraseWrong,
    RemoteUnknown,
    VaultExists,
)
from memseal.vault.keys import pairing, revoking
from memseal.vault.vault import Vault
from tests.scenarios.conftest import StartServer
from tests.scenarios.pairing_world import Laptop, is_clean, join, names
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


@pytest.fixture
def laptop(tmp_path: Path, start_server: StartServer) -> Iterator[Laptop]:
    laptop = Laptop(tmp_path / "laptop", start_server().url)
    yield laptop
    laptop.close()


# ── by the book ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scanned", [False, True], ids=["typed", "scanned"])
def test_device_joins_by_a_code_and_both_go_on(scanned: bool, laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows(scanned=scanned)
    join(tmp_path / "phone", shown.code, None if scanned else laptop.server)
    device = shown.device()
    assert (device.name, device.status) == ("phone", "active")
    with open_vault(tmp_path / "phone") as phone:
        phone.remember("from the phone", source="test")
        phone.sync()
        assert laptop.vault.sync().new_memories == 1
        assert phone.state_digest() == laptop.vault.state_digest()
        assert phone.status().findings == laptop.vault.status().findings == []
        assert phone.emergency_kit == laptop.vault.emergency_kit
    assert sorted(path.name for path in tmp_path.iterdir() if "phone" in path.name) == ["phone"]


def test_vault_pairs_through_its_own_methods(tmp_path: Path, start_server: StartServer) -> None:
    server, codes = start_server(), Queue[str]()
    with Vault.create(tmp_path / "laptop", "a passphrase", embedder=None) as one, ThreadPoolExecutor() as threads:
        one.sync(server.url)
        outcome = threads.submit(one.pair, codes.put)
        code = codes.get(timeout=60)
        one.remember("written while the code is shown", source="test")
        path = tmp_path / "phone"
        with Vault.join_with_code(path, code, "a passphrase", server.url, device_name="phone", embedder=None) as two:
            assert outcome.result(timeout=60).id == two.devices()[1].id
            two.sync()
            assert two.count() == 1


def test_paired_device_is_as_good_as_any(laptop: Laptop, tmp_path: Path) -> None:
    """It lets another one in, and removes the one that let it in."""
    shown = laptop.shows()
    join(tmp_path / "phone", shown.code, laptop.server)
    shown.device()
    with open_vault(tmp_path / "phone") as phone, phone._writing() as opened:
        revoking.revoke(opened, "laptop", stretch_of(PASSPHRASE), None, None)
    with pytest.raises(DeviceEnded):
        laptop.vault.sync()


# ── what people do ──────────────────────────────────────────────────────────────────────────────────


def other_code(code: str) -> str:
    """A code for the same channel, as somebody guesses it."""
    digits = code.replace("-", "")
    number = int(digits[:-2]) + (1 if digits[13] != "9" else -1)
    return f"{number:014d}{98 - number * 100 % 97:02d}"


def test_wrong_code_is_told_to_both_and_spends_it(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    with pytest.raises(PairingCodeWrong):
        join(tmp_path / "phone", other_code(shown.code), laptop.server)
    with pytest.raises(PairingCodeWrong):
        shown.device()
    with pytest.raises(PairingTaken):
        join(tmp_path / "phone", shown.code, laptop.server)
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]


def test_mistyped_code_is_told_before_it_is_spent(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    wrong = shown.code[:-1] + ("1" if shown.code[-1] != "1" else "2")
    with pytest.raises(PairingCodeMalformed):
        join(tmp_path / "phone", wrong, laptop.server)
    join(tmp_path / "phone", shown.code, laptop.server)
    assert shown.device().name == "phone"


def test_wrong_passphrase_makes_no_device(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    with pytest.raises(PassphraseWrong):
        join(tmp_path / "phone", shown.code, laptop.server, "not the vault's")
    shown.is_given_up()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]
    # The vault key had been handed over by then: it opens nothing that is written from now on.
    assert laptop.vault.status().epoch == 2


def test_code_that_nobody_uses_is_over_after_two_minutes(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    shown.clock.now = pairing.CODE_SECONDS - 1
    assert not shown.outcome.done()
    shown.clock.now = pairing.CODE_SECONDS
    with pytest.raises(PairingExpired):
        shown.device()


def test_code_that_no_device_shows_is_told(laptop: Laptop, tmp_path: Path) -> None:
    with pytest.raises(PairingGone):
        join(tmp_path / "phone", "4821-3903-5174-2007", laptop.server)
    assert is_clean(tmp_path / "phone")


def test_place_that_is_taken_spends_no_code(laptop: Laptop, tmp_path: Path) -> None:
    shown = laptop.shows()
    with pytest.raises(VaultExists):
        join(tmp_path / "laptop", shown.code, laptop.server)
    with pytest.raises(RemoteUnknown):
        join(tmp_path / "phone", shown.code, None)
    with pytest.raises(FolderKeys):
        join(tmp_path / "phone", shown.code, str(tmp_path))
    join(tmp_path / "phone", shown.code, laptop.server)
    shown.device()


def test_vault_on_no_server_shows_no_code(tmp_path: Path) -> None:
    new_folder(tmp_path / "alone")
    with open_vault(tmp_path / "alone") as vault, pytest.raises(RemoteUnknown):
        vault.pair(lambda code: None)


def test_second_code_of_a_device_ends_the_first(laptop: Laptop, tmp_path: Path) -> None:
    first = laptop.shows()
    second = laptop.shows()
    with pytest.raises((PairingGone, PairingTaken)):
        first.device()
    join(tmp_path / "phone", second.code, laptop.server)
    assert second.device().name == "phone"


def test_keys_that_change_meanwhile_end_the_pairing(laptop: Laptop, tmp_path: Path) -> None:
    """Between the box that was handed over and the join."""
    with pytest.MonkeyPatch.context() as patch:
        prove = pairing.PairingOpener.request_key

        def rekey_first(opener: pairing.PairingOpener) -> object:
            if laptop.vault.status().epoch == 1:
                laptop.vault.rekey()
            return prove(opener)

        patch.setattr(pairing.PairingOpener, "request_key", rekey_first)
        shown = laptop.shows()
        with pytest.raises(PairingExpired):
            join(tmp_path / "phone", shown.code, laptop.server)
        shown.is_given_up()
    assert is_clean(tmp_path / "phone")
    assert names(laptop.vault) == ["laptop"]
