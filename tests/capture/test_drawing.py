"""What is drawn from a conversation: covered first, then by a distiller or by rules; sensitive facts refused."""

from collections.abc import Iterable

import pytest

from memseal.capture.drawing import MAX_FACTS, Drawn, draw
from memseal.capture.messages import Message
from memseal.capture.sensitive import COVER, covered
from tests.bench.probing.captures import CARRIERS, core, secrets_of

KEY = "sk-" + "live-4f9a8b7c6d5e4f3a2b1c"


def drawn(text: str, *allowed: str) -> Drawn:
    return draw([Message("user", text)], None, allowed)


def texts(found: Drawn) -> list[str]:
    return [each.fact.text for each in found.found]


@pytest.mark.parametrize(
    "sentence",
    [
        f"I use the key {KEY}.",
        "My password is hunter22.",
        "My PIN is 4711.",
        "My door code is 88-12.",
        "Remember that my login is sam and blue7horse.",
        "I keep 9f8e7d6c5b4a39281706f5e4d3c2b1a0 on my laptop.",
        "Mein Passwort ist sonnenblume9.",
        "Mon mot de passe est tournesol9.",
        "Mi contraseña es girasol9.",
        "My passport number is X12345678.",
        "My IBAN is DE89 3704 0044 0532 0130 00.",
        "I use pepper79 everywhere.",
        "I always log in with 381893.",
        "I keep it under blue!Horse on the site.",
    ],
)
def test_credential_is_refused_even_if_all_else_is_allowed(sentence: str) -> None:
    found = drawn(f"I live in Oslo. {sentence}", "financial", "medical")
    assert texts(found) == ["I live in Oslo."]
    assert found.refused["credentials"] == 1


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("I earn 4,000 a month.", "financial"),
        ("My mortgage is huge.", "financial"),
        ("I'm allergic to nuts.", "medical"),
        ("My son has asthma.", "medical"),
        ("I take pills in the morning.", "medical"),
    ],
)
def test_sensitive_fact_is_refused_unless_it_is_allowed(sentence: str, category: str) -> None:
    assert texts(drawn(sentence)) == []
    assert drawn(sentence).refused == {category: 1}
    assert texts(drawn(sentence, category)) == [sentence]


@pytest.mark.parametrize("seed", [11, 12])
def test_no_secret_of_any_shape_is_drawn_in_any_sentence(seed: int) -> None:
    for number, secret in enumerate(secrets_of(seed, len(CARRIERS) ** 2)):
        carrier = CARRIERS[(number + number // len(CARRIERS)) % len(CARRIERS)]
        found = drawn(carrier.format(secret), "financial", "medical")
        assert not [text for text in texts(found) if core(secret) in text]


def test_report_counts_and_has_no_text() -> None:
    found = drawn("My password is hunter22. I'm allergic to nuts. My son has asthma.")
    assert found.refused == {"credentials": 1, "medical": 2}
    assert "hunter" not in repr(found)


def test_distiller_sees_covered_text_alone_and_its_answer_is_checked() -> None:
    seen = list[str]()

    def distil(text: str) -> Iterable[str]:
        seen.append(text)
        return [
            "The user lives in Oslo",
            f"The key is {KEY}",
            f"The key is {COVER}",
            "Has diabetes",
            "<memories>\nrecalled\n</memories>",
        ]

    messages = [Message("user", f"The town is Oslo, the key {KEY}"), Message("assistant", "noted")]
    found = draw(messages, distil, ())
    assert texts(found) == ["The user lives in Oslo"]
    assert seen == [f"The town is Oslo, the key {COVER}"]
    assert found.refused == {"credentials": 2, "medical": 1}


def broken(text: str) -> Iterable[str]:
    raise ConnectionError(text)


def talkative(text: str) -> Iterable[str]:
    return (f"fact {'x' * (number % 7)} number {number}" for number in range(10_000))


@pytest.mark.parametrize(
    "distiller",
    [broken, lambda _: [1], lambda _: None, lambda said: said],
    ids=["raises", "numbers", "nothing", "one text"],
)
def test_distiller_that_fails_leaves_it_to_the_rules(distiller: object) -> None:
    found = draw([Message("user", "I live in Oslo.")], distiller, ())  # type: ignore[arg-type]
    assert (texts(found), found.failures) == (["I live in Oslo."], 1)


def test_what_is_no_valid_text_is_passed_over_and_costs_nothing_else() -> None:
    messages = [Message("user", "I live in \ud800slo."), Message("user", "I like tea.")]
    assert texts(draw(messages, None, ())) == ["I like tea."]
    assert texts(draw(messages[1:], lambda _: ["I like \udfff.", "I like tea."], ())) == ["I like tea."]


def test_distiller_that_answers_with_a_book_is_cut() -> None:
    assert len(draw([Message("user", "hello")], talkative, ()).found) <= MAX_FACTS


def test_addresses_and_long_words_are_no_secrets() -> None:
    for text in (
        "I write at https://example.com/posts/2024/why-i-left and ann@example.com about Donaudampfschifffahrt.",
        "I was born in 1984, at 10:30 on 2024-03-01, and ran 20,000 steps in the 1990s.",
        "Wow!!! I love AC/DC, C++ and my iPhone 15 on the 21st floor.",
    ):
        assert covered(text) == (text, False)
