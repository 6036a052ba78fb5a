"""Makes keyring versions, logs and signed requests, written from the spec and not from the server."""

import base64
import copy
import hashlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAGIC = bytes.fromhex("894D5345414C0D0A")
BODY_SIZE = 1_096  # the smallest sealed body
RECORD_SIZE = 12 + BODY_SIZE

Fields = dict[str, Any]


def private_key(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def some_bytes(name: str, length: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(length)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def vault_id(first_signing_key: Ed25519PrivateKey) -> bytes:
    return sha256(b"memseal/v1/vault", public(first_signing_key))[:16]


def preamble(kind: int, epoch: int, vault: bytes, stream: bytes, nonce: bytes) -> bytes:
    head = MAGIC + bytes([1, 1, kind, 0]) + epoch.to_bytes(4, "big") + vault + stream + nonce
    return head + zlib.crc32(head).to_bytes(4, "big")


def record(index: int, body: bytes) -> bytes:
    head = len(body).to_bytes(4, "big") + index.to_bytes(4, "big")
    return head + zlib.crc32(head).to_bytes(4, "big") + body


def pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def entry(name: str, since: int) -> Fields:
    """One device's key set, all from its name; `name:2` is the second key set of the device `name`."""
    device = name.partition(":")[0]
    return {
        "id": some_bytes(f"id {device}", 16),
        "sign": public(private_key(name)),
        "wrap": some_bytes(f"wrap {name}", 1_216),
        "since": since,
        "ended": None,
    }


def object_id(name: str) -> bytes:
    """The id of the manifest or part of this name."""
    return some_bytes(f"object {name}", 16)


def manifest(vault: bytes, name: str) -> bytes:
    body = some_bytes(f"manifest {name}", BODY_SIZE)
    return preamble(3, 1, vault, object_id(name), bytes(12)) + record(0, body)


def part(vault: bytes, name: str, count: int = 1, size: int = BODY_SIZE) -> bytes:
    records = (record(index, some_bytes(f"{name} {index}", size)) for index in range(count))
    return preamble(3, 0, vault, object_id(name), bytes(12)) + b"".join(records)


def opener(what: str, generation: int, since: int) -> Fields:
    name = f"{what} {generation}"
    return {
        "generation": generation,
        "since": since,
        "wrap": some_bytes(f"wrap {name}", 1_216),
        "request": public(private_key(name)),
    }


def kit(generation: int, since: int) -> Fields:
    cost = {"name": "argon2id", "memory": 65_536, "passes": 3, "lanes": 4}
    return {**opener("kit", generation, since), "cost": cost}


@dataclass
class Draft:
    """A keyring version before it is signed: every part can be broken."""

    vault: bytes
    fields: Fields
    signers: list[Ed25519PrivateKey]
    sealed_part: bytes = b""
    overrides: Fields = field(default_factory=dict[str, Any])  # of the preamble

    def __post_init__(self) -> None:
        if not self.sealed_part:
            boxes = pack({"boxes": [], "slots": []})
            secrets = some_bytes(f"secrets {self.fields['version']}", BODY_SIZE)
            self.sealed_part = record(2, boxes) + record(3, secrets)

    def head(self) -> bytes:
        ids: Fields = {
            "kind": 1,
            "epoch": self.fields["epoch"],
            "vault": self.vault,
            "stream": bytes(8) + self.fields["version"].to_bytes(8, "big"),
            "nonce": bytes(12),
        }
        return preamble(**{**ids, **self.overrides}) + record(0, pack(self.fields))

    def digest(self) -> bytes:
        return sha256(b"memseal/v1/keyring", self.head(), sha256(self.sealed_part))

    def signatures(self) -> list[list[bytes]]:
        signed = b"memseal/v1/keyring-sign" + self.digest()
        return [[public(key), key.sign(signed)] for key in self.signers]

    def approval(self) -> Fields:
        return {"sealed": sha256(self.sealed_part), "signatures": self.signatures()}

    def build(self, approval: Fields | None = None) -> bytes:
        return self.head() + record(1, pack(approval or self.approval())) + self.sealed_part

    def stripped(self) -> bytes:
        return self.build()[: -len(self.sealed_part)]

    def next(self, *signers: str) -> "Draft":
        """The version after this one, with nothing changed; signed by these and the epoch key."""
        fields = copy.deepcopy(self.fields)
        fields["version"] += 1
        fields["previous"] = self.digest()
        draft = Draft(self.vault, fields, [private_key(name) for name in signers])
        draft.signers.append(private_key(f"epoch {fields['epoch']}"))
        return draft

    def add(self, name: str) -> "Draft":
        """Let a device in; it signs too."""
        self.fields["devices"].append(entry(name, self.fields["version"]))
        self.signers.append(private_key(name))
        return self

    def end(self, position: int, streams: list[list[Any]] | None = None) -> "Draft":
        """End the entry at a position; the epoch has to change as well."""
        ended = {"version": self.fields["version"], "streams": streams or []}
        self.fields["devices"][position]["ended"] = ended
        return self

    def new_epoch(self) -> "Draft":
        """Begin the next epoch; its key signs too."""
        self.fields["epoch"] += 1
        self.fields["epoch_since"] = self.fields["version"]
        name = f"epoch {self.fields['epoch']}"
        self.fields["epoch_key"] = public(private_key(name))
        self.signers.append(private_key(name))
        return self

    def floor(self, name: str, parts: Sequence[str] = (), rows: Sequence[list[Any]] = ()) -> "Draft":
        """Commit the checkpoint of this name."""
        self.fields["floor"] = {
            "checkpoint": object_id(name),
            "digest": sha256(manifest(self.vault, name)),
            "parts": [object_id(part_name) for part_name in parts],
            "logs": [list(row) for row in rows],
        }
        return self

    def new_kit(self) -> "Draft":
        self.fields["kit"] = kit(self.fields["kit"]["generation"] + 1, self.fields["version"])
        return self


def first_version(name: str = "alice") -> Draft:
    """Version 1 of the vault that a device founds."""
    founder = private_key(name)
    fields = {
        "version": 1,
        "previous": bytes(32),
        "epoch": 1,
        "epoch_since": 1,
        "epoch_key": public(private_key("epoch 1")),
        "devices": [entry(name, 1)],
        "kit": kit(1, 1),
        "recovery": None,
        "passphrase_since": 1,
        "floor": None,
    }
    return Draft(vault_id(founder), fields, [founder, private_key("epoch 1")])


@dataclass
class Log:
    """A device's log under the version that began its epoch."""

    vault: bytes
    owner: Ed25519PrivateKey
    epoch: int
    begun_by: bytes
    salt: bytes = b"salt"
    pieces: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        nonce = self.begun_by[:8] + self.salt
        self.stream = sha256(b"memseal/v1/stream", self.vault, public(self.owner), nonce)[:16]
        self.preamble = preamble(2, self.epoch, self.vault, self.stream, nonce)

    def append(self, count: int = 1, size: int = BODY_SIZE) -> "Log":
        for _ in range(count):
            index = len(self.pieces)
            self.pieces.append(record(index, some_bytes(f"{self.salt!r} {index}", size)))
        return self

    def content(self, stop: int | None = None) -> bytes:
        return self.preamble + b"".join(self.pieces[:stop])

    def chain(self, stop: int | None = None) -> bytes:
        chain = sha256(self.preamble)
        for piece in self.pieces[:stop]:
            chain = sha256(chain, piece)
        return chain

    def segment(self, start: int, stop: int) -> bytes:
        """The segment of the records from `start` up to `stop`; the first also has the preamble."""
        piece = b"".join(self.pieces[start:stop])
        if start == 0:
            return segment(0, 0, bytes(32), self.preamble + piece)
        return segment(len(self.content(start)), start, self.chain(start), piece)

    def end(self, stop: int | None = None, *, next_seq: int) -> Fields:
        count = len(self.pieces) if stop is None else stop
        return {
            "length": len(self.content(stop)),
            "records": count,
            "chain": self.chain(stop).hex(),
            "next": next_seq,
        }

    def row(self, stop: int, segment: int, counter: int = 0) -> list[Any]:
        """The floor's row for the first `stop` records of this log, which the segments below `segment` have."""
        nonce = self.preamble[48:60]
        length = len(self.content(stop))
        return [self.stream, self.epoch, nonce, segment, length, stop, self.chain(stop), counter or stop]

    def stream_end(self, stop: int | None = None) -> list[Any]:
        """The entry of `ended.streams` for this log."""
        count = len(self.pieces) if stop is None else stop
        return [self.stream, count, self.chain(stop), len(self.content(stop))]


def segment(start: int, first_index: int, chain: bytes, piece: bytes, length: int | None = None) -> bytes:
    size = len(piece) if length is None else length
    head = start.to_bytes(8, "big") + size.to_bytes(8, "big") + first_index.to_bytes(4, "big")
    return head + chain + piece


def content_digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(sha256(body)).decode()}:"


@dataclass
class Signing:
    """How one request is signed; every part can be broken."""

    key: Ed25519PrivateKey
    identity: str
    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    created: int | None = None
    nonce: str | None = None
    label: str = "memseal"
    components: list[str] | None = None
    parameters: Fields = field(default_factory=dict[str, Any])  # None leaves one out

    def headers(self) -> dict[str, str]:
        values = {
            "@method": self.method,
            "@path": self.path,
            "@query": "?" + self.query,
            "memseal-server": self.identity,
        }
        headers = {"Memseal-Server": self.identity}
        if self.body is not None:
            headers["Content-Digest"] = values["content-digest"] = content_digest(self.body)
        covered = self.components or list(values)
        inner = "(" + " ".join(f'"{name}"' for name in covered) + ")" + self._parameters()
        lines = [f'"{name}": {values[name]}' for name in covered] + [f'"@signature-params": {inner}']
        signature = base64.b64encode(self.key.sign("\n".join(lines).encode())).decode()
        return {
            **headers,
            "Signature-Input": f"{self.label}={inner}",
            "Signature": f"{self.label}=:{signature}:",
        }

    def _parameters(self) -> str:
        parameters: Fields = {
            "created": int(time.time()) if self.created is None else self.created,
            "nonce": self.nonce or new_nonce(),
            "keyid": public(self.key).hex(),
            "alg": "ed25519",
            "tag": "memseal/1",
            **self.parameters,
        }
        shown = {name: value for name, value in parameters.items() if value is not None}
        return "".join(
            f";{name}={value}" if isinstance(value, int) else f';{name}="{value}"' for name, value in shown.items()
        )


_nonces = iter(range(2**32))


def new_nonce() -> str:
    return base64.b64encode(some_bytes(f"nonce {next(_nonces)}", 16)).decode()
