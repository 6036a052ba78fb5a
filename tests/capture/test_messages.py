"""Of a conversation only the user's own words are read."""

from typing import Any

import pytest

from memseal.capture.messages import Message, messages_of, own_words, sentences


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "developer"])
def test_other_roles_say_nothing_about_the_user(role: str) -> None:
    assert own_words(Message(role, "I live in Oslo.")) == ""


@pytest.mark.parametrize(
    "text",
    [
        "```\nI live in Oslo.\n```",
        "~~~ py\nI live in Oslo.",
        "> I live in Oslo.",
        "  > I live in Oslo.",
        "`I live in Oslo.`",
        'He wrote: "I live in Oslo these days."',
        "<memories>\nI live in Oslo.\n</memories>",
        f'- "I live in Oslo." [note; 2024-01-01; stated by "a"; id {"0" * 32}]',
    ],
)
def test_quotations_code_and_recalled_text_are_not_the_users_words(text: str) -> None:
    assert "Oslo" not in own_words(Message("user", f"Hello.\n{text}"))


def test_text_around_them_stays() -> None:
    text = "I cook.\n```\ncode\n```\nI bake.\n<memories>\nx\n</memories>\nI knit."
    assert [*sentences(own_words(Message("user", text)))] == ["I cook.", "I bake.", "I knit."]


def test_lists_and_lines_are_sentences_too() -> None:
    assert [*sentences("- I cook\n2. I bake\n\nI knit! I sew? Yes.")] == [
        "I cook",
        "I bake",
        "I knit!",
        "I sew?",
        "Yes.",
    ]


def test_abbreviation_ends_no_sentence() -> None:
    assert [*sentences("My doctor is Dr. Smith of St. Ives. I like her.")] == [
        "My doctor is Dr. Smith of St. Ives.",
        "I like her.",
    ]


def test_parts_of_a_message_are_read_and_others_passed_over() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    assert messages_of([{"role": "user", "content": parts}, {"role": "assistant", "content": None}]) == [
        Message("user", "one\ntwo"),
        Message("assistant", ""),
    ]


@pytest.mark.parametrize("message", [{}, {"role": "user", "content": 1}, {"role": "user", "content": "", "at": 5}])
def test_message_of_another_shape_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="message 0"):
        messages_of([message])
