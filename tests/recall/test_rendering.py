"""What a model is given: within the budget, in a frame that holds, the same for the same memories."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.memory.memory import Memory, State
from memseal.recall.rendering import CLOSING, LEAST_CHARS, OPENING, Entry, pack, render
from tests.recall.test_quoting import HOSTILE, assert_harmless

NOON = datetime(2024, 3, 13, 12, tzinfo=UTC)
FRAME = len(OPENING + CLOSING)
_FACTS = re.compile(
    r"(?:\d+ characters cut; )?(?:(?:superseded|retracted|superseded and retracted); )?(?P<kind>\w+); "
    r"(?:written )?\d{4}-\d\d-\d\d; (?:stated by|imported from) (?P<source>\".*?(?<!\\)(?:\\\\)*\")"
    r"(?:; author (?P<author>\".*?(?<!\\)(?:\\\\)*\"))?; id (?P<id>[0-9a-f]{32})"
)


def memory(number: int, content: str, source: str = "chat", author: str | None = None) -> Memory:
    return Memory(f"{number:032x}", content, "note", source, NOON, NOON + timedelta(days=number), author=author)


def read(text: str) -> list[tuple[str, str, str | None, str]]:
    """Read a rendered text back, strictly: content, source, author and id of each memory."""
    assert text.startswith(OPENING)
    assert text.endswith(f"\n{CLOSING}")
    lines = text.removeprefix(OPENING).removesuffix(CLOSING).splitlines()
    assert len(lines) == text.count("\n") - OPENING.count("\n")
    found: list[tuple[str, str, str | None, str]] = []
    for line in lines:
        content, end = json.JSONDecoder().raw_decode(line, 2)
        assert line.startswith("- ")
        assert_harmless(line[2:end])
        facts = _FACTS.fullmatch(line[end:].removeprefix(" [").removesuffix("]"))
        assert facts is not None, line
        found.append(
            (content, json.loads(facts["source"]), facts["author"] and json.loads(facts["author"]), facts["id"])
        )
    return found


texts = st.text(min_size=1) | st.lists(st.sampled_from(list(HOSTILE.values())), min_size=1, max_size=3).map("".join)


@given(st.lists(st.tuples(texts, texts, st.none() | texts), max_size=6))
def test_no_memory_can_forge_another_or_leave_the_frame(fields: list[tuple[str, str, str | None]]) -> None:
    memories = [memory(number, *each) for number, each in enumerate(fields)]
    packed = pack(memories, 10**9)
    if not memories:
        assert packed.text == ""
        return
    assert [(row[0], row[3]) for row in read(packed.text)] == [(each.content, each.id) for each in memories]


@given(st.lists(texts, max_size=6), st.integers(0, 1_500))
def test_text_is_never_longer_than_the_budget(contents: list[str], budget: int) -> None:
    packed = pack([memory(number, content) for number, content in enumerate(contents)], budget)
    assert len(packed.text) <= budget
    assert bool(packed.text) == bool(packed.entries)


@given(st.lists(texts, max_size=4), st.integers(0, 300))
def test_text_is_never_longer_than_the_budget_of_a_callers_count(contents: list[str], budget: int) -> None:
    def tokens(text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    packed = pack([memory(number, content) for number, content in enumerate(contents)], budget, tokens)
    assert tokens(packed.text) <= budget


def test_count_that_is_not_monotone_still_keeps_the_budget() -> None:
    def odd(text: str) -> int:
        return len(text) if len(text) % 2 else 2 * len(text)

    for budget in range(0, 2_000, 37):
        assert odd(pack([memory(1, "tea " * 100), memory(2, "x")], budget, odd).text) <= budget


def test_best_memories_are_packed_first_and_a_smaller_one_fills_the_room() -> None:
    first, long, small = memory(3, "first"), memory(2, "long " * 100), memory(1, "small")
    whole = len(render([Entry(first, 5), Entry(small, 5)]))
    packed = pack([first, long, small], whole)
    assert [entry.memory for entry in packed.entries] == [first, small]
    assert len(packed.text) == whole
    assert [entry.memory for entry in pack([first, long, small], whole - 1).entries] == [first]


def test_memory_over_the_whole_budget_is_cut_and_says_so() -> None:
    packed = pack([memory(1, "word " * 500)], FRAME + 200)
    (entry,) = packed.entries
    assert entry.truncated
    assert FRAME + 190 < len(packed.text) <= FRAME + 200
    (row,) = read(packed.text)
    assert row[0] == ("word " * 500)[: entry.chars]
    assert f"[{2_500 - entry.chars} characters cut; note" in packed.text


def test_only_the_first_memory_is_cut() -> None:
    packed = pack([memory(1, "tea"), memory(2, "word " * 500)], FRAME + 300)
    assert [(entry.memory.content, entry.truncated) for entry in packed.entries] == [("tea", False)]


def test_next_to_nothing_of_a_memory_is_not_shown() -> None:
    longest = "x" * 10_000
    least = len(render([Entry(memory(1, longest), LEAST_CHARS)]))
    assert pack([memory(1, longest)], least).entries[0].chars == LEAST_CHARS
    assert pack([memory(1, longest)], least - 1) == ("", ())


def test_budget_without_room_for_the_frame_gives_no_text() -> None:
    assert pack([memory(1, "tea")], FRAME) == ("", ())
    assert pack([], 10_000) == ("", ())


def test_injecting_memories_at_the_tail_keeps_the_prompt_cache_text_is_the_same_for_the_same_set() -> None:
    memories = [memory(number, f"tea {number}") for number in range(5)]
    assert pack(memories, 10_000).text == pack(memories[::-1], 10_000).text


def test_memories_stand_in_the_order_in_which_they_happened() -> None:
    text = pack([memory(2, "later"), memory(1, "earlier")], 10_000).text
    assert text.index("earlier") < text.index("later")


@pytest.mark.parametrize(
    ("state", "word"),
    [(State.SUPERSEDED, "superseded"), (State.RETRACTED, "retracted"), (State.BOTH, "superseded and retracted")],
)
def test_state_that_is_not_active_is_said(state: State, word: str) -> None:
    assert f'"tea" [{word}; note; 2024-03-14;' in pack([replace(memory(1, "tea"), state=state)], 10_000).text


def test_time_of_writing_stands_where_nobody_said_when_it_was() -> None:
    assert "[note; written 2024-03-13;" in pack([replace(memory(1, "tea"), captured_at=None)], 10_000).text


def test_imported_memory_does_not_pass_for_one_that_was_stated_here() -> None:
    imported = replace(memory(1, "tea"), origin="mem0:1")
    assert 'imported from "chat"' in pack([imported], 10_000).text
    assert 'stated by "chat"' in pack([memory(1, "tea")], 10_000).text


def test_long_source_is_shortened() -> None:
    (row,) = read(pack([memory(1, "tea", "https://example.com/" + "x" * 100)], 10_000).text)
    assert len(row[1]) == 80
    assert row[1].endswith("…")
