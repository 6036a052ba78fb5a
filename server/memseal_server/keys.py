"""The keys that a vault's objects lie under (sync-protocol §8)."""

from memseal_server.blobs import numbered
from memseal_server.checkpoints import Kind


def vault_folder(vault: bytes) -> str:
    """Return the first folder, which holds all that a vault has."""
    return f"{vault.hex()}/"


def versions_folder(vault: bytes) -> str:
    """Return the folder of the open parts of versions, numbered from 1."""
    return f"{vault.hex()}/keyring/"


def sealed_key(vault: bytes, number: int, digest: bytes) -> str:
    """Return the key of a version's sealed part, which has this SHA-256."""
    return f"{numbered(f'{vault.hex()}/sealed/', number)}-{digest.hex()}"


def names_folder(vault: bytes) -> str:
    """Return the folder of the names of the vault's logs, numbered from 0."""
    return f"{vault.hex()}/streams/"


def log_folder(vault: bytes, stream: bytes) -> str:
    """Return the folder of a log's segments, numbered from 0, or from the floor's row on."""
    return f"{vault.hex()}/logs/{stream.hex()}/"


def checkpoints_folder(vault: bytes, kind: Kind) -> str:
    """Return the folder of the vault's manifests or parts, which their ids name."""
    return f"{vault.hex()}/{kind.value}/"
