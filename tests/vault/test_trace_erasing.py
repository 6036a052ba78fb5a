"""What an erase takes away is gone from the traces too, whatever happens meanwhile."""

import contextlib
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import DiskError
from memseal.format.trace import Piece
from memseal.store.disk import OsDisk
from memseal.store.folder import TRACES, VaultFolder
from memseal.vault.folder import tracing
from tests.vault.crash_disk import ALL_KEPT, Choice, Crash, CrashDisk, Mishap
from tests.vault.small_vault import new_folder, open_vault, power_off


def files(path: Path) -> list[Path]:
    return sorted((path / TRACES).glob("*.mseal"))


def test_erase_takes_what_it_erases_out_of_every_trace_at_once(vault: Vault, path: Path) -> None:
    nuts = vault.remember("I react badly to cashews", source="chat")
    vault.remember("cashews grow in Brazil, walnuts at home", source="chat")
    recalled, searched = vault.recall("cashews", turn="about cashews"), vault.search("react badly")
    other = vault.search("walnuts")
    before = {file.name for file in files(path)}
    receipt = vault.erase(nuts.id)
    assert [(each.name, each.progress) for each in receipt.places if each.name == TRACES] == [(TRACES, "gone")]
    told = vault.explain(recalled.trace_id or "")
    assert (told.text, told.trace.query, told.trace.turn, told.trace.terms) == (None, None, None, ())
    assert told.trace.receipt is None
    assert told.trace.erased == (nuts.id,)
    assert any("Brazil" in (piece.text or "") for piece in told.trace.pieces or ())
    assert vault.explain(searched.trace_id or "").trace.query is None
    assert vault.explain(other.trace_id or "").trace.query == "walnuts"
    assert before.isdisjoint(file.name for file in files(path))
    for trace in vault._opened.traces.read(vault._opened.device):
        assert "react badly" not in str(vars(trace))


def test_text_of_what_is_erased_goes_where_no_id_names_it(vault: Vault) -> None:
    pin = vault.remember("the pin is 4711", source="chat")
    trace_id = tracing.note(
        vault._opened, "capture", query="By the way, the PIN is 4711!", pieces=[Piece(None, "The pin is 4711")]
    )
    vault.erase(pin.id)
    assert vault.explain(trace_id or "").trace.query is None
    assert vault.explain(trace_id or "").text is None


def test_erase_that_was_cut_short_before_the_traces_is_done_at_the_next_opening(
    vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nuts = vault.remember("I react badly to cashews", source="chat")
    packet = vault.recall("cashews")

    def killed(*_: object) -> None:
        raise DiskError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(tracing.Traces, "_clean", killed)
        receipt = vault.erase(nuts.id)
        assert [each.progress for each in receipt.places if each.name == TRACES] == ["pending"]
        # What is shown is clean even so.
        assert vault.explain(packet.trace_id or "").text is None
    vault.close()
    with open_vault(path) as opened:
        (trace,) = opened._opened.traces.read(opened._opened.device)
        assert "cashews" not in str(vars(trace))
        assert [each.progress for each in opened.erasures()[0].places if each.name == TRACES] == ["gone"]


def test_erase_that_was_cut_short_between_two_files_doubles_no_trace(
    vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nuts, _ = vault.remember("I react badly to cashews", source="chat"), vault.remember("walnuts", source="chat")
    asked = [vault.recall("cashews").trace_id, vault.search("walnuts").trace_id]

    def killed(folder: VaultFolder, name: str) -> None:
        raise DiskError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(VaultFolder, "remove", lambda folder, name: killed(folder, name) if TRACES in name else None)
        vault.erase(nuts.id)
        assert len(files(path)) == 2
    vault.close()
    with open_vault(path) as opened:
        assert [each.id for each in opened.traces()] == asked[::-1]
        for trace in opened._opened.traces.read(opened._opened.device):
            assert "cashews" not in str(vars(trace))


def test_who_reads_beside_an_erase_leaves_no_trace_any_more(vault: Vault, path: Path) -> None:
    nuts = vault.remember("I react badly to cashews", source="chat")
    with open_vault(path, read_only=True) as reader:
        assert reader.recall("cashews").trace_id is not None
        vault.erase(nuts.id)
        packet = reader.recall("cashews")
        assert packet.hits
        assert packet.trace_id is None
    for trace in vault._opened.traces.read(vault._opened.device):
        assert "cashews" not in str(vars(trace))


class _ErasingDisk(OsDisk):
    """A disk on which an erase of another process comes between a reader's look at the fence and its write."""

    def __init__(self, erase: list[object]) -> None:
        self.due = erase

    def write(self, path: Path, offset: int, content: bytes | bytearray) -> None:
        while self.due:
            self.due.pop()()  # type: ignore[operator]
        super().write(path, offset, content)


@pytest.mark.parametrize("asked_before", [False, True])
def test_trace_that_is_written_while_another_process_erases_is_taken_back(
    vault: Vault, path: Path, asked_before: bool
) -> None:
    nuts = vault.remember("I react badly to cashews", source="chat")
    disk = _ErasingDisk([])
    with open_vault(path, disk, read_only=True) as reader:
        if asked_before:
            reader.recall("cashews")
        disk.due.append(lambda: vault.erase(nuts.id))
        assert reader.recall("cashews").trace_id is None
        assert reader.recall("cashews").trace_id is None
    assert vault.verify() == []
    for trace in vault._opened.traces.read(vault._opened.device):
        assert "cashews" not in str(vars(trace))


def test_answer_that_is_being_made_while_another_thread_erases_leaves_nothing_of_it(vault: Vault) -> None:
    nuts = vault.remember("I react badly to cashews", source="chat")
    due = [nuts.id]

    def count(text: str) -> int:
        while due:
            vault.erase(due.pop())
        return len(text)

    packet = vault.recall("cashews", count=count)
    assert packet.text
    (trace,) = vault._opened.traces.read(vault._opened.device)
    assert "cashews" not in str(vars(trace))
    assert vault.explain(packet.trace_id or "").text is None


def test_file_that_cannot_be_read_goes_with_an_erase(vault: Vault, path: Path) -> None:
    nuts = vault.remember("cashews", source="chat")
    vault.recall("cashews")
    (file,) = files(path)
    file.write_bytes(b"\0" * 64 + file.read_bytes()[64:])
    vault.erase(nuts.id)
    assert files(path) == []


# ── power cuts ──────────────────────────────────────────────────────────────────────────────────────


def _asked(path: Path) -> CrashDisk:
    """A disk with a vault that was asked something, and let go of; the traces are not durable yet."""
    disk = CrashDisk(path.parent)
    new_folder(path, disk)
    vault = open_vault(path, disk)
    vault.remember("I react badly to cashews", source="chat")
    for _ in range(3):
        vault.recall("cashews")
    vault.search("walnuts")
    power_off(vault)
    return disk


@pytest.mark.parametrize("seed", range(6))
def test_power_cut_costs_traces_alone_and_no_damage_of_theirs_outlives_an_erase(path: Path, seed: int) -> None:
    found = _asked(path).after_crash(Choice(None, seed))
    with open_vault(path, found) as vault:
        (nuts,) = vault.list()
        assert len(vault.traces()) <= 4
        assert all(finding.where.startswith(TRACES) for finding in vault.verify())
        vault.erase(nuts.id)
        assert vault.verify() == []


def test_erase_that_a_power_cut_stops_anywhere_is_done_at_the_next_opening(path: Path) -> None:
    before, step, mishap = _asked(path).after_crash(ALL_KEPT), 0, Mishap(0)
    while mishap.happened or step == 0:
        disk, step = before.copy(), step + 1
        vault = open_vault(path, disk)
        disk.mishap = mishap = Mishap(disk.changed + step)
        with contextlib.suppress(Crash):
            vault.erase(vault.list()[0].id)
        power_off(vault)
        with open_vault(path, disk.after_crash(Choice(None, step))) as opened:
            left = list(opened._opened.traces.read(opened._opened.device))
            if not opened.count(state="all"):
                assert "cashews" not in " ".join(str(vars(trace)) for trace in left)
                assert [each.progress for each in opened.erasures()[0].places if each.name == TRACES] == ["gone"]
    assert step > 5
