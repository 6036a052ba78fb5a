"""A log that is read piece by piece says what it says when it is read whole, damaged or not."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from memseal.errors import Finding
from memseal.format.log import End
from memseal.vault.folder import logbook
from memseal.vault.writes import writing
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import new_folder, open_vault, power_off

WHOLE = 1 << 30
PIECES = [1500, 4000, 9000]


@dataclass(frozen=True)
class Read:
    """What was read of a vault's only log."""

    digest: bytes
    findings: list[Finding]
    torn: list[Finding]
    end: End
    stored: int
    sound: End | None
    appendable: bool


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CrashDisk, str]:
    """Return a vault with single writes, and writes of several records."""
    path = tmp_path_factory.mktemp("pieces") / "vault"
    path.mkdir()
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_ROWS", 2)
        vault = open_vault(path, disk)
        for number in range(4):
            first = vault.remember(f"single {number}", source="test")
            vault.remember_many([{"content": f"many {number}.{n}", "source": "test"} for n in range(5)])
            vault.retract(first.id, reason="test")
        vault.close()
    [name] = disk.names(path / "logs")
    return path, disk, name


def read(path: Path, disk: CrashDisk, piece: int, monkeypatch: pytest.MonkeyPatch) -> Read:
    monkeypatch.setattr(logbook, "_PIECE", piece)
    vault = open_vault(path, disk.copy(), read_only=True)
    book = vault._opened.logbook
    [log] = book.logs.values()
    found = Read(
        vault.state_digest(), sorted(book.findings, key=str), book.torn, log.end, log.stored, log.sound, log.appendable
    )
    power_off(vault)
    return found


def damaged(written: tuple[Path, CrashDisk, str], spoil: Callable[[bytes], bytes]) -> CrashDisk:
    path, disk, name = written
    copy = disk.copy()
    file = path / "logs" / name
    content = copy.read(file) or b""
    copy.remove(file)
    copy.write(file, 0, spoil(content))
    copy.sync(file)
    copy.remove(path / "cache" / "view.mseal")
    return copy


@pytest.mark.parametrize("piece", PIECES)
def test_sound_log_reads_the_same(
    written: tuple[Path, CrashDisk, str], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = damaged(written, lambda content: content)
    assert read(written[0], disk, piece, monkeypatch) == read(written[0], disk, WHOLE, monkeypatch)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_log_reads_the_same(
    written: tuple[Path, CrashDisk, str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)

    def spoil(content: bytes) -> bytes:
        start = random.randrange(64, len(content))
        size = random.choice([1, 12, 700, 3000])
        noise = random.choice([b"", random.randbytes(size)])
        return content[:start] + noise + content[start + size :]

    disk = damaged(written, spoil)
    assert read(written[0], disk, PIECES[seed % 3], monkeypatch) == read(written[0], disk, WHOLE, monkeypatch)
