"""Reading what other programs export: samples that they wrote themselves, or in their documented shape."""

import io
import json
import shutil
import sqlite3
import tracemalloc
import uuid
import zipfile
import zlib
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memseal.errors import DiskError, ImportRowError, PassphraseWrong
from memseal.memory.memory import State
from memseal.surfaces.cli.bringing import bring
from memseal.surfaces.importing import json_stream
from memseal.surfaces.importing.items import BadRow, ImportItem
from memseal.surfaces.importing.json_stream import array_items
from memseal.surfaces.importing.opening import open_import
from memseal.surfaces.importing.vaultmem import open_source
from memseal.vault.vault import Vault
from memseal.vault.writes.adopting import Past
from tests.surfaces.conftest import PASSPHRASE
from tests.surfaces.samples.make import TEXTS, VAULTMEM_PASSPHRASE

SAMPLES = Path(__file__).parent / "samples"
MARK = "an unlikely secret"


def opened(name: str | Path) -> tuple[str, list[ImportItem], int, list[ImportRowError], Counter[str]]:
    errors, unknown = list[ImportRowError](), Counter[str]()
    path = SAMPLES / name
    form, items, rows = open_import(
        path, on_error=errors.append, unknown_fields=unknown, passphrase=lambda: VAULTMEM_PASSPHRASE
    )
    return form, list(items), rows, errors, unknown


def contents(items: list[ImportItem]) -> list[str]:
    return [item["content"] for item in items]


def pasts(items: list[ImportItem]) -> list[Past]:
    return [item.get("past", Past()) for item in items]


def saved(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


# ── vaultmem ────────────────────────────────────────────────────────────────────────────────────────


def test_a_vaultmem_vault_is_read_with_its_kinds_sessions_and_times() -> None:
    form, items, rows, errors, unknown = opened("vaultmem")
    assert (form, rows, errors, unknown) == ("vaultmem", 3, [], {})
    assert contents(items) == list(TEXTS)
    assert [item["kind"] for item in items] == ["episode", "preference", "fact"]
    assert {item["author"] for item in items} == {"ada"}
    assert [item["position"] for item in items] == [1, 2, 1]
    assert items[0]["thread"] == items[1]["thread"] != items[2]["thread"]
    assert [item["captured_at"] for item in items] == [past.written_at for past in pasts(items)]
    assert all(item["captured_at"] is not None for item in items)


def test_its_layout_of_one_file_each_is_read_too() -> None:
    form, items, rows, _, _ = opened("vaultmem-blobs")
    assert (form, rows, sorted(contents(items))) == ("vaultmem", 2, sorted(TEXTS[:2]))


def test_another_passphrase_does_not_open_a_vaultmem_vault() -> None:
    with pytest.raises(PassphraseWrong):
        open_import(SAMPLES / "vaultmem", passphrase=lambda: "another")


def test_reading_a_vaultmem_vault_changes_nothing_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(SAMPLES / "vaultmem", folder)
    with (folder / "current.atoms").open("ab") as file:
        file.write(b"what a crash left behind")
    before = {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}
    assert len(opened(folder)[1]) == 3
    assert {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()} == before


def test_a_damaged_atom_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(SAMPLES / "vaultmem", folder)
    content = bytearray((folder / "current.atoms").read_bytes())
    content[40] ^= 1
    (folder / "current.atoms").write_bytes(content)
    _, items, rows, errors, _ = opened(folder)
    assert (rows, contents(items), [error.line for error in errors]) == (3, list(TEXTS[1:]), [1])


@pytest.mark.parametrize("name", ["meta.json", "current.vmem"])
def test_without_its_index_or_keys_a_vaultmem_vault_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(SAMPLES / "vaultmem", folder)
    (folder / name).write_bytes(b"{}" * 40)
    with pytest.raises(ImportRowError):
        open_import(folder, passphrase=lambda: VAULTMEM_PASSPHRASE)


def with_atom(folder: Path, **fields: object) -> None:
    """Put an atom into a copy of the sample, as vaultmem's own layout of one file each has it."""
    source = open_source(folder, VAULTMEM_PASSPHRASE)
    atom: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "type": "SEMANTIC",
        "granularity": "ATOM",
        "created_at": 1,
        **fields,
    }
    nonce, plain = bytes(12), zlib.compress(json.dumps(atom).encode())
    sealed = AESGCM(source.key.reveal()).encrypt(nonce, plain, uuid.UUID(atom["id"]).bytes)
    (folder / "atoms").mkdir(exist_ok=True)
    content = nonce + (len(sealed) - 16).to_bytes(4, "big") + sealed
    (folder / "atoms" / f"{atom['id']}.enc").write_bytes(content)


def test_what_an_atom_corrected_and_what_was_dropped_is_followed(tmp_path: Path, vault: Path) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(SAMPLES / "vaultmem", folder)
    first = opened(folder)[1][0]["origin"].removeprefix("vaultmem:")
    with_atom(folder, content="I met Ben, not Bob", supersedes=[first], id=f"{uuid.UUID(int=1)}")
    with_atom(folder, content="Old news", is_churned=True, churn_reason="AGE", id=f"{uuid.UUID(int=2)}")
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        bring(mine, opened(folder)[1], lambda _: None)
        states = {memory.content: memory.state for memory in mine.list(state="all")}
        assert states == {
            TEXTS[0]: State.SUPERSEDED, TEXTS[1]: State.ACTIVE, TEXTS[2]: State.ACTIVE,
            "I met Ben, not Bob": State.ACTIVE, "Old news": State.RETRACTED,
        }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [{"content": None}, {"content": " "}, {"content": MARK, "created_at": MARK}, {"content": MARK, "owner": 7}],
)
def test_an_atom_that_cannot_be_a_memory_is_named(tmp_path: Path, fields: dict[str, object]) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(SAMPLES / "vaultmem", folder)
    with_atom(folder, **fields)
    _, items, rows, errors, _ = opened(folder)
    assert (rows, len(items), [error.line for error in errors]) == (4, 3, [4])
    assert MARK not in str(errors[0])


# ── provenmem ───────────────────────────────────────────────────────────────────────────────────────


def test_a_provenmem_database_is_read_with_what_superseded_what() -> None:
    form, items, rows, errors, unknown = opened("provenmem.db")
    assert (form, rows, errors, unknown) == ("provenmem", 5, [], {"room": 3})
    assert [item["kind"] for item in items] == ["fact", "decision", "decision", "decision", "note"]
    assert items[0]["tags"] == ["infra", "db"]
    assert [item["source"] for item in items] == ["chat", "meeting", "meeting", "meeting", "joke"]
    assert [past.retracted for past in pasts(items)] == [False, False, False, False, True]
    assert [past.replaces is not None for past in pasts(items)] == [False, False, True, True, False]
    assert all(item["captured_at"] is not None for item in items)


def test_its_chains_and_retractions_are_there_afterwards(vault: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        for _ in range(2):
            _, items, _ = open_import(SAMPLES / "provenmem.db")
            bring(mine, items, lambda _: None)
        states = {memory.content: memory.state for memory in mine.list(state="all")}
        assert states == {
            "The staging database is on port 5433": State.ACTIVE,
            "Deploys go out on Fridays": State.SUPERSEDED,
            "Deploys go out on Tuesdays": State.SUPERSEDED,
            "Deploys go out on Mondays": State.ACTIVE,
            "The moon is made of cheese": State.RETRACTED,
        }
        [joke] = mine.list(state="retracted")
        assert joke.reason == "it was a joke"
        assert joke.written_at == joke.captured_at
        [newest] = mine.list(kind="decision")
        assert mine.get(newest.supersedes or "").content == "Deploys go out on Tuesdays"


def test_reading_a_database_leaves_no_file_beside_it(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "provenmem.db", tmp_path / "theirs.db")
    opened(tmp_path / "theirs.db")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.db"]
    assert (tmp_path / "theirs.db").read_bytes() == (SAMPLES / "provenmem.db").read_bytes()


def test_what_a_database_has_not_put_into_its_file_yet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    shutil.copy(SAMPLES / "provenmem.db", path)
    writer = sqlite3.connect(path)
    writer.execute("INSERT INTO records (kind, text, source, created_at) VALUES ('fact', 'late', 's', '2026-01-01')")
    writer.commit()
    assert contents(opened(path)[1])[-1] == "late"
    writer.close()


def test_rows_that_cannot_be_read_are_named_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    shutil.copy(SAMPLES / "provenmem.db", path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET tags = ? WHERE id = 1", ("{" + MARK,))
    connection.execute("UPDATE records SET text = CAST(x'ff41' AS TEXT) WHERE id = 2")
    connection.execute("UPDATE records SET created_at = 'some day' WHERE id = 5")
    connection.commit()
    connection.close()
    _, items, rows, errors, _ = opened(path)
    assert (rows, len(items), [error.line for error in errors]) == (5, 2, [1, 2, 5])
    assert not any(MARK in str(error) for error in errors)


def test_a_provenmem_database_whose_records_are_a_view_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "endless.db"
    shutil.copy(SAMPLES / "provenmem.db", path)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE records RENAME TO those")
        connection.execute(
            "CREATE VIEW records AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
            " SELECT n.id, kind, text, source, tags, meta, created_at, supersedes, retracted, retract_reason"
            " FROM n, those"
        )
    connection.close()
    with pytest.raises(ImportRowError, match="not one of provenmem"):
        open_import(path)


def test_another_database_or_a_newer_one_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE things (id)")
    connection.close()
    shutil.copy(SAMPLES / "provenmem.db", tmp_path / "newer.db")
    connection = sqlite3.connect(tmp_path / "newer.db")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    for path in (other, tmp_path / "newer.db"):
        with pytest.raises(ImportRowError):
            open_import(path)


# ── mem0 ────────────────────────────────────────────────────────────────────────────────────────────


def test_what_mem0_returns_is_read() -> None:
    form, items, rows, errors, unknown = opened("mem0.json")
    assert (form, rows, errors, unknown) == ("mem0", 3, [], {"mood": 2})
    said = {item["content"]: (item["author"], item["thread"], item["kind"]) for item in items}
    assert said == {
        "I moved to Porto in May": ("ada", "mem0/trip", "fact"),
        "Noted: Porto since May.": ("assistant", "mem0/trip", "fact"),
        "Ada is allergic to peanuts": ("ada", None, "fact"),
    }
    assert all(item["captured_at"] is not None and item["origin"].startswith("mem0:") for item in items)


@pytest.mark.parametrize("shape", ["list", "memories", "results"])
def test_mem0_rows_are_read_whatever_is_around_them(tmp_path: Path, shape: str) -> None:
    rows = [{"id": "1", "memory": "Likes tea", "categories": ["food"]}, {"id": "2", "memory": None}, "no row"]
    path = saved(tmp_path / "export.json", rows if shape == "list" else {shape: rows})
    form, items, count, errors, _ = opened(path)
    assert (form, count, contents(items), [error.line for error in errors]) == ("mem0", 3, ["Likes tea"], [2, 3])
    assert items[0]["tags"] == ["food"]


# ── ChatGPT ─────────────────────────────────────────────────────────────────────────────────────────


def test_of_a_chatgpt_conversation_the_branch_that_was_kept_is_read() -> None:
    form, items, rows, errors, _ = opened("chatgpt.json")
    assert (form, rows, errors) == ("chatgpt", len(items), [])
    talk = [item for item in items if item["thread"] == "chatgpt/c-0001" and item["kind"] == "episode"]
    assert [(item["author"], item["content"]) for item in talk] == [
        ("user", "How often should I descale my kettle?"),
        ("ChatGPT", "Every six weeks, with hard water every four."),
        ("user", "This is my kettle."),
        ("ChatGPT", "Noted: four weeks for you."),
    ]
    assert [item["position"] for item in talk] == sorted(item["position"] or 0 for item in talk)
    assert talk[0]["captured_at"] == datetime(2024, 5, 1, 8, 0, 1, tzinfo=UTC)
    assert talk[0]["source"] == "ChatGPT: Descaling a kettle"
    assert talk[0]["origin"] == "chatgpt:c-0001/m3"


def test_saved_memories_and_instructions_become_memories_once() -> None:
    _, items, _, _, _ = opened("chatgpt.json")
    assert contents([item for item in items if item["tags"] == ["memory"]]) == ["Has an enamel kettle and hard water."]
    assert contents([item for item in items if item["tags"] == ["instructions"]]) == [
        "I live in Porto.",
        "Answer in metric units.",
    ]


def test_a_conversation_without_current_node_or_times_is_read_to_its_end() -> None:
    _, items, _, _, _ = opened("chatgpt.json")
    talk = [item for item in items if item["thread"] == "chatgpt/c-0002"]
    assert contents(talk) == ["Convert 3 miles.", "About 4.8 km."]
    assert talk[0]["captured_at"] == datetime(2024, 5, 2, 8, tzinfo=UTC)
    assert talk[0]["source"] == "ChatGPT"


def chatgpt(*conversations: object) -> list[Any]:
    return [json.loads((SAMPLES / "chatgpt.json").read_text(encoding="utf-8"))[1], *conversations]


def test_a_damaged_conversation_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    good = json.loads((SAMPLES / "chatgpt.json").read_text(encoding="utf-8"))[0]
    path = saved(tmp_path / "conversations.json", chatgpt({"id": "x", "mapping": MARK}, 7, good))
    _, items, rows, errors, _ = opened(path)
    assert len(errors) == 2
    assert rows == len(items) + 2
    assert "Noted: four weeks for you." in contents(items)
    assert not any(MARK in str(error) for error in errors)


def test_a_damaged_first_conversation_does_not_hide_what_the_file_is(tmp_path: Path) -> None:
    form, items, _, errors, _ = opened(saved(tmp_path / "conversations.json", [7, *chatgpt()]))
    assert (form, [error.line for error in errors]) == ("chatgpt", [1])
    assert items


def test_a_tree_that_goes_in_circles_ends(tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["round and round"]}}
    mapping = {"a": {"parent": "b", "message": message}, "b": {"parent": "a", "message": None}}
    path = saved(tmp_path / "c.json", chatgpt({"id": "x", "mapping": mapping, "current_node": "a"}))
    assert contents(opened(path)[1])[-1] == "round and round"


@pytest.mark.parametrize("time", ["some day", 1e300, True])
def test_a_message_with_a_time_that_is_none_is_named(tmp_path: Path, time: object) -> None:
    message = {
        "author": {"role": "user"}, "content": {"content_type": "text", "parts": [MARK]}, "create_time": time,
    }  # fmt: skip
    path = saved(tmp_path / "c.json", chatgpt({"id": "x", "mapping": {"a": {"parent": None, "message": message}}}))
    _, _, rows, errors, _ = opened(path)
    assert [error.line for error in errors] == [rows]
    assert MARK not in str(errors[0])


def test_a_file_that_was_cut_gives_what_is_before(tmp_path: Path) -> None:
    whole = json.dumps(chatgpt(*chatgpt()))
    path = tmp_path / "conversations.json"
    path.write_text(whole[:-40], encoding="utf-8")
    _, items, rows, errors, _ = opened(path)
    assert (len(items), rows, len(errors)) == (4, 4, 1)


def test_an_archive_is_read_as_it_was_downloaded(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.write(SAMPLES / "chatgpt.json", "data/conversations-000.json")
        archive.writestr("data/conversations-001.json", json.dumps([]))
    assert opened(path)[:3] == opened("chatgpt.json")[:3]


def test_an_archive_without_conversations_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cat.json", "[]")
    with pytest.raises(ImportRowError):
        open_import(path)
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(ImportRowError):
        open_import(path)


# ── Claude ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_claude_export_is_read_with_texts_that_were_attached() -> None:
    form, items, rows, errors, _ = opened("claude.json")
    assert (form, rows, errors) == ("claude", 3, [])
    assert [(item["author"], item["content"]) for item in items] == [
        ("user", "Where do I eat in Porto?\n\n[attached: notes.txt]\nNo fish on Mondays."),
        ("Claude", "Let me look.\nTry the market hall."),
        ("user", "An older export has the text alone."),
    ]
    assert [item["thread"] for item in items] == ["claude/d-0001", "claude/d-0001", "claude/d-0002"]
    assert [item["position"] for item in items] == [1, 2, 1]
    assert items[0]["captured_at"] == datetime(2025, 5, 1, 8, 0, 1, 250000, tzinfo=UTC)
    assert (items[0]["source"], items[2]["source"]) == ("Claude: Trip to Porto", "Claude")


def test_what_claude_keeps_of_its_user_is_read() -> None:
    form, items, rows, errors, _ = opened("claude-memories.json")
    assert (form, rows, errors) == ("claude", 2, [])
    assert contents(items) == ["**Personal context**\n\nAda lives in Porto.", "The kettle project is on hold."]
    assert all(item["tags"] == ["memory"] for item in items)


def test_a_claude_message_of_another_shape_is_named(tmp_path: Path) -> None:
    chat = json.loads((SAMPLES / "claude.json").read_text(encoding="utf-8"))
    chat[0]["chat_messages"][0] = {"sender": "someone", "text": MARK}
    chat.insert(1, {"uuid": "d", "chat_messages": MARK})
    _, items, rows, errors, _ = opened(saved(tmp_path / "conversations.json", chat))
    assert (len(items), rows, [error.line for error in errors]) == (2, 4, [1, 3])
    assert not any(MARK in str(error) for error in errors)


# ── all of them ─────────────────────────────────────────────────────────────────────────────────────

EVERY = [
    "vaultmem",
    "vaultmem-blobs",
    "provenmem.db",
    "mem0.json",
    "chatgpt.json",
    "claude.json",
    "claude-memories.json",
]


@pytest.mark.parametrize("name", EVERY)
def test_every_sample_is_brought_once_however_often_it_is_imported(vault: Path, name: str) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        tallies = list[tuple[int, int]]()
        for _ in range(2):
            _, items, _ = open_import(SAMPLES / name, passphrase=lambda: VAULTMEM_PASSPHRASE)
            tally = bring(mine, items, lambda _: None)
            assert tally.changed == []
            tallies.append((tally.new, tally.known))
        count = mine.count(state="all")
        assert count > 0
        assert tallies == [(count, 0), (0, count)]
        assert mine.verify() == []


def test_what_was_erased_does_not_come_back_with_the_next_import(vault: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as mine:
        bring(mine, open_import(SAMPLES / "claude.json")[1], lambda _: None)
        [unwanted] = mine.list(thread="claude/d-0002")
        mine.erase(unwanted.id)
        tally = bring(mine, open_import(SAMPLES / "claude.json")[1], lambda _: None)
        assert (tally.new, tally.known) == (0, 3)


# ── arrays ──────────────────────────────────────────────────────────────────────────────────────


def test_a_long_array_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    conversation = json.dumps({"uuid": "c", "chat_messages": [], "padding": "x" * 100_000})
    with path.open("w", encoding="utf-8") as file:
        file.write("[" + ",\n".join([conversation] * 300) + "]")
    tracemalloc.start()
    with path.open(encoding="utf-8") as file:
        count = sum(1 for _ in array_items(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300
    assert peak < path.stat().st_size / 3


class Dripping(io.StringIO):
    """A file that gives a few characters at a time."""

    def read(self, size: int | None = -1, /) -> str:
        return super().read(min(size or 3, 3))


ARRAYS = ["[]", " [ ] ", '[{"a": "x, ]"}]', '\ufeff[1, "two", [3, [4]], {"five": null}\n]', "[-1.5e3, 12345, true]"]


@pytest.mark.parametrize("text", ARRAYS)
def test_items_are_the_same_however_the_file_comes(text: str) -> None:
    assert list(array_items(Dripping(text))) == json.loads(text.removeprefix("\ufeff"))


@pytest.mark.parametrize("text", ["", "{}", "[", "[1", "[1,", '["a', "[1 2]", "[,]", "[1,]", '[{"a": }]', "[1}"])
def test_what_is_no_array_ends_with_a_reason(text: str) -> None:
    with pytest.raises(BadRow):
        list(array_items(Dripping(text)))


def test_an_item_without_an_end_is_not_held_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "ITEM_LIMIT", 1 << 12)
    monkeypatch.setattr(json_stream, "_PIECE", 1 << 8)
    file = io.StringIO('["' + "x" * 100_000)
    with pytest.raises(BadRow):
        list(array_items(file))
    assert file.tell() < 20_000


def test_a_folder_that_is_no_vault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        open_import(tmp_path, passphrase=lambda: "never asked for")
