"""The implementation in TypeScript, made from the spec alone, agrees with ours."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memseal import Vault
from tests.interop.typescript import (
    PASSPHRASE,
    ROOT,
    VECTORS,
    built_package,
    checked,
    listed,
    program,
    read,
    reader,
)
from tests.ports import own_port

# ── vectors ─────────────────────────────────────────────────────────────────────────────────────────


def test_it_passes_every_vector() -> None:
    done = reader("vectors", VECTORS)
    assert re.search(r"^[1-9][0-9]* passed, 0 failed$", done.stdout, re.MULTILINE), done.stdout[-4000:] + done.stderr
    assert done.returncode == 0


def emptied(manifest: Any) -> None:
    manifest["cases"] = []


def with_unknown_operation(manifest: Any) -> None:
    manifest["cases"][0]["operation"] = "guess"


def with_unknown_input(manifest: Any) -> None:
    manifest["cases"][0]["input"]["more"] = 1


def with_unknown_code(manifest: Any) -> None:
    manifest["cases"][0]["expect"] = {"error": "guessed"}


def with_unknown_expectation(manifest: Any) -> None:
    manifest["cases"][0]["expect"] = {"perhaps": {}}


def with_unknown_kind_of_bytes(manifest: Any) -> None:
    manifest["cases"][0]["input"]["ikm"] = {"base64": ""}


@pytest.mark.parametrize(
    "change",
    [
        emptied,
        with_unknown_operation,
        with_unknown_input,
        with_unknown_code,
        with_unknown_expectation,
        with_unknown_kind_of_bytes,
    ],
)
def test_its_runner_stops_at_what_it_does_not_know(tmp_path: Path, change: Callable[[Any], None]) -> None:
    manifest = json.loads((VECTORS / "manifest.json").read_text(encoding="utf-8"))
    manifest["cases"] = [case for case in manifest["cases"] if case["operation"] == "derive"][:1]
    change(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = reader("vectors", tmp_path)
    assert done.returncode != 0
    assert "the vectors cannot be run" in done.stderr
    assert "passed" not in done.stdout


def test_a_vector_that_does_not_hold_fails(tmp_path: Path) -> None:
    manifest = json.loads((VECTORS / "manifest.json").read_text(encoding="utf-8"))
    case = next(case for case in manifest["cases"] if case["operation"] == "derive")
    case["input"]["salt"] = "01"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"cases": [case]}), encoding="utf-8")
    done = reader("vectors", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_its_codes_are_those_of_the_spec() -> None:
    script = 'import("./dist/errors.js").then((errors) => console.log(JSON.stringify(errors.CODES)))'
    codes = json.loads(checked([program("node"), "-e", script], built_package()))
    table = (ROOT / "format-spec" / "errors.md").read_text(encoding="utf-8")
    assert codes == re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)


def test_its_sources_are_formatted() -> None:
    checked([program("npm"), "run", "--silent", "format:check"], built_package())


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = shutil.which("memseal-server", path=Path(sys.executable).parent)
    assert command is not None
    address = f"127.0.0.1:{own_port()}"
    store = tmp_path_factory.mktemp("server")
    arguments = [command, "--store", str(store), "--listen", address, "--url", f"http://{address}"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        assert "listening" in process.stdout.readline()
        yield f"http://{address}"
        process.terminate()


@pytest.fixture(scope="module")
def devices(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two devices that superseded one memory both, and have seen each other's writes."""
    folder = tmp_path_factory.mktemp("devices")
    paths = folder / "first.vault", folder / "second.vault"
    with created(paths[0]) as first:
        dentist = first.remember("The dentist is on Tuesday", source="test", tags=["health"], kind="fact")
        keys = first.remember("The key is under the pot", source="test", captured_at=datetime(2024, 2, 29, tzinfo=UTC))
        first.sync(server)
        with closing(Vault.join(paths[1], first.emergency_kit, PASSPHRASE, server, embedder=None)) as second:
            first.supersede(dentist.id, "The dentist is on Friday", source="test", reason="moved")
            second.supersede(dentist.id, "The dentist is on Monday", source="test", reason="they called")
            second.retract(keys.id, reason="stolen")
            first.remember("Grüße 🔑 from both", source="test", tags=["one"])
            second.remember("Grüße 🔑 from both", source="test", tags=["two"])
            for vault in (first, second, first):
                vault.sync(server)
    return paths


def created(path: Path) -> closing[Vault]:
    return closing(Vault.create(path, PASSPHRASE, embedder=None))


def opened(path: Path, passphrase: str = PASSPHRASE) -> closing[Vault]:
    return closing(Vault.open(path, passphrase, embedder=None))


def contents(path: Path) -> dict[str, str]:
    """Return content and state of all memories, as we read them."""
    with opened(path) as vault:
        return {memory.content: memory.state.name.lower() for memory in vault.list(state="all")}


def read_contents(path: Path, passphrase: str = PASSPHRASE) -> dict[str, str]:
    """Return the same as the other implementation reads it, without findings."""
    seen = read(path, passphrase)
    assert seen["findings"] == []
    return {memory["content"]: memory["state"] for memory in seen["memories"]}


def test_it_reads_a_vault_of_two_devices_as_we_do(devices: tuple[Path, Path]) -> None:
    first, second = devices
    assert read(first) == {"memories": listed(first), "findings": []}
    assert read(second) == {"memories": listed(second), "findings": []}


def test_it_reads_a_vault_after_a_change_of_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "my.vault"
    with created(path) as vault:
        vault.remember("before the change", source="test")
        vault.change_passphrase(PASSPHRASE, "another passphrase")
        vault.remember("after the change", source="test")
    assert read(path) == {"error": "passphrase_wrong"}
    assert read_contents(path, "another passphrase") == {"before the change": "active", "after the change": "active"}


def test_it_reads_checkpoints_and_logs_without_their_beginning(tmp_path: Path) -> None:
    path = tmp_path / "my.vault"
    with created(path) as vault:
        old = vault.remember("old", source="test")
        vault.remember("private", source="test")
        vault.supersede(old.id, "new", source="test")
        vault.compact()
        vault.remember("after the checkpoint", source="test")
        # An erase drops the key under which the log before it was sealed.
        vault.erase(next(memory.id for memory in vault.list() if memory.content == "private"))
        vault.remember("after the erase", source="test")
    assert len(list((path / "checkpoints").iterdir())) == 1
    left = {"old": "superseded", "new": "active", "after the checkpoint": "active", "after the erase": "active"}
    assert read_contents(path) == left
    assert contents(path) == left


def test_it_reads_a_bundle_as_we_list_the_vault(devices: tuple[Path, Path], tmp_path: Path) -> None:
    bundle = tmp_path / "all.mseal"
    with opened(devices[0]) as vault:
        vault.export_bundle(bundle, "of the bundle")
    assert read(bundle, "of the bundle") == {"memories": read(devices[0])["memories"], "findings": []}
    assert read(bundle) == {"error": "bundle_passphrase"}


def test_it_serves_what_damage_leaves_and_names_it_as_we_do(devices: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "damaged.vault"
    shutil.copytree(devices[0], path)
    longest = max((path / "logs").iterdir(), key=lambda log: log.stat().st_size)
    content = bytearray(longest.read_bytes())
    content[600] ^= 1
    longest.write_bytes(content)
    seen = read(path)
    assert [finding["code"] for finding in seen["findings"]] == ["record_sealed"]
    assert {memory["content"]: memory["state"] for memory in seen["memories"]} == contents(path)
    with opened(path) as vault:
        assert {finding.code for finding in vault.verify()} == {"record_sealed"}


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def operations(*changes: dict[str, Any]) -> str:
    return json.dumps(changes)


def written(text: str) -> dict[str, Any]:
    return {"op": "remember", "content": text, "kind": "fact", "source": "ts", "written_at": 1_750_000_000_123_456}


def test_we_accept_the_record_it_appends(devices: tuple[Path, Path], server: str, tmp_path: Path) -> None:
    path = tmp_path / "appended.vault"
    shutil.copytree(devices[1], path)
    with opened(path) as vault:
        target = next(memory.id for memory in vault.list() if memory.content.startswith("Grüße"))
    said = {"target": {"hex": target}, "at": 1_750_000_000_000_000}
    retract = {"op": "retract", "reason": "by the other implementation", **said}
    tag = {"op": "tag", "add": ["three"], "remove": [], **said}
    assert reader("append", path, stdin=operations(written("written elsewhere"), retract, tag)).returncode == 0

    with opened(path) as vault:
        memories = {memory.content: memory for memory in vault.list(state="all")}
        assert list(vault.verify()) == []
        assert list(vault.sync(server).findings) == []
    assert memories["written elsewhere"].written_at == datetime(2025, 6, 15, 15, 6, 40, 123456, tzinfo=UTC)
    assert memories["Grüße 🔑 from both"].state.name == "RETRACTED"
    assert sorted(memories["Grüße 🔑 from both"].tags) == ["one", "three", "two"]


def test_it_and_we_go_on_after_each_other(tmp_path: Path) -> None:
    path = tmp_path / "my.vault"
    with created(path):
        pass
    # The first record of all: here it begins the log.
    assert reader("append", path, stdin=operations(written("first"))).returncode == 0
    with opened(path) as vault:
        vault.remember("second", source="test")
    assert reader("append", path, stdin=operations(written("third"))).returncode == 0
    with opened(path) as vault:
        assert list(vault.verify()) == []
        vault.compact()
    # Now the log has lost its beginning.
    assert reader("append", path, stdin=operations(written("fourth"))).returncode == 0
    assert contents(path) == read_contents(path) == dict.fromkeys(["first", "second", "third", "fourth"], "active")
    assert len(list((path / "logs").iterdir())) == 1


def test_it_writes_nothing_that_a_reader_would_refuse(tmp_path: Path) -> None:
    path = tmp_path / "my.vault"
    with created(path):
        pass
    done = reader("append", path, stdin=operations(written("")))
    assert json.loads(done.stdout) == {"error": "operation_invalid"}
    assert contents(path) == {}
