"""Passphrases: changed whole, spelled in any normal form, never empty. (Crashes at each step: `test_crash.py`.)"""

from pathlib import Path

import pytest

from memseal.errors import PassphraseEmpty, PassphraseWrong, VaultReadOnly
from memseal.vault.vault import Vault
from tests.vault.small_vault import everything

OLD, NEW = "an old passphrase", "a new passphrase"
COMPOSED, DECOMPOSED = "Zo\u00eb \u00e5 \ud55c", "Zoe\u0308 a\u030a \u1112\u1161\u11ab"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A vault with one memory, really behind Argon2id."""
    with Vault.create(tmp_path / "v", OLD, embedder=None) as vault:
        vault.remember("a", source="test", embedding=[1, 0])
    return tmp_path / "v"


def opened(path: Path, passphrase: str) -> Vault:
    return Vault.open(path, passphrase, embedder=None)


def test_changed_passphrase_opens_everything_and_the_old_one_nothing(path: Path) -> None:
    with opened(path, OLD) as vault:
        kit, before = vault.emergency_kit, vault.state_digest()
        vault.change_passphrase(OLD, NEW)
        assert vault.emergency_kit != kit
        assert vault.state_digest() == before
        vault.remember("b", source="test")
    with pytest.raises(PassphraseWrong):
        opened(path, OLD)
    with opened(path, NEW) as vault:
        assert set(everything(vault)) == {"a", "b"}
        assert vault.search(vector=[1, 0])[0].memory.content == "a"
        assert vault.status().epoch == 2
        assert [*vault.status().findings, *vault.verify()] == []


def test_passphrase_can_be_changed_again_and_back(path: Path) -> None:
    for old, new in ((OLD, NEW), (NEW, OLD)):
        with opened(path, old) as vault:
            vault.change_passphrase(old, new)
    with opened(path, OLD) as vault:
        vault.change_passphrase(OLD, NEW)
        vault.change_passphrase(NEW, OLD)
        assert set(everything(vault)) == {"a"}
        assert vault.status().epoch == 5
    with pytest.raises(PassphraseWrong):
        opened(path, NEW)
    with opened(path, OLD) as vault:
        assert set(everything(vault)) == {"a"}
        assert [*vault.status().findings, *vault.verify()] == []


@pytest.mark.parametrize("new", ["", " \t", "\u3000"])
def test_empty_new_passphrase_changes_nothing(path: Path, new: str) -> None:
    with opened(path, OLD) as vault, pytest.raises(PassphraseEmpty):
        vault.change_passphrase(OLD, new)
    with opened(path, OLD) as vault:
        assert vault.status().epoch == 1


def test_wrong_old_passphrase_changes_nothing(path: Path) -> None:
    with opened(path, OLD) as vault, pytest.raises(PassphraseWrong):
        vault.change_passphrase("another", NEW)
    with opened(path, OLD) as vault:
        assert vault.status().epoch == 1


def test_reader_cannot_change_it(path: Path) -> None:
    with Vault.open(path, OLD, read_only=True, embedder=None) as vault, pytest.raises(VaultReadOnly):
        vault.change_passphrase(OLD, NEW)


@pytest.mark.parametrize(("set_as", "typed"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_same_letters_in_another_normal_form_are_the_same_passphrase(tmp_path: Path, set_as: str, typed: str) -> None:
    Vault.create(tmp_path / "v", set_as, embedder=None).close()
    with opened(tmp_path / "v", typed) as vault:
        vault.change_passphrase(typed, NEW)
        vault.change_passphrase(NEW, typed)
    opened(tmp_path / "v", set_as).close()


def test_passphrase_that_only_looks_alike_is_another(tmp_path: Path) -> None:
    """NFC keeps compatibility forms apart: a full-width letter is not a plain one."""
    Vault.create(tmp_path / "v", "passphrase", embedder=None).close()
    for other in ("\uff50assphrase", "passphrase ", "Passphrase"):
        with pytest.raises(PassphraseWrong):
            opened(tmp_path / "v", other)
