"""Sign requests (RFC 9421 and 9530, sync-protocol §3), or not quite as they should be signed."""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memseal_conformance.containers import sha256

_NONCE_SIZE = 16


@dataclass(frozen=True)
class Request:
    """What is signed of a request; `query` is without its question mark."""

    method: str
    path: str
    query: str
    body: bytes | None


@dataclass(frozen=True)
class Signing:
    """Who signs a request, and how; `signer` differs from `key` where the signature is to be another's."""

    key: Ed25519PrivateKey
    signer: Ed25519PrivateKey
    identity: str
    created: int
    nonce: str | None = None
    label: str = "memseal"
    components: Sequence[str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])  # None leaves one out


def headers(request: Request, signing: Signing) -> dict[str, str]:
    """Return the headers that a signed request carries."""
    values = {
        "@method": request.method,
        "@path": request.path,
        "@query": "?" + request.query,
        "memseal-server": signing.identity,
    }
    sent = {"Memseal-Server": signing.identity}
    if request.body is not None:
        sent["Content-Digest"] = values["content-digest"] = content_digest(request.body)
    covered = list(values) if signing.components is None else signing.components
    inner = "(" + " ".join(f'"{name}"' for name in covered) + ")" + _parameters(signing)
    lines = [f'"{name}": {values[name]}' for name in covered] + [f'"@signature-params": {inner}']
    signature = base64.b64encode(signing.signer.sign("\n".join(lines).encode())).decode()
    label = signing.label
    return {**sent, "Signature-Input": f"{label}={inner}", "Signature": f"{label}=:{signature}:"}


def content_digest(body: bytes) -> str:
    """Return the value of a body's `Content-Digest`."""
    return f"sha-256=:{base64.b64encode(sha256(body)).decode()}:"


def _parameters(signing: Signing) -> str:
    parameters: dict[str, Any] = {
        "created": signing.created,
        "nonce": signing.nonce or base64.b64encode(os.urandom(_NONCE_SIZE)).decode(),
        "keyid": signing.key.public_key().public_bytes_raw().hex(),
        "alg": "ed25519",
        "tag": "memseal/1",
        **signing.parameters,
    }
    shown = {name: value for name, value in parameters.items() if value is not None}
    return "".join(
        f";{name}={value}" if isinstance(value, int) else f';{name}="{value}"' for name, value in shown.items()
    )
