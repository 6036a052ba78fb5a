"""Keys, ids and random-looking bytes of one case, all from the seed of the run."""

import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memseal_conformance.containers import sha256

ID_SIZE = 16
WRAP_SIZE = 1_216
COST = {"name": "argon2id", "memory": 65_536, "passes": 3, "lanes": 4}


class Source:
    """Gives the same bytes for the same seed, case and name, so that a run can be repeated elsewhere."""

    def __init__(self, seed: bytes, case_id: str) -> None:
        self._seed = sha256(b"memseal/conformance", seed, case_id.encode())
        self.named: set[bytes] = set()  # ids and public keys

    def some(self, name: str, length: int) -> bytes:
        """Return bytes that nobody can tell from random ones."""
        return hashlib.shake_256(self._seed + name.encode()).digest(length)

    def key(self, name: str) -> Ed25519PrivateKey:
        """Return the private signing key of this name: a device's, `epoch 1`, `kit 1`, `recovery 1`."""
        return Ed25519PrivateKey.from_private_bytes(self.some(f"key {name}", 32))

    def public(self, name: str) -> bytes:
        """Return the public signing key of this name."""
        return self._naming(self.key(name).public_key().public_bytes_raw())

    def vault(self, founder: str) -> bytes:
        """Return the id of the vault that a device founds (vault-format §6)."""
        return self._naming(sha256(b"memseal/v1/vault", self.public(founder))[:ID_SIZE])

    def object_id(self, name: str) -> bytes:
        """Return the id of the manifest or part of this name."""
        return self._naming(self.some(f"object {name}", ID_SIZE))

    def entry(self, name: str, since: int) -> dict[str, Any]:
        """Return a device's entry; `bob:2` is the second key set of the device `bob`."""
        return {
            "id": self.some(f"device {name.partition(':')[0]}", ID_SIZE),
            "sign": self.public(name),
            "wrap": self.some(f"wrap {name}", WRAP_SIZE),
            "since": since,
            "ended": None,
        }

    def opener(self, purpose: str, generation: int, since: int) -> dict[str, Any]:
        """Return the entry of a kit or a recovery code."""
        name = f"{purpose} {generation}"
        fields = {
            "generation": generation,
            "since": since,
            "wrap": self.some(f"wrap {name}", WRAP_SIZE),
            "request": self.public(name),
        }
        return {**fields, "cost": dict(COST)} if purpose == "kit" else fields

    def first_fields(self, founder: str) -> Mapping[str, Any]:
        """Return the public section of a vault's version 1."""
        return {
            "version": 1,
            "previous": bytes(32),
            "epoch": 1,
            "epoch_since": 1,
            "epoch_key": self.public("epoch 1"),
            "devices": [self.entry(founder, 1)],
            "kit": self.opener("kit", 1, 1),
            "recovery": None,
            "passphrase_since": 1,
            "floor": None,
        }

    def _naming(self, name: bytes) -> bytes:
        self.named.add(name)
        return name
