"""Emergency kit and recovery code: each one string to print (vault-format §7)."""

import base64
import re
from dataclasses import dataclass
from typing import Final

from memseal.errors import KitMalformed, KitVersion
from memseal.format.keys import KitSecret, RecoverySecret
from memseal.format.primitives import sha256

_RFC4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ENCODE = str.maketrans(_RFC4648, _CROCKFORD)
# A reader takes O for 0, and I and L for 1: what people mistype.
_DECODE = str.maketrans({**dict(zip(_CROCKFORD, _RFC4648, strict=True)), "O": "A", "I": "B", "L": "B"})
_MISTYPED = re.compile("^MSEAL[IL]")
_VAULT_ID_END = 1 + 16
_GENERATION = 4
_CHECK = 4


@dataclass(frozen=True)
class _Form:
    """What sets one of the two strings apart: its name, prefix, first byte, size of the secret, label of the check."""

    name: str
    prefix: str
    first: int
    secret_size: int
    label: bytes


_KIT: Final = _Form("emergency kit", "MSEAL1", 1, KitSecret.SIZE, b"memseal/v1/kit")
_RECOVERY: Final = _Form("recovery code", "MSEAL1R", 2, RecoverySecret.SIZE, b"memseal/v1/recovery")


@dataclass(frozen=True)
class Kit:
    """Vault id, kit secret, generation, and the server identity where one is known (else empty)."""

    vault_id: bytes
    secret: KitSecret
    generation: int
    server: str

    def to_text(self) -> str:
        """Return the string to keep; it is a secret."""
        return _text(_KIT, self.vault_id, self.secret.reveal(), self.generation, self.server)


@dataclass(frozen=True)
class RecoveryCode:
    """Vault id, recovery secret, generation, and the server identity where one is known (else empty)."""

    vault_id: bytes
    secret: RecoverySecret
    generation: int
    server: str

    def to_text(self) -> str:
        """Return the string to keep; it opens the vault alone."""
        return _text(_RECOVERY, self.vault_id, self.secret.reveal(), self.generation, self.server)


def parse_kit(text: str) -> Kit:
    """Return the kit a person typed or pasted; raises `KitMalformed` or `KitVersion`."""
    vault_id, secret, generation, server = _parts(_KIT, text)
    return Kit(vault_id, KitSecret(secret), generation, server)


def parse_recovery_code(text: str) -> RecoveryCode:
    """Return the recovery code a person typed or pasted; raises `KitMalformed` or `KitVersion`."""
    vault_id, secret, generation, server = _parts(_RECOVERY, text)
    return RecoveryCode(vault_id, RecoverySecret(secret), generation, server)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def _text(form: _Form, vault_id: bytes, secret: bytes, generation: int, server: str) -> str:
    numbers = generation.to_bytes(_GENERATION, "big")
    content = b"".join((bytes((form.first,)), vault_id, secret, numbers, server.encode()))
    return in_groups(form.prefix, content + _check(form, content))


def in_groups(prefix: str, content: bytes) -> str:
    """Return bytes as letters in groups of four, after a prefix."""
    letters = base64.b32encode(content).decode("ascii").rstrip("=").translate(_ENCODE)
    return "-".join((prefix, *(letters[start : start + 4] for start in range(0, len(letters), 4))))


def _check(form: _Form, content: bytes) -> bytes:
    return sha256(form.label, content)[:_CHECK]


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────


def _parts(form: _Form, text: str) -> tuple[bytes, bytes, int, str]:
    content = _decoded(form, _body(form, text))
    secret_end = _VAULT_ID_END + form.secret_size
    fixed = secret_end + _GENERATION
    if len(content) < fixed + _CHECK or content[-_CHECK:] != _check(form, content[:-_CHECK]):
        raise KitMalformed(f"the {form.name} was mistyped: compare it with the sheet, letter by letter")
    if content[0] != form.first:
        raise KitVersion(f"the {form.name} is of a newer format: update memseal")
    try:
        server = content[fixed:-_CHECK].decode()
    except UnicodeDecodeError:
        raise KitMalformed(f"the {form.name} names no valid server") from None
    generation = int.from_bytes(content[secret_end:fixed], "big")
    return content[1:_VAULT_ID_END], content[_VAULT_ID_END:secret_end], generation, server


def _body(form: _Form, text: str) -> str:
    """Return the letters after the prefix, in capitals."""
    letters = letters_of(text)
    # A kit's first letter is 0, unless it is of a newer format.
    if form is _KIT and letters.startswith(_RECOVERY.prefix + "0"):
        raise KitMalformed("this is a recovery code, not an emergency kit: `memseal recover` takes it")
    body = letters.removeprefix(form.prefix)
    if body == letters or "U" in body:
        raise KitMalformed(f"this is no {form.name}: it begins with {form.prefix}- and has no letter U")
    return body


def letters_of(text: str) -> str:
    """Return what a person typed or pasted without what separates groups, in capitals; empty where it is not ASCII."""
    letters = "".join(text.replace("-", "").split())
    # Before the case is changed: that would make ASCII letters of some that are not.
    letters = letters.upper() if letters.isascii() else ""
    # The prefix has a digit that people mistype too.
    return _MISTYPED.sub("MSEAL1", letters, count=1)


def _decoded(form: _Form, body: str) -> bytes:
    content = bytes_of(body)
    if content is None:
        raise KitMalformed(f"the {form.name} has a wrong letter or length: compare it with the sheet")
    return content


def bytes_of(letters: str) -> bytes | None:
    """Return the bytes that letters after a prefix stand for, or None where they stand for none."""
    letters = letters.translate(_DECODE)
    try:
        content = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except ValueError:
        return None
    # Encoded again, so that the bits after the last byte are zeros: otherwise one kit would have many writings.
    return content if base64.b32encode(content).decode("ascii").rstrip("=") == letters else None
