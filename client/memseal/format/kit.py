"""The emergency kit: one string to print (vault-format §7)."""

import base64
from dataclasses import dataclass

from memseal.errors import KitMalformed, KitVersion
from memseal.format.keys import KitSecret
from memseal.format.primitives import sha256

_PREFIX = "MSEAL1"
_RFC4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ENCODE = str.maketrans(_RFC4648, _CROCKFORD)
# A reader takes O for 0, and I and L for 1: what people mistype.
_DECODE = str.maketrans({**dict(zip(_CROCKFORD, _RFC4648, strict=True)), "O": "A", "I": "B", "L": "B"})
_FIXED = 1 + 16 + 16 + 4
_CHECK = 4


@dataclass(frozen=True)
class Kit:
    """Vault id, kit secret, generation, and the server identity where one is known (else empty)."""

    vault_id: bytes
    secret: KitSecret
    generation: int
    server: str

    def to_text(self) -> str:
        """Return the string to keep; it is a secret."""
        content = b"".join(
            (
                b"\x01",
                self.vault_id,
                self.secret.reveal(),
                self.generation.to_bytes(4, "big"),
                self.server.encode(),
            )
        )
        letters = base64.b32encode(content + _check(content)).decode("ascii").rstrip("=").translate(_ENCODE)
        return "-".join((_PREFIX, *(letters[start : start + 4] for start in range(0, len(letters), 4))))


def parse_kit(text: str) -> Kit:
    """Return the kit a person typed or pasted; raises `KitMalformed` or `KitVersion`."""
    letters = "".join(text.replace("-", "").split())
    # Before the case is changed: that would make ASCII letters of some that are not.
    letters = letters.upper() if letters.isascii() else ""
    if not letters.startswith(_PREFIX):
        # The prefix has letters that people mistype too.
        letters = letters.replace("MSEALI", _PREFIX, 1).replace("MSEALL", _PREFIX, 1)
    body = letters.removeprefix(_PREFIX)
    if body == letters or "U" in body:
        raise KitMalformed("this is not an emergency kit: it begins with MSEAL1 and has no letter U")
    try:
        content = base64.b32decode(body.translate(_DECODE) + "=" * (-len(body) % 8))
    except ValueError:
        content = b""
    # Encoded again, so that the bits after the last byte are zeros: otherwise one kit would have many writings.
    if base64.b32encode(content).decode("ascii").rstrip("=") != body.translate(_DECODE):
        raise KitMalformed("the emergency kit has a wrong letter or length: compare it with the sheet")
    if len(content) < _FIXED + _CHECK or content[-_CHECK:] != _check(content[:-_CHECK]):
        raise KitMalformed("the emergency kit was mistyped: compare it with the sheet, letter by letter")
    if content[0] != 1:
        raise KitVersion("the emergency kit is of a newer format: update memseal")
    try:
        server = content[_FIXED:-_CHECK].decode()
    except UnicodeDecodeError:
        raise KitMalformed("the emergency kit names no valid server") from None
    return Kit(content[1:17], KitSecret(content[17:33]), int.from_bytes(content[33:_FIXED], "big"), server)


def _check(content: bytes) -> bytes:
    return sha256(b"memseal/v1/kit", content)[:_CHECK]
