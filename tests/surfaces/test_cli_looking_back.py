"""`memseal trace` and `memseal sql`."""

import json

from tests.surfaces.conftest import Command

UNKNOWN = "0" * 32


def test_what_was_recalled_is_told_afterwards(cli: Command) -> None:
    cli("remember", "The spare key is under the blue pot")
    recalled = cli("recall", "where is the spare key", "--prompt")
    listed = cli("trace", "--json")
    (trace,) = listed.document["traces"]
    assert (trace["surface"], trace["query"]) == ("recall", "where is the spare key")
    assert cli("trace", trace["id"], "--text").out == recalled.out
    told = cli("trace", trace["id"], "--json").document["trace"]
    assert told["text"] + "\n" == recalled.out
    assert told["is_exact"] is True
    assert told["candidates"][0]["content"] == "The spare key is under the blue pot"


def test_people_see_what_was_asked_given_out_and_passed_over(cli: Command) -> None:
    cli("remember", "The spare key is under the blue pot")
    cli("remember", "Another spare key hangs in the shed, behind the ladder and the old paint")
    cli("recall", "spare key", "--limit", "1")
    (trace,) = cli("trace", "--json").document["traces"]
    shown = cli("trace", trace["id"]).out
    for part in ("recall", "spare key", "blue pot", "Considered and not given out", "beyond the limit", "exact text"):
        assert part in shown
    assert trace["id"] in cli("trace").out


def test_traces_are_narrowed_by_memory_and_turn(cli: Command) -> None:
    kept = cli("remember", "The spare key is under the blue pot", "--json").document["memory"]["id"]
    cli("recall", "spare key")
    cli("recall", "dentist")
    assert len(cli("trace", "--json").document["traces"]) == 2
    assert len(cli("trace", "--memory", kept, "--json").document["traces"]) == 1
    assert cli("trace", "--turn", "none").out == "There are no such traces.\n"


def test_retention_is_set_and_removes_what_is_there(cli: Command) -> None:
    cli("remember", "x y z")
    cli("recall", "x")
    assert cli("trace", "--days", "7", "--json").document == {"kept": {"days": 7, "megabytes": 64}}
    assert len(cli("trace", "--json").document["traces"]) == 1
    assert "removed" in cli("trace", "--days", "0").out
    cli("recall", "x")
    assert cli("trace", "--json").document["traces"] == []


def test_unknown_trace_and_what_is_no_id_are_told_apart(cli: Command) -> None:
    run = cli("trace", UNKNOWN, "--json")
    assert (run.code, json.loads(run.err)["error"]["code"]) == (3, "trace_unknown")
    assert cli("trace", "short").code == 2
    assert cli("trace", "--memory", "short").code == 2
    assert cli("trace", "--text").code == 2


def test_sql_answers_in_lines_and_as_json(cli: Command) -> None:
    cli("remember", "The spare key\nis under the blue pot", "--tag", "house")
    statement = "SELECT content, tags, position FROM memories"
    assert cli("sql", statement).out == 'content\ttags\tposition\nThe spare key\\nis under the blue pot\t["house"]\t\n'
    assert cli("sql", statement, "--json").document == {
        "columns": ["content", "tags", "position"],
        "rows": [["The spare key\nis under the blue pot", '["house"]', None]],
        "truncated": False,
    }


def test_sql_says_whether_there_are_more_rows(cli: Command) -> None:
    run = cli("sql", "VALUES (1), (2), (x'ff')", "--limit", "2", "--json")
    assert (run.document["rows"], run.document["truncated"]) == ([[1], [2]], True)
    assert cli("sql", "SELECT x'ff' AS b", "--json").document["rows"] == [["ff"]]


def test_sql_that_changes_something_is_refused(cli: Command) -> None:
    run = cli("sql", "DROP TABLE memories", "--json")
    assert (run.code, json.loads(run.err)["error"]["code"]) == (3, "sql_refused")
