"""Key types: bytes that never show themselves."""

import hmac
from typing import ClassVar, NoReturn


class Key:
    """Secret bytes of one use; shows nothing, compares in constant time, is not copied by pickle."""

    __slots__ = ("_material", "loaded")
    SIZE: ClassVar[int] = 32

    def __init__(self, material: bytes) -> None:
        """Take the raw bytes; `ValueError` if their number is not the type's."""
        if len(material) != self.SIZE:
            raise ValueError(f"{type(self).__name__} has {self.SIZE} bytes")
        self._material = bytes(material)
        # What a crypto library made of the bytes, kept by the primitives: loading can cost more than using.
        self.loaded: object = None

    def reveal(self) -> bytes:
        """Return the raw bytes, for the primitives only."""
        return self._material

    def __repr__(self) -> str:
        """Show the type alone."""
        return f"<{type(self).__name__}>"

    def __eq__(self, other: object) -> bool:
        """Compare in constant time; keys of two types are never equal."""
        if not isinstance(other, Key) or type(self) is not type(other):
            return False
        return hmac.compare_digest(self._material, other._material)

    def __hash__(self) -> NoReturn:
        """Refuse: a hash would be a trace of the key."""
        raise TypeError("keys are not hashable")

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise TypeError("keys are not copied")

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise TypeError("keys are not copied")


class VaultKey(Key):
    """The key of one epoch, from which its other keys are derived."""


class RecordKey(Key):
    """Seals the records of one container, or one slot."""


class SigningKey(Key):
    """The seed of an Ed25519 pair: a device's, an epoch's or a kit's for requests."""


class WrappingKey(Key):
    """The seed of an HPKE pair (ML-KEM-768 + X25519)."""


class LocalKey(Key):
    """A device's own key for its cache, traces and marks."""


class CacheSecret(Key):
    """Random bytes for one cache: when they are forgotten, neither it nor a copy of it opens any more."""


class SessionSecret(Key):
    """Random bytes for the kept sessions of a device: when they are forgotten, no session or copy of one opens."""


class ReceiptKey(Key):
    """Seals a device's receipts: shows that it made them."""


class KitSecret(Key):
    """The 128 random bits printed in the emergency kit."""

    SIZE = 16


class RecoverySecret(Key):
    """The 256 random bits of a recovery code; no device keeps them."""


class TypedSecret(Key):
    """The nine digits, in ASCII, of a pairing code that is typed."""

    SIZE = 9


class ScannedSecret(Key):
    """The 128 random bits of a pairing code that a camera reads."""

    SIZE = 16


class PakeKey(Key):
    """What two devices that know one pairing code agreed on."""


class StretchedPassphrase(Key):
    """What Argon2id makes of a passphrase and a salt."""
