"""Capture through the vault: off until it is switched on, proposals alone, and nothing twice."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memseal.errors import CaptureOff
from memseal.vault.vault import Vault
from memseal.vault.writes.capturing import Captured
from tests.vault.small_vault import open_vault

AT = datetime(2024, 3, 13, tzinfo=UTC)


@pytest.fixture
def vault(vault: Vault) -> Vault:
    """One that captures."""
    vault.set_capture(True)
    return vault


def say(vault: Vault, text: str, role: str = "user") -> Captured:
    return vault.capture([{"role": role, "content": text}])


def waiting(vault: Vault) -> list[str]:
    return [each.memory.content for each in vault.proposals() if each.memory is not None]


def test_capture_is_off_until_it_is_switched_on(path: Path) -> None:
    with open_vault(path) as vault:
        with pytest.raises(CaptureOff, match="set_capture"):
            say(vault, "I live in Oslo.")
        vault.set_capture(True)
        assert len(say(vault, "I live in Oslo.").proposed) == 1
        vault.set_capture(False)
        with pytest.raises(CaptureOff):
            say(vault, "I live in Rome.")


def test_captured_fact_is_a_proposal_with_its_source_and_time(vault: Vault) -> None:
    message = {"role": "user", "content": "I live in Oslo.", "at": AT}
    captured = vault.capture([message], name="mail app", thread="t")
    (proposal,) = vault.proposals()
    assert (proposal.id,) == captured.proposed
    memory = proposal.memory
    assert memory is not None
    assert (memory.source, memory.thread, memory.captured_at) == ("capture:mail app", "t", AT)
    assert vault.count(state="all") == 0
    assert vault.accept(proposal.id).content == "I live in Oslo."


def test_recalled_text_is_never_captured_as_news(vault: Vault) -> None:
    vault.remember("I live in Oslo and work as a nurse", source="chat")
    packet = vault.recall("where do I live")
    for text in (
        packet.text,
        packet.text.splitlines()[2],
        "I live in Oslo and work as a nurse.",
        "I live in Oslo, and work as a nurse!",
    ):
        captured = say(vault, text)
        assert captured.proposed == ()
    assert waiting(vault) == []


def test_forgotten_and_replaced_text_is_known_as_well(vault: Vault) -> None:
    gone = vault.remember("I live in Oslo with Ann", source="chat")
    old = vault.remember("I work at the town hall", source="chat")
    vault.retract(gone.id, reason="never")
    vault.supersede(old.id, "I work at the university", source="chat")
    captured = say(vault, "I live in Oslo with Ann. I work at the town hall.")
    assert (captured.proposed, captured.known) == ((), 2)


def test_same_fact_said_again_is_one_proposal_and_a_rejected_one_none(vault: Vault) -> None:
    (first,) = say(vault, "I live in Oslo.").proposed
    assert say(vault, "I live in OSLO!").known == 1
    vault.reject(first, reason="a joke")
    assert say(vault, "I live in Oslo.").known == 1
    assert waiting(vault) == []


def test_words_of_the_model_are_not_captured(vault: Vault) -> None:
    assert say(vault, "I live in Oslo.", role="assistant").proposed == ()


def test_refused_categories_are_counted_and_can_be_allowed_but_for_credentials(vault: Vault) -> None:
    text = "I'm allergic to nuts. My password is hunter22."
    assert say(vault, text).refused == {"medical": 1, "credentials": 1}
    vault.set_capture(True, allow=["medical"])
    assert say(vault, text).refused == {"credentials": 1}
    assert waiting(vault) == ["I'm allergic to nuts."]
    with pytest.raises(ValueError, match="never captured"):
        vault.set_capture(True, allow=["credentials"])


def test_vault_of_the_medical_class_takes_medical_facts(tmp_path: Path) -> None:
    (tmp_path / "clinic").mkdir()
    with Vault.create(tmp_path / "clinic", "a passphrase", embedder=None, data_class="MEDICAL") as vault:
        vault.set_capture(True)
        captured = say(vault, "I'm allergic to nuts. My salary is low.")
        assert (len(captured.proposed), captured.refused) == (1, {"financial": 1})


def test_capture_leaves_a_trace_that_an_erase_reaches(vault: Vault) -> None:
    captured = say(vault, "I live in Oslo.")
    (trace,) = [each for each in vault.traces() if each.surface == "capture"]
    assert trace.id == captured.trace_id
    assert trace.memories == frozenset(captured.proposed)
    vault.erase_all(captured.proposed)
    assert [each.memories for each in vault.traces() if each.surface == "capture"] in ([], [frozenset()])


def test_captured_secret_is_nowhere_in_the_folder_or_the_state(path: Path) -> None:
    with open_vault(path) as vault:
        vault.set_capture(True)
        say(vault, "My key is sk-live-4f9a8b7c6d5e4f3a2b1c and my wifi password is blue7horse. I live in Oslo.")
        assert waiting(vault) == ["I live in Oslo."]
        image = vault._opened.logbook.view.state.image()
    with open_vault(path) as vault:
        again = vault._opened.logbook.view.state.image()
    for secret in (b"4f9a8b7c", b"blue7horse"):
        assert secret not in image
        assert secret not in again
