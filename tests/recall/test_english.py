"""Which texts pass for English."""

import pytest

from memseal.recall.english import FOREIGN, is_english
from memseal.recall.query import parse_query
from memseal.recall.stopwords import STOP_WORDS


@pytest.mark.parametrize(
    "text",
    [
        "Where is the spare key?",
        "tea",
        "4711",
        "Kubernetes ingress nginx config",
        "Who wrote Das Boot and where is it?",
        "I met José and Zoë at the café",
        "José's birthday",
        "the war of the worlds, a son and a van",
        "great 😀",
        "my iPhone 手机 is broken",
        "Die Hard is the film that he likes",
    ],
)
def test_english_text_is_english(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wo ist der Schlüssel?",
        "Rezept für Linsensuppe",
        "Où est la clé ?",
        "¿Dónde está la llave?",
        "Onde está a chave?",
        "Dove è il gatto della nonna?",
        "Waar is het huis van mijn oma?",
        "Gdzie jest mój klucz?",
        "Chìa khóa của tôi ở đâu?",
        "где ключ",
        "钥匙在哪里",
        "我的iPhone坏了吗现在",
        "กุญแจอยู่ที่ไหน",
        "مفتاح",
        "😀",
        "",
    ],
)
def test_text_of_another_language_is_not(text: str) -> None:
    assert not is_english(text)


def test_small_words_of_a_language_are_no_terms_of_a_query_in_it() -> None:
    assert parse_query("Wo ist der Schlüssel?").terms == ("schlüssel",)
    assert parse_query("Où est la clé de la voiture ?").terms == ("clé", "voiture")
    assert not parse_query("wo ist das und wer bin ich").searchable


def test_small_words_of_other_languages_are_terms_of_an_english_query() -> None:
    assert parse_query("Who wants to die in the film?").terms == ("wants", "die", "film")
    assert "hat" in parse_query("Where is my hat?").terms


def test_no_small_english_word_of_more_than_two_letters_is_foreign() -> None:
    assert {word for word in FOREIGN & STOP_WORDS if len(word) > 2} == set()


def test_small_word_of_another_language_alone_is_a_term() -> None:
    assert parse_query("ma").terms == ("ma",)
    assert parse_query("die Brücke").terms == ("die", "brücke")
