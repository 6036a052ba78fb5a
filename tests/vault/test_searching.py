"""What a search finds, through the vault, with words, with ready vectors, and with a small embedder."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.embedding.minilm import MiniLmEmbedder
from memseal.errors import EmbedderUnavailable, FilterUnknown, VectorInvalid
from memseal.store.folder import VaultFolder
from memseal.vault.answers.searching import Hit
from memseal.vault.vault import Vault
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    (tmp_path / "vault").mkdir()
    disk = CrashDisk(tmp_path)
    new_folder(tmp_path / "vault", disk)
    with open_vault(tmp_path / "vault", disk) as vault:
        yield vault


def found(hits: Sequence[Hit]) -> list[str]:
    return [hit.memory.content for hit in hits]


# ── words ───────────────────────────────────────────────────────────────────────────────────────────


def test_memory_is_found_by_its_words_and_says_why(vault: Vault) -> None:
    memory = vault.remember("The boiler code is 4711", source="a")
    vault.remember("Tea is in the kitchen", source="a")
    (hit,) = vault.search("What is the code of the boiler?")
    assert hit.memory == memory
    assert (set(hit.why.terms), hit.why.cosine) == ({"code", "boiler"}, None)
    assert hit.why.lexical > 0


@pytest.mark.parametrize("query", ["", "   ", "what of the", '?!*"()', "quantum chromodynamics", "\ud800"])
def test_query_related_to_nothing_finds_nothing(vault: Vault, query: str) -> None:
    vault.remember("The boiler code is 4711", source="a")
    assert vault.search(query) == []


def test_empty_vault_finds_nothing(vault: Vault) -> None:
    assert vault.search("tea") == vault.search(vector=[1, 0]) == []


def test_query_is_never_read_as_an_operator(vault: Vault) -> None:
    vault.remember("tea", source="a")
    assert found(vault.search('tea" OR coffee NEAR(x) -*')) == ["tea"]


# ── states ──────────────────────────────────────────────────────────────────────────────────────────


def test_superseded_and_retracted_memories_are_found_only_when_asked_for(vault: Vault) -> None:
    old = vault.remember("Ann lives in Berlin", source="a")
    wrong = vault.remember("Ann lives on Mars", source="a")
    new = vault.supersede(old.id, "Ann lives in Munich", source="a")
    vault.retract(wrong.id, reason="wrong")
    assert [hit.memory.id for hit in vault.search("Where does Ann live?")] == [new.id]
    assert [hit.memory.id for hit in vault.search("Ann live", state="superseded")] == [old.id]
    assert [hit.memory.id for hit in vault.search("Ann live", state="retracted")] == [wrong.id]
    assert {hit.memory.id for hit in vault.search("Ann live", state="all")} == {old.id, wrong.id, new.id}
    vault.restore(wrong.id)
    assert {hit.memory.id for hit in vault.search("Ann live")} == {new.id, wrong.id}


def test_superseded_and_retracted_memories_are_not_found_by_vector_either(vault: Vault) -> None:
    old, wrong = vault.remember_many([{"content": text, "source": "a"} for text in ("x", "y")], np.ones((2, 2)))
    vault.supersede(old.id, "z", source="a", embedding=[1, 1])
    vault.retract(wrong.id, reason="wrong")
    assert found(vault.search(vector=[1, 1])) == ["z"]


def test_neighbours_in_a_thread_that_are_not_active_are_not_found(vault: Vault) -> None:
    first, second = (
        vault.remember(text, source="a", thread="t", position=number)
        for number, text in enumerate(["Where is the boiler?", "In the cellar."])
    )
    assert {hit.memory.id for hit in vault.search("boiler")} == {first.id, second.id}
    vault.retract(second.id, reason="wrong")
    assert [hit.memory.id for hit in vault.search("boiler")] == [first.id]


def test_question_that_an_old_wording_answers_finds_what_replaced_it(vault: Vault) -> None:
    old = vault.remember("The spare key lies under the blue pot", source="a")
    middle = vault.supersede(old.id, "The spare key lies under the red pot", source="a")
    new = vault.supersede(middle.id, "Lift the crimson planter beside the stairs", source="a")
    (hit,) = vault.search("where is the spare key")
    assert (hit.memory.id, hit.why.earlier) == (new.id, True)
    assert not vault.search("crimson planter")[0].why.earlier
    assert vault.search("where is the spare key", kind="fact") == []
    vault.retract(new.id, reason="wrong")
    assert vault.search("where is the spare key") == []


def test_what_says_the_thing_itself_comes_before_what_once_did(vault: Vault) -> None:
    old = vault.remember("Nora lives in Lisbon", source="a")
    new = vault.supersede(old.id, "Nora has moved to Porto", source="a")
    other = vault.remember("Rui lives in Lisbon", source="a")
    assert [hit.memory.id for hit in vault.search("who lives in Lisbon")] == [other.id, new.id]


def test_version_that_was_never_true_finds_nothing(vault: Vault) -> None:
    old = vault.remember("The spare key lies under the blue pot", source="a")
    vault.supersede(old.id, "Lift the crimson planter beside the stairs", source="a")
    vault.retract(old.id, reason="wrong")
    assert vault.search("where is the spare key") == []


def test_who_asks_for_a_state_gets_what_has_the_words_alone(vault: Vault) -> None:
    old = vault.remember("The spare key lies under the blue pot", source="a")
    vault.supersede(old.id, "Lift the crimson planter beside the stairs", source="a")
    assert [hit.memory.id for hit in vault.search("where is the spare key", state="all")] == [old.id]


# ── filters ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "filters",
    [
        {"kind": "fact"},
        {"author": "Ann"},
        {"thread": "t"},
        {"source": "b"},
        {"origin": "o"},
        {"tags": ["red"]},
        {"tags": ["red", "blue"], "kind": "fact"},
        {"since": NOON},
        {"since": NOON, "until": NOON + timedelta(microseconds=1)},
    ],
)
@pytest.mark.parametrize("asked", [{"query": "tea"}, {"vector": [1, 0]}])
def test_filter_holds_for_words_and_vectors(vault: Vault, filters: dict[str, Any], asked: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"kind": "fact", "author": "Ann", "thread": "t", "origin": "o", "tags": ["red", "blue"]}
    earlier = NOON - timedelta(microseconds=1)
    vault.remember("green tea", source="a", captured_at=earlier, embedding=[1, 0])
    vault.remember("black tea", source="b", captured_at=NOON, embedding=[0, 1], **fields)
    assert len(vault.search(**asked)) == 2
    assert found(vault.search(**asked, **filters)) == ["black tea"]
    assert (vault.count(**filters), [each.content for each in vault.list(**filters)]) == (1, ["black tea"])


def test_few_memories_that_a_filter_leaves_are_found_among_thousands(vault: Vault) -> None:
    directions = np.random.default_rng(1).normal(size=(3_000, 4))
    vault.remember_many([{"content": f"tea number {number}", "source": "a"} for number in range(3_000)], directions)
    few = [
        vault.remember(f"a long text in which tea comes once, {number}", source="b", embedding=[-1, 0, 0, 0]).id
        for number in range(3)
    ]
    near = [1, 0, 0, 0]
    questions: list[dict[str, Any]] = [{"query": "tea"}, {"vector": near}, {"query": "tea number", "vector": near}]
    for asked in questions:
        assert {hit.memory.id for hit in vault.search(**asked, source="b")} == set(few)


def test_unknown_filter_is_refused(vault: Vault) -> None:
    for call in (lambda: vault.search("tea", colour="red"), lambda: vault.list(colour="red"), lambda: vault.count(x=1)):
        with pytest.raises(FilterUnknown):
            call()


# ── vectors ─────────────────────────────────────────────────────────────────────────────────────────


def test_nearest_vector_comes_first_whatever_its_length(vault: Vault) -> None:
    vault.remember_many([{"content": text, "source": "a"} for text in ("north", "east")], [[0.0, 50.0], [0.01, 0.0]])
    hits = vault.search(vector=[3, 4])
    assert found(hits) == ["north", "east"]
    assert [hit.why.cosine for hit in hits] == pytest.approx([0.8, 0.6], abs=1e-3)


@pytest.mark.parametrize("vector", [[1, 0, 0], [[1, 0]], [], [0, 0], [float("nan"), 1], [float("inf"), 1], "x", 1.0])
def test_vector_that_cannot_be_compared_is_refused(vault: Vault, vector: Any) -> None:
    vault.remember("tea", source="a", embedding=[1, 0])
    with pytest.raises(VectorInvalid):
        vault.search(vector=vector)


def test_memory_without_vector_is_still_found_by_its_words(vault: Vault) -> None:
    vault.remember("tea", source="a", embedding=[1, 0])
    vault.remember("coffee", source="a")
    assert "coffee" in found(vault.search("coffee", vector=[1, 0]))


# ── one search ──────────────────────────────────────────────────────────────────────────────────────


def test_limit_cuts_the_same_order(vault: Vault) -> None:
    vault.remember_many([{"content": "tea " * (1 + number % 7) + str(number), "source": "a"} for number in range(80)])
    whole = found(vault.search("tea", limit=80))
    assert len(whole) == 80
    assert found(vault.search("tea", limit=1)) == whole[:1]
    assert len(vault.search("tea")) == 10


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", True, None])
def test_limit_that_is_no_count_is_refused(vault: Vault, limit: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        vault.search("tea", limit=limit)


def test_list_goes_from_newest_to_oldest_in_pages(vault: Vault) -> None:
    for day in (2, 3, 1):
        vault.remember(f"day {day}", source="a", captured_at=NOON + timedelta(days=day))
    pages = [[memory.content for memory in vault.list(limit=2, offset=offset)] for offset in (0, 2, 4)]
    assert pages == [["day 3", "day 2"], ["day 1"], []]


@pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}, {"limit": "3"}, {"limit": 1.5}, {"offset": None}])
def test_page_that_is_no_count_is_refused(vault: Vault, page: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        vault.list(**page)


def test_same_search_gives_the_same_hits_also_after_opening_again(vault: Vault) -> None:
    vectors = np.random.default_rng(2).normal(size=(60, 4))
    vault.remember_many([{"content": f"tea or coffee {number % 9}", "source": str(number), "author": str(number)}
                         for number in range(60)], vectors)  # fmt: skip
    asked: dict[str, Any] = {"query": "coffee 3", "vector": [1, 2, 3, 4], "limit": 60}
    first = vault.search(**asked)
    assert vault.search(**asked) == first
    disk = vault._opened.folder._disk
    vault.close()
    assert isinstance(disk, CrashDisk)
    with open_vault(vault._opened.folder.path, disk) as again:
        assert again.search(**asked) == first


def test_search_without_query_and_vector_is_refused(vault: Vault) -> None:
    with pytest.raises(TypeError):
        vault.search()


# ── an embedder ─────────────────────────────────────────────────────────────────────────────────────


class Drinks:
    """An embedder that knows two directions: hot drinks and everything else."""

    name = "drinks"
    dimension = 2
    floor = 0.5

    def __init__(self) -> None:
        self.reachable = True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.reachable:
            raise EmbedderUnavailable("switched off")
        hot = [any(word in text.casefold() for word in ("tea", "coffee", "hot")) for text in texts]
        return np.array([[1, 0] if each else [0, 1] for each in hot], np.float32)


@pytest.fixture
def drinks(tmp_path: Path) -> Iterator[tuple[Vault, Drinks]]:
    (tmp_path / "drinks").mkdir()
    folder, embedder = new_folder(tmp_path / "drinks", CrashDisk(tmp_path)), Drinks()
    with Vault._open(VaultFolder(folder.path, folder._disk), stretch_of(PASSPHRASE), False, embedder) as vault:
        yield vault, embedder


def test_meaning_finds_what_shares_no_word(drinks: tuple[Vault, Drinks]) -> None:
    vault, _ = drinks
    vault.remember_many([{"content": text, "source": "a"} for text in ("a cup of tea", "a bicycle")])
    (hit,) = vault.search("something hot")
    assert (hit.memory.content, hit.why.terms, hit.why.cosine) == ("a cup of tea", (), 1.0)


def test_words_alone_answer_while_the_model_cannot_be_reached(drinks: tuple[Vault, Drinks]) -> None:
    vault, embedder = drinks
    vault.remember("a cup of tea", source="a")
    embedder.reachable = False
    vault.remember("a cup of coffee", source="a")
    assert found(vault.search("coffee")) == ["a cup of coffee"]
    assert vault.status().without_vector == 1
    embedder.reachable = True
    assert vault.reindex() == 1
    assert set(found(vault.search("something hot"))) == {"a cup of tea", "a cup of coffee"}


def test_vectors_of_another_model_are_not_compared_and_words_go_on(drinks: tuple[Vault, Drinks]) -> None:
    vault, embedder = drinks
    vault.remember("a cup of tea", source="a")
    embedder.name = "another"
    assert vault.search("something hot") == []
    assert found(vault.search("tea")) == ["a cup of tea"]
    assert vault.reindex() == 1
    assert found(vault.search("something hot")) == ["a cup of tea"]


# ── the local model ─────────────────────────────────────────────────────────────────────────────────


def test_shared_word_of_another_meaning_finds_nothing(tmp_path: Path) -> None:
    folder, model = new_folder(tmp_path / "local"), MiniLmEmbedder()
    with Vault._open(VaultFolder(folder.path, folder._disk), stretch_of(PASSPHRASE), False, model) as vault:
        said = (
            "I planted tomatoes and basil on the balcony",
            "The plumber works on Saturdays",
            "Parcel 48151623 is here",
        )
        vault.remember_many([{"content": text, "source": "a"} for text in said])
        for question in ("explain desalination plants", "how does quantum chromodynamics work"):
            assert vault.search(question) == []
        for question, text in zip(
            ("which plants are on the balcony", "does the plumber work on Saturdays", "status of order 48151623"),
            said,
            strict=True,
        ):
            assert found(vault.search(question))[0] == text
