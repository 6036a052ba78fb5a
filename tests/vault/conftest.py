"""A new vault for a test: its folder, and open."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memseal.vault.vault import Vault
from tests.vault.small_vault import new_folder, open_vault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of a new vault; a test that opens it itself takes this alone."""
    return new_folder(tmp_path / "vault").path


@pytest.fixture
def vault(path: Path) -> Iterator[Vault]:
    """A new vault, open without Argon2id and without a model."""
    with open_vault(path) as vault:
        yield vault
