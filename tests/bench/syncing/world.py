"""Devices, servers and bare handlers for the measurements of synchronisation."""

import contextlib
import os
import re
import resource
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path

import numpy as np

from memseal import Vault

ROOT = Path(__file__).parent.parent.parent.parent
PASSPHRASE = "an otter in a raincoat"
WORDS = "otter river stone blue kettle lamp garden letter cellar window bread winter ladder piano".split()
DIMENSION = 384


def items(count: int, first: int = 0) -> list[dict[str, str]]:
    """Memories of some 200 characters, no two alike."""
    random = np.random.default_rng(first)
    drawn = random.integers(0, len(WORDS), (count, 30))
    return [
        {"content": f"{first + number} " + " ".join(WORDS[each] for each in row), "source": "bench"}
        for number, row in enumerate(drawn)
    ]


def vectors(count: int, seed: int) -> np.ndarray:
    """Vectors of unit length, as a model of 384 dimensions gives them."""
    found = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def filled(path: Path, count: int, step: int = 1_000) -> Vault:
    """A new vault with so many memories and their vectors."""
    vault = Vault.create(path, PASSPHRASE, embedder=None)
    for first in range(0, count, step):
        here = min(step, count - first)
        vault.remember_many(items(here, first), vectors(here, first))
    return vault


@contextlib.contextmanager
def program(*arguments: str) -> Generator[tuple[str, int]]:
    """Run a program of ours that says where it listens; yields the address and the process id, and ends it."""
    places = os.pathsep.join(str(ROOT / name) for name in ("server", "client", "."))
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": places}
    )
    try:
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line.startswith("listening on "):
            raise SystemExit(f"it did not start: {arguments}")
        yield line.split()[2], process.pid
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def server(store: Path | str, *options: str, port: int = 0) -> contextlib.AbstractContextManager[tuple[str, int]]:
    """A server process on a store, without limits."""
    words = (
        "--listen",
        f"127.0.0.1:{port}",
        "--max-vault-bytes",
        "0",
        "--max-vault-requests",
        "0",
        "--log-level",
        "error",
    )
    return program("-m", "memseal_server", "--store", str(store), *words, *options)


def stored_bytes(url: str) -> int:
    """What all vaults have on a server, by its own count."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310  our own server
        (found,) = re.findall(r"^memseal_stored_bytes ([0-9.e+]+)$", answer.read().decode(), re.MULTILINE)
    return int(float(found))


def cpu_seconds(pid: int) -> float:
    """How long a process has computed (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """How much memory a process has now (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / (1 << 20)
