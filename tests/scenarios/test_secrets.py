"""No passphrase, kit, key, memory text or vector in any error, log line or `repr`, and no call but to the remote."""

import copy
import dataclasses
import json
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import memseal
from memseal import Vault
from memseal.format.device_file import KeySet
from memseal.format.keys import (
    Key,
    KitSecret,
    LocalKey,
    RecordKey,
    SigningKey,
    StretchedPassphrase,
    VaultKey,
    WrappingKey,
)
from memseal.format.kit import parse_kit
from tests.scenarios.hostile_server import HostileServer, Reply, hostile_server, problem
from tests.scenarios.hostile_world import World, stream_of
from tests.scenarios.test_canary import spellings

# Put together here, so that no line of source in a traceback has one whole.
TEXT = "-".join(("canary", "text", "3f9a"))
WORDS = "-".join(("canary", "passphrase", "77b1"))
OTHER_WORDS = "-".join(("canary", "passphrase", "other", "5d20"))
VECTOR = [0.123456, 0.654321, 0.5]
LONE = "\ud800"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with hostile_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory, server: HostileServer) -> Iterator[Vault]:
    """A vault behind a marked passphrase, with a marked memory."""
    path = tmp_path_factory.mktemp("vault") / "vault"
    with Vault.create(path, WORDS, device_name="here", embedder=None) as made:
        made.remember(TEXT, source=TEXT, tags=[TEXT], author=TEXT, thread=TEXT, origin=TEXT, embedding=VECTOR)
        made.sync(server.url)
        yield made


def marks(kit: str) -> list[str]:
    """Everything that must not be shown, as it would be shown."""
    numbers = [str(VECTOR[0]), str(VECTOR[1]), str(float(np.float32(VECTOR[0]))), str(float(np.float16(VECTOR[0])))]
    secret = parse_kit(kit).secret.reveal()
    return [TEXT, WORDS, OTHER_WORDS, kit, kit[20:60], repr(secret)[2:-1], secret.hex(), *numbers]


def shown(error: BaseException) -> Iterator[str]:
    """All that a handler, a logger or a crash reporter could show of an error and of those behind it."""
    waiting: list[BaseException | None] = [error]
    seen = set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        waiting += [each.__cause__, each.__context__]
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)), repr(getattr(each, "__notes__", "")))
        yield "".join(traceback.format_exception(each))


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────

Try = Callable[[Vault, Path, str], object]

FAILURES: dict[str, Try] = {
    "open with a wrong passphrase": lambda vault, path, _: Vault.open(_path(vault), OTHER_WORDS, read_only=True),
    "open with one that is no text": lambda vault, path, _: Vault.open(_path(vault), WORDS + LONE, read_only=True),
    "open what is not there": lambda vault, path, _: Vault.open(path / "none", WORDS),
    "open what is open": lambda vault, path, _: Vault.open(_path(vault), WORDS),
    "create where something is": lambda vault, path, _: Vault.create(_path(vault), WORDS),
    "create with no text": lambda vault, path, _: Vault.create(path / "new", WORDS + LONE),
    "create in a file": lambda vault, path, _: Vault.create(Path(__file__) / "new", WORDS),
    "join with a mistyped kit": lambda vault, path, url: Vault.join(path / "new", vault.emergency_kit[:-1], WORDS, url),
    "join with a kit and more": lambda vault, path, url: Vault.join(
        path / "new", vault.emergency_kit + "7", WORDS, url
    ),
    "join with a wrong passphrase": lambda vault, path, url: Vault.join(
        path / "new", vault.emergency_kit, OTHER_WORDS, url
    ),
    "join where nothing listens": lambda vault, path, _: Vault.join(
        path / "new", vault.emergency_kit, WORDS, "http://127.0.0.1:9"
    ),
    "join a folder": lambda vault, path, _: Vault.join(path / "new", vault.emergency_kit, WORDS, str(path)),
    "change with a wrong passphrase": lambda vault, path, _: vault.change_passphrase(OTHER_WORDS, WORDS),
    "change to no text": lambda vault, path, _: vault.change_passphrase(WORDS, OTHER_WORDS + LONE),
    "change to the empty one": lambda vault, path, _: vault.change_passphrase(WORDS, " "),
    "change where nothing listens": lambda vault, path, _: vault.change_passphrase(
        WORDS, OTHER_WORDS, remote="http://127.0.0.1:9"
    ),
    "remember what is no Unicode": lambda vault, path, _: vault.remember(TEXT + LONE, source="test"),
    "remember with a tag that is no Unicode": lambda vault, path, _: vault.remember(
        "x", source="t", tags=[TEXT + LONE]
    ),
    "remember of an unknown kind": lambda vault, path, _: vault.remember("x", source="test", kind=TEXT),
    "remember what is no text": lambda vault, path, _: vault.remember([TEXT], source="test"),  # type: ignore[arg-type]
    "remember at no time": lambda vault, path, _: vault.remember(TEXT, source="t", captured_at=TEXT),  # type: ignore[arg-type]
    "remember with a vector of another shape": lambda vault, path, _: vault.remember(
        TEXT, source="test", embedding=[*VECTOR, 1]
    ),
    "remember with a vector that is not finite": lambda vault, path, _: vault.remember(
        TEXT, source="test", embedding=[*VECTOR[:2], float("nan")]
    ),
    "remember many with an unknown field": lambda vault, path, _: vault.remember_many(
        [{"content": TEXT, "source": "test", "nothing": TEXT}]
    ),
    "remember many without a source": lambda vault, path, _: vault.remember_many([{"content": TEXT}]),
    "get by a text": lambda vault, path, _: vault.get(TEXT),
    "retract what nobody knows": lambda vault, path, _: vault.retract("ab" * 16, reason=TEXT),
    "retract for no Unicode": lambda vault, path, _: vault.retract(vault.list()[0].id, reason=TEXT + LONE),
    "supersede what nobody knows": lambda vault, path, _: vault.supersede("ab" * 16, TEXT, source="test"),
    "supersede by nothing": lambda vault, path, _: vault.supersede(vault.list()[0].id, " ", source=TEXT),
    "search near a vector of another shape": lambda vault, path, _: vault.search(vector=[*VECTOR, 1]),
    "search for nothing": lambda vault, path, _: vault.search(TEXT, limit=0),
    "search by an unknown filter": lambda vault, path, _: vault.search(TEXT, nothing=TEXT),
    "search in an unknown state": lambda vault, path, _: vault.search(TEXT, state="nowhere"),
    "sync with a user in the address": lambda vault, path, _: vault.sync(f"http://user:{WORDS}@127.0.0.1:9"),
    "sync with a token in the address": lambda vault, path, _: vault.sync(f"http://127.0.0.1:9/?token={WORDS}"),
    "sync where nothing listens": lambda vault, path, _: vault.sync("http://127.0.0.1:9"),
    "sync with nothing of this kind": lambda vault, path, _: vault.sync("ftp://127.0.0.1"),
}


def _path(vault: Vault) -> Path:
    return vault._opened.folder.path


@pytest.mark.parametrize("name", FAILURES)
def test_no_error_carries_a_secret(
    vault: Vault, server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((memseal.MemsealError, ValueError, TypeError)) as caught:
        FAILURES[name](vault, tmp_path, server.url)
    pieces = [*shown(caught.value), caplog.text, *(repr(record.args) for record in caplog.records)]
    assert [mark for mark in marks(vault.emergency_kit) for piece in pieces if mark in piece] == []
    assert not any(tmp_path.iterdir())


ANSWERS = {
    "refused": problem(507, "limit"),
    "nonsense": Reply(200, b"<html>"),
    "unknown": problem(404, "vault_unknown"),
    "redirect": Reply(307, b"", {"Location": "http://localhost:9/"}),
    "clock": problem(401, "clock", now=1),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_no_error_of_a_lying_server_carries_a_secret(
    vault: Vault, server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    tries: list[Callable[[], object]] = [
        vault.sync,
        lambda: vault.change_passphrase(WORDS, OTHER_WORDS),
        lambda: Vault.join(tmp_path / "new", vault.emergency_kit, WORDS, server.url),
    ]
    pieces = list[str]()
    for each in tries:
        with server.lying(lambda *_: ANSWERS[name]), pytest.raises(memseal.MemsealError) as caught:
            each()
        pieces += shown(caught.value)
    pieces += [caplog.text, *(repr(record.args) for record in caplog.records)]
    assert [mark for mark in marks(vault.emergency_kit) for piece in pieces if mark in piece] == []


def test_no_finding_of_a_damaged_record_carries_its_text(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world = World.begin(server, tmp_path)
    world.two.remember(TEXT, source=TEXT)
    world.two.sync()
    world.two.close()
    path = tmp_path / "two" / "logs" / f"{stream_of(world.one).hex()}.mseal"
    path.write_bytes(path.read_bytes()[:-1])
    for place in range(64, path.stat().st_size, 97):
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)
    world.one.sync()
    status = world.one.status()
    world.one.close()
    assert TEXT not in repr(status) + caplog.text


@pytest.mark.parametrize(
    "query", [LONE, f"{TEXT}{LONE}", "\0", "\ufeff", "x" * 1_000_000, '"', "NEAR(", "a" + "*" * 99]
)
def test_search_for_anything_is_an_answer(vault: Vault, query: str) -> None:
    assert isinstance(vault.search(query), list)


@pytest.mark.parametrize("name", ["kind", "author", "thread", "source", "origin", "tags"])
def test_filter_that_is_no_unicode_is_refused_without_its_text(vault: Vault, name: str) -> None:
    filters: dict[str, Any] = {name: [TEXT + LONE] if name == "tags" else TEXT + LONE}
    with pytest.raises(ValueError, match=f"{name} has a lone surrogate") as caught:
        vault.list(**filters)
    assert not any(TEXT in piece for piece in shown(caught.value))


# ── what is shown of objects ────────────────────────────────────────────────────────────────────────


def test_no_public_object_shows_a_secret_or_a_text(vault: Vault, server: HostileServer) -> None:
    hit = vault.search(TEXT)[0]
    assert hit.memory.content == TEXT
    objects: list[object] = [
        vault,
        hit,
        hit.memory,
        hit.why,
        vault.list(),
        vault.status(),
        vault.sync(),
        vault.verify(),
        memseal.OpenAIEmbedder("model", "http://127.0.0.1:9", WORDS, dimension=3),
        vault._opened.keychain,
        vault._opened.device,
    ]
    pieces = [piece for each in objects for piece in (repr(each), str(each), f"{each}", f"{each!a}")]
    assert [mark for mark in marks(vault.emergency_kit) for piece in pieces if mark in piece] == []


def test_success_logs_no_secret(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with Vault.create(tmp_path / "one", WORDS, device_name="here", embedder=None) as one:
        one.remember(TEXT, source="test", embedding=VECTOR)
        one.sync(server.url)
        one.change_passphrase(WORDS, OTHER_WORDS)
        kit = one.emergency_kit
        with Vault.join(tmp_path / "two", kit, OTHER_WORDS, server.url, embedder=None) as two:
            assert two.search(TEXT)
    pieces = [caplog.text, *(repr(record.args) for record in caplog.records), *capfd.readouterr()]
    assert [mark for mark in marks(kit) for piece in pieces if mark in piece] == []


def test_process_shows_no_secret_in_its_arguments(vault: Vault) -> None:
    arguments = Path("/proc/self/cmdline")
    if not arguments.exists():
        pytest.skip("this system does not show arguments there")
    needles = [needle for mark in (WORDS, TEXT, vault.emergency_kit) for needle in spellings(mark)]
    assert [needle for needle in needles if needle in arguments.read_bytes()] == []


KEYS = [VaultKey, RecordKey, SigningKey, WrappingKey, LocalKey, KitSecret, StretchedPassphrase]


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.__name__)
def test_key_is_not_copied_stored_or_shown(kind: type[Key]) -> None:
    material = bytes(range(65, 65 + kind.SIZE))
    key = kind(material)
    copying: list[Callable[[], object]] = [
        lambda: copy.copy(key),
        lambda: copy.deepcopy(key),
        lambda: copy.deepcopy([{"key": key}]),
        *(lambda protocol=protocol: pickle.dumps(key, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        lambda: key.__reduce_ex__(4),
        lambda: json.dumps(key),
        lambda: bytes(cast("Any", key)),
        lambda: hash(key),
        lambda: {key},
    ]
    for each in copying:
        with pytest.raises((TypeError, ValueError)) as caught:
            each()
        assert not any(material.decode() in piece for piece in shown(caught.value))
    printed = f"{key}{key!r}{key!s}{key!a}" + "%s %r" % (key, key) + f"{key:}"  # noqa: UP031
    assert material.decode() not in printed
    assert material.hex() not in printed


def test_key_set_is_not_taken_apart() -> None:
    keys = KeySet(SigningKey(bytes(32)), WrappingKey(bytes(32)), LocalKey(bytes(32)))
    with pytest.raises(TypeError):
        dataclasses.asdict(keys)


# ── what a process does ─────────────────────────────────────────────────────────────────────────────

_WATCHED = """
import os, sys
folder, remote, words, text = sys.argv[1], sys.argv[2], sys.stdin.readline().strip(), "harmless"
seen = []
NETWORK = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
           "socket.gethostbyname", "socket.gethostbyaddr"}
PROCESSES = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty", "os.spawn"}

def watch(event, arguments):
    if event in NETWORK:
        seen.append(("network", repr(arguments[0 if event.startswith("socket.get") else 1])))
    elif event in PROCESSES:
        seen.append(("process", event))
    elif event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        seen.append(("write", os.fsdecode(arguments[0])))
    elif event == "sqlite3.connect" and arguments[0] != ":memory:":
        seen.append(("write", repr(arguments[0])))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
import memseal
with memseal.Vault.create(folder, words) as vault:
    vault.remember(text, source="test")
    assert vault.search(text)
    vault._opened.uncached = 1 << 30
assert not [each for each in seen if each[0] == "network"], seen
with memseal.Vault.open(folder, words) as vault:
    assert vault.status().model
    assert vault.search(text)
    vault.sync(remote)
for kind, what in seen:
    print(kind, what)
"""


def test_process_calls_nobody_but_the_remote_and_writes_nothing_outside_the_vault(
    server: HostileServer, tmp_path: Path
) -> None:
    elsewhere = {name: tmp_path / name for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    for folder in elsewhere.values():
        folder.mkdir()
    environment: dict[str, str] = {name: str(folder) for name, folder in elsewhere.items()}
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(tmp_path / "vault"), server.url],
        input=WORDS + "\n",
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    host, _, port = server.url.removeprefix("http://").partition(":")
    called: set[Any] = {what for kind, _, what in lines if kind == "network"}
    assert called
    assert {what for what in called if what not in (f"({host!r}, {port})", repr(host))} == set()
    assert [line for line in lines if line[0] == "process"] == []
    # A new folder is made beside its place, under a name of its own, and renamed.
    written = {what for kind, _, what in lines if kind == "write"}
    assert {
        what for what in written if not what.startswith((str(tmp_path / "vault"), str(tmp_path / ".vault")))
    } == set()
    assert [path for folder in elsewhere.values() for path in folder.rglob("*")] == []


def test_mark_behind_an_error_would_be_found() -> None:
    outer = RuntimeError("outer")
    outer.__context__ = ValueError(WORDS)
    assert any(WORDS in piece for piece in shown(outer))
    assert not any(WORDS in piece for piece in shown(RuntimeError("outer")))
