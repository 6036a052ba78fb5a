"""How fast and how large a vault is: beside vaultmem in the same run, and against what the machine can do at most.

    python tests/bench/vault.py [--sizes 1000 10000] [--large 100000] [--json OUT]

Same texts (100 characters), same vectors (384 dimensions, random, of unit length) for both. Each case runs in a process
of its own, so that its peak memory is its own; key derivation is left out of opening for both. Figures are medians.
Machines differ and are shared: read the ratios.
"""

import argparse
import importlib
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

DIMENSION = 384
PASSPHRASE = "benchmark"
_WORDS = (
    "apple river window garden music winter doctor bicycle letter kitchen train mountain sister bread meeting summer "
    "candle harbour lesson ticket orchard blanket market engine pepper violin morning castle pocket thunder"
).split()


def texts(count: int) -> list[str]:
    """Return texts of 100 characters with a few dozen words among them."""
    rng = np.random.default_rng(1)
    picks = rng.integers(0, len(_WORDS), (count, 16))
    rows = (f"{number:07d} {' '.join(_WORDS[pick] for pick in row)}" for number, row in enumerate(picks))
    return [row[:100].ljust(100, "x") for row in rows]


def vectors(count: int) -> NDArray[np.float32]:
    """Return random vectors of unit length, shape (count, 384)."""
    made = np.random.default_rng(2).standard_normal((count, DIMENSION), dtype=np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def median_seconds(action: Callable[[], Any], runs: int) -> float:
    """Return the median wall time of an action."""
    taken = []
    for _ in range(runs):
        before = time.perf_counter()
        action()
        taken.append(time.perf_counter() - before)
    return statistics.median(taken)


def opening_seconds(opens: Callable[[], Any], runs: int) -> float:
    """Return the median wall time of opening, after one that is not counted; closing is not counted either."""
    opens().close()
    taken = []
    for _ in range(runs):
        before = time.perf_counter()
        vault = opens()
        taken.append(time.perf_counter() - before)
        vault.close()
    return statistics.median(taken)


def folder_bytes(folder: Path) -> int:
    """Return how many bytes all files of a folder have."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_megabytes() -> float:
    """Return this process's peak memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


# ── the cases, each in a process of its own ─────────────────────────────────────────────────────────


def memseal_case(folder: Path, count: int) -> dict[str, float]:
    """Bulk add, single adds, open, search, with memseal."""
    from memseal import Vault

    items = [{"content": text, "source": "bench"} for text in texts(count)]
    matrix, path = vectors(count), folder / "memseal"
    vault = Vault.create(path, PASSPHRASE, embedder=None)
    before = time.perf_counter()
    vault.remember_many(items, matrix)
    bulk = count / (time.perf_counter() - before)
    logs = folder_bytes(path / "logs")
    extra = vectors(50)[::-1]
    number = iter(range(50))

    def add_one() -> None:
        place = next(number)
        vault.remember(f"one more {place} ".ljust(100, "y"), source="bench", embedding=extra[place])

    single = median_seconds(add_one, 50)
    single_bytes = (folder_bytes(path / "logs") - logs) / 50
    queries = vectors(60)[-50:] + 0.01
    places = iter(range(50))
    search = median_seconds(lambda: vault.search(vector=queries[next(places)], limit=10), 50)
    vault.close()
    on_disk = folder_bytes(path)
    opening = opening_seconds(lambda: _open(path), 5)
    return {
        "bulk add, memories/s": bulk,
        "durable single add, ms": single * 1e3,
        "open, ms": opening * 1e3,
        "search top 10, ms": search * 1e3,
        "bytes a memory on disk": on_disk / count,
        "log bytes a memory, bulk": logs / count,
        "log bytes a memory, one by one": single_bytes,
        "peak memory, MB": peak_megabytes(),
    }


def vaultmem_case(folder: Path, count: int) -> dict[str, float]:
    """The same with vaultmem."""
    # Only `make bench` installs it; the type checkers must do without.
    session_type: Any = importlib.import_module("vaultmem").VaultSession

    class Ready:
        """An embedder that has every vector ready."""

        dimension = DIMENSION

        def __init__(self) -> None:
            more = [f"one more {place} ".ljust(100, "y") for place in range(50)]
            self._known = dict(zip([*texts(count), *more], vectors(count + 50).tolist(), strict=True))

        def embed(self, text: str) -> list[float]:
            vector: list[float] = self._known[text]
            return vector

    path = folder / "vaultmem"
    ready: Any = Ready()
    session = session_type.create(path, PASSPHRASE, owner="bench", embedder=ready)
    before = time.perf_counter()
    for text in texts(count):
        session.add(text)
    session.flush()
    bulk = count / (time.perf_counter() - before)
    number = iter(range(50))

    def add_one() -> None:
        session.add(f"one more {next(number)} ".ljust(100, "y"))
        session.flush()

    single = median_seconds(add_one, 10)
    queries = (vectors(60)[-50:] + 0.01).tolist()
    places = iter(range(50))
    search = median_seconds(lambda: session.search(queries[next(places)], top_k=10), 20)
    session.close()
    on_disk = folder_bytes(path)
    derivation = median_seconds(_derive, 3)
    opening = opening_seconds(lambda: session_type.open(path, PASSPHRASE, embedder=ready), 3) - derivation
    return {
        "bulk add, memories/s": bulk,
        "durable single add, ms": single * 1e3,
        "open, ms": opening * 1e3,
        "search top 10, ms": search * 1e3,
        "bytes a memory on disk": on_disk / count,
        "peak memory, MB": peak_megabytes(),
    }


def limits_case(folder: Path, count: int) -> dict[str, float]:
    """A large vault against the machine: decrypting, FAISS, FTS5, fsync."""
    case = memseal_case(folder, count)
    path = folder / "memseal"
    case["fsync of an append, ms"] = _fsync_seconds(folder / "probe") * 1e3
    case["single add, fsyncs"] = case["durable single add, ms"] / case["fsync of an append, ms"]
    case.update(_search_against_parts(path))
    return case


def open_case(folder: Path, count: int) -> dict[str, float]:
    """Open a vault that is there, in a process that did nothing before, and search once."""
    path = folder / "memseal"
    opening = opening_seconds(lambda: _open(path), 7)
    vault = _open(path)
    vault.search("river garden", vector=vectors(1)[0])
    vault.close()
    peak = peak_megabytes()
    decrypting = _decrypt_seconds(path / "cache" / "view.mseal")
    return {
        "open in a fresh process, ms": opening * 1e3,
        "decrypt the same bytes, ms": decrypting * 1e3,
        "open, times decrypting": opening / decrypting,
        "peak memory to open and search, MB": peak,
    }


def _search_against_parts(path: Path) -> dict[str, float]:
    """Time a hybrid search and its raw FAISS and FTS5 calls, in turn on the same open vault."""
    vault = _open(path)
    view = vault._opened.logbook.view
    assert view.vectors is not None
    connection: sqlite3.Connection = view.state.connection
    queries = vectors(90)[-30:] + 0.01
    whole, faiss_time, words_time = [], [], []
    for place, query in enumerate(queries):
        words = [_WORDS[(place + step * 7) % len(_WORDS)] for step in range(3)]
        match = " OR ".join(words)
        before = time.perf_counter()
        vault.search(" ".join(words), vector=query, limit=10)
        whole.append(time.perf_counter() - before)
        before = time.perf_counter()
        view.vectors.search(query, 10)
        faiss_time.append(time.perf_counter() - before)
        before = time.perf_counter()
        connection.execute(
            "SELECT rowid, rank FROM memories_text WHERE memories_text MATCH ? ORDER BY rank LIMIT 10", (match,)
        ).fetchall()
        words_time.append(time.perf_counter() - before)
    vault.close()
    parts = statistics.median(faiss_time) + statistics.median(words_time)
    return {
        "hybrid search, ms": statistics.median(whole) * 1e3,
        "raw FAISS call, ms": statistics.median(faiss_time) * 1e3,
        "raw FTS5 call, ms": statistics.median(words_time) * 1e3,
        "hybrid search, times both": statistics.median(whole) / parts,
    }


def _open(path: Path) -> Any:
    """Open with the derived key ready, so that Argon2id is not counted."""
    from memseal import Vault
    from memseal.store.disk import OsDisk
    from memseal.store.folder import VaultFolder
    from memseal.vault.folder.opening import stretcher

    stretch = _READY.setdefault(str(path), stretcher(PASSPHRASE))
    return Vault._open(VaultFolder(path, OsDisk()), stretch, False, None)


_READY: dict[str, Any] = {}


def _derive() -> None:
    from memseal.format.primitives import STANDARD_COST, stretch

    stretch(PASSPHRASE, bytes(32), STANDARD_COST)


def _decrypt_seconds(file: Path) -> float:
    """Time decrypting as many bytes as the file has, in pieces as it has them, into a ready buffer."""
    from memseal.format.keys import RecordKey
    from memseal.format.primitives import open_sealed_into, seal

    piece, key = 4 << 20, RecordKey(bytes(32))
    sealed = [seal(key, b"", os.urandom(piece)) for _ in range(max(1, file.stat().st_size // piece))]
    target = memoryview(bytearray(len(sealed[0])))

    def decrypt() -> None:
        for each in sealed:
            open_sealed_into(key, b"", each, target)

    return median_seconds(decrypt, 7)


def _fsync_seconds(file: Path) -> float:
    content = os.urandom(1236)
    with file.open("wb", buffering=0) as handle:

        def append() -> None:
            handle.write(content)
            os.fsync(handle.fileno())

        return median_seconds(append, 100)


CASES = {"memseal": memseal_case, "vaultmem": vaultmem_case, "limits": limits_case, "open": open_case}


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────


def run_case(name: str, folder: Path, count: int) -> dict[str, float]:
    """Run one case in a process of its own and return its figures."""
    command = [sys.executable, __file__, "--case", name, str(folder), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{name} at {count} failed:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def pair(folder: Path, count: int) -> dict[str, dict[str, float]]:
    """Run memseal and vaultmem in turn."""
    return {name: run_case(name, folder / f"{name}-{count}", count) for name in ("memseal", "vaultmem")}


def show_pair(console: Console, count: int, both: dict[str, dict[str, float]]) -> None:
    """Print two columns and their ratio, so that over 1 is always better for memseal."""
    table = Table(title=f"{count:,} memories of 100 characters, 384 dimensions")
    for heading in ("", "memseal", "vaultmem 0.3.3", "memseal is better by"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, theirs in both["vaultmem"].items():
        ours = both["memseal"][name]
        ratio = ours / theirs if name.endswith("/s") else theirs / ours
        table.add_row(name, f"{ours:,.2f}", f"{theirs:,.2f}", f"× {ratio:,.1f}")
    console.print(table)


def show_limits(console: Console, count: int, figures: dict[str, float]) -> None:
    """Print a large vault's figures."""
    table = Table(title=f"{count:,} memories, against the machine")
    table.add_column("")
    table.add_column("measured", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}")
    console.print(table)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10000])
    parser.add_argument("--large", type=int, default=100_000, help="0 leaves the large vault out")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        name, folder, count = arguments.case
        Path(folder).mkdir(parents=True, exist_ok=True)
        print(json.dumps(CASES[name](Path(folder), int(count))))
        return
    console, results = Console(), dict[str, Any]()
    folder = Path(tempfile.mkdtemp(prefix="memseal-bench-"))
    try:
        for count in arguments.sizes:
            results[str(count)] = pair(folder, count)
            show_pair(console, count, results[str(count)])
        if arguments.large:
            large = folder / "large"
            results["limits"] = run_case("limits", large, arguments.large) | run_case("open", large, arguments.large)
            show_limits(console, arguments.large, results["limits"])
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
