"""Reading files to import: JSON Lines and LoCoMo."""

import json
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import DiskError, ImportRowError
from memseal.surfaces.importing.items import ImportItem
from memseal.surfaces.importing.jsonl import read_jsonl
from memseal.surfaces.importing.locomo import read_locomo
from memseal.surfaces.importing.opening import open_import

DIARY = Path(__file__).parents[2] / "examples" / "data"
LONE_SURROGATE = "\\ud83d"  # as JSON escapes it
SECRET = "Ottoline hides the spare key under the third flowerpot"


def row(**fields: object) -> str:
    return json.dumps({"content": "The kettle is descaled on Fridays.", **fields}, ensure_ascii=False) + "\n"


def read(*lines: str) -> list[ImportItem]:
    return list(read_jsonl(lines, "notes"))


def refusal(line: str) -> str:
    with pytest.raises(ImportRowError) as caught:
        read(line)
    return caught.value.reason


def sample(**conversation: object) -> dict[str, object]:
    return {
        "sample_id": "conv-7",
        "conversation": {"speaker_a": "Ottoline", "speaker_b": "Fitch", **conversation},
    }


def turn(dia_id: str, text: object, **fields: object) -> dict[str, object]:
    return {"speaker": "Ottoline", "dia_id": dia_id, "text": text} | fields


def locomo(document: object) -> list[ImportItem]:
    return list(read_locomo(document, "talks"))


# ── JSON Lines: what is read ────────────────────────────────────────────────────────────────────────


def test_every_field_of_a_row_reaches_its_keyword() -> None:
    line = row(
        id="n-1",
        source="app:kitchen",
        kind="fact",
        tags=["tea", "żurek"],
        author="Ottoline",
        thread="kitchen",
        position=3,
        captured_at="2024-03-05T07:30:00+02:00",
    )
    assert read(line) == [
        {
            "content": "The kettle is descaled on Fridays.",
            "source": "app:kitchen",
            "kind": "fact",
            "tags": ["tea", "żurek"],
            "author": "Ottoline",
            "thread": "kitchen",
            "position": 3,
            "captured_at": datetime(2024, 3, 5, 5, 30, tzinfo=UTC),
            "origin": "jsonl:notes/n-1",
        }
    ]


LABELS = ["id", "source", "kind", "author", "thread"]


@pytest.mark.parametrize(
    "absent",
    [
        {},
        dict.fromkeys([*LABELS, "tags", "position", "captured_at"]),
        dict.fromkeys(LABELS, "") | {"tags": []},
    ],
    ids=["missing", "null", "empty"],
)
def test_absent_fields_get_their_defaults(absent: dict[str, object]) -> None:
    [item] = read(row(**absent))
    assert (item["source"], item["kind"], item["tags"]) == ("import:notes", "note", [])
    assert [item["author"], item["thread"], item["position"], item["captured_at"]] == [None] * 4
    assert item["origin"].startswith("jsonl:notes/sha256-")


def test_blank_lines_are_passed_over_but_counted_for_errors() -> None:
    errors: list[ImportRowError] = []
    lines = [row(id=1), "\n", "  \r\n", "no JSON\n", row(id=2)]
    items = list(read_jsonl(lines, "notes", on_error=errors.append))
    assert [item["origin"] for item in items] == ["jsonl:notes/1", "jsonl:notes/2"]
    assert [error.line for error in errors] == [4]


def test_byte_order_mark_and_crlf_are_no_part_of_a_row() -> None:
    [first, second] = read("\ufeff" + row(id="a"), row(id="b").replace("\n", "\r\n"))
    assert (first["origin"], second["origin"]) == ("jsonl:notes/a", "jsonl:notes/b")


def test_content_is_kept_to_the_last_space() -> None:
    [item] = read(row(content="  two spaces, a tab\t, a\nbreak \u2028 and 日本語 "))
    assert item["content"] == "  two spaces, a tab\t, a\nbreak \u2028 and 日本語 "


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2024-03-05T07:30:00Z", datetime(2024, 3, 5, 7, 30, tzinfo=UTC)),
        ("2024-03-05T07:30:00-05:00", datetime(2024, 3, 5, 12, 30, tzinfo=UTC)),
        ("2024-03-05T07:30:00.000001", datetime(2024, 3, 5, 7, 30, 0, 1, tzinfo=UTC)),
        ("2024-03-05", datetime(2024, 3, 5, tzinfo=UTC)),
        (1_709_623_800, datetime(2024, 3, 5, 7, 30, tzinfo=UTC)),
        (1_709_623_800.5, datetime(2024, 3, 5, 7, 30, 0, 500_000, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_time_without_an_offset_and_a_number_are_utc(written: object, meant: datetime) -> None:
    [item] = read(row(captured_at=written))
    assert item["captured_at"] is not None
    assert (item["captured_at"], item["captured_at"].tzinfo) == (meant, UTC)


def test_unknown_fields_are_left_out_and_counted() -> None:
    unknown: Counter[str] = Counter()
    lines = [row(mood="calm", weather=None), row(mood="brisk"), row(**{"\x1b[2J": 1})]
    items = list(read_jsonl(lines, "notes", unknown_fields=unknown))
    assert unknown == {"mood": 2, "weather": 1, "(unprintable)": 1}
    assert all("mood" not in item for item in items)


# ── JSON Lines: origin ──────────────────────────────────────────────────────────────────────────────


def test_rows_without_an_id_are_named_by_what_they_say() -> None:
    first, second, other = read(
        '{"content": "Żółw", "captured_at": "2024-03-05T07:30:00Z"}',
        '{"captured_at":"2024-03-05T09:30+02:00","content":"\\u017b\\u00f3\\u0142w", "seen": 9}',
        '{"content": "Żółw"}',
    )
    assert first["origin"] == second["origin"]
    assert other["origin"] != first["origin"]


def test_digest_of_a_row_without_an_id_stays_the_same_in_later_versions() -> None:
    [item] = read('{"content": "The kettle is descaled on Fridays.", "captured_at": 0}')
    assert item["origin"] == "jsonl:notes/sha256-25446a5f7fb4a1c35459736fb411e020"


# ── JSON Lines: what is refused ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "the row is not valid JSON"),
        ('{"content": "a", "position": NaN}', "the row is not valid JSON"),
        ('{"content": "a", "position": ' + "9" * 5000 + "}", "the row is not valid JSON"),
        ('{"content": "a", "extra": ' + "[" * 200_000 + "}", "the row is not valid JSON"),
        ('["content"]', "the row is not a JSON object"),
        ('"content"', "the row is not a JSON object"),
        ("{}", "content is missing"),
        (row(content=None), "content is missing"),
        (row(id=1.5), "id is neither a text nor an integer"),
        (row(id=True), "id is neither a text nor an integer"),
        (row(tags="tea"), "tags is not a list"),
        (row(captured_at=True), "captured_at is neither a text nor a number"),
        (row(captured_at=[2024]), "captured_at is neither a text nor a number"),
        (row(captured_at=""), "captured_at is not a time in ISO 8601"),
        (row(captured_at="yesterday"), "captured_at is not a time in ISO 8601"),
        (row(captured_at="2024-02-30"), "captured_at is not a time in ISO 8601"),
    ],
)
def test_a_bad_row_is_refused_with_its_reason(line: str, reason: str) -> None:
    assert refusal(line) == reason


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (row(content=""), "content"),
        (row(content=" \n\u3000"), "content"),
        (row(content=7), "content"),
        (f'{{"content": "{LONE_SURROGATE}"}}', "content"),
        (f'{{"content": "a", "tags": ["{LONE_SURROGATE}"]}}', "tag"),
        (f'{{"content": "a", "id": "{LONE_SURROGATE}"}}', "origin"),
        (row(tags=["tea", None]), "tag"),
        (row(tags=["tea", " "]), "tag"),
        (row(author=["Ottoline"]), "author"),
        (row(author=False), "author"),
        (row(thread=1), "thread"),
        (row(source=True), "source"),
        (row(kind="rumour"), "kind"),
        (row(kind=["fact"]), "kind"),
        (row(position="3"), "position"),
        (row(position=3.0), "position"),
        (row(position=True), "position"),
        (row(position=2**63), "position"),
    ],
)
def test_what_no_vault_would_take_is_refused_by_the_name_of_its_field(line: str, field: str) -> None:
    assert refusal(line).split()[0] == field


@pytest.mark.parametrize("written", [1_709_623_800_000, 1e300, 10**400, "0001-01-01T00:00+05:00"])
def test_milliseconds_and_other_times_out_of_range_are_refused_not_guessed(written: object) -> None:
    assert refusal(row(captured_at=written)) == (
        "captured_at is outside the years 1 to 9999 (a number is seconds since 1970)"
    )


def test_infinity_written_as_a_large_number_is_refused() -> None:
    assert "outside the years" in refusal('{"content": "a", "captured_at": 1e999}')


def test_rows_before_a_bad_one_are_given_out_first() -> None:
    items = read_jsonl([row(id=1), "{"], "notes")
    assert next(items)["origin"] == "jsonl:notes/1"
    with pytest.raises(ImportRowError) as caught:
        next(items)
    assert (caught.value.line, caught.value.code) == (2, "import_row")


@pytest.mark.parametrize(
    "line",
    [
        f'{{"content": "{SECRET}"',
        row(content=SECRET, kind=SECRET),
        row(content=SECRET, captured_at=SECRET),
        row(content=SECRET, position=SECRET),
        json.dumps(SECRET),
    ],
)
def test_an_error_holds_no_text_of_its_row(line: str) -> None:
    with pytest.raises(ImportRowError) as caught:
        read(line)
    error = caught.value
    assert SECRET not in f"{error!r} {error} {error.__dict__}"
    assert (error.__cause__, error.__context__) == (None, None)


@given(st.text().filter(lambda text: text.strip() != ""))
def test_any_text_comes_back_as_it_was_written(text: str) -> None:
    escaped, plain = read(json.dumps({"content": text}), json.dumps({"content": text}, ensure_ascii=False))
    assert escaped["content"] == plain["content"] == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
row_fields = st.sampled_from(["id", "content", "kind", "tags", "author", "thread", "position", "captured_at", "x"])


@given(st.dictionaries(row_fields, json_values).map(json.dumps) | st.text(st.characters(exclude_categories=())))
def test_any_line_is_an_item_or_a_row_error(line: str) -> None:
    errors: list[ImportRowError] = []
    items = list(read_jsonl([line], "notes", on_error=errors.append))
    assert len(items) + len(errors) == bool(line.strip("\ufeff \t\r\n"))
    for item in items:
        json.dumps({**item, "captured_at": None}, ensure_ascii=False).encode("utf-8")


# ── LoCoMo ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_becomes_one_memory_in_its_place() -> None:
    document = [
        sample(
            session_1_date_time="9:05 am on 3 June, 2024",
            session_1=[turn("D1:1", "The heron is back."), turn("D1:2", "Feed it nothing.", speaker="Fitch")],
        )
    ]
    assert locomo(document)[1] == {
        "content": "Feed it nothing.",
        "source": "import:talks",
        "kind": "episode",
        "tags": [],
        "author": "Fitch",
        "thread": "conv-7/session_1",
        "position": 2,
        "captured_at": datetime(2024, 6, 3, 9, 5, 2, tzinfo=UTC),
        "origin": "locomo:conv-7/D1:2",
    }


def test_sessions_are_read_by_number_not_by_their_spelling() -> None:
    document = sample(session_10=[turn("D10:1", "Last.")], session_2=[turn("D2:1", "Second.")])
    assert [item["content"] for item in locomo(document)] == ["Second.", "Last."]


@pytest.mark.parametrize(
    ("written", "hour"),
    [("12:00 am on 3 June, 2024", 0), ("12:00 pm on 3 June, 2024", 12), ("1:00 PM on 3 JUNE, 2024", 13)],
)
def test_midnight_and_noon_are_told_apart(written: str, hour: int) -> None:
    [item] = locomo(sample(session_1_date_time=written, session_1=[turn("D1:1", "Hush.")]))
    assert item["captured_at"] == datetime(2024, 6, 3, hour, 0, 1, tzinfo=UTC)


def test_a_session_without_a_time_is_kept_without_one() -> None:
    [item] = locomo(sample(session_1=[turn("D1:1", "Hush.")]))
    assert item["captured_at"] is None


@pytest.mark.parametrize(
    ("text", "caption", "content"),
    [
        ("Look!", "a photo of a heron on a roof", "Look! [shared a photo of a heron on a roof]"),
        ("Look!", "two herons", "Look! [shared a photo of two herons]"),
        ("", "two herons", "[shared a photo of two herons]"),
        ("Look!", "", "Look!"),
    ],
)
def test_a_photo_caption_follows_the_text(text: str, caption: str, content: str) -> None:
    [item] = locomo(sample(session_1=[turn("D1:1", text, blip_caption=caption)]))
    assert item["content"] == content


def test_fields_of_a_turn_that_are_not_read_are_counted() -> None:
    unknown: Counter[str] = Counter()
    document = sample(session_1=[turn("D1:1", "Look!", img_url=[], query="heron"), turn("D1:2", "Yes.", query="")])
    list(read_locomo(document, "talks", unknown_fields=unknown))
    assert unknown == {"query": 2, "img_url": 1}


def test_a_turn_or_sample_without_an_id_is_named_by_its_place() -> None:
    conversation = {"session_3": [{"speaker": "Fitch", "text": "Quite."}]}
    [item] = locomo([{"conversation": conversation}])
    assert (item["origin"], item["thread"]) == ("locomo:talks-1/D3:1", "talks-1/session_3")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (sample(session_1=["Look!"]), "the turn is not a JSON object"),
        (sample(session_1=turn("D1:1", "Look!")), "the turn is not a JSON object"),
        (sample(session_1=[turn("D1:1", None)]), "content is missing"),
        (sample(session_1=[turn("D1:1", 4, blip_caption="a heron")]), "text or blip_caption is not a text"),
        (sample(session_1=[turn("D1:1", "Look!", blip_caption=4)]), "text or blip_caption is not a text"),
        ({"sample_id": "conv-7"}, "the sample has no conversation"),
        ("conversation", "the sample has no conversation"),
    ],
)
def test_a_bad_turn_is_refused_with_its_reason(document: object, reason: str) -> None:
    with pytest.raises(ImportRowError) as caught:
        locomo(document)
    assert (caught.value.line, caught.value.reason) == (1, reason)


@pytest.mark.parametrize(
    ("bad_turn", "field"),
    [
        (turn("D1:1", " "), "content"),
        (turn("D1:1", 4), "content"),
        (turn("D1:1", "\ud83d"), "content"),
        (turn("D1:1", "Look!", speaker=4), "author"),
        (turn("\ud83d", "Look!"), "origin"),
    ],
)
def test_a_turn_no_vault_would_take_is_refused(bad_turn: dict[str, object], field: str) -> None:
    with pytest.raises(ImportRowError, match=f"line 1: {field} "):
        locomo(sample(session_1=[bad_turn]))


@pytest.mark.parametrize(
    "written",
    [
        "3 June 2024",
        "13:00 pm on 3 June, 2024",
        "1:60 pm on 3 June, 2024",
        "1:00 pm on 31 June, 2024",
        "1:00 pm on 3 Juin, 2024",
    ],
)
def test_a_session_time_of_another_form_is_refused(written: str) -> None:
    with pytest.raises(ImportRowError, match="session_1_date_time is not a time like"):
        locomo(sample(session_1_date_time=written, session_1=[turn("D1:1", "Hush.")]))


def test_a_skipped_turn_moves_no_other() -> None:
    errors: list[ImportRowError] = []
    document = [sample(session_1=[turn("D1:1", "One."), turn("D1:2", ""), turn("D1:3", "Three.")]), 5]
    items = list(read_locomo(document, "talks", on_error=errors.append))
    assert [item["position"] for item in items] == [1, 3]
    assert [error.line for error in errors] == [2, 4]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


ONE_SAMPLE: dict[str, Any] = sample(session_1=[turn("D1:1", "Look!"), turn("D1:2", "")])


@pytest.mark.parametrize("name", ["talks.json", "talks", "talks.txt"])
@pytest.mark.parametrize("document", [ONE_SAMPLE, [ONE_SAMPLE]], ids=["sample", "list"])
@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "many lines"])
def test_a_locomo_document_is_known_by_its_content(
    tmp_path: Path, name: str, document: object, indent: int | None
) -> None:
    path = saved(tmp_path, name, "\ufeff" + json.dumps(document, indent=indent))
    errors: list[ImportRowError] = []
    format_name, items, total = open_import(path, on_error=errors.append)
    assert (format_name, total, [item["origin"] for item in items]) == ("locomo", 2, ["locomo:conv-7/D1:1"])
    assert [error.line for error in errors] == [2]


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.NDJSON", "notes.json", "notes"])
def test_json_lines_are_known_by_name_or_content(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, name, b"\xef\xbb\xbf\r\n" + row(id=1).encode() + b"\r\n" + row(id=2).encode())
    format_name, items, total = open_import(path)
    assert (format_name, total) == ("jsonl", 2)
    assert [item["origin"] for item in items] == ["jsonl:notes/1", "jsonl:notes/2"]


def test_json_lines_with_a_broken_first_row_are_still_json_lines(tmp_path: Path) -> None:
    errors: list[ImportRowError] = []
    path = saved(tmp_path, "notes.jsonl", "{\n" + row(id=2))
    _, items, total = open_import(path, on_error=errors.append)
    assert ([item["origin"] for item in items], total) == (["jsonl:notes/2"], 2)
    assert [error.line for error in errors] == [1]


def test_bytes_that_are_not_utf_8_spoil_only_their_row(tmp_path: Path) -> None:
    errors: list[ImportRowError] = []
    latin_1 = row(content="Crème brûlée").encode("latin-1")
    path = saved(tmp_path, "notes.jsonl", row(id=1).encode() + latin_1 + row(id=3).encode())
    _, items, _ = open_import(path, on_error=errors.append)
    assert [item["origin"] for item in items] == ["jsonl:notes/1", "jsonl:notes/3"]
    assert [(error.line, error.reason) for error in errors] == [(2, "the row is not valid UTF-8")]


def test_json_lines_are_never_held_whole(tmp_path: Path) -> None:
    path = saved(tmp_path, "notes.jsonl", row(content="tea " * 500) * 2_000)
    tracemalloc.start()
    _, items, _ = open_import(path)
    read_in_full = sum(1 for _ in items)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read_in_full == 2_000
    assert peak_bytes < path.stat().st_size / 10


def test_an_empty_file_holds_no_rows(tmp_path: Path) -> None:
    format_name, items, total = open_import(saved(tmp_path, "notes.json", b"\n\n"))
    assert (format_name, list(items), total) == ("jsonl", [], 0)


@pytest.mark.parametrize("content", [b"Dear diary,\n", b"[1, 2]", b'{\n"conversation"', b"\x89PNG\r\n\x1a\n\x00"])
def test_a_file_of_another_format_is_refused_on_opening(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ImportRowError, match="none of what can be imported"):
        open_import(saved(tmp_path, "notes.txt", content))


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_file_that_cannot_be_read_is_a_disk_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DiskError):
        open_import(tmp_path / name)


# ── the diary in examples/data ──────────────────────────────────────────────────────────────────────


def diary() -> list[ImportItem]:
    return list(open_import(DIARY / "diary.jsonl")[1])


def test_the_diary_is_read_whole_and_in_order() -> None:
    unknown: Counter[str] = Counter()
    _, items, total = open_import(DIARY / "diary.jsonl", unknown_fields=unknown)
    entries = list(items)
    times = [entry["captured_at"] for entry in entries if entry["captured_at"] is not None]
    assert (len(entries), total, unknown) == (166, 166, {})
    assert times == sorted(set(times))
    assert len(times) == len({entry["origin"] for entry in entries}) == 166


def test_positions_in_the_diary_count_each_thread_from_one() -> None:
    seen: Counter[str] = Counter()
    for entry in diary():
        seen.update([entry["thread"]] if entry["thread"] is not None else [])
        assert entry["position"] == (None if entry["thread"] is None else seen[entry["thread"]])


def test_each_sentence_of_the_readme_stands_once_in_the_diary() -> None:
    stored = (DIARY / "diary.jsonl").read_text(encoding="utf-8")
    sentences = (DIARY / "README.md").read_text(encoding="utf-8").split("```")[1].strip().splitlines()
    assert [stored.count(sentence) for sentence in sentences] == [1] * 10
