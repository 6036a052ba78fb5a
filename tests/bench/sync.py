"""Measure synchronisation: transfer, joining, latency, a server under load, with idle devices, and through a day.

Run it as `python tests/bench/sync.py [case …]`; without a case all are run. `--scale 0.1` makes everything smaller.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "server"), str(ROOT / "client")]

from tests.bench.syncing import latency, load, transfer  # noqa: E402  after the path

CASES = ("transfer", "join", "latency", "requests", "idle", "day")


def main() -> None:
    """Run the cases that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=CASES, metavar="case", help=" ".join(CASES))
    parser.add_argument("--scale", type=float, default=1.0, help="how much of the full size")
    parser.add_argument("--rounds", type=int, default=3, help="of what is compared")
    options = parser.parse_args()

    def scaled(full: int) -> int:
        return max(2, int(full * options.scale))

    for case in options.cases or CASES:
        match case:
            case "transfer":
                transfer.measure(scaled(10_000), options.rounds)
            case "join":
                transfer.join(scaled(100_000))
            case "latency":
                latency.measure(scaled(50))
            case "requests":
                load.requests(options.rounds, scaled(50))
            case "idle":
                load.idle(scaled(2_000), 60)
            case _:
                load.day(scaled(1_000), scaled(20), 64)
        print()


if __name__ == "__main__":
    main()
