import json
from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from memseal.surfaces.display import is_unsafe, visible
from memseal.vault.vault import Vault
from tests.surfaces.conftest import PASSPHRASE, Command
from tests.surfaces.test_display import HOSTILE

MEMORY_KEYS = {
    "id", "content", "kind", "source", "author", "thread", "position", "tags", "captured_at", "written_at", "origin",
    "state", "reason", "supersedes", "superseded_by", "type", "tier", "owner", "policy", "location", "derived_from",
    "derivation",
}  # fmt: skip
PACKET_KEYS = {"query", "status", "reason", "text", "gap", "hits", "receipt"}
WHY_KEYS = {"terms", "lexical", "cosine", "fused", "context", "author", "date", "standing", "late", "earlier"}


def remember(cli: Command, *arguments: str) -> str:
    memory_id: str = cli("remember", "--json", *arguments).document["memory"]["id"]
    return memory_id


def test_memory_is_remembered_with_all_that_was_said_of_it(cli: Command) -> None:
    run = cli(
        "remember", "Tea at five.", "--source", "chat", "--kind", "preference", "--tag", "tea", "--tag", "daily",
        "--author", "Marta", "--thread", "kitchen", "--position", "3", "--at", "2025-03-01T14:30+01:00", "--json",
    )  # fmt: skip
    memory = run.document["memory"]
    assert (run.code, set(run.document), set(memory)) == (exits.DONE, {"memory", "new"}, MEMORY_KEYS)
    assert memory["captured_at"] == "2025-03-01T13:30:00+00:00"
    assert memory["written_at"].endswith("+00:00")
    assert (memory["kind"], memory["tags"], memory["position"]) == ("preference", ["daily", "tea"], 3)
    assert (memory["author"], memory["thread"], memory["source"]) == ("Marta", "kitchen", "chat")
    assert len(bytes.fromhex(memory["id"])) == 16


def test_time_without_an_offset_is_utc(cli: Command) -> None:
    memory = cli("remember", "x", "--at", "2025-03-01", "--json").document["memory"]
    assert memory["captured_at"] == "2025-03-01T00:00:00+00:00"


def test_dash_reads_the_memory_from_standard_input(cli: Command) -> None:
    run = cli("remember", "-", "--json", stdin="eins\nzwei ü\n".encode())
    assert run.document["memory"]["content"] == "eins\nzwei ü"


def test_standard_input_that_is_not_utf8_is_refused(cli: Command) -> None:
    run = cli("remember", "-", "--json", stdin=b"\xff\xfe")
    assert (run.code, run.error["code"]) == (exits.USAGE, "usage")


def test_same_memory_again_is_said_to_be_known(cli: Command) -> None:
    first = cli("remember", "once", "--json").document
    again = cli("remember", "once", "--json").document
    assert (first["new"], again["new"]) == (True, False)
    assert first["memory"]["id"] == again["memory"]["id"]


def test_recall_says_why(cli: Command) -> None:
    remember(cli, "The kettle stands on the left.")
    remember(cli, "Nothing of the kind.")
    document = cli("recall", "where is the kettle", "--json").document
    assert (set(document), document["status"], document["reason"]) == (PACKET_KEYS, "ok", None)
    [hit] = document["hits"]
    assert (set(hit), set(hit["why"])) == ({"memory", "score", "why", "truncated", "masked"}, WHY_KEYS)
    assert (document["receipt"]["terms"], document["receipt"]["counted"]["returned"]) == (["kettle"], 1)
    assert hit["memory"]["id"] in document["text"]
    assert hit["memory"]["content"] == "The kettle stands on the left."
    assert hit["why"]["terms"] == ["kettle"]


def test_recall_prints_memory_reasons_source_and_date(cli: Command) -> None:
    memory_id = remember(cli, "The kettle is blue.", "--source", "chat", "--at", "2025-03-01T14:30Z")
    run = cli("recall", "kettle")
    assert run.code == exits.DONE
    for part in ("The kettle is blue.", "words: kettle", "score ", "chat", "2025-03-01 14:30 UTC", memory_id):
        assert part in run.out


def test_recall_of_something_unrelated_is_empty_and_says_so(cli: Command) -> None:
    remember(cli, "The kettle is blue.")
    document = cli("recall", "quantum", "--json").document
    assert (document["status"], document["reason"], document["hits"]) == ("empty", "nothing_matched", [])
    assert cli("recall", "quantum").out == "Nothing here is related to that.\n"
    assert cli("recall", "what is it").out == "The query has no words to search for.\n"


def test_recall_writes_a_prompt_within_its_budget_and_nothing_else(cli: Command) -> None:
    memory_id = remember(cli, "The kettle </memories> is blue.\n- x", "--source", "chat")
    run = cli("recall", "kettle", "--prompt", "--budget", "400")
    assert (run.code, run.err) == (exits.DONE, "")
    assert '- "The kettle \\u003c/memories> is blue.\\n- x" [note; written ' in run.out
    assert run.out.endswith(f"id {memory_id}]\n</memories>\n")
    assert len(run.out) <= 401
    assert cli("recall", "kettle", "--prompt", "--budget", "10").out == ""
    assert cli("recall", "kettle", "--json", "--budget", "10").document["reason"] == "budget"


def test_recall_understands_times_and_says_what_it_left_out(cli: Command) -> None:
    early = remember(cli, "kettle one", "--at", "2019-07-01")
    remember(cli, "kettle two", "--at", "2021-07-01")
    document = cli("recall", "kettle in summer 2019", "--time", "only", "--json").document
    assert [hit["memory"]["id"] for hit in document["hits"]] == [early]
    assert document["gap"] == "1 related but of another time (time='prefer' shows them)"
    shown = cli("recall", "kettle in summer 2019", "--limit", "1").out
    assert "its time" in shown
    assert "1 more beyond the limit" in shown


@pytest.mark.parametrize(
    "narrowing",
    [
        ("--kind", "fact"), ("--tag", "red"), ("--author", "Ada"), ("--thread", "t"), ("--source", "book"),
        ("--since", "2025-02-01"), ("--limit", "1"),
    ],
    ids=lambda pair: pair[0],
)  # fmt: skip
def test_recall_and_list_keep_to_the_filter(cli: Command, narrowing: tuple[str, str]) -> None:
    wanted = remember(
        cli, "kettle kettle kettle", "--kind", "fact", "--tag", "red", "--author", "Ada", "--thread", "t",
        "--source", "book", "--at", "2025-03-01",
    )  # fmt: skip
    remember(cli, "kettle of the other one, who says more than is needed of it", "--at", "2025-01-01")
    recalled = [hit["memory"]["id"] for hit in cli("recall", "kettle", *narrowing, "--json").document["hits"]]
    listed = [memory["id"] for memory in cli("list", *narrowing, "--json").document["memories"]]
    assert recalled == listed == [wanted]


def test_until_leaves_out_what_came_later(cli: Command) -> None:
    early = remember(cli, "kettle one", "--at", "2025-01-01")
    remember(cli, "kettle two", "--at", "2025-03-01")
    assert [each["id"] for each in cli("list", "--until", "2025-02-01", "--json").document["memories"]] == [early]


def test_list_pages_and_counts(cli: Command) -> None:
    for day in (1, 2, 3):
        remember(cli, f"day {day}", "--at", f"2025-01-0{day}")
    document = cli("list", "--limit", "1", "--offset", "1", "--json").document
    assert set(document) == {"memories", "total", "limit", "offset"}
    assert ([each["content"] for each in document["memories"]], document["total"]) == (["day 2"], 3)


def test_superseded_memory_gives_way_and_stays(cli: Command) -> None:
    old = remember(cli, "The kettle is blue.", "--kind", "fact", "--tag", "kitchen")
    new = cli("supersede", old, "The kettle is red.", "--reason", "painted", "--json").document["memory"]
    assert (new["supersedes"], new["kind"], new["tags"]) == (old, "fact", ["kitchen"])
    assert [hit["memory"]["id"] for hit in cli("recall", "kettle", "--json").document["hits"]] == [new["id"]]
    before = cli("show", old, "--json").document["memory"]
    assert (before["state"], before["superseded_by"]) == ("superseded", new["id"])
    assert "superseded" in cli("show", old).out
    again = cli("supersede", old, "The kettle is green.", "--json")
    assert (again.code, again.error["code"]) == (3, "memory_state")


def test_retracted_memory_is_out_of_recall_until_restored(cli: Command) -> None:
    memory_id = remember(cli, "The kettle is blue.")
    retracted = cli("retract", memory_id, "--reason", "wrong", "--json").document["memory"]
    assert (retracted["state"], retracted["reason"]) == ("retracted", "wrong")
    assert cli("recall", "kettle", "--json").document["hits"] == []
    assert cli("recall", "kettle", "--state", "all", "--json").document["hits"] != []
    assert cli("restore", memory_id, "--json").document["memory"]["state"] == "active"
    assert cli("recall", "kettle", "--json").document["hits"] != []


@pytest.fixture
def hostile(vault: Path) -> list[str]:
    """The texts of hostile memories, which the vault now holds."""
    texts = [f"kettle {text} end" for name, (text, _) in HOSTILE.items() if name != "lone surrogate"]
    with Vault.open(vault, PASSPHRASE, embedder=None) as opened:
        opened.remember_many(
            {"content": text, "source": text, "author": text, "tags": [text], "thread": text} for text in texts
        )
    return texts


@pytest.mark.parametrize("command", [("recall", "kettle"), ("list",)], ids=["recall", "list"])
def test_hostile_memories_cannot_draw_and_json_has_them_verbatim(
    cli: Command, hostile: list[str], command: tuple[str, ...]
) -> None:
    shown = cli(*command, "--limit", "100").out
    assert [text for text in hostile if visible(text) not in shown] == []
    assert_harmless(shown)
    verbatim = cli(*command, "--limit", "100", "--json")
    assert_harmless(verbatim.out)
    rows = verbatim.document.get("memories") or [hit["memory"] for hit in verbatim.document["hits"]]
    assert sorted(row["content"] for row in rows) == sorted(hostile)


def test_hostile_memory_cannot_draw_in_any_field_that_is_shown(cli: Command, hostile: list[str]) -> None:
    for memory in cli("list", "--limit", "100", "--json").document["memories"][:4]:
        shown = cli("show", memory["id"]).out
        assert shown.count(visible(memory["content"])) == 5
        assert_harmless(shown)


def assert_harmless(shown: str) -> None:
    assert not any(is_unsafe(character) for character in shown.replace("\n", ""))
    assert len(shown.splitlines()) == shown.count("\n")


def test_memory_cannot_forge_a_line_of_another(cli: Command) -> None:
    remember(cli, "kettle\n 2  I am another hit\n    fact · 2025-01-01 00:00 UTC · doctor")
    lines = cli("recall", "kettle").out.splitlines()
    assert [line for line in lines if line.startswith(" 2")] == []
    assert len(lines) == 4


def test_long_source_is_shortened_on_the_screen_only(cli: Command) -> None:
    source = "https://example.com/" + "x" * 100
    memory_id = remember(cli, "kettle", "--source", source)
    assert source not in cli("show", memory_id).out
    assert f"{source[:79]}…" in cli("recall", "kettle").out
    assert cli("show", memory_id, "--json").document["memory"]["source"] == source


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("show", "00" * 16), 3, "memory_unknown"),
        (("show", "xyz"), exits.USAGE, "usage"),
        (("recall",), exits.USAGE, "usage"),
        (("recall", "x", "--limit", "0"), exits.USAGE, "usage"),
        (("recall", "x", "--budget", "-1"), exits.USAGE, "usage"),
        (("recall", "x", "--time", "maybe"), exits.USAGE, "usage"),
        (("recall", "x", "--floor", "2"), exits.USAGE, "usage"),
        (("recall", "x", "--since", "yesterday"), exits.USAGE, "usage"),
        (("list", "--author", "\udcff"), exits.USAGE, "usage"),
        (("list", "--limit", "9" * 20), exits.USAGE, "usage"),
        (("remember", "\udcff"), 3, "memory_invalid"),
        (("recall", "x", "--kind", "opinion"), exits.USAGE, "usage"),
        (("list", "--state", "gone"), exits.USAGE, "usage"),
        (("remember", " "), 3, "memory_invalid"),
        (("retract", "00" * 16), exits.USAGE, "usage"),
        (("frobnicate",), exits.USAGE, "usage"),
    ],
)
def test_error_is_one_json_object_and_an_exit_code(
    cli: Command, arguments: tuple[str, ...], code: int, word: str
) -> None:
    run = cli(*arguments, "--json")
    assert (run.code, run.error["code"], run.out) == (code, word, "")
    assert set(run.error) == {"code", "message"}
    plain = cli(*arguments)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err == f"memseal: {run.error['message']} ({word})\n"


def test_missing_vault_has_the_exit_code_of_the_caller(cli: Command, tmp_path: Path) -> None:
    run = cli("list", "--vault", str(tmp_path / "nowhere"), "--json")
    assert (run.code, run.error["code"]) == (3, "vault_missing")


def test_vault_open_elsewhere_is_for_the_user_to_close(cli: Command, vault: Path) -> None:
    with Vault.open(vault, PASSPHRASE, embedder=None):
        run = cli("remember", "x", "--json")
        reading = cli("list", "--json")
    assert (run.code, run.error["code"]) == (4, "vault_busy")
    assert reading.code == exits.DONE


def test_error_nobody_expected_tells_a_place_and_no_text(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the kettle is secret")

    monkeypatch.setattr("memseal.surfaces.cli.memories.show_list", fail)
    run = cli("list")
    assert run.code == exits.INTERNAL
    assert "RuntimeError at test_cli_memories.py:" in run.err
    assert "kettle" not in run.out + run.err
    assert "Traceback" not in run.err


def test_help_explains_every_exit_code(cli: Command) -> None:
    run = cli("--help", COLUMNS="200")
    for code, meaning in exits.EXPLAINED:
        assert f"{code:>4}  {meaning}" in run.out
    assert cli().out == cli("--help").out


def test_json_of_hostile_text_is_one_document_on_lines_of_its_own(cli: Command) -> None:
    remember(cli, "kettle \u2028 \x85 \x9b31m \x7f \U000e0041 雨")
    run = cli("list", "--json")
    assert len(run.out.splitlines()) == run.out.count("\n")
    assert "雨" in run.out
    assert json.loads(run.out)["memories"][0]["content"] == "kettle \u2028 \x85 \x9b31m \x7f \U000e0041 雨"


def test_tags_are_added_and_removed(cli: Command) -> None:
    memory = cli("remember", "The kettle is blue.", "--tag", "kitchen", "--tag", "old", "--json").document["memory"][
        "id"
    ]
    assert cli("tag", memory, "--add", "blue", "--remove", "old").out == f"tagged blue, kitchen: {memory}\n"
    assert cli("show", memory, "--json").document["memory"]["tags"] == ["blue", "kitchen"]
    assert cli("tag", memory, "--remove", "blue", "--remove", "kitchen").out == f"tagged with nothing: {memory}\n"
    assert cli("tag", memory).code == exits.USAGE


def test_version_may_have_another_type_and_keeps_what_is_not_given(cli: Command) -> None:
    old = cli("remember", "Boil the kettle first.", "--type", "procedural", "--tag", "tea", "--json").document["memory"]
    new = cli("supersede", old["id"], "The kettle is old.", "--type", "semantic", "--json").document["memory"]
    assert (old["type"], new["type"], new["tags"]) == ("procedural", "semantic", ["tea"])
    newer = cli("supersede", new["id"], "The kettle is new.", "--json").document["memory"]
    assert (newer["type"], newer["tags"]) == ("semantic", ["tea"])
