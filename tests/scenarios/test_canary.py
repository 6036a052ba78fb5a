"""Nothing that a person wrote, and no key, is found anywhere but in the vault's sealed records and in RAM."""

import base64
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memseal import Vault
from memseal.format.kit import parse_kit
from tests.scenarios.conftest import StartServer
from tests.scenarios.recording_proxy import RecordingProxy

MEMORIES = 500
DIMENSION = 384
PASSPHRASE = "canary-passphrase-7f3a"


FIELDS = ("content", "source", "author", "thread", "origin", "tag")


def marks(number: int) -> dict[str, str]:
    """The marked fields of one memory; each mark begins with a word that stands nowhere else."""
    return {field: f"canary{field}{number:04d}x{number * 7919 % 99991:05d}" for field in FIELDS}


def spellings(text: str) -> Iterator[bytes]:
    """The ways in which a text could stand somewhere in clear; in Base64 at each of its three alignments."""
    raw = text.encode()
    yield from (raw, text.encode("utf-16-le"), raw.hex().encode())
    for shift in range(3):
        yield base64.b64encode(bytes(shift) + raw)[4 if shift else 0 :].rstrip(b"=")[:-1]


def needles(vectors: np.ndarray) -> list[bytes]:
    found = [spelling for field in FIELDS for spelling in spellings(f"canary{field}")]
    for half in vectors.astype("<f2"):
        found.append(half[:12].tobytes())
    for single in vectors.astype("<f4"):
        found.append(single[:8].tobytes())
    return found


def haystack(*folders: Path) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield str(path), path.read_bytes()


def leaks(pieces: Iterator[tuple[str, bytes]], wanted: list[bytes]) -> list[str]:
    """Where any of the needles stand."""
    return [f"{name}: {needle!r}" for name, content in pieces for needle in wanted if needle in content]


def secret_needles(kit: str) -> list[bytes]:
    secret = parse_kit(kit).secret.reveal()
    # The letters of the kit that spell its secret, away from the vault id (public) on their left.
    letters = kit.replace("-", "")[6 + 30 : 6 + 50]
    spelled = [letters.encode(), kit[48:68].encode()]
    return [*spellings(PASSPHRASE), *spellings(kit), secret, secret.hex().encode(), *spelled]


def test_no_mark_leaves_the_vault(
    tmp_path: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    vectors = np.random.default_rng(7).standard_normal((MEMORIES, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ports: list[int] = []
    proxy = RecordingProxy(lambda: ports[0])
    url = f"http://127.0.0.1:{proxy.port}"
    server = start_server("store", "--url", url, "--log-level", "debug")
    ports.append(int(server.url.rsplit(":", 1)[1]))

    with Vault.create(tmp_path / "laptop", PASSPHRASE, device_name="canarydevice one", embedder=None) as one:
        items = []
        for number in range(MEMORIES):
            mark = marks(number)
            tag = mark.pop("tag")
            items.append({**mark, "tags": [tag]})
        for start in range(0, MEMORIES, 100):
            one.remember_many(items[start : start + 100], vectors[start : start + 100])
        one.supersede(
            one.list(limit=1)[0].id,
            content="canarycontent changed",
            source="canarysource changed",
            reason="canaryreason",
        )
        one.retract(one.list(limit=1)[0].id, reason="canaryreason")
        one.sync(url)
        kit = one.emergency_kit
        with Vault.join(tmp_path / "phone", kit, PASSPHRASE, url, device_name="canarydevice two", embedder=None) as two:
            hits = two.search(marks(42)["content"], limit=1)
            assert [hit.memory.content for hit in hits] == [marks(42)["content"]]
            near = two.search(vector=vectors[43], limit=1)
            assert [hit.memory.content for hit in near] == [marks(43)["content"]]
            two._opened.uncached = 1 << 30  # so that closing writes a cache, whatever it is worth
        one._opened.uncached = 1 << 30
    server.stop()
    proxy.close()

    folders = (tmp_path / "store", tmp_path / "laptop", tmp_path / "phone", temporary)
    for vault in ("laptop", "phone"):
        assert (tmp_path / vault / "cache" / "view.mseal").is_file()
    wanted = [
        *needles(vectors),
        *secret_needles(kit),
        *(spelling for word in ("canarydevice", "canaryreason", "changed by") for spelling in spellings(word)),
    ]
    pieces = [
        *haystack(*folders),
        ("server log", server.log.read_bytes()),
        ("client log", caplog.text.encode()),
        ("traffic", bytes(proxy.recorded)),
    ]
    assert len(proxy.recorded) > MEMORIES * DIMENSION * 2 * 2
    assert leaks(iter(pieces), wanted) == []


def test_the_search_for_marks_would_find_one(tmp_path: Path) -> None:
    vectors = np.ones((MEMORIES, DIMENSION), np.float32)
    (tmp_path / "plain").write_bytes(b"..." + marks(7)["tag"].encode("utf-16-le") + b"...")
    (tmp_path / "base64").write_bytes(base64.b64encode(b"12345" + marks(8)["content"].encode()))
    (tmp_path / "vector").write_bytes(b"." + vectors[3].astype("<f2").tobytes())
    found = leaks(haystack(tmp_path), needles(vectors))
    assert any("plain" in leak for leak in found)
    assert any("base64" in leak for leak in found)
    assert any("vector" in leak for leak in found)


def test_every_file_of_a_vault_is_owner_only(tmp_path: Path) -> None:
    with Vault.create(tmp_path / "v", secrets.token_hex(8), embedder=None) as vault:
        vault.remember("x", source="test")
    modes = {path.stat().st_mode & 0o077 for path in [tmp_path / "v", *(tmp_path / "v").rglob("*")]}
    assert modes == {0}
