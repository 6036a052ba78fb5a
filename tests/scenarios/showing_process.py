"""Shows a code on standard output, and stops, to be killed, when the vault key was handed over.

Arguments: the vault's folder.
"""

import sys
import threading
from pathlib import Path

from memseal.sync.messages import Answer
from memseal.sync.relaying import Hear, Say
from memseal.transport.http import HttpTransport
from memseal.vault.keys import pairing
from tests.vault.small_vault import open_vault


def say(line: str) -> None:
    """Say a line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Let a device in, up to there."""
    relay = HttpTransport.relay

    def relaying(transport: HttpTransport, message: Say | Hear) -> Answer:
        answer = relay(transport, message)
        if isinstance(message, Say) and message.number == 2:
            say("halted")
            threading.Event().wait()
        return answer

    setattr(HttpTransport, "relay", relaying)  # noqa: B010  a type checker knows it as a method
    with open_vault(Path(sys.argv[1])) as vault:
        pairing.pair(vault._writing, say, None, scanned=False)


if __name__ == "__main__":
    main()
