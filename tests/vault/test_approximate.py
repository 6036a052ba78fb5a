"""The approximate index of a large vault: sealed with the cache, thrown away with it, ended with the vault."""

import threading
from pathlib import Path

import numpy as np
import pytest

from memseal.format.preamble import PREAMBLE_SIZE
from memseal.index import approximation
from memseal.index.vectors import VectorIndex
from memseal.vault.folder import opening
from memseal.vault.vault import Vault
from tests.vault.small_vault import new_folder, open_vault

DIMENSION, COUNT = 64, 1_600


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so few memories have an approximate index, choose few of them, and be worth a cache."""
    monkeypatch.setattr(approximation, "APPROXIMATE_FROM", 1_000)
    monkeypatch.setattr(approximation, "_LEAST_COMPARED", 200)
    monkeypatch.setattr(approximation, "_MOST_CHOSEN", 0.5)
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed vault of many memories with vectors."""
    folder = tmp_path / "vault"
    new_folder(folder)
    vectors = np.random.default_rng(1).standard_normal((COUNT, DIMENSION))
    with open_vault(folder) as vault:
        items = [{"content": f"memory {number}", "source": "test"} for number in range(COUNT)]
        vault.remember_many(items, vectors)
    return folder


def vectors_of(vault: Vault) -> VectorIndex:
    vectors = vault._opened.logbook.view.vectors
    assert vectors is not None
    return vectors


def nearest(vault: Vault, seed: int = 2) -> list[str]:
    query = np.random.default_rng(seed).standard_normal(DIMENSION)
    return [hit.memory.content for hit in vault.search(vector=query, limit=5)]


def test_cache_brings_the_index_along(path: Path) -> None:
    with open_vault(path) as vault:
        assert vectors_of(vault)._approximation.is_ready
        assert len(nearest(vault)) == 5
        vault.remember("more", source="test", embedding=np.ones(DIMENSION))
        assert vault.search(vector=np.ones(DIMENSION), limit=1)[0].memory.content == "more"
    with open_vault(path) as vault:
        assert vectors_of(vault)._approximation.is_ready
        assert vault.search(vector=np.ones(DIMENSION), limit=1)[0].memory.content == "more"


def test_index_of_another_version_of_the_library_is_built_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memseal.index.image.FORMAT", "another")
    with open_vault(path, read_only=True) as vault:
        assert not vectors_of(vault)._approximation.is_ready
        before = nearest(vault)
        vectors_of(vault)._approximation.settle()
        assert vectors_of(vault)._approximation.is_ready
        assert nearest(vault) == before


def test_damaged_index_in_the_cache_is_named_and_made_anew(path: Path) -> None:
    with open_vault(path) as vault:
        found = nearest(vault)
    cache = path / "cache" / "view.mseal"
    content = bytearray(cache.read_bytes())
    content[-10] ^= 1  # the index comes last
    cache.write_bytes(content)
    with open_vault(path) as vault:
        assert [finding.where for finding in vault.verify()] == ["cache/view.mseal"]
        assert nearest(vault) == found
    with open_vault(path) as vault:
        assert vault.verify() == []
        assert vectors_of(vault)._approximation.is_ready


def test_cache_that_ends_within_the_index_is_passed_over(path: Path) -> None:
    cache = path / "cache" / "view.mseal"
    content = cache.read_bytes()
    cache.write_bytes(content[:-PREAMBLE_SIZE])
    with open_vault(path, read_only=True) as vault:
        assert len(nearest(vault)) == 5


def test_erased_memory_is_in_no_code_in_ram_or_in_the_cache(path: Path) -> None:
    with open_vault(path) as vault:
        target = vault.search(vector=np.ones(DIMENSION), limit=1)[0].memory
        codes = vectors_of(vault)._approximation._index
        assert codes is not None
        vault.erase(target.id)
        assert len(codes) == 0
        assert not (path / "cache" / "view.mseal").exists()
        assert vault.search(vector=np.ones(DIMENSION), limit=1)[0].memory.id != target.id
    assert (path / "cache" / "view.mseal").exists()
    with open_vault(path) as vault:
        assert len(vectors_of(vault)._approximation._index or ()) == COUNT - 1


def test_closing_while_the_index_is_built_leaves_no_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memseal.index.image.FORMAT", "another")
    monkeypatch.setattr(approximation, "_STEP", 4)
    vault = open_vault(path, read_only=True)
    nearest(vault)
    vault.close()
    assert "memseal-vectors" not in {thread.name for thread in threading.enumerate()}
