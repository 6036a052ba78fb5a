"""A vault begins whole or not at all, never over anything, and tells apart what keeps it from opening."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memseal.errors import (
    DeviceFileDamaged,
    DiskError,
    MemoryInvalid,
    PassphraseEmpty,
    PassphraseWrong,
    VaultBusy,
    VaultExists,
    VaultMissing,
    VaultReadOnly,
    VectorInvalid,
)
from memseal.store.folder import TRACES
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, everything, new_folder, open_vault

ROUNDS = 20

# Both processes wait until the parent has seen them ready, then make a vault in the same folder.
CREATOR = """
import sys
from pathlib import Path
from memseal.errors import VaultExists
from tests.vault.small_vault import new_folder

for path in sys.argv[1:]:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        new_folder(Path(path))
        print("made", flush=True)
    except VaultExists:
        print("exists", flush=True)
"""


def create(path: Path, passphrase: str = PASSPHRASE) -> None:
    Vault.create(path, passphrase, embedder=None).close()


def tree(path: Path) -> dict[Path, bytes | None]:
    """Return everything beneath a path; folders have no content."""
    return {each: each.read_bytes() if each.is_file() else None for each in sorted(path.rglob("*"))}


# ── creation ────────────────────────────────────────────────────────────────────────────────────────


def test_vault_that_was_made_opens_with_its_passphrase(tmp_path: Path) -> None:
    with Vault.create(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        vault.remember("a", source="test")
    with Vault.open(tmp_path / "v", PASSPHRASE, embedder=None) as vault:
        assert set(everything(vault)) == {"a"}
    assert [each.name for each in tmp_path.iterdir()] == ["v"]


def test_vault_is_made_in_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    create(tmp_path / "v")
    with open_vault_really(tmp_path / "v") as vault:
        assert not vault.count()


def open_vault_really(path: Path, passphrase: str = PASSPHRASE) -> Vault:
    return Vault.open(path, passphrase, embedder=None)


@pytest.mark.parametrize("there", ["vault", "damaged vault", "file", "folder with a file", "dangling link"])
def test_creation_over_anything_is_refused_and_changes_nothing(tmp_path: Path, there: str) -> None:
    path = tmp_path / "v"
    match there:
        case "vault" | "damaged vault":
            new_folder(path)
            if there == "damaged vault":
                (path / "device.mseal").write_bytes(b"")
        case "file":
            path.write_bytes(b"a text")
        case "folder with a file":
            path.mkdir()
            (path / "a text").write_bytes(b"a text")
        case _:
            path.symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)
    with pytest.raises(VaultExists):
        new_folder(path)
    assert tree(tmp_path) == before


def test_creation_in_a_folder_that_is_missing_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        new_folder(tmp_path / "missing" / "v")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("passphrase", ["", " ", "\t\n", "\u00a0\u3000", "\u2003 \r\n"])
def test_empty_passphrase_is_refused_before_anything_is_made(tmp_path: Path, passphrase: str) -> None:
    with pytest.raises(PassphraseEmpty):
        Vault.create(tmp_path / "v", passphrase, embedder=None)
    assert tree(tmp_path) == {}


def test_two_processes_that_create_at_once_make_one_good_vault(tmp_path: Path) -> None:
    paths = [tmp_path / f"v{number}" for number in range(ROUNDS)]
    command = [sys.executable, "-c", CREATOR, *map(str, paths)]
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)
    ]
    for path in paths:
        for process in both:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in both:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(process.stdout.readline() for process in both if process.stdout is not None)
        assert said == ["exists\n", "made\n"]
        with open_vault(path) as vault:
            vault.remember("a", source="test")
        with open_vault(path) as vault:
            assert set(everything(vault)) == {"a"}
            assert not vault.status().findings
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    "name", ["a path with spaces", "Ärger mit 日本語", "e\u0301", "-dash", "dots..", 'it\'s "quoted"']
)
def test_vault_lives_under_any_name(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and '"' in name:
        name = name.replace('"', "")
    new_folder(tmp_path / name)
    with open_vault(tmp_path / name) as vault:
        vault.remember("a", source="test")
        assert vault.status().path == str(tmp_path / name)
    with open_vault(tmp_path / name) as vault:
        assert set(everything(vault)) == {"a"}


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────


def test_wrong_passphrase_damage_and_use_elsewhere_are_three_errors(tmp_path: Path) -> None:
    path = tmp_path / "v"
    create(path)
    with pytest.raises(PassphraseWrong):
        open_vault_really(path, "another")
    with open_vault_really(path), pytest.raises(VaultBusy):
        open_vault_really(path)
    content = (path / "device.mseal").read_bytes()
    (path / "device.mseal").write_bytes(content[:100])
    with pytest.raises(DeviceFileDamaged):
        open_vault_really(path)
    (path / "device.mseal").write_bytes(content)
    open_vault_really(path).close()


@pytest.mark.parametrize("there", ["nothing", "empty folder", "file"])
def test_vault_that_is_not_there_is_an_error_of_its_own(tmp_path: Path, there: str) -> None:
    if there == "empty folder":
        (tmp_path / "v").mkdir()
    if there == "file":
        (tmp_path / "v").write_bytes(b"")
    before = tree(tmp_path)
    for read_only in (True, False):
        with pytest.raises(VaultMissing):
            open_vault(tmp_path / "v", read_only=read_only)
    assert tree(tmp_path) == before


def test_failed_opening_does_not_keep_the_vault_busy(tmp_path: Path) -> None:
    new_folder(tmp_path / "v")
    for _ in range(3):
        with pytest.raises(PassphraseWrong):
            open_vault(tmp_path / "v", passphrase="another")
    open_vault(tmp_path / "v").close()


def test_reader_beside_a_writer_sees_what_was_acknowledged_before(tmp_path: Path) -> None:
    path = tmp_path / "v"
    new_folder(path)
    with open_vault(path) as writer:
        told = set[str]()
        for number in range(5):
            told.add(writer.remember(f"number {number}", source="test").content)
            with open_vault(path, read_only=True) as reader:
                assert set(everything(reader)) == told
                assert reader.status().read_only
                with pytest.raises(VaultReadOnly):
                    reader.remember("no", source="test")


def test_reader_changes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "v"
    new_folder(path)
    with open_vault(path) as vault:
        vault.remember("a", source="test")
    before = tree(path)
    with open_vault(path, read_only=True) as reader:
        reader.search("a")
        reader.verify()
    after = tree(path)
    assert before.items() <= after.items()
    # What it gave out leaves a trace, in a file of its own.
    assert {name.parent.name for name in after.keys() - before.keys()} == {TRACES}


# ── one bad value ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", ["\ud800", "a \udfff b", ""])
@pytest.mark.parametrize("field", ["content", "source", "author", "thread", "origin", "tags"])
def test_text_that_cannot_be_stored_is_refused_and_blocks_nothing(tmp_path: Path, field: str, bad: str) -> None:
    new_folder(tmp_path / "v")
    with open_vault(tmp_path / "v") as vault:
        fields: dict[str, Any] = {"content": "a", "source": "test", field: [bad] if field == "tags" else bad}
        with pytest.raises(MemoryInvalid) as caught:
            vault.remember(**fields)
        assert bad == "" or bad not in str(caught.value)
        with pytest.raises(MemoryInvalid, match="item 1"):
            vault.remember_many([{"content": "b", "source": "test"}, fields])
        vault.remember("after", source="test")
    with open_vault(tmp_path / "v") as vault:
        assert set(everything(vault)) == {"after"}


@pytest.mark.parametrize(
    "bad",
    [
        [1, 0],
        [1, 0, 0, 0],
        [float("nan"), 0, 1],
        [float("inf"), 0, 1],
        [0, 0, 0],
        [],
        [[1, 0, 0], [0, 1, 0]],
        ["a", "b", "c"],
    ],
    ids=["shorter", "longer", "nan", "infinite", "zero", "empty", "two", "texts"],
)
def test_vector_that_cannot_be_used_is_refused_and_blocks_nothing(tmp_path: Path, bad: list[float]) -> None:
    new_folder(tmp_path / "v")
    with open_vault(tmp_path / "v") as vault:
        vault.remember("first", source="test", embedding=[1, 0, 0])
        with pytest.raises(VectorInvalid):
            vault.remember("bad", source="test", embedding=bad)
        with pytest.raises(VectorInvalid):
            vault.search(vector=bad)
        vault.remember("after", source="test", embedding=[0, 1, 0])
        assert vault.search(vector=[0, 1, 0], limit=1)[0].memory.content == "after"
    with open_vault(tmp_path / "v") as vault:
        assert set(everything(vault)) == {"first", "after"}
        assert vault.search(vector=[0, 1, 0], limit=1)[0].memory.content == "after"
