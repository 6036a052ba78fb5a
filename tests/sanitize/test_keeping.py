"""Sessions that a vault keeps, and the people whom it knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memseal
from memseal.errors import SanitizerInput, SessionLost
from memseal.sanitize import Sanitizer
from memseal.sanitize.acquaintances import acquaintances
from memseal.sanitize.lexicon import lexicon
from memseal.vault.keys.passphrases import change
from tests.sanitize.building import SEED, rules
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

TEXT = "Dear Sarah Chen, is s.chen@example.com still yours?"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ada.vault"


@pytest.fixture
def vault(path: Path) -> Iterator[memseal.Vault]:
    new_folder(path)
    with open_vault(path) as made:
        yield made


def session(vault: memseal.Vault, name: str = "chat") -> Sanitizer:
    return Sanitizer(vault=vault, session=name, detector=rules(), seed=SEED)


def files(path: Path) -> list[Path]:
    return sorted((path / "sessions").iterdir())


def test_kept_session_restores_after_the_vault_was_closed(vault: memseal.Vault, path: Path) -> None:
    began = session(vault)
    clean = began.sanitize(TEXT)
    began.keep()
    vault.close()
    with open_vault(path) as again:
        assert again.kept_sessions() == ["chat"]
        later = session(again)
        assert later.restore(clean.text) == TEXT
        assert later.sanitize(clean.text) == clean
        assert session(again, "another").restore(clean.text) == clean.text


def test_kept_session_outlives_a_change_of_passphrase(vault: memseal.Vault, path: Path) -> None:
    began = session(vault)
    clean = began.sanitize(TEXT)
    began.keep()
    change(vault._opened, stretch_of(PASSPHRASE), stretch_of("another lamp"), "another lamp", None)
    vault.close()
    with open_vault(path, passphrase="another lamp") as again:
        assert session(again).restore(clean.text) == TEXT


def test_file_of_a_session_shows_neither_name_nor_values(vault: memseal.Vault, path: Path) -> None:
    began = session(vault, "about Sarah")
    began.sanitize(TEXT)
    began.keep()
    (file,) = files(path)
    assert not any(word in file.read_bytes() for word in (b"Sarah", b"Chen", b"example"))
    assert "Sarah" not in file.name


def test_erase_ends_all_kept_sessions_and_what_began_before_it(vault: memseal.Vault, path: Path) -> None:
    began = session(vault)
    began.sanitize(TEXT)
    began.keep()
    copy = files(path)[0].read_bytes()
    name = files(path)[0]
    memory = vault.remember("Sarah Chen moved to Lyon", source="chat")
    erasure = vault.erase(memory.id)
    assert ("sessions", "gone") in {(place.name, place.progress) for place in erasure.places}
    assert files(path) == []
    with pytest.raises(SessionLost):
        began.keep()
    name.write_bytes(copy)  # a thief's copy, put back
    assert vault.kept_sessions() == []
    fresh = session(vault)
    fresh.keep()
    assert vault.kept_sessions() == ["chat"]
    assert fresh.restore("anything") == "anything"


def test_secret_that_an_erase_forgot_opens_no_copy(vault: memseal.Vault, path: Path) -> None:
    session(vault).keep()
    (file,) = files(path)
    copy = file.read_bytes()
    vault.erase(vault.remember("soon gone", source="chat").id)
    session(vault, "other").keep()
    file.write_bytes(copy)
    assert vault.kept_sessions() == ["other"]


def test_damaged_session_is_named_and_costs_itself_alone(vault: memseal.Vault, path: Path) -> None:
    session(vault, "one").keep()
    session(vault, "two").keep()
    first, second = files(path)
    for place in (3, 70, 200):
        content = bytearray(first.read_bytes())
        content[place] ^= 1
        first.write_bytes(content)
        assert len(vault.kept_sessions()) == 1
        (lost,) = {"one", "two"} - set(vault.kept_sessions())
        with pytest.raises(SessionLost, match="damaged"):
            session(vault, lost)
        content[place] ^= 1
        first.write_bytes(content)
    first.write_bytes(second.read_bytes())
    assert len(vault.kept_sessions()) == 1


def test_forgotten_session_is_gone_and_with_the_last_one_its_key(vault: memseal.Vault, path: Path) -> None:
    session(vault).keep()
    (file,) = files(path)
    copy = file.read_bytes()
    vault.forget_session("chat")
    assert vault.kept_session("chat") is None
    session(vault, "next").keep()
    file.write_bytes(copy)
    assert vault.kept_sessions() == ["next"]
    vault.forget_session("nobody")


@pytest.mark.parametrize("name", ["", "  ", "x" * 201])
def test_name_that_is_none_is_refused(vault: memseal.Vault, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        vault.keep_session(name, {}, vault.session_fence())


def test_session_without_a_vault_is_refused() -> None:
    with pytest.raises(SanitizerInput, match="vault"):
        Sanitizer(session="chat", detector=rules())
    with pytest.raises(SanitizerInput, match="vault"):
        Sanitizer(detector=rules()).keep()


def test_vault_tells_authors_owners_and_tags_and_devices_that_are_names(vault: memseal.Vault) -> None:
    vault.rename_device(vault.devices()[0].id, "Ingrid's laptop")
    vault.remember("the boat leaks", source="chat", author="Zorblat Quix", tags=["priya-nair", "house", "may"])
    vault.remember("the roof too", source="chat", author="user", owner="Tindra Ek")
    names = acquaintances(vault, lexicon())
    assert names == {"Zorblat Quix", "Tindra Ek", "priya", "priya nair", "Ingrid"}
