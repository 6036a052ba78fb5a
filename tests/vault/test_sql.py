"""SQL over an open vault reads the documented tables, and nothing else."""

import re
from pathlib import Path

import pytest

from memseal import Vault
from memseal.errors import SqlLimit, SqlRefused, VaultClosed
from memseal.index.published import TABLES, Published
from tests.vault.small_vault import open_vault

SPEC = Path(__file__).parent.parent.parent / "format-spec" / "sql.md"
COUNT_FOR_EVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


def test_every_memory_is_a_row_whatever_its_state(vault: Vault) -> None:
    nuts = vault.remember("cashews", source="chat", kind="fact", tags=["health", "food"], author="Ada", origin="o")
    vault.retract(nuts.id, reason="never said")
    (row,) = vault.sql("SELECT * FROM memories").to_dicts()
    assert row["id"] == nuts.id
    assert (row["content"], row["kind"], row["author"], row["origin"]) == ("cashews", "fact", "Ada", "o")
    assert row["tags"] == '["food","health"]'
    assert row["state"] == "retracted"
    assert row["written_at"] == f"{nuts.written_at:%Y-%m-%dT%H:%M:%S.%f}Z"
    assert (row["captured_at"], row["has_vector"]) == (None, 0)


def test_removed_tags_and_the_same_again_add_nothing(vault: Vault) -> None:
    nuts = vault.remember("cashews", source="chat", tags=["a", "b"])
    vault.tag(nuts.id, remove=["a"])
    vault.remember("cashews", source="mail", tags=["c"])
    assert vault.sql("SELECT tags FROM memories").rows == (('["b","c"]',),)


def test_versions_are_counted_along_their_line(vault: Vault) -> None:
    first = vault.remember("Tuesday", source="chat")
    second = vault.supersede(first.id, "Friday", source="chat", reason="moved")
    third = vault.supersede(second.id, "Monday", source="chat")
    vault.remember("another", source="chat")
    rows = vault.sql(
        "SELECT id, version, state, superseded_by FROM versions"
        " WHERE root = (SELECT root FROM versions WHERE content = 'Friday') ORDER BY version"
    )
    assert rows.rows == (
        (first.id, 1, "superseded", second.id),
        (second.id, 2, "superseded", third.id),
        (third.id, 3, "active", None),
    )


def test_operations_are_the_audit_trail_in_its_order(vault: Vault) -> None:
    a = vault.remember("a thing", source="chat")
    b = vault.supersede(a.id, "another thing", source="chat", reason="moved")
    c = vault.remember("third", source="chat")
    vault.retract(c.id, reason="wrong")
    vault.restore(c.id, reason="right after all")
    vault.tag(c.id, add=["t"])
    vault.erase(b.id, reason="asked to")
    rows = vault.sql("SELECT op, target, reason FROM operations WHERE counter > 0 ORDER BY counter, position").rows
    assert rows == (
        ("remember", None, None),
        ("retract", c.id, "wrong"),
        ("restore", c.id, "right after all"),
        *(("erase", target, "asked to") for target in sorted((a.id, b.id))),
    )
    assert vault.sql("SELECT target, detail FROM operations WHERE op = 'tag'").rows == ((c.id, "t"),)


def test_audit_trail_is_the_same_where_it_was_read_anew(vault: Vault) -> None:
    gone = vault.remember("cashews", source="chat")
    vault.retract(gone.id, reason="never said")
    vault.erase(gone.id)
    trail = vault.sql("SELECT op, target FROM operations WHERE op <> 'setting' ORDER BY counter, position").rows
    assert trail == (("erase", gone.id),)  # as a device that reads the checkpoint has it, in which nothing else is left


def test_traces_say_what_the_model_saw_on_a_turn(vault: Vault) -> None:
    kept = vault.remember("cashews in the tin", source="chat")
    packet = vault.recall("cashews", turn="turn 17")
    vault.search("tin", turn="turn 18")
    rows = vault.sql(
        "SELECT t.id, t.text, t.status, m.content, g.place FROM traces t JOIN trace_memories g ON g.trace = t.id"
        " JOIN memories m ON m.id = g.memory WHERE t.turn = 'turn 17' AND g.served"
    )
    assert rows.rows == ((packet.trace_id, packet.text, "ok", kept.content, 1),)


def test_names_that_a_statement_gives_itself_and_functions_of_json_can_be_read(vault: Vault) -> None:
    vault.remember("cashews", source="chat", tags=["a", "b"])
    rows = vault.sql(
        "/* tags */ WITH memories AS (SELECT tags FROM main.memories) SELECT value FROM memories, json_each(tags);"
    )
    assert rows.rows == (("a",), ("b",))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM memories",
        "WITH x AS (SELECT 1) DELETE FROM memories",
        "WITH x AS (SELECT 1) INSERT INTO memories (id) SELECT 1 RETURNING id",
        "UPDATE memories SET content = ''",
        "DROP TABLE memories",
        "CREATE TABLE t (x)",
        "PRAGMA query_only = OFF",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM sqlite_dbpage",
        "ATTACH '/tmp/x' AS x",
        "VACUUM INTO '/tmp/x'",
        "BEGIN",
        "EXPLAIN SELECT 1",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE memories",
        "SELECT * FROM settings",
        "SELECT * FROM memories_text",
        "SELECT others FROM memories",
        "SELECT",
        "",
        "SELECT '\ud800'",
        "SELECT 1\0",
        "SELECT '" + "x" * 100_001 + "'",
    ],
)
def test_statement_that_does_not_only_read_the_documented_tables_is_refused(vault: Vault, statement: str) -> None:
    with pytest.raises((SqlRefused, SqlLimit)):
        vault.sql(statement)
    assert vault.sql("SELECT count(*) FROM memories").rows == ((0,),)


@pytest.mark.parametrize("function", ["fts3_tokenizer('simple')", "FTS3_Tokenizer('simple', x'00')", "fts5(NULL)"])
def test_function_that_tells_of_the_process_is_refused(vault: Vault, function: str) -> None:
    with pytest.raises(SqlRefused):
        vault.sql(f"SELECT {function}")


def test_statement_that_takes_too_long_is_broken_off(vault: Vault) -> None:
    with pytest.raises(SqlLimit, match="longer"):
        vault.sql(COUNT_FOR_EVER, seconds=0.01)


def test_value_that_is_too_large_is_refused(vault: Vault) -> None:
    with pytest.raises(SqlLimit, match="16 MiB"):
        vault.sql("SELECT zeroblob(100000000)")


def test_answer_that_is_too_large_is_refused(vault: Vault) -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 9)"
    with pytest.raises(SqlLimit, match="64 MiB"):
        vault.sql(f"{many} SELECT zeroblob(16000000) FROM c")  # noqa: S608 - our own text
    with pytest.raises(SqlRefused, match="columns"):
        vault.sql("SELECT " + ", ".join(["zeroblob(16000000)"] * 101))
    assert len(vault.sql(f"{many} SELECT zeroblob(4000000) FROM c").rows) == 9  # noqa: S608 - our own text


@pytest.mark.parametrize("value", ["content || CAST(x'ff' AS TEXT)", "json_extract('{}', content)", "json(content)"])
def test_error_quotes_no_row(vault: Vault, value: str) -> None:
    vault.remember("cashews", source="chat")
    with pytest.raises(SqlRefused) as refused:
        vault.sql(f"SELECT {value} FROM memories")  # noqa: S608 - our own text
    assert "cashews" not in str(refused.value)


def test_limit_says_whether_there_are_more(vault: Vault) -> None:
    vault.remember_many([{"content": f"number {number}", "source": "chat"} for number in range(5)])
    some = vault.sql("SELECT content FROM memories", limit=3)
    assert (len(some.rows), some.truncated) == (3, True)
    every = vault.sql("SELECT content FROM memories", limit=5)
    assert (len(every.rows), every.truncated) == (5, False)


@pytest.mark.parametrize("bounds", [{"limit": 0}, {"seconds": 0}, {"seconds": float("nan")}, {"limit": 10**9}])
def test_bounds_that_bound_nothing_are_refused(vault: Vault, bounds: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="number"):
        vault.sql("SELECT 1", **bounds)


def test_rows_show_no_text_in_their_repr_and_errors_no_row(vault: Vault) -> None:
    vault.remember("cashews are not JSON", source="chat")
    assert "cashews" not in repr(vault.sql("SELECT content FROM memories"))
    with pytest.raises(SqlRefused) as refused:
        vault.sql("SELECT json_extract(content, '$.a') FROM memories")
    assert "cashews" not in str(refused.value)


def test_its_tables_and_sorts_are_in_memory_alone() -> None:
    """A sort that is larger than the page cache would go to a temporary file."""
    published = Published("SELECT 1")
    connection = published._connection
    assert connection.execute("PRAGMA temp_store").fetchone() == (2,)
    assert [file for _, _, file in connection.execute("PRAGMA database_list")] == [""]


def test_it_needs_an_open_vault_and_no_right_to_write(vault: Vault) -> None:
    path = vault._opened.folder.path
    with open_vault(path, read_only=True) as reader:
        assert reader.sql("SELECT count(*) FROM memories").rows == ((0,),)
    with pytest.raises(VaultClosed):
        reader.sql("SELECT 1")


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_column_is_documented(table: str) -> None:
    """The specification has one row or more for each table: its name stands in the first, then nothing."""
    documented, current = list[str](), ""
    for line in SPEC.read_text(encoding="utf-8").partition("| table | column | value |")[2].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3:
            current = cells[0].strip("`") or current
            documented += re.findall(r"`(\w+)`", cells[1]) if current == table else []
    assert sorted(documented) == sorted(name.strip() for name in TABLES[table].columns.split(","))
