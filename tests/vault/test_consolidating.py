"""Composites and affinities in a vault: written, found, undone, erased."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memseal.errors import MemoryInvalid, MemoryUnknown, VaultReadOnly
from memseal.memory.memory import State, to_microseconds
from memseal.sanitize import Sanitizer
from memseal.vault.vault import Vault
from memseal.vault.writes import writing
from memseal.vault.writes.consolidating import Consolidation
from tests.vault.small_vault import everything, new_folder, open_vault

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def coffee(vault: Vault, number: int, text: str = "") -> str:
    content = f"I had coffee with oat milk, cup {number} of it today{text}"
    return vault.remember(content, source="test", captured_at=START + timedelta(days=5 * number)).id


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    """Six memories of one habit."""
    new_folder(tmp_path / "vault")
    with open_vault(tmp_path / "vault") as opened:
        for number in range(6):
            coffee(opened, number)
        yield opened


def test_run_adds_and_changes_nothing_that_was_there(vault: Vault) -> None:
    before = everything(vault)
    plan = vault.plan_consolidation()
    assert everything(vault) == before
    done = vault.consolidate()
    assert [(each.rule, each.key, each.content) for each in done.made] == [
        (each.rule, each.key, each.content) for each in plan
    ]
    assert {content: state for content, state in everything(vault).items() if content in before} == before
    assert len(everything(vault)) == len(before) + len(done.made)


def test_what_is_made_names_what_it_was_made_of(vault: Vault) -> None:
    atoms = {memory.id for memory in vault.list()}
    done = vault.consolidate()
    (affinity,) = vault.list(tier="affinity")
    assert set(affinity.derived_from) == atoms
    assert affinity.derivation is not None
    assert (affinity.derivation.count, affinity.derivation.run) == (6, done.run)
    assert affinity.captured_at == START + timedelta(days=25)
    assert affinity.type == "persona"
    assert vault.count(tier="atom") == 6
    for number in range(6, 9):
        coffee(vault, number)
    vault.consolidate()
    texts = {memory.id for memory in vault.list(tier="atom")}
    assert all(set(memory.derived_from) <= texts for memory in vault.list(state="all"))


def test_second_run_adds_nothing_after_opening_too(vault: Vault, tmp_path: Path) -> None:
    assert vault.consolidate().run is not None
    assert vault.consolidate().run is None
    vault.close()
    with open_vault(tmp_path / "vault") as again:
        assert again.consolidate().made == ()
        again.compact()
        assert again.consolidate().made == ()


def test_run_that_is_due_is_made_once_a_week(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at(moment: datetime) -> None:
        monkeypatch.setattr(writing, "present", lambda: to_microseconds(moment))

    at(datetime(2024, 6, 2, 23, 59, tzinfo=UTC))
    first = vault.consolidate(if_due=True)
    assert first.made
    for number in range(6, 12):
        coffee(vault, number)
    assert vault.consolidate(if_due=True) == Consolidation(None, ())
    vault.close()
    with open_vault(tmp_path / "vault") as again:
        assert not again.consolidate(if_due=True).made
        at(datetime(2024, 6, 3, tzinfo=UTC))  # a Monday
        assert again.consolidate(if_due=True).made
        before = everything(again)
        assert again.consolidate().made == again.consolidate(if_due=True).made == ()
        assert everything(again) == before


def test_week_is_noted_also_where_there_was_nothing_to_make(tmp_path: Path) -> None:
    new_folder(tmp_path / "empty")
    with open_vault(tmp_path / "empty") as opened:
        assert opened.consolidate(if_due=True).run is None
        extent = opened.status()
        assert opened.consolidate(if_due=True).run is None
        assert opened.status() == extent
        coffee(opened, 0)
    with open_vault(tmp_path / "empty", read_only=True) as closed, pytest.raises(VaultReadOnly):
        closed.consolidate(if_due=True)


def test_growing_pattern_replaces_its_earlier_version_and_undo_brings_that_back(vault: Vault) -> None:
    vault.consolidate()
    (before,) = vault.list(tier="affinity")
    for number in range(6, 9):
        coffee(vault, number)
    grown = vault.consolidate()
    (now,) = vault.list(tier="affinity")
    assert now.supersedes == before.id
    assert now.derivation is not None
    assert now.derivation.count == 9
    assert grown.run is not None
    assert vault.undo_consolidation(grown.run) == len(grown.made)
    (back,) = vault.list(tier="affinity")
    assert (back.content, back.derived_from, back.derivation) == (
        before.content,
        before.derived_from,
        before.derivation,
    )
    assert vault.consolidate().made == ()


def test_undo_takes_all_of_a_run_and_nothing_else(vault: Vault) -> None:
    atoms = everything(vault)
    done = vault.consolidate()
    assert done.run is not None
    assert vault.undo_consolidation(done.run) == len(done.made)
    assert {each for each, state in everything(vault).items() if state == State.ACTIVE} == set(atoms)
    assert vault.consolidate().made == ()
    with pytest.raises(MemoryUnknown):
        vault.undo_consolidation(done.run)
    with pytest.raises(MemoryUnknown):
        vault.undo_consolidation("0" * 32)


def test_memories_are_found_as_before_and_what_was_made_of_them_after_them(vault: Vault) -> None:
    for number in range(6):
        vault.remember(
            f"Sold the old kettle, offer {number}", source="test", captured_at=START + timedelta(days=number)
        )
    questions = ("coffee with oat milk", "who bought the old kettle", "coffee in January 2024", "cup 3", "milk kettle")
    before = [[(hit.memory.id, hit.why.lexical) for hit in vault.search(each, limit=50)] for each in questions]
    assert vault.consolidate().made
    for question, found in zip(questions, before, strict=True):
        hits = vault.search(question, limit=50)
        assert [(hit.memory.id, hit.why.lexical) for hit in hits[: len(found)]] == found
        assert {hit.memory.tier for hit in hits[len(found) :]} <= {"composite", "affinity"}
    assert {hit.memory.tier for hit in vault.search(questions[0], limit=50)} == {"atom", "composite", "affinity"}


def test_pattern_comes_first_where_the_question_asks_for_one(vault: Vault) -> None:
    vault.consolidate()
    assert vault.recall("what milk do I usually have in my coffee", now=START + timedelta(days=30)).hits[
        0
    ].memory.tier == ("affinity")


def test_conversation_tells_nothing_of_who_only_answers(tmp_path: Path) -> None:
    new_folder(tmp_path / "chat")
    with open_vault(tmp_path / "chat") as opened:
        for number in range(6):
            for place, (author, text) in enumerate(
                (
                    ("Ann", f"I had coffee with oat milk, cup {number}"),
                    ("Bob", f"Coffee, oat milk: great, cup {number}!"),
                )
            ):
                when = START + timedelta(days=5 * number)
                opened.remember(
                    text, source="chat", author=author, thread=f"{number}", position=place, captured_at=when
                )
        opened.consolidate()
        assert [each.author for each in opened.list(tier="affinity")] == ["Ann"]


def test_erase_reaches_what_was_made_of_a_memory(vault: Vault) -> None:
    vault.consolidate()
    target = next(memory for memory in vault.list(tier="atom") if "cup 5" in memory.content)
    derived = {memory.id for memory in vault.list() if target.id in memory.derived_from}
    assert derived
    receipt = vault.erase(target.id)
    assert set(receipt.erased) == {target.id, *derived}
    assert not any("cup 5" in content for content in everything(vault))
    again = vault.consolidate()  # what is left may be told anew
    assert again.made
    assert not any("cup 5" in content for content in everything(vault))


def test_erase_of_a_version_reaches_what_was_made_of_another(vault: Vault) -> None:
    first = coffee(vault, 6)
    vault.consolidate()
    second = vault.supersede(first, "I had tea instead of that coffee with oat milk", source="test")
    assert not any(first in memory.derived_from for memory in map(vault.get, vault.erase(second.id).survivors))
    assert not any("cup 6" in content for content in everything(vault))


def test_retracted_memory_is_told_by_nothing_that_is_recalled(vault: Vault) -> None:
    vault.consolidate()
    wrong = next(memory for memory in vault.list(tier="atom") if "cup 5" in memory.content)
    vault.retract(wrong.id, reason="it was tea")
    assert not any(wrong.id in memory.derived_from for memory in vault.list())
    assert not any("cup 5" in hit.memory.content for hit in vault.search("coffee with oat milk", limit=50))
    vault.consolidate()
    (affinity,) = vault.list(tier="affinity")
    assert affinity.derivation is not None
    assert affinity.derivation.count == 5
    vault.restore(wrong.id)
    assert any("cup 5" in hit.memory.content for hit in vault.search("coffee with oat milk", limit=50))


def test_secret_in_a_memory_is_not_copied(vault: Vault) -> None:
    vault.remember(
        f"I had coffee with oat milk and the token {SECRET}", source="test", captured_at=START, secrets="keep"
    )
    vault.consolidate()
    assert not any(SECRET in memory.content for memory in vault.list() if memory.derived_from)


class Mask:
    """A sanitizer that knows one word."""

    def sanitize_many(self, texts: Sequence[str], /) -> list[str]:
        return [text.replace("oat", "[MILK_1]") for text in texts]

    def restore(self, reply: str, /) -> str:
        return reply.replace("[MILK_1]", "oat")


def test_wording_sees_sanitized_text_alone_and_its_answer_is_restored(vault: Vault) -> None:
    seen = list[str]()

    def wording(prompt: str) -> str:
        seen.append(prompt)
        return f"Coffee with [MILK_1] milk, time and again ({len(seen)})."

    done = vault.consolidate(wording=wording, sanitizer=Mask())
    assert len(seen) == len(done.made)
    assert not any("oat" in prompt for prompt in seen)
    assert all("coffee" in prompt for prompt in seen)
    assert {each.content for each in done.made} == {
        f"Coffee with oat milk, time and again ({number})." for number in range(1, len(seen) + 1)
    }
    assert vault.consolidate(wording=wording, sanitizer=Mask()).made == ()


def test_real_sanitizer_gives_the_names_back(vault: Vault) -> None:
    seen = list[str]()

    def wording(prompt: str) -> str:
        seen.append(prompt)
        return prompt.splitlines()[-1].partition(": ")[2]

    for number in range(6, 12):
        coffee(vault, number, " with Sarah Chen")
    done = vault.consolidate(wording=wording, sanitizer=Sanitizer(contacts=["Sarah Chen"], model=None))
    assert not any("Sarah" in prompt for prompt in seen)
    assert any("with Sarah Chen" in each.content for each in done.made)


def test_wording_without_a_sanitizer_is_refused(vault: Vault) -> None:
    with pytest.raises(TypeError, match="sanitizer"):
        vault.consolidate(wording=lambda prompt: prompt)


@pytest.mark.parametrize("answer", ["", " \n", "x" * 2_001])
def test_answer_that_is_no_memory_writes_nothing(vault: Vault, answer: str) -> None:
    with pytest.raises(MemoryInvalid, match="wording"):
        vault.consolidate(wording=lambda _: answer, sanitizer=Mask())
    assert vault.count(tier="atom") == vault.count()


def test_wording_that_fails_writes_nothing(vault: Vault) -> None:
    def wording(prompt: str) -> str:
        raise TimeoutError("the model is away")

    with pytest.raises(TimeoutError):
        vault.consolidate(wording=wording, sanitizer=Mask())
    assert vault.count(tier="atom") == vault.count()


def test_memory_that_comes_while_wording_thinks_is_for_the_next_run(vault: Vault) -> None:
    def wording(prompt: str) -> str:
        for number in range(6, 12):
            coffee(vault, number)
        return "Coffee, time and again."

    vault.consolidate(wording=wording, sanitizer=Mask())
    assert not any(len(memory.derived_from) > 6 for memory in vault.list())
