"""How a vault grows: 10,000 memories, 100,000, a million.

    python tests/bench/scale.py [--sizes 10000 100000 1000000] [--rivals 10000] [--vectors FILE] [--plot PNG]
                                [--json OUT]

Texts of about 85 characters with natural word frequencies, vectors of 384 dimensions around those of the local model,
conversations of twenty turns. Beside memseal in the same run: plain FAISS over the same vectors, at every size, and
vaultmem and compartment, where they are installed, at the size of `--rivals`. Each case runs in a process of its own.
Machines are shared: where the wall time is far above the processor's, read the latter. `--vectors` keeps the model's
vectors (20,000 texts take half a minute and more) for the next run. A million needs 4 GB of memory and 3 GB of disk.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from tests.bench.scaling import corpus  # noqa: E402  after the path
from tests.bench.scaling.cases import CASES, Figures  # noqa: E402
from tests.bench.scaling.plot import draw  # noqa: E402

RIVALS = ("vaultmem", "compartment")
Results = dict[str, dict[int, Figures]]


def run_case(name: str, folder: Path, count: int) -> Figures:
    """Run one case in a process of its own and return its figures."""
    command = [sys.executable, __file__, "--case", name, str(folder), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{name} at {count} failed:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured(folder: Path, sizes: list[int], rivals: int, console: Console) -> Results:
    """Run all cases and show each as it comes."""
    results: Results = {"memseal": {}, "plain FAISS": {}}
    for count in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            results["memseal"][count] = run_case("fill", Path(place), count) | run_case("use", Path(place), count)
            results["plain FAISS"][count] = run_case("plain FAISS", Path(place), count)
        show(console, count, {who: by_size[count] for who, by_size in results.items()})
    for name in RIVALS:
        if rivals and importlib.util.find_spec(name) is not None:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                results[name] = {rivals: run_case(name, Path(place), rivals)}
            show(console, rivals, {who: by_size.get(rivals, {}) for who, by_size in results.items()})
    return results


def show(console: Console, count: int, columns: dict[str, Figures]) -> None:
    """Print one column for each of those measured, and how many times memseal's figure the last one's is."""
    table = Table(title=f"{count:,} memories")
    table.add_column("")
    for who in columns:
        table.add_column(who, justify="right")
    table.add_column("last / memseal", justify="right")
    last = list(columns.values())[-1]
    for name in dict.fromkeys(name for figures in columns.values() for name in figures):
        ours, theirs = columns["memseal"].get(name), last.get(name)
        ratio = f"× {theirs / ours:,.2f}" if ours and theirs else ""
        cells = [f"{figures[name]:,.3f}" if name in figures else "" for figures in columns.values()]
        table.add_row(name, *cells, ratio)
    console.print(table)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rivals", type=int, default=10_000, help="the size for the rivals; 0 leaves them out")
    parser.add_argument("--vectors", type=Path, help="keep the model's vectors in this file")
    parser.add_argument("--plot", type=Path, help="draw the growth there")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, place, count = options.case
        print(json.dumps(CASES[name](Path(place), int(count))))
        return
    with tempfile.TemporaryDirectory(prefix="memseal-scale-") as folder:
        os.environ[corpus.KEPT] = str((options.vectors or Path(folder) / "vectors.npy").absolute())
        # As wide as the tables need, also where the output goes to a file.
        console = Console(width=max(110, Console().width))
        results = measured(Path(folder), options.sizes, options.rivals, console)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if options.plot:
        draw(results, options.plot)


if __name__ == "__main__":
    main()
