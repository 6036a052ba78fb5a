"""What the container costs: checkpoints against bare sealing and hashing, replay of a log, compaction, erase.

    python tests/bench/container.py [--megabytes 100] [--records 100000] [--runs 5] [--replay] [--large 0]
                                    [--gigabytes 0] [--json OUT]

Bare: Cobblestone-256 over the same bytes in one thread, SHA-256 over what it gives in another, in pieces of 2 MiB. The
container works on two parts at once; it adds framing, padding, chain, meta and its checks.
Figures are medians; the machine is shared: read the ratios.

`--replay` measures only the replay of a log of N records of one memory with its vector: `log` is reading, opening,
checking and decoding them, `merge` what the open state takes to apply them, `both` what an opening does. Of processor
time a busy machine changes less. Signatures are verified while the log is read, of each piece of 4 MiB the newest:
the chain vouches for the records before it.

`--large N` adds a vault of N memories with vectors: opening it from its checkpoint, reading all of it anew, compacting
it thoroughly, each in a process of its own, with the peak of its memory against the size of the files.
`--gigabytes N` does the same with logs of N GB: 5,000 memories that were given new vectors of 12,288 values again and
again, as by one change of the model after another. What counts is small, and what has to be read is not.
"""

import argparse
import hashlib
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import msgpack
import numpy as np
import zstandard
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from rich.console import Console
from rich.table import Table

from memseal import Vault
from memseal.errors import Finding
from memseal.format import primitives
from memseal.format.checkpoint import part_preamble
from memseal.format.content import Column, Content
from memseal.format.keys import RecordKey
from memseal.format.log import LogWriter
from memseal.format.part import Sealed, read_run, seal_run, start_of_part
from memseal.index.view import PassingView, Said, View
from memseal.memory.memory import draft
from memseal.memory.operations import Remember
from memseal.vault.checkpoint.parts import Sayings
from memseal.vault.folder.batch import Batch, compose
from memseal.vault.folder.logbook import Logbook
from memseal.vault.folder.opening import Opened
from memseal.vault.writes.writing import CALLER_MODEL

PASSPHRASE = "benchmark"
ROOT = Path(__file__).parents[2]
DIMENSION = 384
PIECE = 2 << 20
PART_RECORDS = 7  # a part has at most 16 MiB
_WORDS = (
    "apple river window garden music winter doctor bicycle letter kitchen train mountain sister bread meeting summer "
    "candle harbour lesson ticket orchard blanket market engine pepper violin morning castle pocket thunder"
).split()


def timed(action: Callable[[], Any]) -> float:
    """Return the wall time of an action in seconds."""
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def paired(one: Callable[[], Any], other: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Return the median wall times of two actions that take turns, after one turn that is not counted."""
    times = [(timed(one), timed(other)) for _ in range(runs + 1)][1:]
    return statistics.median(each for each, _ in times), statistics.median(each for _, each in times)


def memories(count: int) -> list[dict[str, Any]]:
    """Return memories of 100 characters."""
    rng = np.random.default_rng(1)
    picks = rng.integers(0, len(_WORDS), (count, 16))
    texts = (f"{number:07d} {' '.join(_WORDS[pick] for pick in row)}"[:100] for number, row in enumerate(picks))
    return [{"content": text, "source": "benchmark"} for text in texts]


def vectors(count: int) -> np.ndarray:
    """Return random vectors of unit length, shape (count, 384)."""
    made = np.random.default_rng(2).standard_normal((count, DIMENSION), dtype=np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


# ── a checkpoint's bytes ────────────────────────────────────────────────────────────────────────────


def seal_bare(key: bytes, pieces: Iterable[bytes]) -> None:
    """Seal pieces in one thread and hash what comes out in another; as where it is written, nothing is kept."""
    digest = hashlib.sha256()

    def take(sealed: bytes, end: bytes) -> None:
        digest.update(sealed)
        digest.update(end)

    with ThreadPoolExecutor(1) as beside:
        waiting = None
        for piece in pieces:
            encryptor = Cobblestone256Encryptor(key, b"context")
            sealed, end = encryptor.update(piece), encryptor.finalize()
            if waiting is not None:
                waiting.result()
            waiting = beside.submit(take, sealed, end)
    digest.digest()


def open_bare(key: bytes, sealed: Iterable[bytes]) -> None:
    """Open pieces in one thread and hash them in another."""
    digest = hashlib.sha256()
    with ThreadPoolExecutor(1) as beside:
        for piece in sealed:
            waiting = beside.submit(digest.update, piece)
            decryptor = Cobblestone256Decryptor(key, b"context")
            decryptor.update(piece)
            decryptor.finalize()
            waiting.result()
    digest.digest()


def checkpoint(megabytes: int, runs: int) -> dict[str, float]:
    """Return throughput in bytes a second and ratios, sealing and opening, container against bare."""
    raw, key, preamble = os.urandom(PIECE), os.urandom(32), part_preamble(bytes(16), bytes(range(16)))
    rows = PIECE // (2 * DIMENSION)
    content = raw[: rows * 2 * DIMENSION]
    parts = max(2, megabytes * 1_000_000 // (PART_RECORDS * len(content)))
    count = parts * PART_RECORDS
    column = Column("embedding", "benchmark", "f2", DIMENSION, rows, content)
    contents: list[Sayings] = [({"operations": []}, (column,))] * PART_RECORDS
    size = count * len(content)
    record_key = RecordKey(key)

    def sealed_part() -> Iterator[Sealed]:
        return seal_run(record_key, preamble, start_of_part(preamble), contents)

    def seal_part(_: int) -> int:
        return sum(len(each.record) for each in sealed_part())

    def seal() -> None:
        with ThreadPoolExecutor(2) as threads:
            assert sum(threads.map(seal_part, range(parts))) > size

    stored = memoryview(b"".join((preamble, *(each.record for each in sealed_part()))))

    def read_part(_: int) -> bool:
        return all(isinstance(each, Content) for each in read_run("part", record_key, stored))

    def read() -> None:
        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(read_part, range(parts)))

    encryptor = Cobblestone256Encryptor(key, b"context")
    bare = [encryptor.update(content) + encryptor.finalize()] * count
    ours_seal, bare_seal = paired(seal, lambda: seal_bare(key, [content] * count), runs)
    ours_open, bare_open = paired(read, lambda: open_bare(key, bare), runs)
    return {
        "seal_bytes_per_second": size / ours_seal,
        "seal_ratio": bare_seal / ours_seal,
        "open_bytes_per_second": size / ours_open,
        "open_ratio": bare_open / ours_open,
    }


# ── a vault's life ──────────────────────────────────────────────────────────────────────────────────


def plaintext_size(items: list[dict[str, Any]], embeddings: np.ndarray) -> int:
    """Return how many bytes msgpack and zstd make of memories and vectors, without any sealing, 4,096 at a time."""
    size = 0
    for start in range(0, len(items), 4096):
        some = embeddings[start : start + 4096].astype("<f2").tobytes()
        size += len(zstandard.compress(msgpack.packb(items[start : start + 4096]))) + len(some)
    return size


def folder_size(path: Path, *folders: str) -> int:
    """Return how many bytes the files in some folders of a vault have."""
    return sum(file.stat().st_size for folder in folders for file in (path / folder).glob("*.mseal"))


def opened_seconds(path: Path) -> float:
    """Return how long reading the vault takes without its cache, passphrase included."""
    (path / "cache" / "view.mseal").unlink(missing_ok=True)
    taken = timed(lambda: Vault.open(path, PASSPHRASE, embedder=None, read_only=True).close())
    return taken


def life(folder: Path, records: int) -> dict[str, float]:
    """Return figures of a vault of memories that were each written alone, with vectors."""
    items, embeddings = memories(records), vectors(records)
    path = folder / "single.vault"
    vault = Vault.create(path, PASSPHRASE, embedder=None)
    for item, embedding in zip(items, embeddings, strict=True):
        vault.remember(item["content"], source=item["source"], embedding=embedding)
    empty = folder / "empty.vault"
    Vault.create(empty, PASSPHRASE, embedder=None).close()
    vault.close()
    derivation = statistics.median(opened_seconds(empty) for _ in range(3))
    replay = statistics.median(opened_seconds(path) for _ in range(3)) - derivation
    logs = folder_size(path, "logs")
    vault = Vault.open(path, PASSPHRASE, embedder=None)
    compacting = timed(vault.compact)
    compacted = folder_size(path, "logs", "checkpoints", "parts")
    first = vault.list(limit=1)[0]
    erasing = timed(lambda: vault.erase(first.id))
    vault.close()
    plain = plaintext_size(items, embeddings)
    from_checkpoint = statistics.median(opened_seconds(path) for _ in range(3)) - derivation
    return {
        "replay_records_per_second": records / replay,
        "open_from_checkpoint_records_per_second": records / from_checkpoint,
        "log_bytes_per_memory": logs / records,
        "checkpoint_bytes_per_memory": compacted / records,
        "plain_bytes_per_memory": plain / records,
        "checkpoint_to_plain": compacted / plain,
        "compaction_seconds": compacting,
        "erase_seconds": erasing,
    }


# ── the replay of a log ─────────────────────────────────────────────────────────────────────────────


class Stopwatch:
    """Adds up wall and processor time, in seconds, of what runs in it."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self.turns = 0

    def __enter__(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def __exit__(self, *error: object) -> None:
        wall, processor = self._begun
        self.wall += time.perf_counter() - wall
        self.processor += time.process_time() - processor
        self.turns += 1


class TimedView(View):
    """A view that says how long it takes to apply what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Stopwatch()

    def apply_all(self, records: Sequence[Said], covered: bool = False) -> list[Finding]:
        with self.watch:
            return super().apply_all(records, covered)


def write_single_records(path: Path, records: int) -> None:
    """Make a vault whose log is one of memories that were each written alone, but with one fsync for nearly all."""
    items, codes = memories(records), vectors(records).astype("<f2")
    vault = Vault.create(path, PASSPHRASE, embedder=None)
    vault.remember(**items[0], embedding=codes[0])  # begins the log, and pins the model
    logbook, key, pieces = vault._opened.logbook, vault._opened.device.keys.sign, list[bytes]()
    (log,) = logbook.logs.values()
    writer, counter = LogWriter(log.stream.preamble, log.stream.key, key, log.end), log.counter
    for item, code in zip(items[1:], codes[1:], strict=True):
        operation = Remember(secrets.token_bytes(16), draft(**item), time.time_ns() // 1000, 0)
        column = Column("embedding", CALLER_MODEL, "f2", DIMENSION, 1, code.tobytes())
        contents, composed = compose(log.stream.epoch, counter, (), [Batch([operation], (column,))])
        written, writer.end = writer.write(contents)
        pieces += written
        counter = composed[-1].counter
    logbook.files.append(log.stream.stream_id, log.stored, b"".join(pieces))
    assert vault._lock is not None
    vault._lock.release()  # closing would compact it


def load(opened: Opened, view: View, records: int) -> Stopwatch:
    """Return what it takes to read all logs of a vault into a view, as where nothing was verified before."""
    logbook, watch = Logbook(opened.folder, opened.keychain, opened.device.keys.sign, view, 0), Stopwatch()
    with watch:
        logbook.load({})
    assert not logbook.findings
    assert sum(log.end.records for log in logbook.logs.values()) == records
    return watch


def replay(folder: Path, records: int, runs: int) -> dict[str, float]:
    """Return records a second and processor time a record (in µs): reading the log, merging it, and both."""
    path, watches = folder / "replayed.vault", dict[str, list[Stopwatch]]()
    write_single_records(path, records)
    verify, signatures = primitives.verify, Stopwatch()

    def verify_timed(public_key: bytes, signature: bytes, message: bytes) -> None:
        with signatures:
            verify(public_key, signature, message)

    with Vault.open(path, PASSPHRASE, embedder=None, read_only=True) as vault:
        for _ in range(runs):
            with mock.patch.object(primitives, "verify", verify_timed):
                watches.setdefault("log", []).append(load(vault._opened, PassingView(), records))
            view = TimedView()
            watches.setdefault("both", []).append(load(vault._opened, view, records))
            watches.setdefault("merge", []).append(view.watch)
            assert view.state.count() == records
            view.close()
    figures = dict[str, float]()
    for name, taken in watches.items():
        figures[f"{name}_records_per_second"] = records / statistics.median(each.wall for each in taken)
        processor = statistics.median(each.processor for each in taken)
        figures[f"{name}_processor_microseconds"] = 1e6 * processor / records
    return figures | {
        "signatures_verified": signatures.turns / runs,
        "signature_processor_microseconds": 1e6 * signatures.processor / signatures.turns,
    }


# ── a large vault ───────────────────────────────────────────────────────────────────────────────────

_ACT = """
import resource, sys, time
from memseal import Vault
before = time.perf_counter()
vault = Vault.open(sys.argv[1], sys.argv[2], embedder=None)
opened = time.perf_counter() - before
{act}
print(opened, time.perf_counter() - before - opened, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
vault._lock.release()
"""
_ACTS = {"open": "", "verify": "assert vault.verify() == []", "compact": "vault.compact()"}


_FILL = """
import sys
import numpy as np
from memseal import Vault
from memseal.vault.writes.writing import embed_batches
from tests.bench.container import memories
path, passphrase, most = sys.argv[1], sys.argv[2], float(sys.argv[3]) * 1e9
made = np.random.default_rng(3).standard_normal((5_000, 12_288), dtype=np.float32)
made /= np.linalg.norm(made, axis=1, keepdims=True)
vault = Vault.create(path, passphrase, embedder=None)
ids = [bytes.fromhex(each.id) for each in vault.remember_many(memories(5_000), made)]
codes, model, size = made.astype(np.float16), vault._opened.logbook.view.pinned[0], made.nbytes // 2
while size < most:
    for start in range(0, len(ids), 128):
        vault._write(embed_batches(ids[start : start + 128], model, codes[start : start + 128]))
    size += codes.nbytes
vault._lock.release()  # closing would compact it
"""


def large(folder: Path, count: int) -> dict[str, float]:
    """Return seconds and peak memory of what is done with a vault of this many memories."""
    path, embeddings = folder / "large.vault", vectors(10_000)
    with Vault.create(path, PASSPHRASE, embedder=None) as vault:
        for start in range(0, count, 10_000):
            items = [{**item, "content": f"{start} {item['content']}"} for item in memories(min(10_000, count - start))]
            vault.remember_many(items, embeddings[: len(items)])
        vault.compact()
    return acted("large", path)


def long(folder: Path, gigabytes: float) -> dict[str, float]:
    """Return seconds and peak memory of what is done with a vault whose logs are this long."""
    path = folder / "long.vault"
    run(_FILL, path, str(gigabytes))
    return acted("long", path)


def acted(name: str, path: Path) -> dict[str, float]:
    """Return seconds and peak memory of each act on a vault."""
    (path / "cache" / "view.mseal").unlink(missing_ok=True)
    size = folder_size(path, "logs", "checkpoints", "parts")
    figures = {f"{name}_file_bytes": float(size)}
    for kind, act in _ACTS.items():
        opened, seconds, peak = map(float, run(_ACT.format(act=act), path).split())
        figures[f"{name}_{kind}_seconds"] = seconds if act else opened
        figures[f"{name}_{kind}_peak_bytes"] = peak
        figures[f"{name}_{kind}_peak_to_files"] = peak / size
    return figures


def run(program: str, path: Path, *arguments: str) -> str:
    """Run a program on a vault in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), PASSPHRASE, *arguments],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout


def main() -> None:
    """Run all of it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {} if options.replay else checkpoint(options.megabytes, options.runs)
    with tempfile.TemporaryDirectory() as folder:
        figures |= replay(Path(folder), options.records, options.runs)
        if not options.replay:
            figures |= life(Path(folder), options.records)
        if options.large:
            figures |= large(Path(folder), options.large)
        if options.gigabytes:
            figures |= long(Path(folder), options.gigabytes)
    title = f"{options.records:,} memories"
    if not options.replay:
        title = f"{options.megabytes} MB checkpoint, {title}"
    table = Table("figure", "value", title=title)
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:,.2f}")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
