"""Keep credentials out of what a model is given: one that was stored once would ride along in every prompt."""

from dataclasses import replace
from typing import Final

from memseal.memory.memory import Memory
from memseal.privacy.rules.rule import apply
from memseal.privacy.rules.secrets import RULES
from memseal.privacy.spans import resolve

MASK: Final = "[secret]"
# Keys, tokens, passwords in addresses and commands: what is of use to a program alone. The code of a gate or the
# password of the guests' network, told in a sentence, is what people keep a memory for; the rules are less sure of it.
_SURE: Final = 0.97
_RULES: Final = tuple(rule for rule in RULES if rule.score >= _SURE)


def masked(memory: Memory) -> Memory:
    """Return the memory with a mark in place of each credential in its content, source and author."""
    author = None if memory.author is None else _masked(memory.author)
    return replace(memory, content=_masked(memory.content), source=_masked(memory.source), author=author)


def _masked(text: str) -> str:
    pieces, end = list[str](), 0
    for span in resolve(text, apply(_RULES, text)):
        pieces += [text[end : span.start], MASK]
        end = span.end
    return "".join((*pieces, text[end:]))
