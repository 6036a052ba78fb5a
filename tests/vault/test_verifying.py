"""What `verify` looks at: the structure quickly, or every byte, in bounded memory and with its progress told."""

from pathlib import Path

import pytest

from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.records import HEADER_SIZE, places
from memseal.vault.checkpoint import parts
from memseal.vault.folder import framing, logbook, opening
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import new_folder, open_vault


class MeasuringDisk(CrashDisk):
    """A disk that notes how much of which file was read at once."""

    def read(self, path: Path, start: int = 0, end: int | None = None) -> bytes | None:
        content = super().read(path, start, end)
        self.reads.append((path, len(content or b"")))
        return content

    @classmethod
    def like(cls, disk: CrashDisk) -> "MeasuringDisk":
        measuring = cls(disk.root, disk.copy()._tree)
        measuring.reads = list[tuple[Path, int]]()
        return measuring

    reads: list[tuple[Path, int]]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CrashDisk]:
    """A vault with a cache, a checkpoint of several parts, a log after it, traces and a kept session."""
    path = tmp_path_factory.mktemp("verifying") / "vault"
    path.mkdir()
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "_CACHE_WORTH", 1)
        patch.setattr(parts, "_RECORD_BYTES", 600)
        patch.setattr(parts, "_ROOM", 3000)
        with open_vault(path, disk) as vault:
            for number in range(8):
                vault.remember(f"covered {number}", source="test", embedding=[1, number, 0])
            vault.compact()
            for number in range(20):
                vault.remember(f"after it {number}", source="test", embedding=[number, 1, 0])
            vault.search("covered")
            vault.keep_session("chat", {}, vault.session_fence())
    return path, disk.copy()


def files_in(disk: CrashDisk, folder: str) -> list[Path]:
    return sorted(each for each in disk.files() if each.parent.name == folder)


def flip(disk: CrashDisk, name: Path, position: int) -> None:
    content = bytearray(disk.read(name) or b"")
    content[position] ^= 1
    disk.write(name, 0, bytes(content))


def place_in_log(disk: CrashDisk, name: Path, number: int) -> int:
    """Return the offset in its file of a record after a log's base."""
    content, begin = memoryview(disk.read(name) or b""), PREAMBLE_SIZE + 60
    return places(content, begin, int.from_bytes(content[begin + 4 : begin + 8], "big"))[number].offset


@pytest.mark.parametrize("read_data", [True, False])
def test_sound_vault_has_no_findings(lived: tuple[Path, CrashDisk], read_data: bool) -> None:
    path, disk = lived
    with open_vault(path, disk.copy(), read_only=True) as vault:
        assert vault.verify(read_data=read_data) == []


@pytest.mark.parametrize("read_data", [True, False])
def test_damaged_header_of_a_log_is_found(lived: tuple[Path, CrashDisk], read_data: bool) -> None:
    path, disk = lived[0], lived[1].copy()
    [log] = files_in(disk, "logs")
    with open_vault(path, disk, read_only=True) as vault:
        flip(disk, log, place_in_log(disk, log, 3) + 1)
        [finding] = vault.verify(read_data=read_data)
    assert (finding.code, finding.where) == ("record_header", f"logs/{log.name}#11")
    assert "`memseal repair --to COPY`" in finding.detail


def test_damage_within_a_record_is_found_only_where_the_data_is_read(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived[0], lived[1].copy()
    [log] = files_in(disk, "logs")
    with open_vault(path, disk, read_only=True) as vault:
        flip(disk, log, place_in_log(disk, log, 3) + HEADER_SIZE + 50)
        assert vault.verify(read_data=False) == []
        [finding] = vault.verify(read_data=True)
    assert (finding.code, finding.where) == ("record_sealed", f"logs/{log.name}#11")


def test_all_data_is_read_where_nothing_is_said(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived[0], lived[1].copy()
    part = files_in(disk, "parts")[1]
    with open_vault(path, disk, read_only=True) as vault:
        flip(disk, part, 500)
        [finding] = vault.verify()
    assert (finding.code, finding.where) == ("record_sealed", f"parts/{part.name}#0")


@pytest.mark.parametrize("read_data", [True, False])
def test_missing_part_is_found(lived: tuple[Path, CrashDisk], read_data: bool) -> None:
    path, disk = lived[0], lived[1].copy()
    part = files_in(disk, "parts")[0]
    with open_vault(path, disk, read_only=True) as vault:
        disk.remove(part)
        [finding] = vault.verify(read_data=read_data)
    assert (finding.code, finding.where) == ("checkpoint_missing", f"parts/{part.name}")


def test_part_of_another_size_is_found_without_reading_it(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived[0], lived[1].copy()
    part = files_in(disk, "parts")[0]
    with open_vault(path, disk, read_only=True) as vault:
        disk.write(part, (disk.size(part) or 0) - 1, b"")
        [finding] = vault.verify(read_data=False)
    assert (finding.code, finding.where) == ("checkpoint_mismatch", f"parts/{part.name}")


@pytest.mark.parametrize("read_data", [True, False])
def test_damaged_manifest_is_found(lived: tuple[Path, CrashDisk], read_data: bool) -> None:
    path, disk = lived[0], lived[1].copy()
    [manifest] = files_in(disk, "checkpoints")
    with open_vault(path, disk, read_only=True) as vault:
        flip(disk, manifest, 300)
        [finding] = vault.verify(read_data=read_data)
    assert (finding.code, finding.where) == ("checkpoint_mismatch", f"checkpoints/{manifest.name}")


def test_damaged_cache_is_found(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived[0], lived[1].copy()
    with open_vault(path, disk, read_only=True) as vault:
        flip(disk, path / "cache" / "view.mseal", 9000)
        [finding] = vault.verify()
    assert finding.where == "cache/view.mseal"
    assert "made anew" in finding.detail


def test_what_was_noticed_at_the_opening_is_said_once(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived[0], lived[1].copy()
    [log] = files_in(disk, "logs")
    flip(disk, log, place_in_log(disk, log, 3) + 1)
    with open_vault(path, disk, read_only=True) as vault:
        assert len(vault.verify(read_data=False)) == 1


@pytest.mark.parametrize("read_data", [True, False])
def test_progress_rises_to_all_the_bytes_there_are(lived: tuple[Path, CrashDisk], read_data: bool) -> None:
    path, disk = lived
    told = list[tuple[int, int]]()
    with open_vault(path, disk.copy(), read_only=True) as vault:
        vault.verify(read_data=read_data, progress=lambda done, total: told.append((done, total)))
    done = [each for each, _ in told]
    size = sum(disk.size(each) or 0 for each in disk.files() if each.suffix == ".mseal")
    assert done == sorted(done)
    assert {total for _, total in told} == {done[-1]} == {size}
    assert len(done) > 5


def test_log_is_read_piece_by_piece(lived: tuple[Path, CrashDisk], monkeypatch: pytest.MonkeyPatch) -> None:
    path, disk = lived[0], MeasuringDisk.like(lived[1])
    [log] = files_in(disk, "logs")
    with open_vault(path, disk, read_only=True) as vault:
        monkeypatch.setattr(logbook, "_PIECE", 4000)
        disk.reads.clear()
        assert vault.verify() == []
    largest = max(size for name, size in disk.reads if name == log)
    assert 2000 < largest <= 4000 < (disk.size(log) or 0)


def test_only_headers_are_read_of_large_records(lived: tuple[Path, CrashDisk], monkeypatch: pytest.MonkeyPatch) -> None:
    path, disk = lived[0], MeasuringDisk.like(lived[1])
    [log] = files_in(disk, "logs")
    with open_vault(path, disk, read_only=True) as vault:
        monkeypatch.setattr(framing, "_WINDOW", 20)
        disk.reads.clear()
        assert vault.verify(read_data=False) == []
    read = sum(size for name, size in disk.reads if name == log)
    assert read < 1000 < (disk.size(log) or 0)


def test_what_is_verified_is_not_applied(lived: tuple[Path, CrashDisk]) -> None:
    path, disk = lived
    with open_vault(path, disk.copy(), read_only=True) as vault:
        before = vault.state_digest()
        vault.verify()
        assert (vault.state_digest(), vault.count()) == (before, 28)
