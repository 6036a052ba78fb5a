import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memseal.errors import DiskError
from memseal.surfaces.cli import exits, files
from memseal.surfaces.cli.bringing import STEP, bring
from memseal.surfaces.importing.items import ImportItem
from memseal.surfaces.importing.jsonl import read_jsonl
from memseal.vault.vault import Vault
from tests.surfaces.conftest import PASSPHRASE, Command
from tests.surfaces.samples.make import VAULTMEM_PASSPHRASE

REPORT_KEYS = {
    "format", "rows", "new", "known", "changed", "changed_origins", "refused", "refused_rows", "unknown_fields",
    "interrupted",
}  # fmt: skip
ROUND_TRIP = ("content", "kind", "tags", "author", "thread", "position", "captured_at", "origin", "source")


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def numbered(count: int) -> list[str]:
    return [json.dumps({"id": str(number), "content": f"row {number}"}) for number in range(count)]


def test_import_counts_what_became_of_the_rows(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    write_rows(path, {"id": "a", "content": "one"}, {"content": ""}, {"id": "b", "content": "two", "mood": "good"})
    run = cli("import", str(path), "--json")
    assert (run.code, set(run.document)) == (exits.NOT_ALL, REPORT_KEYS)
    assert run.document | {"refused_rows": []} == {
        "format": "jsonl", "rows": 3, "new": 2, "known": 0, "changed": 0, "changed_origins": [], "refused": 1,
        "refused_rows": [], "unknown_fields": {"mood": 1}, "interrupted": False,
    }  # fmt: skip
    [refused] = run.document["refused_rows"]
    assert (refused["line"], set(refused)) == (2, {"line", "reason"})


def test_import_again_stores_nothing_twice(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", {"id": "a", "content": "one"}, {"id": "b", "content": "two"})
    assert cli("import", str(path)).out == "2 new, 0 known, 0 changed, 0 refused\n"
    again = cli("import", str(path))
    assert (again.code, again.out) == (exits.DONE, "0 new, 2 known, 0 changed, 0 refused\n")
    assert cli("list", "--json").document["total"] == 2


def test_changed_row_is_said_and_leaves_the_memory(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", {"id": "a", "content": "one"})
    cli("import", str(path))
    write_rows(path, {"id": "a", "content": "another"})
    run = cli("import", str(path), "--json")
    assert (run.code, run.document["changed"]) == (exits.NOT_ALL, 1)
    assert run.document["changed_origins"] == ["jsonl:notes/a"]
    assert "left as it is: jsonl:notes/a" in cli("import", str(path)).out
    assert [each["content"] for each in cli("list", "--json").document["memories"]] == ["one"]


def test_second_row_of_one_name_is_a_change_and_not_a_memory(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", {"id": "a", "content": "one"}, {"id": "a", "content": "two"})
    assert cli("import", str(path), "--json").document["changed"] == 1
    assert cli("list", "--json").document["total"] == 1


def test_retracted_memory_is_not_brought_back_by_an_import(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", {"id": "a", "content": "one"})
    cli("import", str(path))
    [memory] = cli("list", "--json").document["memories"]
    cli("retract", memory["id"], "--reason", "wrong")
    assert cli("import", str(path), "--json").document["known"] == 1
    assert cli("list", "--json").document["total"] == 0


def test_refused_rows_are_all_counted_and_as_many_named_as_asked(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", *({"content": ""} for _ in range(5)))
    run = cli("import", str(path), "--limit-errors", "2", "--json")
    assert (run.document["refused"], len(run.document["refused_rows"])) == (5, 2)
    shown = cli("import", str(path), "--limit-errors", "2")
    assert shown.out.count("refused: line ") == 2


def test_hostile_field_names_and_reasons_cannot_draw(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "n\x1b[31m.jsonl", {"content": "x", "\x1b[31m": 1})
    run = cli("import", str(path))
    assert run.code == exits.DONE
    assert "\x1b" not in run.out + run.err


def test_import_of_what_is_no_file_is_wrong_usage(cli: Command, tmp_path: Path) -> None:
    assert cli("import", str(tmp_path)).code == exits.USAGE
    assert cli("import", str(tmp_path / "missing")).code == exits.USAGE


def test_file_of_another_form_is_for_the_user_to_change(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello", encoding="utf-8")
    run = cli("import", str(path), "--json")
    assert (run.code, run.error["code"]) == (4, "import_row")


def test_import_is_quiet_where_there_is_no_terminal(cli: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "notes.jsonl", {"content": "one"})
    assert cli("import", str(path)).err == ""


def interrupting(count: int, number: int, at: int) -> Iterator[ImportItem]:
    for place, item in enumerate(read_jsonl(numbered(count), "rows")):
        if place == at:
            os.kill(os.getpid(), number)
        yield item


def test_interrupted_import_ends_between_two_steps(vault: Path) -> None:
    steps = list[int]()
    with Vault.open(vault, PASSPHRASE, embedder=None) as opened:
        tally = bring(opened, interrupting(STEP * 3, signal.SIGINT, STEP + 5), steps.append)
        assert (tally.interrupted, tally.new, steps) == (True, STEP, [STEP])
        rest = bring(opened, read_jsonl(numbered(STEP * 3), "rows"), steps.append)
        assert (rest.interrupted, rest.known, rest.new) == (False, STEP, STEP * 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_second_interruption_takes_effect_at_once(vault: Path) -> None:
    def impatient() -> Iterator[ImportItem]:
        yield from interrupting(3, signal.SIGINT, 1)
        os.kill(os.getpid(), signal.SIGINT)

    with Vault.open(vault, PASSPHRASE, embedder=None) as opened:
        with pytest.raises(KeyboardInterrupt):
            bring(opened, impatient(), lambda _: None)
        assert opened.count() == 0


def test_interrupted_import_says_how_to_go_on(cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(numbered(STEP * 2)), encoding="utf-8")
    items = interrupting(STEP * 2, signal.SIGINT, 3)
    with monkeypatch.context() as patch:
        patch.setattr(files, "open_import", lambda *_, **__: ("jsonl", items, STEP * 2))
        run = cli("import", str(path), "--json")
    assert (run.code, run.error["code"]) == (exits.INTERRUPTED, "interrupted")
    assert run.document["interrupted"]
    assert cli("import", str(path), "--json").document["known"] == run.document["new"]


KILLED = """
import os, signal, sys
from memseal.surfaces.cli.bringing import bring
from memseal.surfaces.importing.opening import open_import
from memseal.vault.vault import Vault

def dying(items, at):
    for place, item in enumerate(items):
        if place == at:
            os.kill(os.getpid(), signal.SIGKILL)
        yield item

vault = Vault.open(sys.argv[1], os.environ["MEMSEAL_PASSPHRASE"], embedder=None)
_, items, _ = open_import(__import__("pathlib").Path(sys.argv[2]))
bring(vault, dying(items, int(sys.argv[3])), lambda _: None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of Unix")
def test_killed_import_goes_on_where_it_was(
    cli: Command, vault: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(numbered(STEP * 2 + 10)), encoding="utf-8")
    command = [sys.executable, "-c", KILLED, str(vault), str(path), str(STEP + 100)]
    killed = subprocess.run(command, env={**os.environ, **environment}, check=False)
    assert killed.returncode == -signal.SIGKILL
    document = cli("import", str(path), "--json").document
    assert (document["known"], document["new"]) == (STEP, STEP + 10)
    assert cli("list", "--json").document["total"] == STEP * 2 + 10
    assert cli("verify", "--json").document == {"ok": True, "findings": []}


def full_of_memories(cli: Command) -> None:
    cli(
        "remember", "kettle \u2028 \n 雨 \U000e0041", "--kind", "fact", "--tag", "a", "--tag", "b", "--author", "Ada",
        "--thread", "t", "--position", "7", "--at", "2025-03-01T10:00:00.123456Z", "--source", "chat",
    )  # fmt: skip
    cli("remember", "without anything")


def fields(document: dict[str, Any]) -> list[dict[str, Any]]:
    kept = [{name: memory[name] for name in ROUND_TRIP} for memory in document["memories"]]
    return sorted(kept, key=lambda memory: str(memory["content"]))


def test_export_and_import_give_the_same_memories(cli: Command, template: Path, tmp_path: Path) -> None:
    full_of_memories(cli)
    rows = write_rows(tmp_path / "notes.jsonl", {"id": "a", "content": "from a file", "captured_at": "2024-02-29"})
    cli("import", str(rows))
    run = cli("export", str(tmp_path / "out.jsonl"), "--json")
    assert run.document == {"path": str(tmp_path / "out.jsonl"), "memories": 3, "left_out": 0}

    other = tmp_path / "other"
    shutil.copytree(template, other)
    report = cli("import", str(tmp_path / "out.jsonl"), "--vault", str(other), "--json").document
    assert (report["new"], report["refused"], report["unknown_fields"]) == (3, 0, {})
    before, after = (
        fields(cli("list", "--json").document),
        fields(cli("list", "--vault", str(other), "--json").document),
    )
    # What came from nowhere has come from this file now; a named origin stays.
    assert [each["origin"] for each in before if each["origin"]] == ["jsonl:notes/a"]
    for memory in after:
        memory["origin"] = None if memory["origin"].startswith("jsonl:out/") else memory["origin"]
    assert after == before
    assert cli("import", str(tmp_path / "out.jsonl"), "--json").document["new"] == 0


def test_export_leaves_out_what_was_taken_back_and_says_so(cli: Command, tmp_path: Path) -> None:
    kept = cli("remember", "old", "--json").document["memory"]["id"]
    cli("supersede", kept, "new")
    path = tmp_path / "out.jsonl"
    assert cli("export", str(path)).out == f"1 memories are in {path}, 1 were left out (1 superseded)\n"
    everything = cli("export", "-", "--state", "all").out
    rows = [json.loads(line) for line in everything.splitlines()]
    assert [(row["content"], row["state"]) for row in rows] == [("old", "superseded"), ("new", "active")]


def history(cli: Command) -> None:
    old = cli("remember", "the plan is A", "--tag", "plan", "--json").document["memory"]["id"]
    newer = cli("supersede", old, "the plan is B", "--reason", "A was late", "--json").document["memory"]["id"]
    cli("supersede", newer, "the plan is C", "--json")
    wrong = cli("remember", "a wrong thing", "--json").document["memory"]["id"]
    cli("retract", wrong, "--reason", "a slip")


def test_export_of_all_and_import_keep_ids_states_chains_and_reasons(
    cli: Command, template: Path, tmp_path: Path
) -> None:
    history(cli)
    before = cli("list", "--state", "all", "--json").document["memories"]
    cli("export", str(tmp_path / "all.jsonl"), "--state", "all")
    other = tmp_path / "other"
    shutil.copytree(template, other)
    for new in (4, 0):
        report = cli("import", str(tmp_path / "all.jsonl"), "--vault", str(other), "--json").document
        assert (report["new"], report["refused"], report["unknown_fields"]) == (new, 0, {})
    after = cli("list", "--state", "all", "--vault", str(other), "--json").document["memories"]
    assert sorted((each | {"origin": None} for each in after), key=str) == sorted(before, key=str)
    assert cli("import", str(tmp_path / "all.jsonl"), "--json").document["new"] == 0


def test_memories_that_share_an_origin_all_come_back(cli: Command, vault: Path, template: Path, tmp_path: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None) as opened:
        opened.remember_many([{"content": text, "source": "mail", "origin": "mail:7"} for text in ("one", "two")])
    cli("export", str(tmp_path / "all.jsonl"))
    other = tmp_path / "other"
    shutil.copytree(template, other)
    report = cli("import", str(tmp_path / "all.jsonl"), "--vault", str(other), "--json").document
    assert (report["new"], report["changed"]) == (2, 0)


def test_dry_run_says_what_would_come_and_stores_nothing(cli: Command, tmp_path: Path) -> None:
    rows = [{"id": str(number), "content": f"row {number}\x1b[31m"} for number in range(30)]
    path = write_rows(tmp_path / "notes.jsonl", *rows, {"content": ""})
    run = cli("import", str(path), "--dry-run", "--json")
    assert (run.code, run.document["new"], run.document["refused"]) == (exits.NOT_ALL, 30, 1)
    assert [item["content"] for item in run.document["first"]] == [row["content"] for row in rows[:10]]
    shown = cli("import", str(path), "--dry-run")
    assert "would come: row 9" in shown.out
    assert "\x1b" not in shown.out
    assert cli("list", "--json").document["total"] == 0


FILE = {"MEMSEAL_FILE_PASSPHRASE": "a passphrase for the file"}


def test_a_bundle_goes_out_and_comes_in(cli: Command, template: Path, tmp_path: Path) -> None:
    history(cli)
    path, other = str(tmp_path / "all.mseal"), tmp_path / "other"
    run = cli("export", "--bundle", path, "--json", **FILE)
    assert (run.code, run.document) == (exits.DONE, {"path": path, "memories": 4, "left_out": 0})
    assert cli("export", "--bundle", path, **FILE).code == exits.USAGE
    shutil.copytree(template, other)
    into = ("--vault", str(other), "--json")
    dry = cli("import", path, "--dry-run", *into, **FILE).document
    assert (dry["format"], dry["new"], dry["dry_run"]) == ("bundle", 4, True)
    assert cli("import", path, *into, **FILE).document["new"] == 4
    assert cli("import", path, *into, **FILE).document == {
        "format": "bundle", "new": 0, "operations": 0, "findings": [], "dry_run": False,
    }  # fmt: skip
    listing = ("list", "--state", "all", "--json")
    theirs = [each["content"] for each in cli(*listing, "--vault", str(other)).document["memories"]]
    assert sorted(theirs) == sorted(each["content"] for each in cli(*listing).document["memories"])


def test_a_bundle_without_its_passphrase_stays_closed(cli: Command, tmp_path: Path) -> None:
    path = str(tmp_path / "all.mseal")
    assert cli("export", "--bundle", path).code == exits.USAGE
    assert not Path(path).exists()
    cli("export", "--bundle", path, **FILE)
    run = cli("import", path, "--json", MEMSEAL_FILE_PASSPHRASE="another")
    assert run.error["code"] == "bundle_passphrase"


def test_what_a_damaged_bundle_lost_is_said(cli: Command, tmp_path: Path) -> None:
    cli("remember", "kept")
    path = tmp_path / "all.mseal"
    cli("export", "--bundle", str(path), **FILE)
    path.write_bytes(path.read_bytes()[:-10])
    run = cli("import", str(path), **FILE)
    assert run.code == exits.NOT_ALL
    assert "lost: bundle" in run.out


def test_a_bundle_does_not_go_to_standard_output(cli: Command) -> None:
    assert cli("export", "--bundle", "-", **FILE).code == exits.USAGE


def test_a_vaultmem_vault_is_imported_with_its_own_passphrase(cli: Command) -> None:
    folder = str(Path(__file__).parent / "samples" / "vaultmem")
    assert cli("import", folder, "--json", MEMSEAL_FILE_PASSPHRASE="another").error["code"] == "passphrase_wrong"
    run = cli("import", folder, "--json", MEMSEAL_FILE_PASSPHRASE=VAULTMEM_PASSPHRASE)
    assert (run.code, run.document["format"], run.document["new"]) == (exits.DONE, "vaultmem", 3)


def test_markdown_is_written_by_day_or_thread(cli: Command, tmp_path: Path) -> None:
    cli("remember", "late", "--thread", "b", "--at", "2025-03-02T08:00:00Z")
    cli("remember", "early", "--thread", "a", "--at", "2025-03-01T08:00:00Z")
    by_day = cli("export", "-", "--format", "markdown").out
    assert [line for line in by_day.splitlines() if line.startswith("#")] == [
        "# Memories", "## 2025-03-01", "## 2025-03-02",
    ]  # fmt: skip
    cli("export", str(tmp_path / "m.md"), "--format", "markdown", "--by", "thread")
    text = (tmp_path / "m.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Memories", "## a", "## b"]
    assert cli("export", "-", "--format", "pdf").code == exits.USAGE
    assert cli("export", "-", "--by", "mood").code == exits.USAGE


def test_export_lines_are_as_many_as_memories_whatever_ends_a_line_in_them(cli: Command) -> None:
    full_of_memories(cli)
    run = cli("export", "-")
    assert len(run.out.splitlines()) == 2


def test_export_keeps_a_file_that_is_there(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("mine", encoding="utf-8")
    assert cli("export", str(path)).code == exits.USAGE
    assert path.read_text(encoding="utf-8") == "mine"
    assert cli("export", str(path), "--overwrite").code == exits.DONE
    assert path.read_text(encoding="utf-8") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_exported_file_is_for_its_owner_only(cli: Command, tmp_path: Path) -> None:
    cli("export", str(tmp_path / "out.jsonl"))
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600


def test_export_into_a_missing_folder_is_an_error_of_the_disk(cli: Command, tmp_path: Path) -> None:
    run = cli("export", str(tmp_path / "none" / "out.jsonl"), "--json")
    assert (run.code, run.error["code"]) == (6, DiskError.code)


def test_lines_on_standard_output_and_a_document_are_too_much(cli: Command) -> None:
    assert cli("export", "-", "--json").code == exits.USAGE


def test_other_programs_may_mean_something_else_by_origin_and_state(cli: Command, tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "notes.jsonl",
        {"id": "a", "content": "one", "origin": "web", "state": "retracted"},
        {"id": "b", "content": "two", "origin": "web", "state": "Ohio"},
    )
    document = cli("import", str(path), "--json").document
    assert (document["new"], document["unknown_fields"]) == (2, {"origin": 2, "state": 2})
