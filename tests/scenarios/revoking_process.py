"""Removes a device from a vault, and stops at a moment to be killed there.

Arguments: the vault's folder, the device's name, and the moment.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memseal.sync.messages import Answer, PutKeyring, Request
from memseal.transport.http import HttpTransport
from memseal.vault.keys import rekeying, revoking
from tests.vault.small_vault import PASSPHRASE, open_vault, stretch_of


def halt() -> None:
    """Say that the moment has come, and wait for the end."""
    sys.stdout.write("halted\n")
    sys.stdout.flush()
    threading.Event().wait()


def halting(then: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that stops before it does its work."""

    def stop(*arguments: Any) -> Any:
        halt()
        return then(*arguments)

    return stop


def main() -> None:
    """Remove the device."""
    folder, name, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    send = HttpTransport.send

    def sending(transport: HttpTransport, request: Request) -> Answer:
        is_put = isinstance(request, PutKeyring)
        if is_put and moment == "put":
            halt()
        answer = send(transport, request)
        if is_put and moment == "answer":
            halt()
        return answer

    setattr(HttpTransport, "send", sending)  # noqa: B010  a type checker knows it as a method
    steps = {"announce": "_announce", "save": "save_version", "adopt": "use_keychain", "settle": "finish_key_change"}
    if moment in steps:
        setattr(rekeying, steps[moment], halting(getattr(rekeying, steps[moment])))
    with open_vault(folder) as vault, vault._writing() as opened:
        revoking.revoke(opened, name, stretch_of(PASSPHRASE), None, None)


if __name__ == "__main__":
    main()
