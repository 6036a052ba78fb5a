"""Which sentences are durable statements about their speaker."""

import pytest

from memseal.capture.facts import fact_in


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("I live in Oslo.", "fact"),
        ("By the way, I'm a nurse.", "fact"),
        ("We have two cats.", "fact"),
        ("My sister lives in Bern.", "fact"),
        ("Please call me Sam.", "fact"),
        ("I prefer tea to coffee.", "preference"),
        ("I can\u2019t stand loud music.", "preference"),
        ("My favourite colour is green.", "preference"),
        ("I've decided to learn Greek.", "decision"),
        ("I'm allergic to nuts.", "hazard"),
        ("Remember that the bins go out on Monday.", "note"),
        ("Ich wohne in Bergen.", "fact"),
        ("Je vis à Lyon.", "fact"),
        ("Vivo en Madrid.", "fact"),
        ("Me gusta el té.", "preference"),
    ],
)
def test_durable_statement_is_found_with_its_kind(sentence: str, kind: str) -> None:
    found = fact_in(sentence)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "sentence",
    [
        "Do I live in Oslo?",
        "I am tired.",
        "I'm trying to fix this.",
        "I have a question.",
        "I like that idea.",
        "I need help with my essay.",
        "I think it is broken.",
        "If I lived in Oslo, I'd ski.",
        "I might move to Oslo.",
        "I work from home today.",
        "My code has a bug.",
        "My question is simple.",
        "She lives in Oslo.",
        "Oslo is the capital of Norway.",
        "Pretend I live on Mars.",
        "Thanks!",
        "I cook",
        "I live " + "and live " * 30,
    ],
)
def test_question_mood_wish_and_talk_are_none(sentence: str) -> None:
    assert fact_in(sentence) is None


def test_opening_words_are_no_part_of_the_statement() -> None:
    found = fact_in("Oh, by the way, remember that I live in Oslo.")
    assert found is not None
    assert found.text == "I live in Oslo."
