"""What type of memory a text is (memory-model §1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.memory.types import TYPES, type_of

EXAMPLES = {
    "persona": [
        "I usually drink coffee before the first meeting",
        "We love hiking in the rain",
        "My favourite colour is green",
        "I call my mother every Sunday",
        "I always forgot my keys last year",
    ],
    "episodic": [
        "Yesterday I went to the dentist",
        "We met Sam last Friday",
        "I moved to Rome in 2019",
        "Two days ago my bike broke down",
        "My flight is on 2024-05-08",
        "I’m at the lake today",
    ],
    "procedural": [
        "First preheat the oven, then put the bread in",
        "Step 2: close the valve",
        "How to reset the router: hold the button",
        "1. open the lid\n2. pull the lever",
        "Firstly grind the beans. After that pour the water",
    ],
    "semantic": [
        "The spare key is under the blue pot",
        "Ada lives in Berlin",
        "I live in Berlin",
        "Paris was founded before 1900",
        "I'd like a window seat",
        "The first floor is empty",
        "You may march in",
    ],
}


@pytest.mark.parametrize(("expected", "text"), [(name, text) for name, texts in EXAMPLES.items() for text in texts])
def test_type_by_rules(expected: str, text: str) -> None:
    assert type_of(text) == expected


@pytest.mark.parametrize("text", ["ｙｅｓｔｅｒｄａｙ ｗｅ ｍｅｔ", "YESTERDAY WE MET", "yesterday,we met"])
def test_writing_does_not_matter(text: str) -> None:
    assert type_of(text) == "episodic"


@pytest.mark.parametrize("text", ["昨日は雨でした", "Вчера я ходил к врачу", "أمس", "😀", "\u0301", "", "\0"])
def test_other_languages_are_semantic(text: str) -> None:
    assert type_of(text) == "semantic"


def test_only_the_beginning_of_a_document_is_read() -> None:
    assert type_of("x " * 2_000 + "I always do") == "semantic"


@given(st.text())
def test_every_text_has_one_type_and_keeps_it(text: str) -> None:
    assert type_of(text) in TYPES
    assert type_of(text) == type_of(text.upper().lower()) or not text.isascii()
