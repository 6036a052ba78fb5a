"""Begets processes that write numbered memories into a vault until they are killed.

Each line on stdin names how many memories go into one write, the first number, and the vault's folder. The process that
is begotten for it says its id, then the numbers of each write once it is acknowledged; an empty line follows its end.
Forked, not started: two hundred starts of Python would take minutes.
"""

import os
import sys
from pathlib import Path

from memseal.vault.folder import opening
from memseal.vault.writes import writing
from tests.vault.small_vault import open_vault

WRITES = 3  # then the vault is closed and opened again: these can be cut short too


def say(*numbers: int) -> None:
    """Say numbers on a line, at once."""
    sys.stdout.write(" ".join(map(str, numbers)) + "\n")
    sys.stdout.flush()


def write(path: Path, number: int, at_once: int) -> None:
    """Write until the end comes from outside."""
    while True:
        with open_vault(path) as vault:
            for _ in range(WRITES):
                numbers = range(number, number + at_once)
                if at_once == 1:
                    vault.remember(f"number {number}", source="test")
                else:
                    vault.remember_many({"content": f"number {each}", "source": "test"} for each in numbers)
                say(*numbers)
                number += at_once


def main() -> None:
    """Beget one process for each line, one after the other."""
    # Several records in a write, and a cache at each closing.
    writing._RECORD_BYTES = 600
    opening._CACHE_WORTH = 1
    for line in sys.stdin:
        at_once, number, path = line.rstrip("\n").split(" ", 2)
        child = os.fork()
        if child == 0:
            say(os.getpid())
            write(Path(path), int(number), int(at_once))
        os.waitpid(child, 0)
        say()


if __name__ == "__main__":
    main()
