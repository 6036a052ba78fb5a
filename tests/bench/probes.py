"""Run the probes: what a memory must get right whatever the corpus, each on a vault of its own.

    python tests/bench/probes.py [NAME …] [--json]

Each module of `probing/` is one probe, and runs alone as well. Ends with 1 where one says that it does not hold.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.console import Console
from rich.table import Table

from tests.bench.probing import captures, corrections, deletions, emptiness, fidelity, tiers

Result = Mapping[str, Any]
PROBES: Final[dict[str, Callable[[Path], Result]]] = {
    "corrections": corrections.run,
    "captures": captures.run,
    "deletions": deletions.run,
    "emptiness": emptiness.run,
    "fidelity": lambda _: fidelity.run(),
    "tiers": lambda folder: {name: list(ranks) for name, ranks in tiers.run(folder).items()},
}


def main() -> int:
    """Run what the command line names, and print it."""
    parser = argparse.ArgumentParser(description="Run the probes.")
    parser.add_argument("names", nargs="*", help="which; all if none is named")
    parser.add_argument("--json", action="store_true", help="write one JSON document")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(PROBES)):
        parser.error(f"no probe is called {', '.join(unknown)}: there are {', '.join(PROBES)}")
    results = {name: _ran(PROBES[name]) for name in given.names or PROBES}
    if given.json:
        sys.stdout.write(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    else:
        _show(results)
    return int(not all(result.get("ok", True) for result in results.values()))


def _ran(probe: Callable[[Path], Result]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="memseal-probe-") as folder:
        begun = perf_counter()
        result = dict(probe(Path(folder)))
        return {**result, "seconds": round(perf_counter() - begun, 1)}


def _show(results: Mapping[str, Result]) -> None:
    table = Table("probe", "what", "measured")
    for name, result in results.items():
        for place, (what, value) in enumerate(_rows(result)):
            table.add_row("" if place else name, what, value)
        table.add_section()
    Console().print(table)


def _rows(result: Result, before: str = "") -> list[tuple[str, str]]:
    rows = list[tuple[str, str]]()
    for what, value in result.items():
        if isinstance(value, dict):
            rows += _rows(value, f"{before}{what}: ")
        else:
            rows.append((f"{before}{what}", f"{value:.3f}" if isinstance(value, float) else str(value)))
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
