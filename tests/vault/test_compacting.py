"""When a checkpoint is made by itself: where it puts many records together, and not for what came in bulk."""

from pathlib import Path

import pytest

from memseal.vault.compaction import compacting
from tests.vault.small_vault import everything, new_folder, open_vault

LIMIT = 5


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new vault; few records are many."""
    monkeypatch.setattr(compacting, "_WORTH_RECORDS", LIMIT)
    new_folder(tmp_path / "vault")
    return tmp_path / "vault"


def write(path: Path, *numbers: int) -> None:
    """Write memories in a record each, and close."""
    with open_vault(path) as vault:
        for number in numbers:
            vault.remember(f"memory {number}", source="test")


def checkpoints(path: Path) -> list[str]:
    return [each.name for each in (path / "checkpoints").iterdir()]


def test_checkpoint_is_made_at_closing_when_there_are_many_records(path: Path) -> None:
    write(path, *range(LIMIT - 1))
    assert checkpoints(path) == []
    write(path, LIMIT - 1)
    assert len(checkpoints(path)) == 1
    with open_vault(path) as vault:
        assert len(everything(vault)) == LIMIT
        assert vault.verify() == []


def test_records_that_a_checkpoint_covers_are_not_counted_again(path: Path) -> None:
    write(path, *range(LIMIT))
    first = checkpoints(path)
    write(path, *range(10, 9 + LIMIT))
    assert checkpoints(path) == first
    write(path, 20)
    assert len(checkpoints(path)) == 1
    assert checkpoints(path) != first


def test_bulk_write_of_any_size_stays_in_its_log(path: Path) -> None:
    with open_vault(path) as vault:
        vault.remember_many({"content": f"memory {number}", "source": "test"} for number in range(4_000))
    assert checkpoints(path) == []
    with open_vault(path) as vault:
        assert vault.count() == 4_000
