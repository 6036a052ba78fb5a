"""What was given out leaves a sealed trace, from which it is told afterwards, byte for byte."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import DiskFull, TraceUnknown, VaultReadOnly
from memseal.format.trace import Given, Piece
from memseal.store.disk import OsDisk
from memseal.store.folder import TRACES, VaultFolder
from memseal.vault.copies.repairing import repair
from memseal.vault.folder import tracing
from memseal.vault.keys.passphrases import change
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of


def files(path: Path) -> list[Path]:
    return sorted((path / TRACES).glob("*.mseal"))


def stored(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in files(path))


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────


def test_recall_is_told_from_its_trace_byte_for_byte(vault: Vault) -> None:
    vault.remember("I react badly to cashews", source="chat", kind="fact")
    vault.remember("The cashews are in the green tin", source="a <b>note</b>", author="Ada")
    packet = vault.recall("where are the cashews?", turn="turn 17")
    assert packet.trace_id is not None
    told = vault.explain(packet.trace_id)
    assert told.text == packet.text
    assert told.is_exact
    assert [each.id for each in told.served] == [hit.memory.id for hit in packet.hits]
    assert [each.score for each in told.served] == [hit.score for hit in packet.hits]
    assert told.trace.receipt == packet.receipt.to_value()
    assert vault.is_own_receipt(told.trace.receipt or {})
    assert (told.trace.surface, told.trace.turn, told.trace.query) == ("recall", "turn 17", "where are the cashews?")


def test_text_is_the_one_of_then_whatever_became_of_the_memories(vault: Vault) -> None:
    old = vault.remember("The dentist is on Tuesday", source="chat")
    packet = vault.recall("dentist")
    vault.supersede(old.id, "The dentist is on Friday", source="chat")
    told = vault.explain(packet.trace_id or "")
    assert told.text == packet.text
    assert told.is_exact
    assert "since superseded" in told.to_text()


def test_search_leaves_a_trace_that_names_the_versions_and_what_was_passed_over(vault: Vault) -> None:
    kept = vault.remember("cashews in the tin", source="chat")
    for number in range(3):
        vault.remember(f"cashews number {number} and other things in a longer text", source="chat")
    hits = vault.search("cashews tin", limit=1, turn="a")
    told = vault.explain(hits.trace_id or "")
    assert [each.id for each in told.served] == [kept.id]
    assert len(told.passed_over) == 3
    assert all(each.related and each.score is not None for each in told.passed_over)
    assert told.text is None
    assert {name for name, _ in told.trace.stages} == {"read", "embed", "gather", "late", "rank", "fetch"}


def test_what_was_injected_is_kept_with_what_stood_around_it(vault: Vault) -> None:
    kept = vault.remember("cashews in the tin", source="chat")
    packet = vault.recall("cashews")
    prompt = f"You are kind.\n\n{packet.text}\n\nUser: where are they?"
    told = vault.explain(vault.note_injection(prompt, packet=packet, turn="t") or "")
    assert told.text == prompt
    assert (told.trace.surface, told.trace.about) == ("injection", packet.trace_id)
    assert [each.id for each in told.served] == [kept.id]
    with pytest.raises(ValueError, match="packet's text"):
        vault.note_injection("something else", packet=packet)


def test_any_surface_can_leave_a_trace(vault: Vault) -> None:
    kept = vault.remember("cashews", source="chat")
    trace_id = tracing.note(
        vault._opened,
        "capture",
        turn="t",
        served=[Given(kept.id, 0)],
        pieces=[Piece(None, "said "), Piece(kept.id, "x")],
    )
    assert vault.explain(trace_id or "").text == "said x"


def test_traces_are_found_by_memory_turn_and_time_newest_first(vault: Vault) -> None:
    nuts, dentist = vault.remember("cashews", source="chat"), vault.remember("the dentist", source="chat")
    first, second = vault.search("cashews", turn="a"), vault.recall("dentist", turn="b")
    assert [each.id for each in vault.traces()] == [second.trace_id, first.trace_id]
    assert [each.id for each in vault.traces(memory=nuts.id)] == [first.trace_id]
    assert [each.id for each in vault.traces(memory=dentist.id)] == [second.trace_id]
    assert [each.id for each in vault.traces(turn="b")] == [second.trace_id]
    assert len(vault.traces(limit=1)) == 1
    now = datetime.now(UTC)
    assert vault.traces(since=now + timedelta(hours=1)) == []
    assert len(vault.traces(since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 2


def test_memory_is_found_by_the_id_of_the_one_that_it_is_the_same_as(vault: Vault) -> None:
    kept = vault.remember("cashews", source="chat")
    vault.search("cashews")
    assert vault.remember("cashews", source="chat").id == kept.id
    assert len(vault.traces(memory=kept.id)) == 1


def test_query_without_an_answer_leaves_a_trace_that_says_so(vault: Vault) -> None:
    packet = vault.recall("anything?")
    told = vault.explain(packet.trace_id or "")
    assert (told.text, told.served) == ("", ())
    assert (told.trace.receipt or {})["status"] == "empty"


def test_unknown_trace_is_named(vault: Vault) -> None:
    with pytest.raises(TraceUnknown):
        vault.explain("0" * 32)
    with pytest.raises(ValueError, match="32 hex"):
        vault.explain("no id")


@pytest.mark.parametrize("turn", ["", "x" * 501, "\ud800"])
def test_turn_that_cannot_be_kept_is_refused_before_the_answer(vault: Vault, turn: str) -> None:
    with pytest.raises(ValueError, match="turn"):
        vault.search("x", turn=turn)
    with pytest.raises(ValueError, match="turn"):
        vault.recall("x", turn=turn)
    assert vault.traces() == []


def test_query_that_is_no_unicode_is_kept_as_far_as_it_is(vault: Vault) -> None:
    hits = vault.search("cashews \ud800")
    assert vault.explain(hits.trace_id or "").trace.query == "cashews ?"


# ── where it is kept ────────────────────────────────────────────────────────────────────────────────


def test_files_hold_nothing_of_what_was_asked_or_given_out(vault: Vault, path: Path) -> None:
    vault.remember("I react badly to cashews", source="chat-with-ann")
    vault.recall("which cashews?", turn="a-turn-name")
    vault.search("cashews again")
    content = stored(path)
    assert len(files(path)) == 1
    for word in (b"cashews", b"react", b"chat-with", b"a-turn-name", b"Stored memories", b"recall", b"search"):
        assert word not in content


def test_who_only_reads_leaves_traces_in_a_file_of_its_own_beside_the_writer(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    vault.search("cashews")
    with open_vault(path, read_only=True) as reader:
        packet = reader.recall("cashews")
        assert len(reader.traces()) == 2
    assert len(files(path)) == 2
    assert vault.explain(packet.trace_id or "").text == packet.text


def test_traces_are_there_after_reopening_and_after_a_passphrase_change(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    before = vault.recall("cashews")
    change(vault._opened, stretch_of(PASSPHRASE), stretch_of("a new one"), "a new one", None)
    after = vault.recall("cashews")
    vault.close()
    with open_vault(path, passphrase="a new one") as opened:
        for packet in (before, after):
            assert opened.explain(packet.trace_id or "").text == packet.text
        assert opened.verify() == []


def test_traces_from_before_a_change_open_with_the_key_of_then_alone(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    vault.recall("cashews")
    before = vault._opened.device.keys.local
    change(vault._opened, stretch_of(PASSPHRASE), stretch_of("a new one"), "a new one", None)
    assert [each.key for each in vault._opened.device.marks.former_locals] == [before]
    assert vault._opened.device.keys.local != before
    vault.recall("cashews")
    assert len(files(path)) == 2


def test_process_that_was_killed_loses_no_trace_that_was_written_and_leaves_no_finding(
    vault: Vault, path: Path
) -> None:
    vault.remember("cashews", source="chat")
    first, second = vault.search("cashews"), vault.search("cashews")
    (file,) = files(path)
    file.write_bytes(file.read_bytes()[:-7])
    with open_vault(path, read_only=True) as reader:
        assert [each.id for each in reader.traces()] == [first.trace_id]
        assert reader.verify() == []
        with pytest.raises(TraceUnknown):
            reader.explain(second.trace_id or "")


def test_damage_is_named_by_verify_and_costs_one_trace(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    first, second = vault.search("cashews"), vault.search("cashews")
    (file,) = files(path)
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    assert [each.id for each in vault.traces()] == [second.trace_id]
    (finding,) = vault.verify()
    assert (finding.code, finding.where) == ("record_sealed", f"{TRACES}/{file.name}#0")
    assert "goes with its age" in finding.detail
    assert first.trace_id != second.trace_id


def test_files_that_are_no_traces_are_left_alone_or_named(vault: Vault, path: Path) -> None:
    (path / TRACES / "notes.txt").write_text("x", encoding="utf-8")
    (path / TRACES / "UPPER.mseal").write_text("x", encoding="utf-8")
    (path / TRACES / f"{'0' * 24}.mseal").write_text("x", encoding="utf-8")
    assert vault.traces() == []
    assert [each.code for each in vault.verify()] == ["preamble_short"]


def test_folder_that_was_deleted_under_an_open_vault_is_begun_anew(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    vault.search("cashews")
    for file in files(path):
        file.unlink()
    (path / TRACES).rmdir()
    hits = vault.search("cashews")
    assert [each.id for each in vault.traces()] == [hits.trace_id]


class _FullDisk(OsDisk):
    """A disk on which no trace has room."""

    full = False

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        if self.full and path.parent.name == TRACES:
            raise DiskFull("no room")
        super().write(path, offset, content)


def test_answer_is_given_on_a_full_disk_and_status_names_what_is_missing(path: Path) -> None:
    disk = _FullDisk()
    with open_vault(path, disk) as vault:
        vault.remember("cashews", source="chat")
        disk.full = True
        packet = vault.recall("cashews")
        assert packet.hits
        assert packet.trace_id is None
        assert [each.code for each in vault.status().findings] == ["trace_unwritten"]
        disk.full = False
        assert vault.recall("cashews").trace_id is not None


# ── how long it is kept ─────────────────────────────────────────────────────────────────────────────


def test_traces_can_be_switched_off_for_one_opening(tmp_path: Path) -> None:
    with Vault.create(tmp_path / "v", "a passphrase", embedder=None) as made:
        made.remember("cashews", source="chat")
    with Vault.open(tmp_path / "v", "a passphrase", embedder=None, traces="off") as opened:
        assert opened.recall("cashews").trace_id is None
        assert opened.search("cashews").trace_id is None
        assert opened.traces() == []


def test_keeping_none_removes_what_is_there_and_holds_for_the_next_opening(vault: Vault, path: Path) -> None:
    vault.remember("cashews", source="chat")
    vault.search("cashews")
    vault.keep_traces(days=0)
    assert files(path) == []
    vault.close()
    with open_vault(path) as opened:
        assert opened.search("cashews").trace_id is None
        opened.keep_traces(days=7, megabytes=3)
        assert opened.search("cashews").trace_id is not None
        assert opened.traces_kept == (7, 3)


def test_retention_is_set_by_who_may_write(path: Path) -> None:
    with open_vault(path, read_only=True) as reader, pytest.raises(VaultReadOnly):
        reader.keep_traces(days=1)


def test_old_traces_go_a_day_after_they_can_have_been_too_old(
    vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.remember("cashews", source="chat")
    vault.search("cashews")
    now = tracing.present()
    vault.close()
    for days, left in ((30.9, 1), (31.1, 0)):
        monkeypatch.setattr(tracing, "present", lambda days=days: now + int(days * 86_400_000_000))
        with open_vault(path) as opened:
            assert len(opened.traces()) == left


def test_a_day_later_another_file_is_begun(vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = tracing.present()
    vault.search("cashews")
    monkeypatch.setattr(tracing, "present", lambda: now + 86_500_000_000)
    vault.search("cashews")
    assert len(files(path)) == 2
    assert len(vault.traces()) == 2


def test_of_too_many_the_oldest_files_go_first(vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_FILE_BYTES", 1)
    monkeypatch.setattr(tracing, "_MEGABYTE", 4_000)
    vault.remember("cashews", source="chat")
    ids = [vault.search("cashews").trace_id for _ in range(6)]
    assert len(files(path)) == 6
    vault.keep_traces(days=30, megabytes=1)
    left = [each.id for each in vault.traces()]
    assert 0 < len(left) < 6
    assert left == list(reversed(ids))[: len(left)]
    assert sum(file.stat().st_size for file in files(path)) <= 4_000


def test_closed_vault_leaves_no_trace(path: Path) -> None:
    vault = open_vault(path)
    vault.remember("cashews", source="chat")
    opened = vault._opened
    vault.close()
    assert tracing.note(opened, "search", query="cashews") is None
    assert VaultFolder(path, OsDisk()).stems(TRACES) == []


def test_file_of_another_device_goes_with_its_age(vault: Vault, path: Path) -> None:
    other = new_folder(path.parent / "other.vault").path
    with open_vault(other) as elsewhere:
        elsewhere.search("cashews")
    (file,) = files(other)
    (path / TRACES / file.name).write_bytes(file.read_bytes())
    assert vault.traces() == []
    assert [each.code for each in vault.verify()] == ["vault_mismatch"]
    vault.keep_traces(days=0)
    assert files(path) == []


def test_repaired_copy_has_the_traces_that_are_whole(vault: Vault, path: Path) -> None:
    vault.remember_many([{"content": f"cashews {number}", "source": "chat"} for number in range(3)])
    packet = vault.recall("cashews")
    vault.close()
    with open_vault(path, read_only=True) as reader:
        reader.search("cashews")
    spoilt = next(file for file in files(path) if file.name != _file_of(path, packet.trace_id or "").name)
    spoilt.write_bytes(spoilt.read_bytes()[:100] + b"\0" * 50 + spoilt.read_bytes()[150:])
    (log,) = (path / "logs").glob("*.mseal")
    log.write_bytes(log.read_bytes()[:200] + b"\0" * 50 + log.read_bytes()[250:])
    copy = path.parent / "copy.vault"
    assert repair(VaultFolder(path, OsDisk()), copy, stretch_of(PASSPHRASE), lambda plan: True) is not None
    with open_vault(copy) as repaired:
        assert [each.id for each in repaired.traces()] == [packet.trace_id]
        assert repaired.explain(packet.trace_id or "").text == packet.text


def test_damage_of_traces_alone_is_nothing_that_a_repair_heals(vault: Vault, path: Path) -> None:
    vault.search("cashews")
    vault.close()
    (file,) = files(path)
    file.write_bytes(b"\0" * 200)
    assert repair(VaultFolder(path, OsDisk()), path.parent / "copy", stretch_of(PASSPHRASE), lambda plan: True) is None


def _file_of(path: Path, trace_id: str) -> Path:
    """The newest file that was begun before a trace."""
    return max(file for file in files(path) if file.name[:16] <= trace_id[:16])
