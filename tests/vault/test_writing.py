"""What an app writes: the same memory twice, all or nothing, and what undoes what."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memseal.errors import MemoryInvalid, MemoryState, MemoryUnknown, VaultClosed, VectorInvalid
from memseal.memory.memory import State
from memseal.vault.vault import Vault
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import new_folder, open_vault

UNKNOWN = "00" * 16


@pytest.fixture
def disk(tmp_path: Path) -> CrashDisk:
    return CrashDisk(tmp_path)


@pytest.fixture
def vault(tmp_path: Path, disk: CrashDisk) -> Iterator[Vault]:
    (tmp_path / "vault").mkdir()
    new_folder(tmp_path / "vault", disk)
    with open_vault(tmp_path / "vault", disk) as vault:
        yield vault


def reopened(vault: Vault, disk: CrashDisk) -> Vault:
    """Close the vault and open it again from its logs alone."""
    vault.close()
    return open_vault(vault._opened.folder.path, disk)


def log_bytes(vault: Vault) -> int:
    return sum(log.end.length for log in vault._opened.logbook.logs.values())


# ── the same memory twice ───────────────────────────────────────────────────────────────────────────


def test_same_memory_twice_is_the_first_and_nothing_is_written(vault: Vault) -> None:
    first = vault.remember("tea", source="a", kind="fact", author="Ann", thread="t")
    written = log_bytes(vault)
    assert vault.remember("tea", source="b", kind="fact", author="Ann", thread="t") == first
    assert log_bytes(vault) == written
    assert vault.count() == 1


def test_same_memory_within_one_write_is_stored_once(vault: Vault) -> None:
    one, other, again = vault.remember_many([{"content": text, "source": "a"} for text in ("tea", "milk", "tea")])
    assert one.id == again.id != other.id
    assert vault.count() == 2


def test_same_fact_at_two_times_is_two_memories(vault: Vault) -> None:
    times = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2026)]
    ids = {vault.remember("lives in Berlin", source="a", captured_at=each).id for each in times}
    assert len(ids) == 2


def test_threads_that_remember_the_same_at_once_get_one_id(vault: Vault) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda number: vault.remember(f"memory {number % 5}", source="a").id, range(200)))
    assert len(set(ids)) == vault.count() == 5


def test_embedding_is_not_taken_for_another_memory_when_one_before_it_was_known(vault: Vault, disk: CrashDisk) -> None:
    vault.remember("known", source="a", embedding=[1, 0, 0])
    items = [{"content": text, "source": "a"} for text in ("new 1", "known", "new 2", "new 2", "new 3")]
    vectors = [[0.0, 1.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [0.8, 0.6, 0.0], [0.0, 0.6, 0.8]]
    vault.remember_many(items, vectors)
    again = reopened(vault, disk)
    nearest = [
        again.search(vector=vector, limit=1)[0].memory.content for vector in ([0, 1, 0], [0, 0, 1], [0, 0.6, 0.8])
    ]
    assert nearest == ["new 1", "new 2", "new 3"]
    again.close()


def test_memory_remembered_again_after_its_retraction_is_back_under_its_id(vault: Vault, disk: CrashDisk) -> None:
    first = vault.remember("tea", source="a")
    vault.retract(first.id, reason="wrong")
    again = vault.remember("tea", source="b")
    assert (again.id, again.state, again.reason) == (first.id, State.ACTIVE, None)
    later = reopened(vault, disk)
    assert later.get(first.id).state == State.ACTIVE
    later.close()


# ── all or nothing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"content": "", "source": "a"}, MemoryInvalid),
        ({"content": " \n", "source": "a"}, MemoryInvalid),
        ({"content": "x", "source": ""}, MemoryInvalid),
        ({"content": "x", "source": "a", "kind": "secret kind"}, MemoryInvalid),
        ({"content": "\ud800", "source": "a"}, MemoryInvalid),
        ({"content": "x", "source": "a", "captured_at": datetime(2026, 1, 1)}, MemoryInvalid),  # noqa: DTZ001
        ({"content": "x", "source": "a", "position": 1 << 63}, MemoryInvalid),
        ({"content": 3, "source": "a"}, TypeError),
        ({"content": "x", "source": "a", "tags": "red"}, TypeError),
        ({"content": "x", "source": "a", "captured_at": "today"}, TypeError),
        ({"content": "x"}, TypeError),
        ({"content": "x", "source": "a", "colour": "red"}, TypeError),
    ],
)
def test_one_bad_item_is_named_and_nothing_is_written(
    vault: Vault, bad: dict[str, Any], error: type[Exception]
) -> None:
    written = log_bytes(vault)
    with pytest.raises(error, match=r"^item 2: "):
        vault.remember_many([{"content": "good", "source": "a"}, {"content": "also", "source": "a"}, bad])
    assert (log_bytes(vault), vault.count()) == (written, 0)


@pytest.mark.parametrize("embeddings", [[[1, 0]], [[1, 0], [0, 0]], [[1, 0], [float("nan"), 1]], [1, 0], "text", []])
def test_bad_vectors_are_refused_and_nothing_is_written(vault: Vault, embeddings: Any) -> None:
    with pytest.raises(VectorInvalid):
        vault.remember_many([{"content": text, "source": "a"} for text in ("tea", "milk")], embeddings)
    assert vault.count() == 0


def test_vector_of_another_dimension_than_the_vault_has_is_refused(vault: Vault) -> None:
    vault.remember("tea", source="a", embedding=[1, 0, 0])
    with pytest.raises(VectorInvalid):
        vault.remember("milk", source="a", embedding=[1, 0])
    assert vault.count() == 1


def test_no_items_are_no_write(vault: Vault) -> None:
    assert vault.remember_many([]) == []
    assert log_bytes(vault) == 0


def test_write_of_many_records_counts_as_one(vault: Vault, disk: CrashDisk) -> None:
    # Two million characters each: every one takes a record of its own.
    items = [{"content": f"{number} " + "x" * 2_000_000, "source": "a"} for number in range(4)]
    ids = [memory.id for memory in vault.remember_many(items)]
    (log,) = vault._opened.logbook.logs.values()
    assert log.end.records == 4
    again = reopened(vault, disk)
    assert [again.get(each).id for each in ids] == ids
    again.close()


def test_everything_that_a_write_returned_is_what_is_read_back(vault: Vault, disk: CrashDisk) -> None:
    written = vault.remember(
        "Grüße aus 東京 🗼",
        source="trip",
        kind="episode",
        tags=["b", "a", "b"],
        author="Ann",
        thread="t",
        position=-3,
        captured_at=datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        origin="elsewhere#7",
    )
    assert written.tags == ("a", "b")
    again = reopened(vault, disk)
    assert again.get(written.id) == written
    assert again.has_origin("elsewhere#7")
    again.close()


# ── supersede, retract, restore ─────────────────────────────────────────────────────────────────────


def test_superseded_memory_stays_and_says_what_replaced_it(vault: Vault) -> None:
    old = vault.remember("lives in Berlin", source="a", kind="fact", tags=["home"], author="Ann")
    new = vault.supersede(old.id, "lives in Munich", source="b", reason="moved")
    assert (new.kind, new.tags, new.author, new.supersedes) == ("fact", ("home",), "Ann", old.id)
    before = vault.get(old.id)
    assert (before.state, before.superseded_by, before.reason) == (State.SUPERSEDED, new.id, "moved")


def test_superseding_a_superseded_memory_is_refused_and_names_the_newest(vault: Vault) -> None:
    old = vault.remember("lives in Berlin", source="a")
    new = vault.supersede(old.id, "lives in Munich", source="a")
    with pytest.raises(MemoryState, match=new.id):
        vault.supersede(old.id, "lives in Hamburg", source="a")
    assert vault.conflicts() == []


def test_restore_undoes_a_retraction_and_a_second_retraction_keeps_the_first_reason(vault: Vault) -> None:
    memory = vault.remember("tea", source="a")
    vault.retract(memory.id, reason="first")
    assert vault.retract(memory.id, reason="second").reason == "first"
    assert vault.restore(memory.id) == memory
    written = log_bytes(vault)
    assert vault.restore(memory.id) == memory
    assert log_bytes(vault) == written


def test_retracted_memory_can_be_superseded_and_stays_retracted(vault: Vault) -> None:
    old = vault.remember("tea", source="a")
    vault.retract(old.id, reason="never true")
    new = vault.supersede(old.id, "coffee", source="a")
    assert (vault.get(old.id).state, new.state) == (State.BOTH, State.ACTIVE)
    assert vault.restore(old.id).state == State.SUPERSEDED


# ── tags ────────────────────────────────────────────────────────────────────────────────────────────


def test_tags_are_added_and_removed_and_one_added_again_is_back(vault: Vault, disk: CrashDisk) -> None:
    memory = vault.remember("tea", source="a", tags=["hot"])
    assert vault.tag(memory.id, add=["drink"], remove=["hot"]).tags == ("drink",)
    assert vault.tag(memory.id, remove=["never there"]).tags == ("drink",)
    assert vault.tag(memory.id, add=["hot"]).tags == ("drink", "hot")
    again = reopened(vault, disk)
    assert again.get(memory.id).tags == ("drink", "hot")
    again.close()


@pytest.mark.parametrize(("tags", "error"), [("red", TypeError), ([1], TypeError), ([""], MemoryInvalid)])
def test_tags_that_cannot_be_stored_are_refused(vault: Vault, tags: Any, error: type[Exception]) -> None:
    memory = vault.remember("tea", source="a")
    with pytest.raises(error):
        vault.tag(memory.id, add=tags)
    with pytest.raises(error):
        vault.tag(memory.id, remove=tags)


# ── ids, threads, the end ───────────────────────────────────────────────────────────────────────────


def test_unknown_id_is_refused_everywhere(vault: Vault) -> None:
    calls: list[Callable[[], object]] = [
        lambda: vault.get(UNKNOWN),
        lambda: vault.supersede(UNKNOWN, "x", source="a"),
        lambda: vault.retract(UNKNOWN, reason="x"),
        lambda: vault.restore(UNKNOWN),
        lambda: vault.tag(UNKNOWN, add=["x"]),
    ]
    for call in calls:
        with pytest.raises(MemoryUnknown):
            call()
    assert log_bytes(vault) == 0


@pytest.mark.parametrize("wrong", ["", "xyz", "0" * 31, "0" * 33, " " + "0" * 31])
def test_what_is_no_id_is_refused(vault: Vault, wrong: str) -> None:
    with pytest.raises(ValueError, match="32 hex digits"):
        vault.get(wrong)


def test_closed_vault_takes_nothing(vault: Vault) -> None:
    vault.close()
    with pytest.raises(VaultClosed):
        vault.remember("tea", source="a")


def test_threads_that_write_and_read_at_once_lose_and_break_nothing(vault: Vault, disk: CrashDisk) -> None:
    directions = np.eye(8)

    def work(thread: int) -> None:
        for number in range(10):
            memory = vault.remember(f"{thread} {number}", source="a", embedding=directions[thread])
            match number % 4:
                case 0:
                    vault.retract(memory.id, reason="test")
                case 1:
                    vault.supersede(memory.id, f"{thread} {number} new", source="a", embedding=directions[thread])
                case 2:
                    vault.tag(memory.id, add=[f"tag {number}"])
                case _:
                    assert vault.search(f"{thread} {number}", vector=directions[thread])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    counts = (vault.count(), vault.count(state="retracted"), vault.count(state="superseded"))
    assert counts == (8 * 7, 8 * 3, 8 * 3)
    digest = vault.state_digest()
    assert vault.verify() == []
    again = reopened(vault, disk)
    assert again.state_digest() == digest
    again.close()


def test_remembering_again_adds_new_tags_and_writes_nothing_where_there_are_none(vault: Vault) -> None:
    first = vault.remember("tea", source="a", tags=["drink"])
    before = log_bytes(vault)
    assert vault.remember("tea", source="b", tags=["drink"]) == first
    assert log_bytes(vault) == before
    assert vault.remember("tea", source="b", tags=["warm", "drink"]).tags == ("drink", "warm")
    assert vault.get(first.id).tags == ("drink", "warm")


def test_a_cache_that_cannot_be_written_does_not_make_closing_fail(vault: Vault, disk: CrashDisk) -> None:
    vault.remember("tea", source="a")
    vault._opened.uncached = 1 << 30
    vault._settle()
    cache = vault._opened.folder.path / "cache" / "view.mseal"
    assert disk.size(cache) is not None
    disk.remove(cache)
    disk.remove_folder(cache.parent)
    vault._opened.uncached = 1 << 30
    vault.close()
    assert disk.size(cache) is None


def test_items_may_bring_their_own_embeddings_all_or_none(vault: Vault) -> None:
    items = [{"content": f"item {number}", "source": "a", "embedding": np.eye(4)[number]} for number in range(3)]
    memories = vault.remember_many(items)
    assert [hit.memory.id for hit in vault.search(vector=np.eye(4)[2], limit=1)] == [memories[2].id]
    assert vault.status().without_vector == 0
    for bad in (
        [*items, {"content": "without", "source": "a"}],
        [items[0], {**items[1], "embedding": [1.0]}],
        [{**items[0], "embedding": "text"}],
    ):
        with pytest.raises(VectorInvalid):
            vault.remember_many(bad)
    with pytest.raises(VectorInvalid):
        vault.remember_many(items, np.eye(4)[:3])
    assert [memory.content for memory in vault.remember_many([{"content": "x", "source": "a", "embedding": None}])] == [
        "x"
    ]
