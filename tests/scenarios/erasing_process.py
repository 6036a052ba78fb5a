"""Writes, compacts and erases in a vault until it is killed; says what it is about to do, and what is done.

Arguments: the vault's folder, and a number that begins the texts of this process.
"""

import sys
from itertools import count
from pathlib import Path

from memseal.errors import NetworkError
from memseal.vault.folder import opening
from tests.vault.small_vault import open_vault


def say(word: str, text: str = "") -> None:
    """Say a line, at once."""
    sys.stdout.write(f"{word} {text}\n")
    sys.stdout.flush()


def main() -> None:
    """Go on until the end comes from outside."""
    opening._CACHE_WORTH = 1
    path, begin = Path(sys.argv[1]), sys.argv[2]
    for number in count():
        with open_vault(path) as vault:
            kept, gone = f"kept {begin}.{number};", f"gone {begin}.{number};"
            vault.remember(kept, source="test")
            say("wrote", kept)
            memory = vault.remember(gone, source="test")
            say("wrote", gone)
            try:
                say("compacts")
                vault.compact(thorough=False)
                say("erases")
                if vault.erase(memory.id).done:
                    say("erased", gone)
            except NetworkError:
                say("waits")  # the server is away


if __name__ == "__main__":
    main()
