"""Words in every script: what is stored and what is asked are split alike."""

import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.index.lexical import TOKENIZER
from memseal.recall.words import asked, indexed, split


def words(text: str) -> list[str]:
    return list(split(text))


def finds(query: str, stored: str) -> int:
    """How many of the words that SQLite's tokenizer makes of a query it also makes of a stored text."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = "{TOKENIZER}")')
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance)")
        connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(1, indexed(stored)), (2, " ".join(map(asked, split(query))))],
        )
        return int(
            connection.execute(
                "SELECT count(DISTINCT a.term) FROM words a JOIN words b ON a.term = b.term AND a.doc = 1 AND b.doc = 2"
            ).fetchone()[0]
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京天气", ["北京", "京天", "天气"]),
        ("茶", ["茶"]),
        ("iPhone手机坏了", ["iphone", "手机", "机坏", "坏了"]),
        ("東京でラーメン", ["東京", "京で", "でラ", "ラー", "ーメ", "メン"]),
        ("ﾗｰﾒﾝ", ["ラー", "ーメ", "メン"]),
        ("서울역", ["서울", "울역"]),
        ("ตลาด", ["ตล", "ลา", "าด"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Ärger über Öl", ["ärger", "über", "öl"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("great😀stuff", ["great", "😀", "stuff"]),
        ("❤️ and ❤", ["❤", "and", "❤"]),
        ("👩‍🚀", ["👩", "🚀"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("سَلام سلام", ["سلام", "سلام"]),
        ("שָׁלוֹם", ["שלום"]),
        ("don't e-mail", ["don", "t", "e", "mail"]),
    ],
)
def test_words_of_a_script(text: str, expected: list[str]) -> None:
    assert words(text) == [unicodedata.normalize("NFC", word) for word in expected]


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("天气", "北京的天气很好"),
        ("茶", "我们去公园喝茶"),
        ("ラーメン", "東京でラーメンを食べた"),
        ("ﾗｰﾒﾝ", "東京でラーメンを食べた"),
        ("ตลาด", "วันนี้ฉันไปตลาดซื้อมะม่วง"),
        ("서울", "어제 서울에서 만났다"),
        ("हिन्दी", "मुझे हिन्दी पढ़ना पसंद है"),
        ("cafe", "au café"),
        ("café", "au cafe"),
        ("e\u0301cole", "\u00e9cole"),
        ("ECOLE", "école"),
        ("da nang", "Đà Nẵng"),
        ("strasse", "Straße"),
        ("Straße", "strasse"),
        ("😀", "fun 😀!"),
        ("سلام", "سَلام"),
        ("running", "runs"),
    ],
)
def test_memory_is_found_by_how_people_type_it(query: str, stored: str) -> None:
    assert finds(query, stored) >= 1


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("火车", "北京的天气很好"),
        ("रेलगाड़ी", "मुझे हिन्दी पढ़ना पसंद है"),
        ("🚗", "fun 😀!"),
        ("🇫🇷", "🇩🇪"),
        ("が", "か"),
        ("รถไฟ", "วันนี้ฉันไปตลาด"),
    ],
)
def test_other_word_of_the_same_script_is_not_found(query: str, stored: str) -> None:
    assert finds(query, stored) == 0


@pytest.mark.parametrize(("query", "other"), [("má", "ma"), ("má", "mà"), ("mã", "mạ"), ("côté", "cote")])
def test_word_with_its_own_tones_and_accents_is_found_better_than_one_with_others(query: str, other: str) -> None:
    assert finds(query, query) > finds(query, other) >= 1


def test_word_beside_another_script_is_a_word_of_its_own() -> None:
    assert finds("iphone", "我的iPhone坏了") == 1


@given(st.text())
def test_any_text_is_found_by_each_of_its_own_words(text: str) -> None:
    for word in words(text)[:5]:
        if unicodedata.category(word[0])[0] in "LN":
            assert finds(word, text) >= 1, word


@given(st.text())
def test_words_of_any_text_have_no_white_space_and_are_lower_case(text: str) -> None:
    assert all(word and not word.isspace() and word == word.lower() for word in words(text))
