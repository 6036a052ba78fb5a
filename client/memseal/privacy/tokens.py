"""Typed stand-ins such as [EMAIL_1]: how they are written, and how replies write them."""

import re
from typing import Final

_LABELS: Final = {
    "EMAIL": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "CREDIT_CARD": "CARD",
    "IBAN": "IBAN",
    "IP_ADDRESS": "IP",
    "MAC_ADDRESS": "MAC",
    "URL": "URL",
    "SECRET": "SECRET",
    "USERNAME": "USER",
    "ADDRESS": "ADDRESS",
    "DATE_OF_BIRTH": "BIRTHDATE",
    "AGE": "AGE",
    "BANK_ACCOUNT": "ACCOUNT",
    "MEDICAL_RECORD_NUMBER": "RECORD",
    "CRYPTO": "WALLET",
    "PERSON": "PERSON",
    "ORGANIZATION": "ORGANIZATION",
    "LOCATION": "PLACE",
    "TEXT": "TEXT",
}
_ID: Final = "ID"  # all the national identifiers: which country's it is says too much
_NAMES: Final = "|".join(sorted((*set(_LABELS.values()), _ID), key=len, reverse=True))
# As written, escaped for Markdown, in small letters, with a space for the line; without brackets only as written.
# What is escaped is so at both ends: the sign before a token may have been before the value already, as in a path.
TOKEN: Final = re.compile(
    rf"(?P<escaped>\\)?\[\s?(?P<label>(?i:{_NAMES}))(?:[ ]?\\?_[ ]?|[ -]|)(?P<number>[1-9]\d{{0,8}})"
    rf"\s?(?(escaped)\\\]|\])"
    rf"|(?<![A-Za-z0-9_])(?P<bare>{_NAMES})_(?P<bare_number>[1-9]\d{{0,8}})(?![A-Za-z0-9])"
)
# The same without brackets inside a word: what is beside it may become a stand-in, and then it stands alone.
LIKE: Final = re.compile(rf"{TOKEN.pattern}|(?:{_NAMES})_[1-9]\d{{0,8}}(?!\d)")
_PREFIXES: Final = {name[:length] for name in _NAMES.split("|") for length in range(len(name) + 1)}
_NUMBERED: Final = re.compile(rf"(?:{_NAMES})(?:[ ]?_[ ]?|[ -]|)(?:[1-9]\d{{0,8}}\s?)?")
LONGEST: Final = 40


def label_of(kind: str) -> str:
    """Return the word that stands in a token for a type."""
    return _LABELS.get(kind, _ID)


def token(label: str, number: int) -> str:
    """Return a token as we write it."""
    return f"[{label}_{number}]"


def may_become(tail: str) -> bool:
    """Whether the end of a text that goes on may still become a token: all of it, from its first character."""
    plain = tail.replace("\\", "")
    if plain.startswith("["):
        body = plain[1:].upper()
        body = body[1:] if body[:1].isspace() else body
        return body in _PREFIXES or _NUMBERED.fullmatch(body) is not None
    return not plain or (plain == tail and (plain in _PREFIXES or _NUMBERED.fullmatch(plain) is not None))


def as_written(match: re.Match[str]) -> str:
    """Return the token that a match of TOKEN means, as we write it."""
    return token((match["label"] or match["bare"]).upper(), int(match["number"] or match["bare_number"]))
