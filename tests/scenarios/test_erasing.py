"""What was erased is in no file, whatever key that is left opens it (vault-format §8b)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.format.kit import parse_kit
from memseal.store.disk import OsDisk
from memseal.vault.compaction import compacting
from memseal.vault.folder import opening
from memseal.vault.keys import passphrases
from memseal.vault.keys.joining import join_with
from memseal.vault.keys.proving import KitOpener
from memseal.vault.vault import Vault
from tests.scenarios.conftest import StartServer
from tests.scenarios.opened_files import plaintexts, vault_keys
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

SECRET = "the secret word is xylophone"
OTHER = "a word that stays is marimba"
NEW = "a newer passphrase"


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every closing leaves a cache."""
    monkeypatch.setattr(opening, "_CACHE_WORTH", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vault that has the secret in everything it can be in: logs of two epochs, a checkpoint, a cache."""
    path = tmp_path / "vault"
    new_folder(path)
    with open_vault(path) as vault:
        vault.remember("older", source="test", embedding=[0.0, 1.0])
        vault.compact()
        vault.remember(SECRET, source="test", tags=["xylophone tag"], author="xylophone player")
        vault.remember(OTHER, source="test", embedding=[1.0, 0.0])
        vault.supersede(secret_id(vault), SECRET + ", still", source="test")
    return path


def secret_id(vault: Vault) -> str:
    return next(memory.id for memory in vault.list(state="all") if memory.content.startswith(SECRET))


def is_in(folder: Path, text: str, *kept: Path, passphrase: str = PASSPHRASE) -> bool:
    """Whether a text is in anything that opens; `kept` are copies of keyrings of before."""
    keys = vault_keys(folder, passphrase)
    for keyring in kept:
        keys += vault_keys(folder, passphrase, keyring)
    return any(text.encode() in content for content in plaintexts(folder, keys, passphrase))


def erase(folder: Path) -> None:
    with open_vault(folder) as vault:
        assert vault.erase(secret_id(vault)).done


def test_search_finds_what_is_in_a_log_a_checkpoint_and_a_cache(folder: Path) -> None:
    for text in (SECRET, OTHER, "older"):
        assert is_in(folder, text)
    for name in ("logs", "cache"):
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
    assert is_in(folder, "older")
    assert not is_in(folder, SECRET)


def test_search_finds_what_is_in_a_cache_alone(folder: Path) -> None:
    for name in ("logs", "checkpoints", "parts"):
        shutil.rmtree(folder / name)
    assert is_in(folder, SECRET)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("rekeyed", [False, True])
def test_erased_text_is_in_no_file_with_any_key_that_is_left(folder: Path, compacted: bool, rekeyed: bool) -> None:
    with open_vault(folder) as vault:
        if rekeyed:
            vault.rekey()
        if compacted:
            vault.compact()
    erase(folder)
    assert not is_in(folder, "xylophone")
    assert is_in(folder, OTHER)


def test_erased_text_is_in_no_file_with_the_keys_of_before_either(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "keyring", tmp_path / "kept")
    erase(folder)
    assert not is_in(folder, "xylophone", tmp_path / "kept")


def test_old_ciphertext_opens_with_the_old_keyring_and_not_without_it(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "kept")
    erase(folder)
    for name in ("logs", "checkpoints", "parts", "cache"):
        shutil.rmtree(folder / name)
    for name in ("logs", "checkpoints", "parts"):
        shutil.copytree(tmp_path / "kept" / name, folder / name)
    assert is_in(folder, SECRET, tmp_path / "kept" / "keyring")
    assert not is_in(folder, SECRET)


def test_old_cache_does_not_open_with_the_keys_of_after_an_erase(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "cache", tmp_path / "kept")
    erase(folder)
    shutil.rmtree(folder / "cache")
    shutil.copytree(tmp_path / "kept", folder / "cache")
    assert not is_in(folder, SECRET)


def test_erased_text_is_gone_after_a_change_of_the_passphrase_too(folder: Path) -> None:
    with open_vault(folder) as vault, vault._writing() as opened:
        passphrases.change(opened, stretch_of(PASSPHRASE), stretch_of(NEW), NEW, None)
    with open_vault(folder, None, NEW) as vault:
        assert vault.erase(secret_id(vault)).done
    assert not is_in(folder, "xylophone", passphrase=NEW)
    assert is_in(folder, OTHER, passphrase=NEW)


def test_erased_text_of_a_large_checkpoint_is_in_no_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "_SMALL_PART", 1)
    with open_vault(folder) as vault:
        for number in range(3):
            vault.remember(f"number {number}", source="test")
            vault.compact(thorough=False)
    assert len(list((folder / "parts").iterdir())) > 2
    erase(folder)
    assert not is_in(folder, "xylophone")
    assert is_in(folder, "number 2")


def test_erased_text_is_in_no_file_of_the_server(folder: Path, start_server: StartServer) -> None:
    server = start_server()
    with open_vault(folder) as vault:
        vault.sync(server.url)
        vault.compact()
        sealed = [path.read_bytes()[64:] for path in (folder / "parts").iterdir()]
        assert all(is_stored(server.store, each) for each in sealed)
        assert vault.erase(secret_id(vault)).done
        vault.sync(server.url)
    server.stop()
    assert not any(is_stored(server.store, each) for each in sealed)


def is_stored(store: Path, content: bytes) -> bool:
    """Whether a piece of these bytes, from their middle, is in any file of a server's store."""
    piece = content[len(content) // 2 :][:64]
    return any(piece in path.read_bytes() for path in store.rglob("*") if path.is_file())


# ── killed at any moment ────────────────────────────────────────────────────────────────────────────


def killed_after(lines: int, folder: Path, number: int) -> list[str]:
    """What a process that erases in a vault had said when it was killed: it is in the middle of what comes next."""
    command = [sys.executable, "-m", "tests.scenarios.erasing_process", str(folder), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        return [line.rstrip() for line in (*said, *process.stdout) if line.endswith("\n")]


def test_process_that_is_killed_while_it_erases_leaves_a_whole_vault_without_what_was_erased(
    folder: Path, start_server: StartServer
) -> None:
    server = start_server()
    with open_vault(folder) as vault:
        vault.sync(server.url)
    said = [line for lines in range(2, 14) for line in killed_after(lines, folder, lines)]
    with open_vault(folder) as vault:
        vault.sync()
        assert vault.verify(read_data=True) == []
        assert all(each.done for each in vault.erasures())
    written = {line.removeprefix("wrote ") for line in said if line.startswith("wrote kept")}
    erased = {line.removeprefix("erased ") for line in said if line.startswith("erased ")}
    assert len(erased) > 3
    assert [text for text in written if not is_in(folder, text)] == []
    assert [text for text in erased if is_in(folder, text)] == []


def test_server_that_is_killed_while_a_device_erases_leaves_a_whole_vault_everywhere(
    folder: Path, start_server: StartServer
) -> None:
    server = start_server()
    with open_vault(folder) as vault:
        vault.sync(server.url)
    said = list[str]()
    for number in range(6):
        command = [sys.executable, "-m", "tests.scenarios.erasing_process", str(folder), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
            assert process.stdout is not None
            said += [process.stdout.readline() for _ in range(2 + number)]
            server.kill()
            server = start_server(port=int(server.url.rpartition(":")[2]))
            said += [process.stdout.readline() for _ in range(3)]
            process.kill()
            said += process.stdout.readlines()
    with open_vault(folder) as vault:
        vault.sync()
        kit, digest = vault.emergency_kit, vault.state_digest()
        assert vault.verify(read_data=True) == []
        assert all(each.done for each in vault.erasures())
    other = folder.with_name("other")
    stretch = stretch_of(PASSPHRASE)
    join_with(other, OsDisk(), KitOpener(parse_kit(kit), stretch), stretch, server.url, "other")
    with open_vault(other) as vault:
        assert vault.sync(server.url).findings == []
        assert vault.state_digest() == digest
    erased = {line.split(" ", 1)[1].rstrip() for line in said if line.startswith("erased ") and line.endswith("\n")}
    assert erased
    assert [text for text in erased if is_in(folder, text) or is_in(other, text)] == []
