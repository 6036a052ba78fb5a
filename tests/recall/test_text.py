"""The text that is embedded."""

from memseal.recall.text import index_text


def test_author_stands_before_the_content() -> None:
    assert index_text("I bought a bicycle.", "Ann") == "Ann: I bought a bicycle."


def test_content_stands_alone_without_an_author() -> None:
    assert index_text("I bought a bicycle.", None) == "I bought a bicycle."
