"""Keep credentials out of what a model is given: one that was stored once would ride along in every prompt."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

from memseal.errors import SecretInMemory
from memseal.memory.memory import Draft, Memory
from memseal.privacy.rules.rule import apply
from memseal.privacy.rules.secrets import RULES
from memseal.privacy.spans import resolve

MASK: Final = "[secret]"
SecretRule = Literal["refuse", "redact", "keep"]
"""What a write does with a credential: fail, put a mark in its place, or store it as it is."""
_SECRET_RULES: Final = get_args(SecretRule)
# Keys, tokens, passwords in addresses and commands: what is of use to a program alone. The code of a gate or the
# password of the guests' network, told in a sentence, is what people keep a memory for; the rules are less sure of it.
_SURE: Final = 0.97
_RULES: Final = tuple(rule for rule in RULES if rule.score >= _SURE)
_UNSURE: Final = tuple(rule for rule in RULES if rule.score < _SURE)
# What each of these rules needs: a text without it is not gone through, which takes a fifth of the time.
_HINT: Final = re.compile(
    r"[\w.~+/=-]{15}|://|-----|\s-u|--user|['\"]|[?&]|\b(?:seed|recovery|mnemonic|backup|wallet|secret)\b",
    re.IGNORECASE,
)


def checked(draft: Draft, rule: SecretRule) -> Draft:
    """Return what may be written of a memory's fields; raises `SecretInMemory`, which names fields and never values."""
    if rule not in _SECRET_RULES:
        raise ValueError(f"secrets is one of {', '.join(_SECRET_RULES)}")
    if rule == "keep" or not _may_have_secrets(draft):
        return draft
    shown = {name: covered(text) for name, text in _texts(draft.content, draft.source, draft.author).items()}
    found = sorted(name for name, text in shown.items() if text != getattr(draft, name))
    if not found:
        return draft
    if rule == "refuse":
        raise SecretInMemory(
            f"a key, token or password is in the {' and '.join(found)}: leave it out, or say secrets='redact'"
            " (a mark in its place) or secrets='keep'"
        )
    author = shown.get("author", draft.author)
    return draft._replace(content=shown["content"], source=shown["source"], author=author)


def all_checked(drafts: Sequence[Draft], rule: SecretRule) -> list[Draft]:
    """Return what may be written of several memories; an error names the item by its number, from 0."""
    safe = list[Draft]()
    for number, each in enumerate(drafts):
        try:
            safe.append(checked(each, rule))
        except SecretInMemory as error:
            raise SecretInMemory(f"item {number}: {error}") from None
    return safe


def secrets_in(content: str, source: str, author: str | None) -> tuple[Counter[str], Counter[str]]:
    """Return how many credentials a memory has by the names of the rules: those that are sure, and the others."""
    texts = _texts(content, source, author).values()
    return (
        Counter(span.source for text in texts for span in apply(_RULES, text)),
        Counter(span.source for text in texts for span in apply(_UNSURE, text)),
    )


def _may_have_secrets(draft: Draft) -> bool:
    author = draft.author
    return bool(
        _HINT.search(draft.content) or _HINT.search(draft.source) or (author is not None and _HINT.search(author))
    )


def _texts(content: str, source: str, author: str | None) -> Mapping[str, str]:
    texts = {"content": content, "source": source}
    return texts if author is None else {**texts, "author": author}


def masked(memory: Memory) -> Memory:
    """Return the memory with a mark in place of each credential in its content, source and author."""
    author = None if memory.author is None else covered(memory.author)
    return replace(memory, content=covered(memory.content), source=covered(memory.source), author=author)


def covered(text: str) -> str:
    """Return a text with a mark in place of each credential."""
    if not _HINT.search(text):
        return text
    pieces, end = list[str](), 0
    for span in resolve(text, apply(_RULES, text)):
        pieces += [text[end : span.start], MASK]
        end = span.end
    return "".join((*pieces, text[end:]))
