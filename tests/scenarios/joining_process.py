"""Joins two branches of a keyring, and stops at a moment to be killed there.

Arguments: the vault's folder, and the moment.
"""

import sys
from pathlib import Path

from memseal.sync.messages import Answer, PutKeyring, Request
from memseal.transport.http import HttpTransport
from memseal.vault.copies import branching
from tests.scenarios.revoking_process import halt, halting
from tests.vault.small_vault import PASSPHRASE, open_vault, stretch_of

STEPS = {"switch": "begin_switch", "files": "finish_switch", "write": "bring_in"}


def main() -> None:
    """Join them."""
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    send = HttpTransport.send

    def sending(transport: HttpTransport, request: Request) -> Answer:
        answer = send(transport, request)
        if moment == "answer" and isinstance(request, PutKeyring):
            halt()
        return answer

    setattr(HttpTransport, "send", sending)  # noqa: B010  a type checker knows it as a method
    with open_vault(folder) as vault, vault._writing() as opened:
        if moment in STEPS:
            setattr(branching, STEPS[moment], halting(getattr(branching, STEPS[moment])))
        branching.synchronise(opened, None, accept_rollback=True, passphrase=stretch_of(PASSPHRASE))


if __name__ == "__main__":
    main()
