"""Bundles: everything in one file, opened anywhere, taken in anywhere."""

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memseal.errors import (
    BundlePassphrase,
    CaptureOff,
    DiskError,
    FormatError,
    MemoryUnknown,
    MemsealError,
    PassphraseEmpty,
    VaultReadOnly,
)
from memseal.format.bundle import open_beginning
from memseal.format.records import Place, scan
from memseal.memory.memory import State
from memseal.memory.operations import Dismiss, Setting
from memseal.vault.copies import bundle_import
from memseal.vault.copies.bundles import Bundle, open_bundle, pieces, read_bundle
from memseal.vault.folder.batch import Batch
from memseal.vault.vault import Vault
from memseal.vault.writes.writing import embed_batches
from tests.vault.small_vault import new_folder, open_vault, stretch_of

PASSPHRASE = "a passphrase for elsewhere"
OTHER = "the other vault's"


def vector(number: int, size: int = 8) -> list[float]:
    return [1.0 if place == number % size else 0.01 for place in range(size)]


def fill(vault: Vault) -> None:
    """Put one of everything in it that a vault can hold."""
    first = vault.remember(
        "the kettle is descaled on Fridays", source="chat", kind="fact", tags=["tea", "home"], author="Ottoline",
        thread="kitchen", position=3, origin="jsonl:notes/1", embedding=vector(1),
    )  # fmt: skip
    second = vault.supersede(first.id, "the kettle is descaled on Mondays", source="chat", reason="a new plan")
    wrong = vault.remember("a wrong thing", source="chat", embedding=vector(2))
    vault.retract(wrong.id, reason="a slip")
    vault.restore(wrong.id, reason="it was right")
    vault.retract(wrong.id, reason="no, wrong")
    vault.tag(second.id, add=["later"], remove=["tea"])
    vault.tag(second.id, add=["never"])
    vault.tag(second.id, remove=["never"])
    vault.remember("雨 \u2028 \U000e0041", source="chat", kind="note", embedding=vector(3))


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    new_folder(tmp_path / "vault")
    opened = open_vault(tmp_path / "vault")
    fill(opened)
    return opened


@pytest.fixture
def other(tmp_path: Path) -> Vault:
    new_folder(tmp_path / "other", passphrase=OTHER)
    return open_vault(tmp_path / "other", passphrase=OTHER)


def written(vault: Vault) -> bytes:
    return b"".join(pieces(vault._opened, stretch_of(PASSPHRASE)))


def read(content: bytes) -> Bundle:
    return read_bundle(memoryview(content), stretch_of(PASSPHRASE))


def take_in(vault: Vault, bundle: Bundle, **options: Any) -> bundle_import.BundleReport:
    return bundle_import.import_bundle(vault._writing, vault._write, bundle, **options)


def told(vault: Vault | Bundle) -> list[tuple[object, ...]]:
    """What is said of every memory, but when it was written down."""
    return sorted(
        (m.id, m.content, m.kind, m.tags, m.author, m.thread, m.position, m.origin, m.state, m.reason, m.supersedes)
        for m in vault.list(limit=10_000, state="all")
    )


# ── what a bundle holds ─────────────────────────────────────────────────────────────────────────────


def test_a_bundle_holds_the_whole_state(vault: Vault) -> None:
    bundle = read(written(vault))
    assert bundle.findings == ()
    assert bundle.state_digest() == vault.state_digest()
    assert told(bundle) == told(vault)


def test_proposals_come_with_a_bundle_but_no_switch_and_nothing_that_was_erased(vault: Vault, other: Vault) -> None:
    vault.set_capture(True)
    kept, gone = (vault.remember(text, source="web", trusted=False) for text in ("tea at five", "tea at six"))
    bundle = read(written(vault))
    take_in(other, bundle)
    assert [each.id for each in other.proposals()] == [kept.id, gone.id]
    with pytest.raises(CaptureOff):
        other.capture([])
    other.erase(gone.id)
    assert take_in(other, bundle).new_operations == 0
    assert [each.id for each in other.proposals()] == [kept.id]


def test_vectors_are_in_a_bundle_bit_by_bit(vault: Vault) -> None:
    bundle = read(written(vault))
    ours, theirs = vault._opened.logbook.view, bundle.view
    assert ours.vectors is not None
    assert theirs.vectors is not None
    order = "SELECT n FROM memories WHERE vector IS NOT NULL ORDER BY id"
    rows = [np.array([row[0] for row in each.state.connection.execute(order)]) for each in (ours, theirs)]
    assert rows[0].size == 3
    assert (ours.vectors.vectors(rows[0]) == theirs.vectors.vectors(rows[1])).all()


def test_vectors_that_came_later_or_of_a_model_pinned_later_are_in_a_bundle(vault: Vault) -> None:
    memory = vault.remember("without a vector", source="chat")
    pin = {"model": "another", "dimension": 4}
    vault._write([Batch([Setting(b"p" * 16, "embedding", pin, 0)])])
    codes = np.array([[1, 0, 0, 0]], "<f2")
    vault._write(embed_batches([bytes.fromhex(memory.id)], "another", codes))
    bundle = read(written(vault))
    assert bundle.state_digest() == vault.state_digest()
    assert bundle.view.vectors is not None
    assert len(bundle.view.vectors) == 1


def test_unknown_fields_of_newer_software_are_in_a_bundle(vault: Vault) -> None:
    value = {
        "op": "remember", "id": b"n" * 16, "content": "of tomorrow", "kind": "mood", "source": "x", "written_at": 1,
        "mood": {"deep": [1, b"\x00"]},
    }  # fmt: skip
    vault._write([Batch(values=[value])])
    bundle = read(written(vault))
    assert bundle.state_digest() == vault.state_digest()
    assert b"mood" in bytes(bundle.view.state.connection.execute("SELECT max(others) FROM memories").fetchone()[0])


def test_operations_on_memories_that_are_not_there_are_in_a_bundle(vault: Vault) -> None:
    target = b"t" * 16
    vault._write(
        [
            Batch(
                values=[
                    {"op": "retract", "id": b"a" * 16, "target": target, "at": 1, "reason": "early"},
                    {"op": "tag", "id": b"b" * 16, "target": target, "at": 1, "add": ["early"], "remove": []},
                ]
            )
        ]
    )
    assert read(written(vault)).state_digest() == vault.state_digest()


def test_an_empty_vault_has_a_bundle_too(other: Vault) -> None:
    bundle = read(written(other))
    assert (bundle.findings, bundle.count(state="all")) == ((), 0)


def test_a_bundle_can_be_asked(vault: Vault) -> None:
    with read(written(vault)) as bundle:
        [hit] = bundle.search("kettle")
        assert hit.memory.content == "the kettle is descaled on Mondays"
        assert bundle.get(hit.memory.id) == hit.memory
        assert bundle.count() == vault.count() == len(bundle.list())


def test_what_was_erased_is_in_a_bundle_by_its_id_alone(vault: Vault) -> None:
    secret = vault.remember("an unlikely secret", source="chat", tags=["hush"])
    vault.retract(secret.id, reason="an unlikely reason")
    vault.erase(secret.id, reason="on request")
    bundle = read(written(vault))
    assert bundle.state_digest() == vault.state_digest()
    assert bytes.fromhex(secret.id) in bundle.view.state.erasures.ids
    image = bundle.view.state.image()
    assert b"unlikely" not in image
    assert b"hush" not in image


def test_records_that_were_given_up_are_in_a_bundle(vault: Vault) -> None:
    vault._write([Batch([Dismiss(b"d" * 16, b"s" * 16, (3, 4), 1)])])
    assert read(written(vault)).state_digest() == vault.state_digest()


# ── the file ────────────────────────────────────────────────────────────────────────────────────────


def test_a_bundle_opens_with_its_own_passphrase_alone(vault: Vault, tmp_path: Path) -> None:
    path, steps = tmp_path / "all.mseal", list[tuple[int, int]]()
    assert vault.export_bundle(path, PASSPHRASE, progress=lambda *step: steps.append(step)) == 4
    assert steps[-1][0] == steps[-1][1] > 0
    with open_bundle(path, PASSPHRASE) as bundle:
        assert bundle.state_digest() == vault.state_digest()
    with pytest.raises(BundlePassphrase):
        open_bundle(path, "another passphrase")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["all.mseal", "vault"]
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_bundle_goes_to_a_stream(vault: Vault) -> None:
    stream = io.BytesIO()
    vault.export_bundle(stream, PASSPHRASE)
    assert stream.getvalue()[10] == 6


def test_an_empty_passphrase_writes_nothing(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(PassphraseEmpty):
        vault.export_bundle(tmp_path / "all.mseal", " \t")
    assert not (tmp_path / "all.mseal").exists()


def test_a_bundle_does_not_go_into_the_vault_itself(vault: Vault) -> None:
    with pytest.raises(DiskError):
        vault.export_bundle(vault._opened.folder.path / "device.mseal", PASSPHRASE)


def test_what_was_there_stays_when_writing_fails(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "all.mseal"
    path.write_bytes(b"an older bundle")

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.export_bundle(path, PASSPHRASE, progress=interrupted)
    assert path.read_bytes() == b"an older bundle"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["all.mseal", "vault"]


def test_a_read_only_vault_gives_a_bundle_and_takes_none(vault: Vault, tmp_path: Path) -> None:
    vault.close()
    with open_vault(tmp_path / "vault", read_only=True) as opened:
        bundle = read(written(opened))
        assert bundle.state_digest() == opened.state_digest()
        with pytest.raises(VaultReadOnly):
            opened.import_bundle(tmp_path / "none.mseal", PASSPHRASE)


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.mseal"
    path.write_bytes(b"not a container at all" * 10)
    with pytest.raises(FormatError) as refused:
        open_bundle(path, PASSPHRASE)
    assert refused.value.code == "preamble_magic"
    with pytest.raises(DiskError):
        open_bundle(tmp_path / "missing.mseal", PASSPHRASE)


# ── damage ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def long(other: Vault) -> Vault:
    """A vault whose bundle has several records."""
    other.remember_many([{"content": f"{number} " + "x" * 400, "source": "s"} for number in range(6_000)])
    return other


def places_of(content: bytes) -> list[Place]:
    opened = open_beginning(memoryview(content), stretch_of(PASSPHRASE))
    return [piece for piece in scan(memoryview(content), opened.start.offset, 1) if isinstance(piece, Place)]


def test_a_damaged_record_costs_itself_and_is_named(long: Vault) -> None:
    content = bytearray(written(long))
    places = places_of(bytes(content))
    assert len(places) > 3
    content[places[1].offset + 100] ^= 1
    bundle = read(bytes(content))
    assert [finding.code for finding in bundle.findings] == ["record_sealed"]
    assert 0 < bundle.count() < long.count()


def test_a_bundle_that_was_cut_serves_what_is_there(long: Vault) -> None:
    content = written(long)
    bundle = read(content[: places_of(content)[2].offset])
    assert [finding.code for finding in bundle.findings] == ["record_torn"]
    assert 0 < bundle.count() < long.count()


def test_a_record_that_was_taken_out_is_noticed(long: Vault) -> None:
    content = written(long)
    place = places_of(content)[1]
    bundle = read(content[: place.offset] + content[place.end :])
    assert [finding.code for finding in bundle.findings] == ["record_order"]
    assert 0 < bundle.count() < long.count()


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_any_damage_is_refused_or_named_and_never_believed(vault: Vault, data: st.DataObject) -> None:
    content = bytearray(written(vault))
    before = {memory.content for memory in vault.list(state="all")}
    place = data.draw(st.integers(0, 400) | st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "double"])):
        case "flip":
            content[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del content[place:]
        case _:
            content[place:place] = content[place : place + 40]
    try:
        bundle = read(bytes(content))
    except MemsealError:
        return
    assert bundle.findings
    assert {memory.content for memory in bundle.list(state="all")} <= before


# ── taking it in ────────────────────────────────────────────────────────────────────────────────────


def test_another_vault_takes_everything_with_its_ids(vault: Vault, other: Vault) -> None:
    report = take_in(other, read(written(vault)))
    assert (report.new_memories, report.findings) == (4, ())
    assert told(other) == told(vault)
    assert other._opened.logbook.view.pinned == vault._opened.logbook.view.pinned
    assert len(other._opened.logbook.view.vectors or ()) == 3


def test_taking_it_in_again_writes_nothing(vault: Vault, other: Vault) -> None:
    content = written(vault)
    take_in(other, read(content))
    before = other.state_digest(), log_sizes(other)
    assert take_in(other, read(content)).new_operations == 0
    assert take_in(vault, read(content)).new_operations == 0
    assert (other.state_digest(), log_sizes(other)) == before


def test_taking_in_a_later_bundle_of_the_same_writes_what_is_new_alone(vault: Vault, other: Vault) -> None:
    take_in(other, read(written(vault)))
    vault.remember("one more", source="chat")
    assert take_in(other, read(written(vault))).new_operations == 1


def log_sizes(vault: Vault) -> list[int]:
    folder = vault._opened.folder.path / "logs"
    return sorted(entry.stat().st_size for entry in folder.iterdir())


def test_what_is_taken_in_is_there_after_opening_again(vault: Vault, other: Vault) -> None:
    take_in(other, read(written(vault)))
    path, before = other._opened.folder.path, other.state_digest()
    other.close()
    shutil.rmtree(path / "cache", ignore_errors=True)
    with open_vault(path, passphrase=OTHER) as again:
        assert again.state_digest() == before
        assert again.status().findings == []


def older_copy(vault: Vault, path: Path) -> Vault:
    """Return the vault as it is now, to be left behind."""
    shutil.copytree(vault._opened.folder.path, path)
    return open_vault(path)


def stamp_of(vault: Vault | Bundle, memory_id: str) -> bytes:
    view = vault.view if isinstance(vault, Bundle) else vault._opened.logbook.view
    query = "SELECT stamp FROM memories WHERE id = ?"
    stamp: bytes = view.state.connection.execute(query, (bytes.fromhex(memory_id),)).fetchone()[0]
    return stamp


def test_the_vault_that_it_came_from_gets_what_it_lost_with_first_stamps(vault: Vault, tmp_path: Path) -> None:
    with older_copy(vault, tmp_path / "copy") as copy:
        lost = vault.remember("after the copy", source="chat", embedding=vector(5))
        kept = [copy.remember(f"meanwhile {number}", source="chat") for number in range(3)]
        bundle = read(written(vault))
        assert take_in(copy, bundle).new_memories == 1
        assert stamp_of(copy, lost.id) == stamp_of(vault, lost.id) < stamp_of(copy, kept[-1].id)
        assert take_in(copy, bundle).new_operations == 0
    with open_vault(tmp_path / "copy") as again:
        assert stamp_of(again, lost.id) == stamp_of(vault, lost.id)
        assert again.status().findings == []


def test_what_is_newer_than_all_that_the_vault_has_left_comes_in_the_same_order(vault: Vault, tmp_path: Path) -> None:
    with older_copy(vault, tmp_path / "copy") as copy:
        memory = vault.remember("after the copy", source="chat", embedding=vector(5))
        for _ in range(4):
            vault.retract(memory.id, reason="away")
            vault.restore(memory.id, reason="back")
        vault.retract(memory.id, reason="gone")
        bundle = read(written(vault))
        take_in(copy, bundle)
        assert told(copy) == told(vault)
        assert take_in(copy, bundle).new_operations == 0
    with open_vault(tmp_path / "copy") as again:
        assert told(again) == told(vault)
        assert again.status().findings == []


def test_a_crash_in_the_middle_doubles_nothing(long: Vault, vault: Vault) -> None:
    bundle = read(written(long))
    written_so_far = list[int]()

    def crashing(batches: Any) -> None:
        if len(written_so_far) == 2:
            raise DiskError("the power went")
        vault._write(batches)
        written_so_far.append(1)

    with pytest.raises(DiskError):
        bundle_import.import_bundle(vault._writing, crashing, bundle)
    before = vault.count()
    assert 3 < before < long.count()
    report = take_in(vault, bundle)
    assert report.new_memories == long.count() + 2 - before
    assert vault.count() == long.count() + 2


def test_vectors_of_another_model_are_left_out_and_the_pin_stays(vault: Vault, other: Vault) -> None:
    other.remember("mine", source="chat", embedding=[1.0, 0.0])
    take_in(other, read(written(vault)))
    view = other._opened.logbook.view
    assert view.pinned == ("caller", 2)
    assert view.foreign_vectors == 0
    assert len(other._opened.logbook.view.vectors or ()) == 1


def test_a_retraction_that_was_undone_stays_undone_elsewhere(vault: Vault, other: Vault) -> None:
    memory = vault.remember("back and forth", source="chat")
    for _ in range(3):
        vault.retract(memory.id, reason="away")
        vault.restore(memory.id, reason="back")
    take_in(other, read(written(vault)))
    assert other.get(memory.id).state == State.ACTIVE


def test_a_bundle_comes_back_through_the_vault(vault: Vault, other: Vault, tmp_path: Path) -> None:
    path, steps = tmp_path / "all.mseal", list[tuple[int, int]]()
    vault.export_bundle(path, PASSPHRASE)
    report = other.import_bundle(path, PASSPHRASE, progress=lambda *step: steps.append(step))
    assert report.new_memories == 4
    assert steps[-1][0] == steps[-1][1]
    assert told(other) == told(vault)


def test_what_was_erased_here_stays_erased(vault: Vault, other: Vault) -> None:
    secret = vault.remember("a secret", source="chat", embedding=vector(6))
    vault.retract(secret.id, reason="hush")
    vault.tag(secret.id, add=["hush"])
    bundle = read(written(vault))
    for each in (vault, other):
        take_in(each, bundle)
        each.erase(secret.id)
        report = take_in(each, bundle)
        assert (report.new_memories, report.new_operations) == (0, 0)
        with pytest.raises(MemoryUnknown):
            each.get(secret.id)


def test_an_erase_comes_along(vault: Vault, other: Vault) -> None:
    secret = vault.remember("a secret", source="chat")
    take_in(other, read(written(vault)))
    vault.erase(secret.id)
    report = take_in(other, read(written(vault)))
    assert report.new_operations == 1
    assert told(other) == told(vault)
    assert take_in(other, read(written(vault))).new_operations == 0
