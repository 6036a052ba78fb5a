"""The code that one device shows and another takes: a channel and a secret (sync-protocol, *Pairing*)."""

from dataclasses import dataclass
from typing import Final

from memseal.errors import PairingCodeMalformed
from memseal.format.keys import ScannedSecret, TypedSecret
from memseal.format.kit import bytes_of, in_groups, letters_of
from memseal.format.primitives import sha256

CHANNELS: Final = 100_000
_CHANNEL_DIGITS = 5
_CHECK_DIGITS = 2
_TYPED = _CHANNEL_DIGITS + TypedSecret.SIZE + _CHECK_DIGITS
# ISO 7064, MOD 97-10: tells every wrong digit, and every two that changed places.
_MODULUS = 97
_PREFIX = "MSEAL1P"
_FIRST = 3
_CHANNEL_SIZE = 4
_CHECK = 4
_LABEL = b"memseal/v1/pairing"


@dataclass(frozen=True)
class PairingCode:
    """A channel below 100,000, a secret of nine ASCII digits or 16 bytes, and the server where it is known."""

    channel: int
    secret: TypedSecret | ScannedSecret
    server: str = ""

    @property
    def password(self) -> bytes:
        """What SPAKE2 takes."""
        return _LABEL + self.channel.to_bytes(_CHANNEL_SIZE, "big") + self.secret.reveal()

    def to_text(self) -> str:
        """Return what is shown: 16 digits in groups, or letters for a camera."""
        secret = self.secret.reveal()
        if isinstance(self.secret, TypedSecret):
            digits = f"{self.channel:0{_CHANNEL_DIGITS}d}{secret.decode('ascii')}"
            digits += f"{_MODULUS + 1 - int(digits) * 100 % _MODULUS:02d}"
            return "-".join(digits[start : start + 4] for start in range(0, _TYPED, 4))
        content = bytes((_FIRST,)) + self.channel.to_bytes(_CHANNEL_SIZE, "big") + secret + self.server.encode()
        return in_groups(_PREFIX, content + _check(content))


def parse_pairing_code(text: str) -> PairingCode:
    """Return the code that a person typed, or a camera read; raises `PairingCodeMalformed`."""
    letters = letters_of(text)
    if letters.startswith(_PREFIX):
        return _long(letters.removeprefix(_PREFIX))
    if len(letters) != _TYPED or not letters.isdigit() or int(letters) % _MODULUS != 1:
        raise PairingCodeMalformed(f"the code was mistyped: it has {_TYPED} digits; compare it with the other device")
    secret = letters[_CHANNEL_DIGITS:-_CHECK_DIGITS].encode("ascii")
    return PairingCode(int(letters[:_CHANNEL_DIGITS]), TypedSecret(secret))


def _long(letters: str) -> PairingCode:
    content = bytes_of(letters)
    fixed = 1 + _CHANNEL_SIZE + ScannedSecret.SIZE
    if content is None or len(content) < fixed + _CHECK or content[-_CHECK:] != _check(content[:-_CHECK]):
        raise PairingCodeMalformed("the code is not whole: take all of what the other device shows")
    channel = int.from_bytes(content[1 : 1 + _CHANNEL_SIZE], "big")
    try:
        server = content[fixed:-_CHECK].decode()
    except UnicodeDecodeError:
        raise PairingCodeMalformed("the code names no valid server") from None
    if content[0] != _FIRST or channel >= CHANNELS:
        raise PairingCodeMalformed("the code is of a newer format: update memseal on this device")
    return PairingCode(channel, ScannedSecret(content[1 + _CHANNEL_SIZE : fixed]), server)


def _check(content: bytes) -> bytes:
    return sha256(_LABEL, content)[:_CHECK]
