"""Exit codes: one for each branch of the error tree, in its order."""

from typing import Final

from memseal.errors import (
    CallerError,
    DataError,
    DiskError,
    MemsealError,
    NetworkError,
    ServerError,
    UserError,
)

DONE: Final = 0
NOT_ALL: Final = 1
USAGE: Final = 2
INTERNAL: Final = 70  # EX_SOFTWARE of BSD's sysexits.h
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count

_BRANCHES: Final = (
    (CallerError, 3, "it cannot be done as asked: no such vault or memory, or a field that cannot be stored"),
    (UserError, 4, "you can act: a wrong passphrase or kit, a vault that is open elsewhere, …"),
    (DataError, 5, "bytes are damaged or forged"),
    (DiskError, 6, "the disk refused"),
    (NetworkError, 7, "the network or the embedding model is out of reach: try again"),
    (ServerError, 8, "the server refused, or lies"),
)
EXPLAINED: Final = (
    (DONE, "done"),
    (NOT_ALL, "not everything was done: rows refused, or something was found"),
    (USAGE, "wrong usage"),
    *((code, meaning) for _, code, meaning in _BRANCHES),
    (INTERNAL, "an error inside memseal: please report it"),
    (INTERRUPTED, "interrupted"),
)
"""Every exit code with its meaning."""


class WrongUsage(Exception):
    """A command was called in a way that cannot work; the message says what to do instead."""


class Interrupted(Exception):
    """A command was broken off at a place of its own choice; the message says how to go on."""


def code_of(error: MemsealError) -> int:
    """Return the exit code of an error's branch."""
    return next((code for branch, code, _ in _BRANCHES if isinstance(error, branch)), INTERNAL)
