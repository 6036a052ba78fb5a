"""Asks the server's rules what they say of a keyring version."""

from collections.abc import Callable
from typing import Any

import pytest

from memseal_server import keyring
from memseal_server.versions import Refused, Version, read_version
from tests.server.building import Draft, first_version

Change = Callable[[Draft], Any]


def read(draft: Draft) -> Version:
    return read_version(draft.build(), draft.vault)


def accept_after(previous: Draft | None, candidate: Draft) -> None:
    keyring.accept(None if previous is None else read(previous), read(candidate))


def refusal(previous: Draft | None, candidate: Draft) -> str:
    with pytest.raises(Refused) as refused:
        accept_after(previous, candidate)
    assert refused.value.detail
    return refused.value.code


def two_devices() -> Draft:
    return first_version().next("alice").add("bob")
