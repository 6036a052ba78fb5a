"""The process of one decoder: runs inputs until its time is over, and keeps those that show a fault.

    python -m tests.bench.fuzzing.worker NAME FOLDER SECONDS

Says what it finds on stdout, one line of JSON each; libFuzzer's own lines go to stderr.
"""

import contextlib
import hashlib
import json
import resource
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from tests.bench.fuzzing.samples import LARGEST

MEMORY = 200 << 20  # bytes over the start that a run may come to
CPU_SECONDS = 1.0  # for one input
HANG_SECONDS = 20  # of the clock, which other processes move too
SCRATCH = "scratch"  # in the folder: what targets write to read it, until the run ends
MUTATED = 0.8  # of the changes are made by the target's own mutation, where it has one
_OURS = ("memseal", "memseal_server")
_MODULES = ("client", "sealed", "traces", "sessions", "pairing", "foreign", "both", "server")


class OverTime(Exception):
    """One input took longer than any may."""


class OverMemory(Exception):
    """Memory grew beyond what decoders may take."""


def targets() -> dict[str, Any]:
    """Return all targets by name; what they import of ours is as the import system gives it."""
    modules = (import_module(f"tests.bench.fuzzing.{name}") for name in _MODULES)
    return {name: target for module in modules for name, target in module.TARGETS.items()}


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Runner:
    """Runs inputs and tells every fault once."""

    def __init__(self, target: Any, name: str, folder: Path) -> None:
        self._target = target
        self._name = name
        self._folder = folder
        self._known = set[str]()
        self._allowed = peak_bytes() + MEMORY

    def run(self, content: bytes) -> None:
        """Run one input; a fault is written down, and the search goes on."""
        before = time.process_time()
        try:
            self._run_one(content)
            if time.process_time() - before > CPU_SECONDS:
                raise OverTime(f"{time.process_time() - before:.1f} s")
            if peak_bytes() > self._allowed:
                self._allowed = peak_bytes() + MEMORY
                raise OverMemory(f"{peak_bytes() >> 20} MB")
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is what we are looking for
            self._note(content, fault)

    def _run_one(self, content: bytes) -> None:
        with contextlib.suppress(self._target.refusals):
            self._target.run(content)

    def _note(self, content: bytes, fault: Exception) -> None:
        place = _place_of(fault)
        if (kind := f"{type(fault).__name__} at {place}") in self._known:
            return
        self._known.add(kind)
        path = self._folder / f"{self._name}-{hashlib.sha256(content).hexdigest()[:12]}"
        path.write_bytes(content)
        print(json.dumps({"fault": kind, "message": str(fault)[:200], "input": str(path)}), flush=True)


def _place_of(fault: Exception) -> str:
    """Return the innermost line of ours, or of the target."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(fault.__traceback__)]
    ours = [frame for frame in frames if set(_OURS) & set(frame[0].parts)] or frames[-1:]
    return ", ".join(f"{path.name}:{line}" for path, line in ours[-1:])


def main() -> None:
    """Fuzz the named decoder, or without arguments name all of them."""
    if len(sys.argv) == 1:
        print(json.dumps(list(targets())))
        return
    name, folder, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=list(_OURS)):
        target = targets()[name]
    scratch = folder / SCRATCH
    scratch.mkdir(exist_ok=True)
    tempfile.tempdir = str(scratch)
    corpus = folder / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    runner = Runner(target, name, folder)

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if target.mutate is not None and random.random() < MUTATED:
            return bytes(target.mutate(bytes(content), random)[:most])
        return bytes(atheris.Mutate(content, most))

    options = {
        "max_total_time": seconds,
        "max_len": LARGEST,
        "timeout": HANG_SECONDS,
        "rss_limit_mb": (peak_bytes() + MEMORY) >> 20,
        "artifact_prefix": f"{folder}/{name}-",
        "print_final_stats": 1,
        "reload": 0,
    }
    arguments = [sys.argv[0], *(f"-{option}={value}" for option, value in options.items()), str(corpus)]
    print(json.dumps({"start_bytes": peak_bytes()}), flush=True)
    atheris.Setup(arguments, lambda content: runner.run(bytes(content)), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
