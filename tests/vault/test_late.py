"""Late interaction through the vault, with the real model: what it finds, keeps and forgets."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.embedding import Contextual, Embedder, Tokens, default_embedder
from memseal.embedding.minilm import MiniLmEmbedder
from memseal.errors import EmbedderUnavailable
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, new_folder, stretch_of

TEXTS = (
    "Maya: I finally adopted a puppy from the shelter on Elm Street.",
    "Maya: The shelter on Elm Street closes at six.",
    "Jonas: My sister runs a shelter for lost bicycles.",
    "Jonas: We painted the kitchen in a warm yellow.",
)
QUERY = "Which animal did Maya adopt?"


class Counting(MiniLmEmbedder):
    """The real model, which notes of which texts it was asked for the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.reachable = True

    def embed_tokens(self, text: str) -> Tokens:
        if not self.reachable:
            raise EmbedderUnavailable("switched off")
        self.asked.append(text)
        return super().embed_tokens(text)


def made(path: Path, embedder: Embedder) -> Vault:
    return Vault._open(new_folder(path / "vault"), stretch_of(PASSPHRASE), False, embedder)


@pytest.fixture
def embedder() -> Counting:
    if default_embedder() is None:
        pytest.skip("memseal[embed] is not installed")
    return Counting()


@pytest.fixture
def vault(tmp_path: Path, embedder: Counting) -> Iterator[Vault]:
    with made(tmp_path, embedder) as vault:
        for text in TEXTS:
            author, _, content = text.partition(": ")
            vault.remember(content, source="test", author=author)
        yield vault


def codes_of(vault: Vault) -> int:
    return len(vault._opened.logbook.view.token_codes)


def test_local_model_gives_tokens() -> None:
    assert issubclass(MiniLmEmbedder, Contextual)


def test_hit_says_how_near_its_words_are(vault: Vault) -> None:
    best, *others = vault.search(QUERY)
    assert best.memory.content.startswith("I finally adopted a puppy")
    assert best.why.late is not None
    assert all(hit.why.late is not None and hit.why.late < best.why.late for hit in others)


def test_economy_asks_for_no_tokens(vault: Vault, embedder: Counting) -> None:
    hits = vault.search(QUERY, effort="economy")
    assert embedder.asked == []
    assert [hit.why.late for hit in hits] == [None] * len(hits)


@pytest.mark.parametrize("effort", ["default", "best"])
def test_each_text_is_read_once_and_gives_the_same_scores_again(vault: Vault, embedder: Counting, effort: str) -> None:
    first = [(hit.memory.id, hit.score) for hit in vault.search(QUERY, effort=effort)]  # type: ignore[arg-type]
    assert sorted(embedder.asked[1:]) == sorted(set(embedder.asked[1:]))
    embedder.asked.clear()
    assert [(hit.memory.id, hit.score) for hit in vault.search(QUERY, effort=effort)] == first  # type: ignore[arg-type]
    assert embedder.asked == [QUERY]


def test_scores_are_the_same_on_a_device_that_read_the_texts_in_another_order(vault: Vault) -> None:
    """Determinism: the int8 model gives a text in a batch other vectors than alone."""
    first = [(hit.memory.id, hit.score) for hit in vault.search(QUERY)]
    view = vault._opened.logbook.view
    view.token_codes.clear()
    vault.search("Who painted the kitchen?")
    assert [(hit.memory.id, hit.score) for hit in vault.search(QUERY)] == first


def test_erase_forgets_all_tokens(vault: Vault) -> None:
    hits = vault.search(QUERY)
    assert codes_of(vault) > 0
    vault.erase(hits[0].memory.id)
    assert codes_of(vault) == 0


def test_model_that_fails_for_tokens_leaves_the_rest_of_the_ranking(vault: Vault, embedder: Counting) -> None:
    economy = [hit.memory.id for hit in vault.search(QUERY, effort="economy")]
    embedder.reachable = False
    hits = vault.search(QUERY)
    assert [hit.memory.id for hit in hits] == economy
    assert all(hit.why.late is None for hit in hits)


def test_memory_in_another_language_has_no_late_score(vault: Vault) -> None:
    vault.remember("Maya hat im Tierheim einen kleinen Hund bekommen und ist sehr froh.", source="test", author="Maya")
    found = {hit.memory.content[:8]: hit.why.late for hit in vault.search(QUERY)}
    assert found["I finall"] is not None
    assert found.get("Maya hat") is None


@pytest.mark.parametrize("effort", ["", "most", "Default"])
def test_unknown_effort_is_refused(vault: Vault, effort: str) -> None:
    with pytest.raises(ValueError, match="effort is economy, default or best"):
        vault.search(QUERY, effort=effort)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="effort is economy, default or best"):
        vault.recall(QUERY, effort=effort)  # type: ignore[arg-type]


def test_packet_follows_the_effort(vault: Vault, embedder: Counting) -> None:
    vault.recall(QUERY, effort="economy")
    assert embedder.asked == []
    packet = vault.recall(QUERY)
    assert embedder.asked
    assert packet.hits[0].why.late is not None


class Pooled:
    """An embedder without tokens."""

    name, dimension, floor = "pooled", 2, 0.1

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))


def test_embedder_without_tokens_ranks_without_them(tmp_path: Path) -> None:
    with made(tmp_path, Pooled()) as vault:
        vault.remember("Maya adopted a puppy", source="test")
        assert [hit.why.late for hit in vault.search(QUERY, effort="best")] == [None]
