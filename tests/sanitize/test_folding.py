import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.privacy.folding import fold, key_of


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("S\u200barah", "Sarah"),
        ("\u202eMargaret Davis\u202c", "Margaret Davis"),
        ("Ｓａｒａｈ", "Sarah"),
        ("Marу Tоrres", "Mary Torres"),
        ("Jose\u0301", "José"),
        ("Sarah\u00a0Chen", "Sarah Chen"),
        ("jo%40example.com", "jo@example.com"),
        ("jo&#64;example.com", "jo@example.com"),
        ("Marcus’s", "Marcus's"),
        ("Анна", "Анна"),
        ("100% sure & done", "100% sure & done"),
    ],
)
def test_text_is_folded_to_what_a_reader_sees(written: str, read: str) -> None:
    assert fold(written).text == read


@given(st.text(max_size=60))
def test_map_leads_back_to_the_characters_of_each_letter(text: str) -> None:
    folded = fold(text)
    for place, character in enumerate(folded.text):
        start, end = folded.original(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert character in fold(text[start:end]).text or len(text) > end - start


def test_spellings_of_one_name_have_one_key() -> None:
    assert len({key_of(name) for name in ("Sarah Chen", "SARAH  CHEN", "sarah\u00a0chen", "S\u200barah Chen")}) == 1
