"""Any single file put back to an older state: it is named, nothing newer is lost, what was erased stays erased."""

from pathlib import Path

import pytest

from memseal.vault.folder import opening
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import everything, new_folder, open_vault

SECRET = "the secret word is xylophone"
KEPT = {"it began", "after the first floor", "after the erase"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a vault").mkdir()
    return tmp_path / "a vault"


def _lived(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict[Path, bytes]], CrashDisk]:
    """Return a vault's files at moments of its life, and its disk at the end of it."""
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)
    disk, moments = CrashDisk(path.parent), list[dict[Path, bytes]]()
    new_folder(path, disk)

    def live(*acts: str) -> None:
        with open_vault(path, disk) as vault:
            for act in acts:
                if act == "compact":
                    vault.compact()
                elif act == "erase":
                    [memory] = [each for each in vault.list(state="all") if each.content == SECRET]
                    assert vault.erase(memory.id).done
                else:
                    vault.remember(act, source="test")
        moments.append({name: disk.read(name) or b"" for name in disk.files() if name.name != "lock"})

    live("it began", SECRET)
    live("compact")
    live("after the first floor")
    live("compact", "erase")
    live("after the erase")
    return moments[:-1], disk


def test_single_old_file_revives_nothing_loses_nothing_and_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments, disk = _lived(path, monkeypatch)
    with open_vault(path, disk.copy()) as vault:
        assert vault.status().findings == []
        digest = vault.state_digest()
    tried = 0
    for moment in moments:
        for name, content in moment.items():
            if disk.read(name) == content or name.name == "device.mseal":
                continue  # device.mseal: with the keys, in test_keys_put_back
            tried += 1
            spoiled = disk.copy()
            spoiled.remove(name)
            spoiled.write(name, 0, content)
            spoiled.sync(name)
            with open_vault(path, spoiled) as vault:
                assert set(everything(vault)) == KEPT, name
                assert vault.state_digest() == digest
                codes = {finding.code for finding in vault.status().findings}
                assert codes, name
            with open_vault(path, spoiled) as vault:
                assert set(everything(vault)) == KEPT, name
    assert tried >= 12
