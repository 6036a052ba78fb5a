"""Memories of elsewhere: taken in once, with what became of them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memseal.errors import MemoryInvalid, MemoryUnknown
from memseal.memory.memory import State
from memseal.vault.vault import Vault
from memseal.vault.writes.adopting import Past, derived_id
from tests.vault.small_vault import new_folder, open_vault

LONG_AGO = datetime(2020, 2, 29, 12, tzinfo=UTC)
FIRST, SECOND = b"1" * 16, b"2" * 16


def item(content: str, origin: str = "", past: Past | None = None, **fields: Any) -> dict[str, Any]:
    known = {"content": content, "source": "elsewhere", "origin": origin or f"x:{content}", **fields}
    return known if past is None else {**known, "past": past}


def test_what_became_of_a_memory_comes_with_it(vault: Vault) -> None:
    wrong = Past(id=FIRST, written_at=LONG_AGO, retracted=True, retract_reason="a slip")
    assert vault.adopt([item("wrong", past=wrong)]) == 1
    memory = vault.get(FIRST.hex())
    assert (memory.state, memory.reason, memory.written_at) == (State.RETRACTED, "a slip", LONG_AGO)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_chain_comes_whole_in_any_order_also_over_two_writes(vault: Vault, order: tuple[int, int]) -> None:
    chain = [
        item("old", past=Past(id=FIRST)),
        item("new", past=Past(id=SECOND, replaces=FIRST, reason="it changed")),
    ]
    for place in order:
        vault.adopt([chain[place]])
    old = vault.get(FIRST.hex())
    assert (old.state, old.superseded_by, old.reason) == (State.SUPERSEDED, SECOND.hex(), "it changed")
    assert vault.get(SECOND.hex()).state == State.ACTIVE


def test_adopting_again_adds_nothing(vault: Vault) -> None:
    items = [item("one"), item("two", past=Past(replaces=FIRST)), item("one", origin="y:1")]
    assert [vault.adopt(items) for _ in range(2)] == [2, 0]
    assert vault.count(state="all") == 2


def test_a_memory_that_is_there_gets_the_tags_and_nothing_else(vault: Vault) -> None:
    here = vault.remember("one", source="me", tags=["mine"])
    vault.retract(here.id, reason="not now")
    assert vault.adopt([item("one", tags=["theirs", "mine"])]) == 0
    memory = vault.get(here.id)
    assert (memory.tags, memory.state) == (("mine", "theirs"), State.RETRACTED)


def test_two_devices_that_import_the_same_file_have_one_memory_each(tmp_path: Path, vault: Vault) -> None:
    new_folder(tmp_path / "other")
    with open_vault(tmp_path / "other") as other:
        for each in (vault, other):
            each.adopt([item("one")])
        assert vault.list()[0].id == other.list()[0].id == derived_id("x:one", "one").hex()


def test_another_text_of_the_same_origin_is_another_memory() -> None:
    assert derived_id("x:1", "one") != derived_id("x:1", "two")
    assert derived_id("x:1", "") != derived_id("x:", "1")


def test_what_was_erased_is_not_taken_in_again(vault: Vault) -> None:
    vault.adopt([item("one")])
    vault.erase(vault.list()[0].id)
    assert vault.adopt([item("one")]) == 0
    with pytest.raises(MemoryUnknown):
        vault.get(derived_id("x:one", "one").hex())


def test_an_item_that_cannot_be_stored_is_named_and_nothing_is(vault: Vault) -> None:
    with pytest.raises(MemoryInvalid, match="item 1"):
        vault.adopt([item("one"), item(" ")])
    assert vault.count() == 0
