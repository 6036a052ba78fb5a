"""What other programs wrote or say: files to import, answers of embedding services, receipts that somebody shows."""

import atexit
import functools
import json
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memseal.embedding import OllamaEmbedder, OpenAIEmbedder
from memseal.errors import ImportRowError, MemsealError
from memseal.format.keys import ReceiptKey, RecordKey
from memseal.format.primitives import sha256
from memseal.recall.receipt import is_own
from memseal.surfaces.importing.items import Reading
from memseal.surfaces.importing.opening import open_import
from memseal.surfaces.importing.vaultmem import Source, _listed, read_vaultmem
from tests.bench.fuzzing import mutation
from tests.bench.fuzzing.target import Target

REFUSALS: tuple[type[Exception], ...] = (MemsealError,)
_SAMPLES = Path(__file__).parents[2] / "surfaces" / "samples"
_NAMES = ("input.json", "input.jsonl")
_KEY = RecordKey(sha256(b"a key"))


@functools.cache
def _folder() -> Path:
    """Return a folder for what is read from a file."""
    # libFuzzer ends its process at once: then it is `fuzz.py` that removes this.
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# ── imports ─────────────────────────────────────────────────────────────────────────────────────────


def _file(content: bytes) -> None:
    path = _folder() / _NAMES[(content[0] if content else 0) % 2]
    path.write_bytes(content[1:])
    bad = list[ImportRowError]()
    _, items, rows = open_import(path, on_error=bad.append)
    found = sum(1 for _ in items)
    if found > rows:
        raise AssertionError(f"{found} items of {rows} rows")


def _files() -> Iterator[bytes]:
    for path in sorted(_SAMPLES.glob("*.json")):
        yield b"\0" + path.read_bytes()
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "I react badly to cashews"}]
    locomo = {"sample_id": "a", "conversation": {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}}
    yield b"\0" + json.dumps([locomo]).encode()
    row = {"content": "cashews", "source": "chat", "kind": "fact", "tags": ["a"], "captured_at": "2024-05-01T10:00:00Z"}
    rows = [row, row | {"position": 3, "location": {"place": "Lyon"}, "policy": {"access": "owner"}}]
    yield b"\1" + b"\n".join(json.dumps(each).encode() for each in rows)
    yield b"\0" + _small_database()


def _small_database() -> bytes:
    """Return provenmem's sample in the fewest pages that hold it."""
    path = _folder() / "small.db"
    path.write_bytes((_SAMPLES / "provenmem.db").read_bytes())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()
    return path.read_bytes()


def _change_file(content: bytes, random: Random) -> bytes:
    first, content = content[:1] or b"\0", content[1:]
    if content.startswith(b"SQLite") or random.random() < 0.1:
        return first + mutation.scratched(content, random)
    if first == b"\1":
        lines = content.split(b"\n")
        at = random.randrange(len(lines))
        lines[at] = mutation.change_json(lines[at], random)
        return first + b"\n".join(lines)
    return first + mutation.change_json(content, random)


def _sealed(content: bytes, context: bytes) -> bytes:
    nonce = bytes(12)
    sealed = AESGCM(_KEY.reveal()).encrypt(nonce, content, context)
    return nonce + (len(sealed) - 16).to_bytes(4, "big") + sealed


def _vaultmem(content: bytes) -> None:
    """Read an atom, or with a first byte over 7F an index, behind vaultmem's own sealing."""
    kind, content = content[:1], content[1:]
    plain = zlib.compress(content, 1)
    if kind > b"\x7f":
        header = (b"VMEM\0\1" + bytes(6) + (48).to_bytes(4, "big")).ljust(48, b"\0")
        _listed(_folder(), _KEY, header + _sealed(plain, header))
        return
    path, name = _folder() / "one.atoms", "00000000-0000-4000-8000-000000000001"
    path.write_bytes(_sealed(plain, bytes.fromhex(name.replace("-", ""))))
    bad = list[ImportRowError]()
    items = list(read_vaultmem(Source(_KEY, ((name, path, 0, path.stat().st_size),)), Reading("a", bad.append)))
    if len(items) + len(bad) != 1:
        raise AssertionError("an atom is an item or a bad row")


def _atoms() -> Iterator[bytes]:
    name = "00000000-0000-4000-8000-000000000001"
    atom: dict[str, Any] = {"id": name, "content": "cashews", "type": "SEMANTIC", "granularity": "ATOM"}
    atom |= {"session_id": "s", "created_at": "2024-05-01T10:00:00", "supersedes": [name], "is_churned": True}
    yield b"\0" + json.dumps(atom | {"churn_reason": "OLD", "owner": "ann", "captured_at": 1.5}).encode()
    yield b"\xff" + json.dumps({"atom_map": [{"id": name, "offset": 0, "size": 90}]}).encode()


# ── embedding services, receipts ────────────────────────────────────────────────────────────────────


class _Answering:
    """An endpoint that answers with the input."""

    shown = "an endpoint"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def post(self, request: object) -> object:
        return self._answer


def _embedding(content: bytes) -> None:
    answer = _json_of(content[1:])
    embedder: Any = (OllamaEmbedder if content[:1] <= b"\x7f" else OpenAIEmbedder)("a model", "http://127.0.0.1:1")
    embedder._endpoint = _Answering(answer)
    vectors = embedder.embed(["one", "two"])
    if vectors.shape[0] != 2 or not np.allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-3):
        raise AssertionError("vectors that are not of unit length")


def _embeddings() -> Iterator[bytes]:
    rows = [[0.6, 0.8], [1, 0.0]]
    yield b"\0" + json.dumps({"embeddings": rows}).encode()
    yield b"\xff" + json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()


def _receipt(content: bytes) -> None:
    value: Any = _json_of(content)
    if is_own(value, ReceiptKey(sha256(b"a receipt key"))):
        raise AssertionError("a receipt that nobody sealed is taken for our own")


def _receipts() -> Iterator[bytes]:
    yield json.dumps({"query": "a", "served": [{"id": "00"}], "version": 1, "seal": "00" * 32}).encode()


def _json_of(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


TARGETS = {
    "import": Target(_file, _files, REFUSALS, _change_file),
    "vaultmem": Target(_vaultmem, _atoms, REFUSALS, mutation.behind(1, mutation.change_json)),
    "embedding": Target(_embedding, _embeddings, REFUSALS, mutation.behind(1, mutation.change_json)),
    "receipt": Target(_receipt, _receipts, REFUSALS, mutation.change_json),
}
