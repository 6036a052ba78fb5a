"""Fuzzing: each decoder is given whatever could break it, for a while, in a process of its own.

    pip install -c constraints.txt -e '.[dev,fuzz]'
    python tests/bench/fuzz.py [--seconds 3600] [--only NAME …] [--jobs 2] [--folder .fuzz] [--json]

The time is shared among the decoders. Only typed errors may come out; one input may take 1 s of the processor's time,
and memory may grow by 200 MB over the start. What breaks this is written to the folder, and the run ends with 1.
Inputs that found new ways stay in FOLDER/corpus, where the next run begins. Linux only: atheris is built for it.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).parents[2]
_WORKER = (sys.executable, "-m", "tests.bench.fuzzing.worker")
_LINE = re.compile(r"^#(?P<runs>\d+)\s.*\bcov: (?P<cov>\d+) .*\brss: (?P<rss>\d+)Mb")
_SCRATCH = "scratch"  # where workers write what their targets read
_TAIL = 30  # lines of a worker that died


@dataclass
class Tally:
    """What one decoder's process has done so far."""

    name: str
    runs: int = 0
    seconds: float = 0.0
    coverage: int = 0
    start_mb: int = 0
    peak_mb: int = 0
    findings: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    @property
    def runs_per_second(self) -> float:
        """How many inputs it ran in a second, its start counted."""
        return self.runs / self.seconds if self.seconds else 0.0

    def take(self, line: str) -> None:
        """Note what a line of libFuzzer's says."""
        if found := _LINE.match(line):
            self.runs, self.coverage, self.peak_mb = (int(found[name]) for name in ("runs", "cov", "rss"))
        elif line.startswith("stat::peak_rss_mb:"):
            self.peak_mb = int(line.split()[1])


def fuzz(tally: Tally, folder: Path, seconds: int, progress: Progress, task: TaskID) -> None:
    """Run one decoder's process to its end and fill in its tally."""
    begun, tail = time.monotonic(), list[str]()
    process = subprocess.Popen(
        [*_WORKER, tally.name, str(folder), str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            _hear(tally, json.loads(line), progress)
        else:
            tally.take(line)
            tail = [*tail[1 - _TAIL :], line]
        tally.seconds = time.monotonic() - begun
        shown = f"{tally.runs:,} runs, {tally.coverage} edges, {tally.peak_mb} MB"
        progress.update(task, completed=min(tally.seconds, seconds), shown=shown)
    if process.wait() != 0:
        tally.findings.append({"fault": f"the process ended with {process.returncode}", "message": "".join(tail)})
    progress.update(task, completed=seconds)


def _hear(tally: Tally, said: dict[str, Any], progress: Progress) -> None:
    if "start_bytes" in said:
        tally.start_mb = said["start_bytes"] >> 20
    else:
        tally.findings.append(said)
        progress.console.print(f"{tally.name}: {said['fault']}: {said['message']}", markup=False, soft_wrap=True)


@contextmanager
def _progress(quiet: bool) -> Generator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[shown]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as progress:
        yield progress


def _names(only: Sequence[str]) -> list[str]:
    names: list[str] = json.loads(subprocess.run(_WORKER, cwd=ROOT, check=True, capture_output=True).stdout)
    if unknown := set(only) - set(names):
        raise SystemExit(f"no decoder is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [name for name in names if not only or name in only]


def _print(tallies: Sequence[Tally]) -> None:
    table = Table("decoder", *(("runs", "runs/s", "edges", "start MB", "peak MB", "findings")))
    for each in tallies:
        figures = (f"{each.runs:,}", f"{each.runs_per_second:,.0f}", each.coverage, each.start_mb, each.peak_mb)
        table.add_row(each.name, *map(str, figures), str(len(each.findings)))
    Console(width=100).print(table)
    for each in tallies:
        for found in each.findings:
            print(f"{each.name}: {found['fault']}: {found['message']}\n  {found.get('input', '')}")


def main() -> None:
    """Share the time among the decoders, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600, help="for all decoders together")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="how many decoders at a time")
    parser.add_argument("--folder", type=Path, default=ROOT / ".fuzz")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    tallies = [Tally(name) for name in _names(options.only)]
    each = max(1, options.seconds * options.jobs // len(tallies))
    with _progress(options.json) as progress, ThreadPoolExecutor(options.jobs) as pool:
        tasks = [progress.add_task(tally.name, total=each, shown="waits") for tally in tallies]
        running = [
            pool.submit(fuzz, tally, options.folder.resolve(), each, progress, task)
            for tally, task in zip(tallies, tasks, strict=True)
        ]
        for one in running:
            one.result()
    shutil.rmtree(options.folder / _SCRATCH, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(tally) for tally in tallies], indent=1))
    else:
        _print(tallies)
    raise SystemExit(any(tally.findings for tally in tallies))


if __name__ == "__main__":
    main()
