import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.surfaces.display import is_unsafe, shortened, visible

TERMINAL = {
    "a colour": ("\x1b[31mred", r"\x1b[31mred"),
    "a title, C1": ("\x9d0;title\x9c", r"\x9d0;title\x9c"),
    "a backspace": ("safe\b\b\b\bevil", r"safe\x08\x08\x08\x08evil"),
    "NUL and DEL": ("\0\x7f", r"\x00\x7f"),
}
LINES = {
    "LF": ("a\nb", r"a\nb"),
    "CR": ("a\rb", r"a\rb"),
    "VT and FF": ("a\x0bb\x0cc", r"a\x0bb\x0cc"),
    "separators of ASCII": ("a\x1cb\x1dc\x1ed", r"a\x1cb\x1dc\x1ed"),
    "NEL": ("a\x85b", r"a\x85b"),
    "line separator": ("a\u2028b", r"a\u2028b"),
    "paragraph separator": ("a\u2029b", r"a\u2029b"),
}
DIRECTION = {
    "override": ("\u202etxt.exe", r"\u202etxt.exe"),
    "isolate": ("\u2066x\u2069", r"\u2066x\u2069"),
    "marks": ("\u200e\u200f\u061c", r"\u200e\u200f\u061c"),
}
HIDDEN = {
    "tag letters": ("hi\U000e0041", r"hi\U000e0041"),
    "zero width space": ("a\u200bb", r"a\u200bb"),
    "byte order mark": ("\ufeffa", r"\ufeffa"),
    "soft hyphen": ("a\xadb", r"a\xadb"),
    "lone surrogate": ("a\ud800", r"a\ud800"),
}
HOSTILE = TERMINAL | LINES | DIRECTION | HIDDEN


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=list(HOSTILE))
def test_what_could_draw_is_shown_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["Ünïcödé ÿ", "雨が降りそうですね", "שלום", "👩‍👩‍👧", "می‌خواهم", r"C:\new", "¡¿½"])
def test_text_of_people_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters(codec=None)))
def test_shown_text_is_one_line_of_characters_with_a_shape(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert not any(is_unsafe(character) for character in shown)
    assert all(unicodedata.category(character) != "Cc" for character in shown)


def test_long_source_is_cut_with_a_sign_that_it_was() -> None:
    assert shortened("x" * 81) == "x" * 79 + "…"
    assert shortened("x" * 80) == "x" * 80


def test_cut_counts_what_is_shown_and_not_what_is_stored() -> None:
    assert len(shortened("\x1b" * 79)) == 80
