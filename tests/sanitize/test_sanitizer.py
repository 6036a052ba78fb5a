import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memseal
from memseal.errors import SanitizerBlocked, SanitizerFailed, SanitizerInput
from memseal.privacy.folding import key_of
from memseal.privacy.spans import Span
from memseal.sanitize import Sanitizer
from tests.sanitize.building import SEED, Marked, Scattered, by_rules, full, needs_model, rules

ROOT = Path(__file__).parents[2]
PEOPLE = (
    "I met Sarah Chen at the fair. Sarah works with glass. Chen also plays cello, Dr. Chen says. SARAH CHEN’s shop."
)


def marked(**values: str) -> Sanitizer:
    return Sanitizer(detector=Marked(**values), seed=SEED)  # type: ignore[arg-type]


def test_sanitizer_is_what_memseal_exports() -> None:
    assert memseal.Sanitizer is Sanitizer


def test_text_comes_back_exactly() -> None:
    sanitizer = by_rules()
    text = f"{PEOPLE}\nMail s.chen@example.com, +49 30 901820, IBAN NL91 ABNA 0417 1643 00."
    clean = sanitizer.sanitize(text)
    assert sanitizer.restore(clean) == text
    assert not {"sarah", "chen", "example", "901820"} & set(key_of(clean).replace("’", " ").split())


def test_one_person_is_one_stand_in_in_every_form() -> None:
    clean = by_rules().sanitize(PEOPLE)
    _, _, first, last, *_ = clean.split()
    assert clean.text == PEOPLE.replace("SARAH", first.upper()).replace("CHEN", last.upper()).replace(
        "Sarah", first
    ).replace("Chen", last)


def test_stand_in_has_the_gender_of_the_name() -> None:
    sanitizer = by_rules()
    names = sanitizer._lexicon.first
    for real in ("Maria Lopez", "Priya Nair", "Thomas Berger", "Ivan Petrov"):
        clean = sanitizer.sanitize(f"Dear {real}, hello")
        assert names[clean.split()[1].casefold()] == names[real.split()[0].casefold()]


def test_place_and_person_of_one_name_come_back_right() -> None:
    sanitizer = marked(PERSON="Jordan", PERSON1="Sarah Chen")
    text = "Jordan and Sarah Chen met in Jordan. Jordanian food by the Jordan river."
    clean = sanitizer.sanitize(text)
    assert sanitizer.restore(clean) == text
    assert "Jordanian" in clean
    assert sanitizer.restore("the Jordan river, Jordanian food") == "the Jordan river, Jordanian food"


def test_whole_name_with_initials_and_suffix_is_replaced() -> None:
    text = "Samuel L. Jackson, Robert Downey jr. and John Smith"
    sanitizer = by_rules()
    clean = sanitizer.sanitize(text)
    assert not {"samuel", "l", "jackson", "robert", "downey", "john", "smith"} & set(
        clean.casefold().replace(",", " ").replace(".", " ").split()
    )
    assert sanitizer.restore(clean) == text


def test_addresses_side_by_side_get_a_stand_in_each() -> None:
    assert by_rules().sanitize("a@example.com b@example.org c@example.net").text == "[EMAIL_1] [EMAIL_2] [EMAIL_3]"


def test_number_that_three_rules_find_is_one_token_and_the_text_after_it_stays() -> None:
    sanitizer = by_rules()
    text = "NHS phone account 943 476 5919, then lunch."
    clean = sanitizer.sanitize(text)
    assert clean.text.count("[") == 1
    assert clean.endswith("], then lunch.")
    assert sanitizer.restore(clean) == text


def test_sanitized_text_passes_unchanged() -> None:
    sanitizer = by_rules()
    once = sanitizer.sanitize(PEOPLE)
    assert sanitizer.sanitize(once.text) == once
    assert sanitizer.restore(sanitizer.sanitize(once.text)) == PEOPLE


def test_sessions_differ_and_a_seed_repeats_one() -> None:
    one, other, again = by_rules(b"1" * 32), by_rules(b"2" * 32), by_rules(b"1" * 32)
    assert one.sanitize(PEOPLE) == again.sanitize(PEOPLE) != other.sanitize(PEOPLE)


def test_token_syntax_of_the_user_is_not_taken_for_ours() -> None:
    sanitizer = by_rules()
    for text in (
        "[EMAIL_1] is how we write it, [EMAIL_1]!",
        "jo@example.com wrote: use [EMAIL_1] or EMAIL_2 or \\[email\\_1\\] or [EMAIL_] or [EMAIL_0]",
        "[PERSON_7][TEXT_1] [[EMAIL_1]]",
    ):
        clean = sanitizer.sanitize(text)
        assert "jo@example.com" not in clean
        assert sanitizer.restore(clean) == text


def test_name_of_the_pool_that_a_later_text_has_is_replaced_as_well() -> None:
    sanitizer = by_rules()
    standin = sanitizer.sanitize("Dear Sarah Chen, hello").split()[1]
    text = f"Dear {standin} Novak, Sarah wrote."
    clean = sanitizer.sanitize(text)
    assert standin not in clean.split()[:2]
    assert sanitizer.restore(clean) == text


def test_stand_in_is_never_a_word_of_the_text_or_of_the_language() -> None:
    sanitizer = by_rules()
    clean = sanitizer.sanitize(
        " ".join(f"Dear {name} Berger," for name in ("Maria", "Thomas", "Elena", "Omar", "Lucia"))
    )
    lexicon = sanitizer._lexicon
    for item in clean.report.items:
        for word in item.standin.split():
            assert not lexicon.is_word(word.casefold())
            assert word not in ("Maria", "Thomas", "Elena", "Omar", "Lucia", "Berger")


def test_stand_ins_never_run_out() -> None:
    names = [
        f"Q{chr(97 + number // 26 % 26)}{chr(97 + number % 26)}{chr(97 + number // 676)}or" for number in range(3_000)
    ]
    detector = Marked()
    detector.detect = lambda texts: [  # type: ignore[method-assign]
        [Span(text.index(" "), len(text), "PERSON", 0.9)._replace(start=text.index(" ") + 1)]
        if text.startswith("x ")
        else []
        for text in texts
    ]
    sanitizer = Sanitizer(detector=detector, seed=SEED)  # type: ignore[arg-type]
    clean = sanitizer.sanitize_many([f"x {name}" for name in names])
    assert len({text.text for text in clean}) == len(names)
    assert [sanitizer.restore(text) for text in clean] == [f"x {name}" for name in names]


def test_threads_agree_on_the_stand_in_of_a_name() -> None:
    sanitizer = by_rules()
    gate = threading.Barrier(4)

    def run(number: int) -> str:
        gate.wait()
        return sanitizer.sanitize(f"Dear Sarah Chen, it is {number}").text.partition(",")[0]

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(run, range(4)))) == 1


def test_stand_in_of_the_first_turn_comes_back_after_saving_and_loading() -> None:
    sanitizer = by_rules()
    clean = sanitizer.sanitize(PEOPLE)
    for turn in range(8):
        sanitizer.sanitize(f"Turn {turn}: Dear Oluwaseun Adeyemi, mail o{turn}@example.com")
    later = by_rules(b"another seed")
    later.load(sanitizer.save())
    assert later.restore(clean) == PEOPLE
    assert later.sanitize(PEOPLE + " ").text == clean.text + " "
    assert later.sanitize(clean.text) == clean


def test_session_of_newer_software_is_refused() -> None:
    sanitizer = by_rules()
    with pytest.raises(SanitizerInput, match="saved session"):
        sanitizer.load({**sanitizer.save(), "version": 99})


def test_names_are_in_no_repr() -> None:
    sanitizer = by_rules()
    clean = sanitizer.sanitize(PEOPLE)
    shown = repr((sanitizer, sanitizer._pairs, clean.report, clean.report.items, sanitizer._pairs.entries()))
    assert "Sarah" not in shown
    assert "Chen" not in shown


def test_report_counts_by_type_and_its_trace_holds_no_value() -> None:
    clean = by_rules().sanitize(PEOPLE + " s.chen@example.com")
    assert clean.report.counts == {"EMAIL": 1, "PERSON": 5}
    assert clean.report.items[0].value == "Sarah Chen"
    trace = repr(clean.report.trace())
    assert "Chen" not in trace
    assert clean.report.items[0].standin not in trace


def test_owner_and_terms_are_replaced_by_list_and_allowed_words_stay() -> None:
    sanitizer = Sanitizer(
        owner=["Will Ng"],
        contacts=["Sunny"],
        terms={"ORGANIZATION": ["Project Heron"]},
        allow=["Ada"],
        model=None,
        seed=SEED,
    )
    text = "will ng and sunny plan project\nheron; Dear Ada Lovelace"
    clean = sanitizer.sanitize(text)
    assert not {"ng", "sunny", "heron"} & set(key_of(clean).replace(";", " ").split())
    assert sanitizer.restore(clean) == text
    assert "Ada" in sanitizer.sanitize("Dear Ada, hello")


def test_one_text_is_one_name_and_not_its_letters() -> None:
    sanitizer = Sanitizer(owner="Will Ng", terms={"ORGANIZATION": "Heron"}, model=None, seed=SEED)
    clean = sanitizer.sanitize("will ng walks to heron")
    assert " walks to " in clean
    assert not {"ng", "heron"} & set(key_of(clean).split())


def test_part_of_a_name_that_nobody_detects_is_caught_before_sending() -> None:
    sanitizer = marked(PERSON="Xenia Qorvat", MEDICAL_RECORD_NUMBER="AB-7788-12")
    text = "Xenia Qorvat, file AB-7788-12. Ask QORVAT or xenia; Q\u200borvat; file ab 7788 12; Xenia's"
    clean = sanitizer.sanitize(text)
    folded = key_of(clean)
    assert "qorvat" not in folded
    assert "xenia" not in folded
    assert "7788" not in folded
    assert sanitizer.restore(clean) == text


@pytest.mark.parametrize("letter", ["ß", "İ", "ŉ", "ﬃ"])
def test_number_that_is_there_twice_is_replaced_twice_beside_a_letter_whose_small_form_is_two(letter: str) -> None:
    class Once(Marked):
        """Sees the first number alone."""

        def detect(self, texts: Sequence[str]) -> list[list[Span]]:
            return [found[:1] for found in super().detect(texts)]

    sanitizer = Sanitizer(detector=Once(PHONE_NUMBER="030 901820"), seed=SEED)  # type: ignore[arg-type]
    text = f"030 901820, {letter} and 030-901820 {letter}"
    clean = sanitizer.sanitize(text)
    assert "901820" not in clean
    assert sanitizer.restore(clean) == text


def test_leak_blocks_where_that_is_asked_for_and_is_told_by_type() -> None:
    class Hasty(Marked):
        """Overlooks the number as long as the name is there."""

        def detect(self, texts: Sequence[str]) -> list[list[Span]]:
            name = {"PERSON": "Sarah"} if "Sarah" in texts[0] else {"PHONE_NUMBER": "4930123"}
            return Marked(**name).detect(texts)

    text = "Sarah, call +4930123 now"
    sanitizer = Sanitizer(detector=Hasty(), on_leak="block", seed=SEED)  # type: ignore[arg-type]
    with pytest.raises(SanitizerBlocked, match="PHONE_NUMBER") as caught:
        sanitizer.sanitize(text)
    assert caught.value.types == ("PHONE_NUMBER",)
    assert "4930123" not in str(caught.value)
    mending = Sanitizer(detector=Hasty(), seed=SEED)  # type: ignore[arg-type]
    clean = mending.sanitize(text)
    assert clean.report.items[1].repaired
    assert mending.restore(clean) == text
    assert "4930123" not in clean


def test_recogniser_that_fails_lets_nothing_out_and_tells_no_text() -> None:
    class Broken(Marked):
        def detect(self, texts: Sequence[str]) -> list[list[Span]]:
            raise RuntimeError(f"cannot read {texts}")

    sanitizer = Sanitizer(detector=Broken(), seed=SEED)  # type: ignore[arg-type]
    with pytest.raises(SanitizerFailed) as caught:
        sanitizer.sanitize("Sarah Chen")
    assert "Sarah" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memseal.sanitize.sanitizer.MOST_CHARACTERS", 10)
    with pytest.raises(SanitizerInput, match="cut it"):
        by_rules().sanitize("eleven char")


def test_vault_names_its_authors() -> None:
    class Remembered:
        def __init__(self, author: str | None) -> None:
            self.author = author

    class Vault:
        def list(self, /, *, limit: int = 100, offset: int = 0, **_: object) -> list[Remembered]:
            return [Remembered(name) for name in ("Zorblat Quix", None, "user", "assistant")][offset : offset + limit]

    sanitizer = Sanitizer(vault=Vault(), model=None, seed=SEED)
    clean = sanitizer.sanitize("so zorblat told the assistant")
    assert sanitizer.restore(clean) == "so zorblat told the assistant"
    assert "assistant" in clean
    assert "zorblat quix" not in sanitizer.sanitize("with zorblat quix there")


def test_messages_and_tool_calls_are_sanitized_in_place() -> None:
    sanitizer = by_rules()
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Mail Sarah Chen at s.chen@example.com"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {
                        "name": "send",
                        "arguments": '{"id": "s.chen@example.com", "n": 3, "name": "Sarah Chen"}',
                    },
                }
            ],
        },
    ]
    clean = sanitizer.sanitize(messages)
    assert "Chen" not in repr(list(clean))
    assert "example.com" not in repr(list(clean))
    assert clean[2]["tool_calls"][0]["function"]["name"] == "send"
    assert sanitizer.restore(list(clean)) == messages
    assert clean.report.counts == {"EMAIL": 2, "PERSON": 2}


def test_shape_that_no_message_has_is_refused() -> None:
    with pytest.raises(SanitizerInput, match="object"):
        by_rules().sanitize([object()])


@given(st.integers(0, 2**32), st.text(max_size=60))
def test_random_detections_never_damage_a_text(seed: int, text: str) -> None:
    sanitizer = Sanitizer(detector=Scattered(seed), seed=SEED)  # type: ignore[arg-type]
    try:
        clean = sanitizer.sanitize(text)
    except SanitizerBlocked:
        return
    assert sanitizer.restore(clean) == text


def test_generated_texts_come_back_exactly() -> None:
    draw = random.Random(1)
    words = (
        "Sarah CHEN chen's o'neil Li 王小明 [EMAIL_1] a@b.co +49 30 1234 the of -- \n \t “x” 3.5 %40 é Ⅷ ß İ ǅ".split(
            " "
        )
    )
    texts = [" ".join(draw.choice(words) for _ in range(draw.randrange(8))) for _ in range(600)]
    blocked = 0
    for start in range(0, len(texts), 60):
        sanitizer = Sanitizer(detector=Scattered(start), seed=SEED)  # type: ignore[arg-type]
        for text in texts[start : start + 60]:
            try:
                clean = sanitizer.sanitize(text)
            except SanitizerBlocked:
                blocked += 1
                continue
            assert sanitizer.restore(clean) == text
    assert blocked < len(texts) // 100


def test_lines_that_people_wrote_come_back_exactly() -> None:
    lines = [
        line
        for path in sorted((ROOT / "format-spec").rglob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ][::4][:300]
    assert len(lines) == 300
    sanitizer = by_rules()
    assert [sanitizer.restore(clean) for clean in sanitizer.sanitize_many(lines)] == lines


@needs_model
def test_model_finds_names_that_no_rule_knows() -> None:
    sanitizer = Sanitizer(detector=full(), seed=SEED)
    text = "Yesterday Quillon Vaspero flew from Reykjavik to the Globex headquarters."
    clean = sanitizer.sanitize(text)
    assert not {"Quillon", "Vaspero", "Reykjavik"} & set(clean.split())
    assert sanitizer.restore(clean) == text


def test_without_a_model_the_sanitizer_says_what_it_overlooks() -> None:
    assert "language model" in by_rules().missing[0]
    assert rules().missing == by_rules().sanitize("x").report.missing


def test_name_glued_to_another_script_does_not_leave() -> None:
    sanitizer = by_rules()
    sanitizer.sanitize("Sarah Chen and 王小明 met")
    clean = sanitizer.sanitize("王小明Sarah Chen, Sarah王小明, 王小明S\u200barah")
    assert "arah" not in clean
    assert "王小明" not in clean
    assert sanitizer.restore(clean) == "王小明Sarah Chen, Sarah王小明, 王小明S\u200barah"
