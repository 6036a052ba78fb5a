"""General, medical, archival: fixed when the vault is made, and the same for every later slot (memory-model §3)."""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest

from memseal.errors import DiskFull, MemoryInvalid
from memseal.store.folder import VaultFolder
from memseal.store.pages import LockedPages
from memseal.vault import keys_and_devices
from memseal.vault import vault as vault_module
from memseal.vault.folder.opening import Opened
from memseal.vault.keys.creation import MEDICAL_COST
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, stretch_of


@pytest.fixture(autouse=True)
def no_argon2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases cost nothing here; what they would cost stands in the files."""
    for module in (vault_module, keys_and_devices):
        monkeypatch.setattr(module, "stretcher", stretch_of)


def create(path: Path, data_class: str) -> Vault:
    return Vault.create(path, PASSPHRASE, embedder=None, data_class=data_class)


def costs(opened: Opened) -> set[object]:
    return {opened.keychain.keyring.public.kit.cost, *(slot.cost for slot in opened.device.slots)}


@pytest.mark.parametrize("data_class", ["general", "medical", "archival", "MEDICAL"])
def test_class_is_kept(tmp_path: Path, data_class: str) -> None:
    with create(tmp_path / "vault", data_class) as vault:
        assert vault.status().data_class == data_class.lower()
        vault.compact()
    with Vault.open(tmp_path / "vault", PASSPHRASE, embedder=None, read_only=True) as again:
        assert again.status().data_class == data_class.lower()


@pytest.mark.parametrize("step", range(4))
def test_vault_is_there_with_its_class_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    replace, steps = VaultFolder.replace, count()

    def full(folder: VaultFolder, name: str, content: bytes | Iterable[bytes | bytearray]) -> None:
        if next(steps) == step:
            raise DiskFull("no room is left")
        replace(folder, name, content)

    monkeypatch.setattr(VaultFolder, "replace", full)
    with pytest.raises(DiskFull):
        create(tmp_path / "vault", "archival")
    assert list(tmp_path.iterdir()) == []


def test_unknown_class_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(MemoryInvalid, match="data_class"):
        create(tmp_path / "vault", "secret")
    assert not (tmp_path / "vault").exists()


def test_medical_passphrase_costs_twice_the_memory_also_after_every_change(tmp_path: Path) -> None:
    with create(tmp_path / "vault", "medical") as vault:
        opened = vault._opened
        assert costs(opened) == {MEDICAL_COST}
        vault.new_kit(PASSPHRASE)
        vault.change_passphrase(PASSPHRASE, "another passphrase")
        assert opened.keychain.keyring.public.kit.generation == 3
        assert costs(opened) == {MEDICAL_COST}


def test_medical_keys_are_locked_until_the_vault_is_closed(tmp_path: Path) -> None:
    with create(tmp_path / "vault", "medical") as vault:
        pages = vault._opened.pages
        assert len(pages) + pages.refused > 0
    assert len(pages) == 0
    with create(tmp_path / "other", "general") as vault:
        assert len(vault._opened.pages) == 0


class NoRoom:
    """A system that locks nothing."""

    def lock(self, address: int, length: int) -> bool:
        return False

    def unlock(self, address: int, length: int) -> bool:
        raise AssertionError("nothing was locked")


def test_system_that_locks_nothing_is_named_in_the_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Opened, "__post_init__", _with_no_room(Opened.__post_init__))
    with create(tmp_path / "vault", "medical") as vault:
        assert [each.code for each in vault.status().findings] == ["keys_unlocked"]
    with create(tmp_path / "other", "general") as vault:
        assert vault.status().findings == []


def _with_no_room(begin: Callable[[Opened], None]) -> Callable[[Opened], None]:
    def post_init(opened: Opened) -> None:
        begin(opened)
        opened.pages = LockedPages(NoRoom())

    return post_init
