"""Text that was given out is known again."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memseal.memory.memory import Memory
from memseal.recall.given import without_given
from memseal.recall.rendering import pack

WRITTEN = datetime(2024, 3, 13, tzinfo=UTC)


def rendered(*contents: str) -> str:
    memories = [Memory(f"{number:032x}", text, "note", "chat", WRITTEN) for number, text in enumerate(contents)]
    return pack(memories, 100_000).text


@given(st.lists(st.text(min_size=1).filter(lambda text: not text.isspace()), min_size=1, max_size=4))
def test_no_memory_gets_out_of_the_frame_that_is_taken_out(contents: list[str]) -> None:
    assert without_given(f"before {rendered(*contents)} after").split() == ["before", "after"]


def test_entries_alone_are_taken_out_too() -> None:
    entry = rendered("I live in Oslo").splitlines()[2]
    assert without_given(f"see:\n{entry}\nand more").split() == ["see:", "and", "more"]


def test_frame_without_an_end_hides_all_that_follows() -> None:
    assert without_given("I live in Rome. <memories>\nI live in Oslo.").strip() == "I live in Rome."


def test_other_text_stays_as_it_is() -> None:
    text = "My memories of Rome are <b>good</b>; id 42]"
    assert without_given(text) == text
