"""What is measured at one size: each function runs in a process of its own, and returns figures by name."""

import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from memseal import Vault
from memseal.index import approximation
from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.vault.folder.opening import stretcher
from tests.bench.scaling import corpus
from tests.bench.vault import PASSPHRASE, folder_bytes, peak_megabytes

Figures = dict[str, float]
STEP = 20_000
_WARM = 40
"""Questions that are asked before the others: frequent words are read at their first use."""
_ASKED, _FEWER = 100, 60
_NEVER = 1 << 60


def fill(folder: Path, count: int) -> Figures:
    """Add `count` memories to a new vault, in bulk, and close it."""
    path, seconds = folder / "memseal", 0.0
    vault = Vault.create(path, PASSPHRASE, embedder=None)
    for first in range(0, count, STEP):
        some = min(STEP, count - first)
        items, matrix = corpus.items(first, some), corpus.vectors(first, some)
        seconds += _seconds(partial(vault.remember_many, items, matrix))
    closing = _seconds(vault.close)
    return {
        "bulk add, memories/s": count / seconds,
        "first close, s": closing,
        "bytes a memory on disk": folder_bytes(path) / count,
        "peak memory to fill, MB": peak_megabytes(),
    }


def use(folder: Path, count: int) -> Figures:
    """Open the vault that `fill` made, search it, and add to it."""
    path, stretch = folder / "memseal", stretcher(PASSPHRASE)
    vault: Any = None

    def opened(read_only: bool) -> Vault:
        return Vault._open(VaultFolder(path, OsDisk()), stretch, read_only, None)

    opened(True).close()  # with the key derived, and the files in the system's cache
    opening = []
    for _ in range(3):
        before = time.perf_counter()
        vault = opened(True)
        opening.append(time.perf_counter() - before)
        vault.close()
    figures: Figures = {"open after key derivation, s": statistics.median(opening)}
    vault = opened(False)
    figures["peak memory to open, MB"] = peak_megabytes()
    vectors = vault._opened.logbook.view.vectors
    figures["approximate index"] = float(vectors._approximation.is_ready)
    asked, queries = corpus.questions(), corpus.question_vectors()

    def hybrid(number: int, **filters: Any) -> Any:
        return vault.search(asked[number], vector=queries[number], limit=10, **filters)

    figures |= _times("hybrid search, cold", lambda number: hybrid(number), range(_WARM))
    rest = range(_WARM, _WARM + _ASKED)
    figures |= _times("hybrid search", lambda number: hybrid(number), rest)
    figures |= _times("search by vector", lambda number: vault.search(vector=queries[number], limit=10), rest)
    figures |= _times("hybrid search of one author", lambda number: hybrid(number, author="Ada"), rest[:_FEWER])
    figures |= _times("hybrid search of one tag", lambda number: hybrid(number, tags=["rare"]), rest[:_FEWER])
    figures |= _recall(vectors, lambda number: [hit.memory.id for hit in hybrid(number)], rest[:_FEWER], queries)
    more = corpus.vectors(count, 60)
    texts = corpus.texts(count, 60)
    adding = _times(
        "durable single add", lambda number: vault.remember(texts[number], source="bench", embedding=more[number]),
        range(50),
    )  # fmt: skip
    figures |= adding
    after = [hit.memory.content for hit in vault.search(texts[49], vector=more[49], limit=1)]
    assert after == [texts[49]], "what was added was not found"
    figures["peak memory, MB"] = peak_megabytes()
    vault._lock.release()  # closing would seal a cache that nobody opens
    return figures


def _recall(
    vectors: Any, search: Callable[[int], list[str]], numbers: Sequence[int], queries: np.ndarray[Any, Any]
) -> Figures:
    """Return the share of an exact search's first ten that is found, by vector and by all."""

    def both() -> list[tuple[set[str], set[int]]]:
        found = []
        for number in numbers:
            found.append((set(search(number)), set(vectors.search(queries[number], 10)[0].tolist())))
        return found

    as_it_is, before = both(), approximation.APPROXIMATE_FROM
    approximation.APPROXIMATE_FROM = _NEVER
    exact = both()
    approximation.APPROXIMATE_FROM = before
    shares = [
        [len(one[kind] & other[kind]) / max(1, len(other[kind])) for one, other in zip(as_it_is, exact, strict=True)]
        for kind in (0, 1)
    ]
    return {"hybrid recall@10": statistics.mean(shares[0]), "vector recall@10": statistics.mean(shares[1])}


def plain_faiss(folder: Path, count: int) -> Figures:
    """Search the same vectors with nothing but FAISS: exact, in float16, in RAM, unsealed."""
    assert folder.exists()
    library: Any = faiss
    index = library.IndexScalarQuantizer(
        corpus.DIMENSION, library.ScalarQuantizer.QT_fp16, library.METRIC_INNER_PRODUCT
    )
    seconds = 0.0
    for first in range(0, count, STEP):
        matrix = corpus.vectors(first, min(STEP, count - first))
        seconds += _seconds(partial(index.add, matrix))
    library.omp_set_num_threads(1)
    queries = corpus.question_vectors()
    rest = range(_WARM, _WARM + _ASKED)
    times = _times("search by vector", lambda number: index.search(queries[number : number + 1], 10), rest)
    return {"bulk add, memories/s": count / seconds, "peak memory, MB": peak_megabytes()} | times


def vaultmem(folder: Path, count: int) -> Figures:
    """The same memories in vaultmem, without the words: it searches by vector alone."""
    # Only `make bench` installs it; the type checkers must do without.
    session_type: Any = importlib.import_module("vaultmem").VaultSession
    texts, matrix = corpus.texts(0, count), corpus.vectors(0, count)
    known = dict(zip(texts, matrix.tolist(), strict=True))

    class Ready:
        """An embedder that has every vector ready."""

        dimension = corpus.DIMENSION

        def embed(self, text: str) -> list[float]:
            vector: list[float] = known[text]
            return vector

    path, ready = folder / "vaultmem", Ready()
    session = session_type.create(path, PASSPHRASE, owner="bench", embedder=ready)

    def add() -> None:
        for text in texts:
            session.add(text)
        session.flush()

    adding = _seconds(add)
    queries = corpus.question_vectors().tolist()
    times = _times("search by vector", lambda number: session.search(queries[number], top_k=10), range(30))
    session.close()
    opening = _seconds(lambda: session_type.open(path, PASSPHRASE, embedder=ready).close())
    return times | {
        "bulk add, memories/s": count / adding,
        "open with key derivation, s": opening,
        "bytes a memory on disk": folder_bytes(path) / count,
        "peak memory, MB": peak_megabytes(),
    }


def compartment(folder: Path, count: int) -> Figures:
    """The same memories in compartment, its look for doubles switched off; words and vectors, as here."""
    vault_type: Any = importlib.import_module("compartment.vault").Vault
    texts, matrix = corpus.texts(0, count), corpus.vectors(0, count)
    asked, queries = corpus.questions(), corpus.question_vectors()
    known = dict(zip(asked, queries, strict=True))

    class Ready:
        """An embedder that has the vector of every question ready."""

        def embed_query(self, text: str) -> Any:
            return known[text]

    file = folder / "compartment.vault"
    vault = vault_type.create(str(file), PASSPHRASE)
    vault._embedder = Ready()

    def add() -> None:
        for text, vector in zip(texts, matrix, strict=True):
            ready = vector[np.newaxis]
            vault.store(text, "user", vec=ready, _dedup=False, _gate=False, _journal=False)
        vault.save()

    adding = _seconds(add)
    times = _times("hybrid search", lambda number: vault.search(asked[number], "user", top_k=10), range(60))
    vault.lock()
    opening = _seconds(lambda: vault_type.unlock(str(file), PASSPHRASE))
    return times | {
        "bulk add, memories/s": count / adding,
        "open with key derivation, s": opening,
        "bytes a memory on disk": folder_bytes(folder) / count,
        "peak memory, MB": peak_megabytes(),
    }


def _seconds(action: Callable[[], Any]) -> float:
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def _times(name: str, action: Callable[[int], Any], numbers: Sequence[int]) -> Figures:
    """Return the median and the 99th percentile of an action, and the processor's time, which others do not disturb."""
    wall, processor = [], []
    for number in numbers:
        before, busy = time.perf_counter(), time.process_time()
        action(number)
        processor.append(time.process_time() - busy)
        wall.append(time.perf_counter() - before)
    return {
        f"{name}, p50 ms": float(np.median(wall)) * 1e3,
        f"{name}, p99 ms": float(np.percentile(wall, 99)) * 1e3,
        f"{name}, processor p50 ms": float(np.median(processor)) * 1e3,
    }


CASES: dict[str, Callable[[Path, int], Figures]] = {
    "fill": fill,
    "use": use,
    "plain FAISS": plain_faiss,
    "vaultmem": vaultmem,
    "compartment": compartment,
}
