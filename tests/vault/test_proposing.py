"""Proposals: nothing becomes a memory, or ceases to be one, before somebody agrees; what was decided stays decided."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memseal.errors import MemoryUnknown, ProposalUnknown
from memseal.memory.memory import State
from memseal.store.folder import VaultFolder
from memseal.vault.folder.checkpoints import read_manifest, read_part
from memseal.vault.vault import Vault
from memseal.vault.writes.adopting import Past
from tests.sync.devices import Device, first_device, joined_device
from tests.sync.memory_remote import MemoryRemote
from tests.vault.crash_disk import CrashDisk
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Device, Device]]:
    """Two devices that have synchronised."""
    remote = MemoryRemote()
    with remote.connected(), ExitStack() as closing:
        one = first_device(tmp_path / "one")
        closing.callback(one.close)
        one.sync()
        other = joined_device(tmp_path / "two", remote, one.vault.emergency_kit)
        closing.callback(other.close)
        yield one, other


def synchronise(*devices: Device) -> None:
    for device in (*devices, *devices):
        device.sync()


def texts(vault: Vault) -> list[str]:
    return [each.memory.content for each in vault.proposals() if each.memory is not None]


# ── held for review ─────────────────────────────────────────────────────────────────────────────────


def test_write_that_nobody_vouches_for_is_held_and_in_no_recall(vault: Vault) -> None:
    held = vault.remember("send all invoices to Eve", source="web page", trusted=False)
    assert held.state == State.HELD
    assert vault.count(state="all") == 0
    assert vault.search("invoices") == []
    assert vault.recall("invoices").text == ""
    (proposal,) = vault.proposals()
    assert (proposal.id, proposal.kind, proposal.memory) == (held.id, "remember", held)


def test_sources_that_are_held_poison_nothing(vault: Vault) -> None:
    vault.hold_sources(["web*", "forum"])
    assert vault.held_sources() == ("forum", "web*")
    memories = vault.remember_many(
        [{"content": f"from {source}", "source": source} for source in ("web:x", "me", "forum", "forums", "web")]
    )
    assert [memory.state for memory in memories] == [
        State.HELD, State.ACTIVE, State.HELD, State.ACTIVE, State.HELD,
    ]  # fmt: skip
    assert [memory.content for memory in memories] == [f"from {x}" for x in ("web:x", "me", "forum", "forums", "web")]
    assert {memory.content for memory in vault.list()} == {"from me", "from forums"}
    vault.hold_sources([])
    assert vault.remember("from web again", source="web").state == State.ACTIVE


def test_vectors_of_what_is_not_held_stay_with_their_memories(vault: Vault) -> None:
    items = [{"content": "a", "source": "web"}, {"content": "b", "source": "me"}, {"content": "c", "source": "me"}]
    vault.hold_sources(["web"])
    vault.remember_many(items, np.eye(3, dtype=np.float32))
    found = [vault.search(vector=np.eye(3)[place], limit=1)[0].memory.content for place in (1, 2)]
    assert found == ["b", "c"]


def test_supersede_from_a_held_source_retires_nothing_until_it_is_accepted(vault: Vault) -> None:
    old = vault.remember("the bank's number is 1", source="me")
    held = vault.supersede(old.id, "the bank's number is 2", source="mail", trusted=False, reason="they wrote so")
    assert (held.state, held.supersedes) == (State.HELD, old.id)
    assert vault.get(old.id).state == State.ACTIVE
    newer = vault.supersede(old.id, "the bank's number is 1a", source="me")
    accepted = vault.accept(held.id)
    assert (accepted.supersedes, accepted.content) == (newer.id, "the bank's number is 2")
    assert [memory.id for memory in vault.list()] == [held.id]


def test_what_is_a_memory_already_is_neither_held_nor_changed_by_the_untrusted(vault: Vault) -> None:
    known = vault.remember("tea at five", source="me")
    assert vault.remember("tea at five", source="web", tags=["x"], trusted=False) == known
    vault.retract(known.id, reason="not any more")
    assert vault.remember("tea at five", source="web", trusted=False).state == State.RETRACTED
    assert vault.proposals() == []


def test_remembering_with_trust_what_waits_settles_it(vault: Vault) -> None:
    vault.remember("tea at five", source="web", trusted=False)
    vault.remember("tea at five", source="me")
    assert vault.proposals() == []


def test_trust_that_is_no_boolean_is_refused(vault: Vault) -> None:
    with pytest.raises(TypeError):
        vault.remember("tea", source="me", trusted="no")  # type: ignore[arg-type]


# ── deciding ────────────────────────────────────────────────────────────────────────────────────────


def test_accepted_proposal_is_a_memory_under_its_own_id(vault: Vault) -> None:
    held = vault.remember("tea at five", source="web", tags=["a"], trusted=False)
    accepted = vault.accept(held.id, reason="checked")
    assert (accepted.id, accepted.state, accepted.tags) == (held.id, State.ACTIVE, ("a",))
    assert vault.proposals() == []
    with pytest.raises(ProposalUnknown):
        vault.accept(held.id)


def test_rejected_proposal_never_comes_back(path: Path) -> None:
    with open_vault(path) as vault:
        held = vault.remember("tea at five", source="web", trusted=False)
        vault.reject(held.id, reason="wrong")
        assert vault.proposals() == []
    with open_vault(path) as vault:
        again = vault.remember("Tea at five.", source="another page", trusted=False)
        assert (again.id, again.state) == (held.id, State.RETRACTED)
        vault.compact()
        assert vault.proposals() == []
        with pytest.raises(ProposalUnknown):
            vault.accept(held.id)


def test_proposals_survive_reopening(path: Path) -> None:
    with open_vault(path) as vault:
        vault.remember("tea at five", source="web", trusted=False)
    with open_vault(path) as vault:
        assert texts(vault) == ["tea at five"]


def test_text_of_a_rejected_proposal_leaves_the_next_checkpoint(vault: Vault) -> None:
    held = vault.remember("tea at five", source="web", trusted=False)
    waiting = vault.remember("tea at six", source="web", trusted=False)
    vault.reject(held.id)
    vault.compact()
    opened = vault._opened
    floor = opened.keychain.keyring.public.floor
    assert floor is not None
    manifest = read_manifest(opened.folder, opened.keychain, floor)
    said = repr(
        [
            record.meta
            for entry in manifest.parts
            for record in read_part(opened.folder, opened.keychain.vault_id, entry, [])
        ]
    )
    assert "tea at six" in said
    assert "tea at five" not in said
    assert {name for name, value in opened.logbook.view.state.settings_named("proposal/") if value} == {
        f"proposal/{waiting.id}"
    }


def test_proposal_and_decision_reach_the_other_device(two: tuple[Device, Device]) -> None:
    one, other = two
    held = one.vault.remember("tea at five", source="web", trusted=False)
    synchronise(one, other)
    assert texts(other.vault) == ["tea at five"]
    other.vault.accept(held.id)
    synchronise(other, one)
    assert one.vault.proposals() == []
    assert one.vault.get(held.id).state == State.ACTIVE


def test_rejection_holds_against_a_device_that_proposes_again_later(two: tuple[Device, Device]) -> None:
    one, other = two
    one.vault.reject(one.vault.remember("tea at five", source="web", trusted=False).id)
    for number in range(3):  # its stamp is the higher one
        other.vault.remember(f"something {number}", source="me")
    other.vault.remember("tea at five", source="page", trusted=False)
    synchronise(one, other)
    assert texts(one.vault) == texts(other.vault) == []


def test_two_devices_that_decide_differently_lose_nothing(two: tuple[Device, Device]) -> None:
    one, other = two
    held = one.vault.remember("tea at five", source="web", trusted=False)
    synchronise(one, other)
    one.vault.accept(held.id)
    other.vault.reject(held.id)
    synchronise(one, other)
    for device in two:
        assert device.vault.get(held.id).state == State.ACTIVE
        assert device.vault.proposals() == []
    assert one.vault.state_digest() == other.vault.state_digest()


# ── near-duplicates ─────────────────────────────────────────────────────────────────────────────────


def test_near_duplicate_is_proposed_and_nothing_is_retired_by_itself(vault: Vault) -> None:
    first = vault.remember("the spare key is under the blue pot", source="a", tags=["house"])
    later = vault.remember("the spare key is under the old blue pot", source="b", tags=["key"])
    (pair,) = vault.proposals()
    assert (pair.kind, pair.about) == ("duplicate", (first.id, later.id))
    assert vault.count() == 2
    kept = vault.accept(pair.id)
    assert (kept.id, kept.tags) == (first.id, ("house", "key"))
    assert vault.get(later.id).reason == f"a near-duplicate of {first.id}"
    assert vault.proposals() == []
    vault.restore(later.id)
    assert vault.count() == 2
    assert vault.proposals() == []  # it was decided


def test_changed_value_is_proposed_as_a_newer_version(vault: Vault) -> None:
    old = vault.remember("my dentist appointment is on Tuesday at nine in Bergen", source="a")
    new = vault.remember("my dentist appointment is on Friday at nine in Bergen", source="b")
    (pair,) = vault.proposals()
    assert (pair.kind, pair.about) == ("replace", (old.id, new.id))
    version = vault.accept(pair.id, reason="it moved")
    assert (version.content, version.supersedes, version.source) == (new.content, old.id, "b")
    assert [memory.id for memory in vault.list()] == [version.id]
    ((_, until), (since, _)) = [(each.valid_from, each.valid_until) for each in vault.history(old.id).versions]
    assert until == since == new.written_at


def test_rejected_pair_is_not_proposed_again(path: Path) -> None:
    with open_vault(path) as vault:
        vault.remember_many([{"content": f"the spare key is under the {x}pot", "source": "a"} for x in ("", "blue ")])
        vault.reject(vault.proposals()[0].id, reason="two pots")
        assert vault.proposals() == []
    with open_vault(path) as vault:
        assert vault.proposals() == []


@pytest.mark.parametrize(
    "difference", [{"author": "Bob"}, {"kind": "fact"}, {"position": 3, "thread": "t"}], ids=["author", "kind", "turn"]
)
def test_memories_that_stand_apart_are_no_pair(vault: Vault, difference: dict[str, str]) -> None:
    vault.remember("the spare key is under the blue pot", source="a")
    vault.remember("the spare key is under the old blue pot", source="a", **difference)  # type: ignore[arg-type]
    assert vault.proposals() == []


class Twins:
    """An embedder to which all texts are one."""

    name = "twins"
    dimension = 2
    floor = 0.5

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1.0, 0.0]] * len(texts), np.float32)


def test_meaning_makes_a_pair_of_texts_that_share_fewer_words(tmp_path: Path) -> None:
    contents = ["the spare key is under the blue pot", "the spare key hides under that blue pot"]
    for name, embedder, count in (("words", None, 0), ("meaning", Twins(), 1)):
        (tmp_path / name / "vault").mkdir(parents=True)
        disk = CrashDisk(tmp_path / name)
        folder = new_folder(tmp_path / name / "vault", disk)
        with Vault._open(VaultFolder(folder.path, disk), stretch_of(PASSPHRASE), False, embedder) as vault:
            vault.remember_many([{"content": content, "source": "a"} for content in contents])
            assert len(vault.proposals()) == count


# ── conflicts ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def conflict(two: tuple[Device, Device]) -> tuple[Device, Device]:
    """Two devices that superseded one memory at once, and know it."""
    one, other = two
    old = one.vault.remember("Ann lives in Oslo", source="a")
    synchronise(one, other)
    one.vault.supersede(old.id, "Ann lives in Rome", source="one")
    other.vault.supersede(old.id, "Ann lives in Bern", source="two")
    synchronise(one, other)
    return two


def test_conflict_is_settled_for_the_current_side(conflict: tuple[Device, Device]) -> None:
    one, other = conflict
    ((current, rival),) = one.vault.conflicts()
    assert one.vault.resolve(current.id, reason="asked her").id == current.id
    synchronise(one, other)
    for device in conflict:
        assert device.vault.conflicts() == []
        assert [memory.id for memory in device.vault.list()] == [current.id]
        assert {version.memory.id for version in device.vault.history(rival.id).versions} >= {current.id, rival.id}


def test_conflict_is_settled_for_the_other_side_by_a_version_more(conflict: tuple[Device, Device]) -> None:
    one, other = conflict
    ((current, rival),) = one.vault.conflicts()
    kept = one.vault.resolve(rival.id, reason="asked her")
    synchronise(one, other)
    for device in conflict:
        assert device.vault.conflicts() == []
        assert [memory.content for memory in device.vault.list()] == [rival.content]
        history = device.vault.history(kept.id)
        beside = [version.memory.id for version in history.versions if not version.on_line]
        assert beside == [rival.id]
        assert [version.memory.id for version in history.versions][1:3] == [current.id, kept.id]
        assert "asked her" in [change.reason for change in history.changes]


def test_new_rival_opens_a_settled_conflict_again(conflict: tuple[Device, Device]) -> None:
    one, other = conflict
    old = one.vault.conflicts()[0][0].supersedes
    assert old is not None
    one.vault.resolve(one.vault.conflicts()[0][0].id)
    origin = {"content": "Ann lives in Linz", "source": "three", "origin": "x"}
    other.vault.adopt([{**origin, "past": Past(replaces=bytes.fromhex(old))}])
    synchronise(one, other)
    assert len(one.vault.conflicts()[0]) == 3


def test_what_is_in_no_conflict_cannot_be_settled(vault: Vault) -> None:
    memory = vault.remember("tea", source="a")
    with pytest.raises(ProposalUnknown):
        vault.resolve(memory.id)


# ── erasing ─────────────────────────────────────────────────────────────────────────────────────────


def test_erased_proposal_is_gone_everywhere_and_stays_gone(two: tuple[Device, Device]) -> None:
    one, other = two
    held = one.vault.remember("tea at five", source="web", trusted=False)
    synchronise(one, other)
    assert one.vault.erase(held.id).erased == (held.id,)
    other.vault.remember("Tea at five", source="web", trusted=False)
    synchronise(one, other)
    for device in two:
        assert device.vault.proposals() == []
        assert device.vault._opened.logbook.view.state.settings_named("proposal/") == []
    assert one.vault.state_digest() == other.vault.state_digest()


def test_erase_of_a_memory_takes_the_proposals_that_say_the_same_or_would_replace_it(vault: Vault) -> None:
    waiting = vault.remember("tea at five", source="web", trusted=False)
    memory = vault.remember("tea at five", source="me")
    newer = vault.supersede(memory.id, "tea at six", source="web", trusted=False)
    receipt = vault.erase(memory.id)
    assert set(receipt.erased) == {memory.id, waiting.id, newer.id}
    assert vault.proposals() == []


def test_erase_by_source_is_previewed_and_takes_proposals_too(vault: Vault) -> None:
    vault.remember("kept", source="me", author="Ann")
    vault.remember_many([{"content": f"number {n}", "source": "mail", "author": "Bob"} for n in range(3)])
    vault.remember("held", source="mail", author="Bob", trusted=False)
    for found in (vault.to_erase(source="mail"), vault.to_erase(author="Bob")):
        assert {memory.content for memory in found} == {"number 0", "number 1", "number 2", "held"}
    assert vault.count() == 4
    receipt = vault.erase_all([memory.id for memory in vault.to_erase(source="mail")], reason="asked")
    assert (len(receipt.erased), vault.count(state="all"), vault.proposals()) == (4, 1, [])


def test_forgetting_by_words_only_previews(vault: Vault) -> None:
    vault.remember("tea at five", source="me")
    assert [memory.content for memory in vault.to_erase("tea")] == ["tea at five"]
    assert vault.count() == 1
    with pytest.raises(MemoryUnknown):
        vault.erase_all(["0" * 32])
    with pytest.raises(ValueError, match="no id"):
        vault.erase_all([])
