"""A log whose end is damaged: the device goes on beside it, and loses nothing more."""

from pathlib import Path

import pytest

from memseal.format.records import places
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import everything, new_folder, open_vault


@pytest.mark.parametrize("damaged", [[5], [3, 4], [3, 5], [4, 5]], ids=str)
def test_what_is_written_beside_a_damaged_end_is_there_after_reopening(tmp_path: Path, damaged: list[int]) -> None:
    path, disk = tmp_path / "vault", CrashDisk(tmp_path)
    path.mkdir()
    new_folder(path, disk)
    with open_vault(path, disk) as vault:
        for number in range(6):
            vault.remember(f"memory {number}", source="test")
    ((log, content),) = [(name, content) for name, content in disk.files().items() if name.parent.name == "logs"]
    spoiled = bytearray(content)
    for place in places(memoryview(content), 64):
        if place.index in damaged:
            spoiled[place.offset : place.end] = bytes(place.end - place.offset)
    disk.write(log, 0, bytes(spoiled))
    left = {f"memory {number}" for number in range(6) if number not in damaged}
    for again in ("once", "twice"):
        with open_vault(path, disk) as vault:
            vault.remember(f"written {again}", source="test")
            left.add(f"written {again}")
    with open_vault(path, disk, read_only=True) as vault:
        assert set(everything(vault)) == left
        assert "record_header" in {finding.code for finding in vault.status().findings}
        assert "operation_invalid" not in {finding.code for finding in vault.status().findings}
