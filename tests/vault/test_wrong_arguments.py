"""What no caller can mean is an error that says so, and changes nothing."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from memseal import Vault
from tests.vault.small_vault import PASSPHRASE

ANY: Any = object()


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    path: Path = tmp_path_factory.mktemp("wrong") / "vault"
    with Vault.create(path, PASSPHRASE, embedder=None) as made:
        made.remember("The kettle is blue", source="test")
        made.set_capture(True)
        yield made


EARLY = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
LATE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))
CALLS: dict[str, tuple[type[Exception], Callable[[Vault], Any]]] = {
    "items that are texts": (TypeError, lambda vault: vault.remember_many(["kettle"])),  # type: ignore[list-item]
    "an item of elsewhere that is a text": (TypeError, lambda vault: vault.adopt(["kettle"])),  # type: ignore[list-item]
    "messages that are texts": (TypeError, lambda vault: vault.capture("kettle")),  # type: ignore[arg-type]
    "a query of bytes": (TypeError, lambda vault: vault.search(b"kettle")),  # type: ignore[arg-type]
    "a query that is a list": (TypeError, lambda vault: vault.to_erase(["kettle"])),  # type: ignore[arg-type]
    "a time that is none": (TypeError, lambda vault: vault.diff(None, datetime.now(UTC))),  # type: ignore[arg-type]
    "a time that is a number": (TypeError, lambda vault: vault.traces(since=7)),  # type: ignore[arg-type]
    "a packet that is none": (TypeError, lambda vault: vault.note_injection("kettle", packet=ANY)),
    "a budget that no receipt can say": (ValueError, lambda vault: vault.recall("kettle", budget=2**70)),
    "a remote that is a flag": (TypeError, lambda vault: vault.sync(ANY)),
    "a remote of bytes": (TypeError, lambda vault: vault.compact(remote=b"/stick")),  # type: ignore[arg-type]
    "a now that is no time": (TypeError, lambda vault: vault.recall("kettle", now=ANY)),
    "a now before all time": (ValueError, lambda vault: vault.recall("kettle yesterday", now=EARLY)),
    "a now after all time": (ValueError, lambda vault: vault.recall("kettle tomorrow", now=LATE)),
}


@pytest.mark.parametrize("what", CALLS)
def test_wrong_argument_is_refused(vault: Vault, what: str) -> None:
    error, call = CALLS[what]
    with pytest.raises(error) as raised:
        call(vault)
    assert raised.type in (TypeError, ValueError)  # and none that happens to derive from them
    assert vault.count() == 1


@pytest.mark.parametrize("all_of_them", [10**9, 2**63, 10**30])
def test_limit_may_be_any_number(vault: Vault, all_of_them: int) -> None:
    assert len(vault.list(limit=all_of_them)) == 1
    assert vault.list(offset=all_of_them) == []
    assert len(vault.search("kettle", limit=all_of_them)) == 1
    assert len(vault.to_erase(limit=all_of_them)) == 1
    assert len(vault.recall("kettle", limit=all_of_them).hits) == 1
    assert vault.proposals(limit=all_of_them) == []
