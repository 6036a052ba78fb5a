import json
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.sanitize import Sanitizer
from tests.sanitize.building import SEED, Marked, by_rules

TEXT = "Sarah Chen, J. R. Ellison and 王小明 of Globex: a@example.com, b@example.com"


def session() -> Sanitizer:
    values = {
        "PERSON": "Sarah Chen",
        "PERSON1": "J. R. Ellison",
        "PERSON2": "王小明",
        "ORGANIZATION": "Globex",
        "EMAIL": "a@example.com",
        "EMAIL1": "b@example.com",
    }
    return Sanitizer(detector=Marked(**values), seed=SEED)  # type: ignore[arg-type]


SESSION = session()
CLEAN = SESSION.sanitize(TEXT).text
FIRST, LAST = CLEAN.replace(",", "").split()[:2]
ELLISON = CLEAN[CLEAN.index(",") + 2 : CLEAN.index(" and")]


@pytest.mark.parametrize(
    ("reply", "restored"),
    [
        (f"{FIRST}'s plan", "Sarah's plan"),
        (f"{FIRST.upper()} {LAST.upper()}", "SARAH CHEN"),
        (f"{FIRST.lower()} {LAST.lower()}", "sarah chen"),
        (f"Ms. {LAST}", "Ms. Chen"),
        (f"the {LAST}s", "the Chens"),
        (f"{FIRST}\n{LAST}", "Sarah\nChen"),
        (f"**{FIRST}** _{LAST}_", "**Sarah** _Chen_"),
        (f"<b>{FIRST}</b>&nbsp;{LAST}", "<b>Sarah</b>&nbsp;Chen"),
        (f'{{"name": "{FIRST} {LAST}"}}', '{"name": "Sarah Chen"}'),
        (f"{FIRST.lower()}_{LAST.lower()}", "sarah_chen"),
        (f"{LAST}, {FIRST}", "Chen, Sarah"),
        (ELLISON.replace(" ", "\n", 1), "J. R. Ellison"),
        ("[EMAIL_1] [EMAIL_2]", "a@example.com b@example.com"),
        ("\\[EMAIL\\_1\\]", "a@example.com"),
        ("[email_1], [ EMAIL_2 ]", "a@example.com, b@example.com"),
        ("[EMAIL1], [EMAIL _ 2], <EMAIL_1>", "a@example.com, b@example.com, <a@example.com>"),
        ("EMAIL_2 and `EMAIL_1`", "b@example.com and `a@example.com`"),
        ("[EMAIL_1](mailto:[EMAIL_1])", "a@example.com(mailto:a@example.com)"),
    ],
)
def test_stand_in_comes_back_however_the_reply_bends_it(reply: str, restored: str) -> None:
    assert SESSION.restore(reply) == restored


@pytest.mark.parametrize(
    "reply",
    [
        "[EMAIL_3]",
        "[EMAIL_12]",
        "[PHONE_1]",
        "[SECRET_1]",
        f"{FIRST}ian food",
        f"un{FIRST.lower()}",
        f"{LAST}2",
        "EMAIL_10",
    ],
)
def test_what_was_not_issued_stays(reply: str) -> None:
    assert SESSION.restore(reply) == reply


def test_backslash_before_a_value_is_no_escape_of_its_token() -> None:
    for text in ("C:\\a@example.com", "\\a@example.com\\", "\\\\b@example.com"):
        sanitizer = session()
        clean = sanitizer.sanitize(text)
        assert "example" not in clean
        assert sanitizer.restore(clean) == text


def test_token_beside_a_value_comes_back_as_it_was() -> None:
    sanitizer = session()
    sanitizer.sanitize(TEXT)
    for text in ("EMAIL_2a@example.com", "Sarah ChenEMAIL_2", "xEMAIL_1\\a@example.com[PHONE_"):
        clean = sanitizer.sanitize(text)
        assert sanitizer.restore(clean) == text


def test_stand_in_over_the_end_of_a_line_does_not_hide_another() -> None:
    sanitizer = Sanitizer(detector=Marked(PERSON="Chen\nX", PERSON1="Chen"), seed=SEED)  # type: ignore[arg-type]
    assert sanitizer.restore(sanitizer.sanitize("met Chen\nX there")) == "met Chen\nX there"
    clean = sanitizer.sanitize("met Chen\nXu there")
    assert "Chen" not in clean
    assert sanitizer.restore(clean) == "met Chen\nXu there"
    for cut in range(len(clean) + 1):
        for other in range(cut, len(clean) + 1):
            pieces = [clean[:cut], clean[cut:other], clean[other:]]
            assert "".join(sanitizer.restore_stream(pieces)) == "met Chen\nXu there"


def misspellings(name: str) -> list[str]:
    """A name with one letter missing, doubled, another, or swapped with the next, but never the first."""
    places = range(1, len(name) - 1)
    return [
        *(name[:place] + name[place + 1 :] for place in places),
        *(name[:place] + name[place] + name[place:] for place in places),
        *(name[:place] + "q" + name[place + 1 :] for place in places),
        *(name[:place] + name[place + 1] + name[place] + name[place + 2 :] for place in places),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_misspelt_stand_in_comes_back_or_stays_but_is_never_another(seed: int) -> None:
    sanitizer = by_rules(bytes([seed]) * 32)
    people = "Sarah Chen, Priya Nair, Thomas Berger, Maria Lopez, Ivan Petrov, Oluwaseun Adeyemi"
    pairs = list(
        zip(sanitizer.sanitize(people).text.replace(",", "").split(), people.replace(",", "").split(), strict=True)
    )
    long, back = 0, 0
    for standin, real in pairs:
        for word in misspellings(standin):
            restored = sanitizer.restore(f"Ask {word}'s wife")
            assert restored in (f"Ask {real}'s wife", f"Ask {word}'s wife")
            long += len(standin) > 5 and word != standin
            back += len(standin) > 5 and word != standin and real in restored
            for cut in (5, 4 + len(word) // 2, 4 + len(word)):
                reply = f"Ask {word}'s wife"
                assert "".join(sanitizer.restore_stream([reply[:cut], reply[cut:]])) == restored
    assert back >= 0.6 * long > 20


def test_word_of_the_session_is_no_misspelling() -> None:
    sanitizer = Sanitizer(detector=Marked(PERSON="Xenia Qorvat"), seed=SEED)  # type: ignore[arg-type]
    standin = max(sanitizer.sanitize("Xenia Qorvat").text.split(), key=len)
    near = next(word for word in misspellings(standin) if sanitizer.restore(word) != word)
    text = f"{near} is what somebody else is called"
    clean = sanitizer.sanitize(text)
    assert sanitizer.restore(clean) == text
    assert sanitizer.restore(near) == near


def test_name_that_json_spells_in_escapes_comes_back() -> None:
    sanitizer = Sanitizer(detector=Marked(PERSON="Мария Иванова", PERSON1="王小明"), seed=SEED)  # type: ignore[arg-type]
    text = "Мария Иванова, 王小明"
    reply = json.dumps([sanitizer.sanitize(text).text])
    assert json.loads(sanitizer.restore(reply)) == [text]
    for size in range(1, 9):
        pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
        assert "".join(sanitizer.restore_stream(pieces)) == sanitizer.restore(reply)


def test_twelve_tokens_come_back_right_in_every_order() -> None:
    values = {f"EMAIL{place}": f"u{place}@example.com" for place in range(10, 22)}
    sanitizer = Sanitizer(detector=Marked(**values), seed=SEED)  # type: ignore[arg-type]
    sanitizer.sanitize(" ".join(values.values()))
    numbers = list(range(12, 0, -1))
    reply = " ".join(f"[EMAIL_{number}]" for number in numbers)
    assert sanitizer.restore(reply) == " ".join(f"u{number + 9}@example.com" for number in numbers)


def test_restoring_is_one_pass() -> None:
    sanitizer = Sanitizer(detector=Marked(SECRET="[EMAIL_9]", EMAIL="x@example.com"), seed=SEED)  # type: ignore[arg-type]
    text = "[EMAIL_9] x@example.com [TEXT_1]"
    assert sanitizer.restore(sanitizer.sanitize(text)) == text


REPLY = (
    f"Hi! **{FIRST}** {LAST}'s mail is [EMAIL_1], not \\[EMAIL\\_2\\]; {ELLISON} knows.\n{CLEAN} [EMAIL_33] [EM "
    f"{FIRST.upper()} {FIRST}x {LAST}s EMAIL_1 EMAIL_12 PERSON [ x ["
)


def test_every_cut_in_two_or_three_gives_what_the_whole_gives() -> None:
    whole = SESSION.restore(REPLY)
    for cut in range(len(REPLY) + 1):
        assert "".join(SESSION.restore_stream([REPLY[:cut], REPLY[cut:]])) == whole
        for other in range(cut, min(cut + 12, len(REPLY))):
            assert "".join(SESSION.restore_stream([REPLY[:cut], REPLY[cut:other], REPLY[other:]])) == whole


@pytest.mark.parametrize("size", range(1, 40))
def test_pieces_of_any_size_give_what_the_whole_gives(size: int) -> None:
    pieces = [REPLY[start : start + size] for start in range(0, len(REPLY), size)]
    assert "".join(SESSION.restore_stream(pieces)) == SESSION.restore(REPLY)


PARTS = [
    *CLEAN.split(),
    FIRST[:2],
    LAST[-2:],
    "[EMAIL_1]",
    "[EMA",
    "IL_1]",
    "\\[EMAIL\\_",
    "1",
    "2",
    "\\]",
    " ",
    "\n",
    "s",
    "es",
    "'s",
    ".",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.data())
def test_random_replies_in_random_pieces_give_what_the_whole_gives(parts: list[str], data: st.DataObject) -> None:
    reply = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=8)))
    pieces = [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    assert "".join(SESSION.restore_stream(pieces)) == SESSION.restore(reply)


def test_ordinary_words_are_given_out_at_once() -> None:
    stream = SESSION.stream()
    assert stream.push("this is quite ordinary. ") == "this is quite ordinary. "
    assert stream.push(f"but {FIRST[:3]}") == "but "
    assert stream.push("zzz ") == f"{FIRST[:3]}zzz "
    assert stream.end() == ""


def test_what_is_held_back_is_bounded() -> None:
    stream = SESSION.stream()
    text = "[ " * 2_000 + "\\" * 2_000
    given_out = len(stream.push(text))
    assert len(text) - given_out < 200


async def test_awaited_text_is_sanitized_as_any_other() -> None:
    text = "Ask Sarah Chen, s.chen@example.com"
    assert await SESSION.asanitize(text) == SESSION.sanitize(text) != text


async def test_awaited_pieces_give_what_the_whole_gives() -> None:
    async def pieces() -> AsyncIterator[str]:
        for character in REPLY:
            yield character

    assert "".join([shown async for shown in SESSION.arestore_stream(pieces())]) == SESSION.restore(REPLY)


def test_stream_that_breaks_off_gives_what_had_come() -> None:
    def pieces() -> Iterator[str]:
        yield f"It was {FIRST}"
        yield f" {LAST[:2]}"

    assert "".join(SESSION.restore_stream(pieces())) == f"It was Sarah {LAST[:2]}"
