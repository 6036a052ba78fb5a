"""Joins a vault by a code read from standard input, and stops at a moment to be killed there.

Arguments: the folder-to-be, the server's address, and the moment.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from memseal.store.disk import OsDisk
from memseal.store.folder import VaultFolder
from memseal.sync.messages import Answer, PutKeyring, Request
from memseal.sync.relaying import Hear, Say
from memseal.transport.http import HttpTransport
from memseal.vault.keys import pairing
from memseal.vault.keys.begun import Begun
from tests.vault.small_vault import PASSPHRASE, stretch_of


def main() -> None:
    """Join."""
    folder, server, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    relay, send, keep, create = HttpTransport.relay, HttpTransport.send, Begun.keep, VaultFolder.create

    def reach(name: str) -> None:
        """Say that the moment has come, and wait for the end."""
        if name == moment:
            sys.stdout.write("halted\n")
            sys.stdout.flush()
            threading.Event().wait()

    def relaying(transport: HttpTransport, message: Say | Hear) -> Answer:
        reach(f"{'say' if isinstance(message, Say) else 'hear'} {message.number}")
        answer = relay(transport, message)
        reach(f"{'said' if isinstance(message, Say) else 'heard'} {message.number}")
        return answer

    def sending(transport: HttpTransport, request: Request) -> Answer:
        if isinstance(request, PutKeyring):
            reach("put")
        answer = send(transport, request)
        if isinstance(request, PutKeyring):
            reach("answer")
        return answer

    def keeping(*arguments: Any) -> None:
        reach("keep")
        keep(*arguments)

    def creating(*arguments: Any) -> VaultFolder:
        reach("create")
        return create(*arguments)

    for kind, name, function in (
        (HttpTransport, "relay", relaying),
        (HttpTransport, "send", sending),
        (Begun, "keep", keeping),
        (VaultFolder, "create", staticmethod(creating)),
    ):
        setattr(kind, name, function)
    code = sys.stdin.readline().strip()
    pairing.join_with_code(folder, OsDisk(), code, stretch_of(PASSPHRASE), server, "phone")


if __name__ == "__main__":
    main()
