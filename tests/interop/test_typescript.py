"""The implementation in TypeScript, made from the spec alone, agrees with ours."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.typescript import (
    ROOT,
    VECTORS,
    built_package,
    checked,
    listed,
    memseal,
    program,
    read,
    reader,
    remember,
)

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
    case["input"]["salt"] = "00"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"cases": [case]}), encoding="utf-8")
    done = reader("vectors", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_its_codes_are_those_of_the_spec() -> None:
    script = 'import("./dist/errors.js").then((errors) => console.log(JSON.stringify(errors.CODES)))'
    codes = json.loads(checked([program("node"), "-e", script], built_package()))
    table = (ROOT / "format-spec" / "errors.md").read_text(encoding="utf-8")
    assert codes == re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = shutil.which("memseal-server", path=Path(sys.executable).parent)
    assert command is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
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
    first, second = folder / "first.vault", folder / "second.vault"
    kit = memseal("init", "--vault", first)["emergency_kit"]
    dentist = remember(first, "The dentist is on Tuesday", "--tag", "health", "--kind", "fact")
    keys = remember(first, "The spare key is under the blue pot", "--at", "2024-02-29T12:00:00+02:00")
    memseal("sync", server, "--vault", first)
    memseal("join", server, "--vault", second, env={"MEMSEAL_KIT": kit})
    memseal("supersede", dentist, "The dentist is on Friday", "--vault", first, "--reason", "moved")
    memseal("supersede", dentist, "The dentist is on Monday", "--vault", second, "--reason", "they called")
    memseal("retract", keys, "--vault", second, "--reason", "stolen")
    remember(first, "Grüße 🔑 from both", "--tag", "one")
    remember(second, "Grüße 🔑 from both", "--tag", "two")
    for vault in (first, second, first):
        memseal("sync", server, "--vault", vault)
    return first, second


def test_it_reads_a_vault_of_two_devices_as_we_do(devices: tuple[Path, Path]) -> None:
    first, second = devices
    assert read(first) == {"memories": listed(first), "findings": []}
    assert read(second) == {"memories": listed(second), "findings": []}


def test_it_reads_a_vault_after_a_change_of_passphrase(tmp_path: Path) -> None:
    vault = tmp_path / "my.vault"
    memseal("init", "--vault", vault)
    remember(vault, "before the change")
    memseal("passwd", "--vault", vault, env={"MEMSEAL_NEW_PASSPHRASE": "another passphrase"})
    assert read(vault) == {"error": "passphrase_wrong"}
    memories = read(vault, "another passphrase")["memories"]
    assert [memory["content"] for memory in memories] == ["before the change"]


def test_it_reads_a_bundle_as_we_list_the_vault(devices: tuple[Path, Path], tmp_path: Path) -> None:
    first, _ = devices
    bundle = tmp_path / "all.mseal"
    memseal("export", bundle, "--bundle", "--vault", first, env={"MEMSEAL_FILE_PASSPHRASE": "of the bundle"})
    assert read(bundle, "of the bundle") == {"memories": listed(first), "findings": []}
    assert read(bundle) == {"error": "bundle_passphrase"}


def test_it_serves_what_damage_leaves_and_names_it_as_we_do(devices: tuple[Path, Path], tmp_path: Path) -> None:
    vault = tmp_path / "damaged.vault"
    shutil.copytree(devices[0], vault)
    longest = max((vault / "logs").iterdir(), key=lambda log: log.stat().st_size)
    content = bytearray(longest.read_bytes())
    content[600] ^= 1
    longest.write_bytes(content)
    seen = read(vault)
    assert [finding["code"] for finding in seen["findings"]] == ["record_sealed"]
    assert {finding["code"] for finding in memseal("verify", "--vault", vault)["findings"]} == {"record_sealed"}
    assert seen["memories"] == listed(vault)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def operations(*changes: dict[str, Any]) -> str:
    return json.dumps(changes)


def written(text: str) -> dict[str, Any]:
    return {"op": "remember", "content": text, "kind": "fact", "source": "ts", "written_at": 1_750_000_000_123_456}


def test_we_accept_the_record_it_appends(devices: tuple[Path, Path], server: str, tmp_path: Path) -> None:
    vault = tmp_path / "appended.vault"
    shutil.copytree(devices[1], vault)
    target = next(memory["id"] for memory in listed(vault) if memory["content"].startswith("Grüße"))
    said = {"target": {"hex": target}, "at": 1_750_000_000_000_000}
    retract = {"op": "retract", "reason": "by the other implementation", **said}
    tag = {"op": "tag", "add": ["three"], "remove": [], **said}
    assert reader("append", vault, stdin=operations(written("written elsewhere"), retract, tag)).returncode == 0

    memories = {memory["content"]: memory for memory in listed(vault)}
    assert memseal("verify", "--vault", vault)["findings"] == []
    assert memories["written elsewhere"]["written_at"] == "2025-06-15T15:06:40.123456+00:00"
    assert memories["Grüße 🔑 from both"]["state"] == "retracted"
    assert memories["Grüße 🔑 from both"]["tags"] == ["one", "three", "two"]
    assert memseal("sync", server, "--vault", vault)["findings"] == []


def test_it_and_we_go_on_after_each_other(tmp_path: Path) -> None:
    vault = tmp_path / "my.vault"
    memseal("init", "--vault", vault)
    # The first record of all: here it begins the log.
    assert reader("append", vault, stdin=operations(written("first"))).returncode == 0
    remember(vault, "second")
    assert reader("append", vault, stdin=operations(written("third"))).returncode == 0
    assert sorted(memory["content"] for memory in listed(vault)) == ["first", "second", "third"]
    assert read(vault) == {"memories": listed(vault), "findings": []}
    assert memseal("verify", "--vault", vault)["findings"] == []
    assert len(list((vault / "logs").iterdir())) == 1


def test_it_writes_nothing_that_a_reader_would_refuse(tmp_path: Path) -> None:
    vault = tmp_path / "my.vault"
    memseal("init", "--vault", vault)
    done = reader("append", vault, stdin=operations(written("")))
    assert json.loads(done.stdout) == {"error": "operation_invalid"}
    assert listed(vault) == []
