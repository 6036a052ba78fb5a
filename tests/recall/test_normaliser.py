"""What is asked without how it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.recall.normaliser import QuestionNormaliser


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What do I know about X?", "X"),
        ("what do we know about the boiler", "the boiler"),
        ("Please tell me about boats.", "boats"),
        ("Hey, can you tell me everything about Ann's dog?", "Ann's dog"),
        ("do you remember what Ann said?", "Ann said"),
        ("Remind me of the dentist", "the dentist"),
        ("search for tea", "tea"),
        ("What did I say about tea?", "tea"),
        ("find me", "me"),
        ("where is the key?", "where is the key"),
        ("tea", "tea"),
        ("tellme", "tellme"),
        ("What do I know about?", ""),
        ("", ""),
    ],
)
def test_preamble_of_a_question_is_stripped(question: str, expected: str) -> None:
    assert QuestionNormaliser().normalise(question) == expected


@given(st.text())
def test_what_is_left_is_a_part_of_the_question(text: str) -> None:
    assert QuestionNormaliser().normalise(text) in text
