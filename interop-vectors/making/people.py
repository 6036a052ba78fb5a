"""The fixed keys of the vectors: devices, vault keys, kits; nothing here is drawn."""

from dataclasses import dataclass
from hashlib import sha256

from memseal.format import primitives
from memseal.format.keys import SigningKey, WrappingKey


def seed(name: str, size: int = 32) -> bytes:
    """Bytes that belong to a name alone."""
    return sha256(f"memseal vectors: {name}".encode()).digest()[:size]


def public_sign(private: bytes) -> bytes:
    return primitives.public_signing_key(SigningKey(private))


def sign(private: bytes, message: bytes) -> bytes:
    return primitives.sign(SigningKey(private), message)


@dataclass(frozen=True)
class Device:
    """A device with its private keys; one that replaces its keys keeps its id."""

    name: str
    number: int = 1

    @property
    def id(self) -> bytes:
        return seed(f"device {self.name}", 16)

    @property
    def sign(self) -> bytes:
        return seed(f"sign {self.name} {self.number}")

    @property
    def wrap(self) -> bytes:
        return seed(f"wrap {self.name} {self.number}")

    @property
    def local(self) -> bytes:
        return seed(f"local {self.name} {self.number}")

    @property
    def public_sign(self) -> bytes:
        return public_sign(self.sign)

    @property
    def public_wrap(self) -> bytes:
        return primitives.public_wrapping_key(WrappingKey(self.wrap))

    def renewed(self) -> "Device":
        return Device(self.name, self.number + 1)


ANN, BEN, EVE = Device("Ann"), Device("Ben"), Device("Eve")
VAULT = sha256(b"memseal/v1/vault" + ANN.public_sign).digest()[:16]
OTHER_VAULT = sha256(b"memseal/v1/vault" + EVE.public_sign).digest()[:16]
