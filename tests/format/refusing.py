"""The code with which something is refused."""

from collections.abc import Callable

import pytest

from memseal.errors import MemsealError


def code_of(call: Callable[[], object]) -> str:
    """Return the code of the error that a call ends with; it must end with one of ours."""
    with pytest.raises(MemsealError) as refused:
        call()
    return refused.value.code


def outcome(call: Callable[[], object]) -> str:
    """Return "accepted", or the code of the error that a call ends with."""
    try:
        call()
    except MemsealError as error:
        return error.code
    return "accepted"
