"""A chat through a provider that bends what it is told: what it saw, and what the user reads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memseal.privacy.folding import key_of
from tests.sanitize.building import by_rules
from tests.sanitize.fake_llm import MANNERS, provider

PEOPLE = (
    "Sarah Chen|Priya Nair|Thomas Berger|Oluwaseun Adeyemi|Maria Lopez|Ivan Petrov|Fatima Hassan|James Whitfield|"
    "Anna Nowak|Pedro Alvarez|Ingrid Larsen|Kenji Tanaka"
).split("|")
QUESTIONS = [
    f"Dear {one}, please tell {other} that {one} wrote from {one.split()[0].lower()}@example.com."
    for one, other in zip(PEOPLE, PEOPLE[1:] + PEOPLE[:1], strict=True)
]


def mentions(text: str) -> list[str]:
    """The words of names and the addresses in a text, in order, in whatever case."""
    words = "|".join(word for person in PEOPLE for word in person.split())
    return re.findall(rf"(?i)\b(?:{words})\b(?!@)|\b\w+@example\.com", text)


@pytest.mark.usefixtures("with_sockets")
def test_user_reads_real_names_and_the_provider_never_saw_one() -> None:
    expected, restored, wrong = 0, 0, 0
    with provider() as (client, received):
        for manner, bend in MANNERS.items():
            session = by_rules(manner.encode().ljust(32))
            with session.guard(client) as safe:
                for question in QUESTIONS:
                    messages = [{"role": "user", "content": question}]
                    pieces = safe.chat.completions.create(model=manner, messages=messages, stream=True)
                    reply = "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces)
                    due, got = mentions(bend(question)), mentions(reply)
                    expected += len(due)
                    restored += sum(one == other for one, other in zip(due, got, strict=False))
                    wrong += len(set(got) - set(due))
    sys.stdout.write(f"{restored} of {expected} mentions restored, {wrong} wrong\n")  # shown by `pytest -rP`
    seen = key_of(" ".join(received))
    assert not [person for person in PEOPLE if any(f" {word} " in f" {seen} " for word in key_of(person).split())]
    assert "example.com" not in seen
    assert len(received) == len(MANNERS) * len(QUESTIONS)
    assert wrong == 0
    assert restored >= 0.98 * expected > 500


def test_example_shows_a_chat_whose_provider_learns_nothing() -> None:
    example = Path(__file__).parents[2] / "examples" / "sanitize_chat.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, encoding="utf-8", check=True)
    read, answered = done.stdout.splitlines()
    assert "Chen" not in read
    assert answered == "the user reads:     I would call SARAH CHEN first."
