"""What client and server decide alike from the same bytes: whatever only one of them takes is a fault."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from memseal.errors import FormatError
from memseal.format import primitives
from memseal.format.acceptance import accept
from memseal.format.keyring import KeyringVersion, decode_version, digest_of, signed_message
from memseal.format.primitives import sha256
from memseal.format.records import HEADER_SIZE
from memseal.format.values import decode_value
from memseal_server import keyring, packed
from memseal_server.versions import Refused, read_version
from tests.bench.fuzzing import client, mutation, server
from tests.bench.fuzzing.mutation import bodies_of, framed
from tests.bench.fuzzing.target import Target
from tests.format import building
from tests.format.building import ANN, BEN, EVE, VAULT, Step

REFUSALS: tuple[type[Exception], ...] = (*client.REFUSALS, *server.REFUSALS)


def _value(content: bytes) -> None:
    ours, theirs = (_taken(decode, content) for decode in (decode_value, packed.decode))
    if ours != theirs:
        raise AssertionError(f"the client says {ours:.60}, the server {theirs:.60}")


def _taken(decode: Callable[[bytes], Any], content: bytes) -> str:
    try:
        return repr(decode(content))
    except REFUSALS:
        return "no"


# ── keyring versions ────────────────────────────────────────────────────────────────────────────────


def _grown() -> tuple[Step, ...]:
    first = building.first()
    second = building.joined(first, BEN)
    third = building.revoked(second, BEN, ANN)
    fourth = building.passphrase_changed(third, ANN)
    with_code = building.follow(first, building.Plan(new_epoch=True, recovery=1, signers=[ANN.sign]))
    return first, second, third, fourth, with_code


_STEPS = _grown()
_BEFORE: tuple[KeyringVersion | None, ...] = (None, *(step.version for step in _STEPS))
_THEIRS = tuple(None if each is None else read_version(each.content, VAULT) for each in _BEFORE)
_SIGNERS = {
    primitives.public_signing_key(key): key
    for key in (
        *(device.sign for device in (ANN, BEN, EVE, ANN.renewed(), BEN.renewed())),
        *(building.epoch_key(epoch) for epoch in range(1, 5)),
    )
}
_OPEN_TO_SERVERS = frozenset({"kdf_unknown"})
"""A server does not judge derivations: it never derives."""


def _version(content: bytes) -> None:
    at, content = (content[0] if content else 0) % len(_BEFORE), content[1:]
    ours, theirs = _ours(at, content), _theirs(at, content)
    if ours != theirs and ours not in _OPEN_TO_SERVERS:
        raise AssertionError(f"the client says {ours}, the server {theirs}")


def _ours(at: int, content: bytes) -> str:
    try:
        version = decode_version(content, VAULT)
    except FormatError as error:
        # A server has one word for whatever breaks the form (vault-format §7).
        return error.code if error.code in ("keyring_limit", "kdf_unknown") else "keyring_malformed"
    try:
        accept(_BEFORE[at], version)
    except FormatError as error:
        return error.code
    return "accepted"


def _theirs(at: int, content: bytes) -> str:
    try:
        keyring.accept(_THEIRS[at], read_version(content, VAULT))
    except Refused as refused:
        return refused.code
    return "accepted"


def _versions() -> Iterator[bytes]:
    before = (0, 1, 2, 3, 1)
    for at, step in zip(before, _STEPS, strict=True):
        yield bytes((at,)) + step.version.content
        yield bytes((at,)) + step.version.stripped()
    row = [bytes(16), 1, bytes(12), 1, 1172, 1, bytes(32), 7]
    floor = {"checkpoint": bytes(16), "digest": bytes(32), "parts": [bytes(16)], "logs": [row]}
    raw = building.raw_of(
        building.follow(_STEPS[0], building.Plan()),
        [ANN.sign, building.epoch_key(1)],
        lambda public: public.update(floor=floor),
    )
    yield b"\1" + raw.to_bytes()


def _change_version(content: bytes, random: Random) -> bytes:
    if not content or random.random() < 0.2:
        return mutation.behind(1, mutation.container(mutation.change_packed))(content, random)
    at, (preamble, bodies) = content[:1], (content[1:65], bodies_of(content[1:]))
    public = mutation.unpacked(bodies[0]) if bodies else None
    if not isinstance(public, dict):
        return mutation.scratched(content, random)
    public = mutation.changed_value(public, random)
    if random.random() < 0.1 and isinstance(public, dict):
        at = bytes((random.randrange(len(_BEFORE)),))
        before = _BEFORE[at[0]]
        if before is not None:
            public |= {"previous": before.digest, "version": before.public.version + 1}
    return at + _signed(preamble, public, bodies[2:], mutation.unpacked(bodies[1]) if len(bodies) > 1 else None)


def _signed(preamble: bytes, public: Any, rest: list[bytes], approval: Any) -> bytes:
    """Return a version of this public section with preamble and approval to match, signed by who signed before."""
    if isinstance(public, dict):
        epoch, number = (_number(public.get(name)) for name in ("epoch", "version"))
        preamble = (
            preamble[:12] + epoch.to_bytes(4, "big") + preamble[16:40] + number.to_bytes(8, "big") + preamble[48:]
        )
    encoded = mutation.packed(public)
    whole = framed(preamble, [encoded, b"", *rest])
    open_end = 64 + HEADER_SIZE + len(encoded)
    sealed = sha256(whole[open_end + HEADER_SIZE :]) if rest else _sealed_of(approval)
    message = signed_message(digest_of(whole[:open_end], sealed))
    keys = [key for key in _signers_of(approval) if key in _SIGNERS]
    rows = [[key, primitives.sign(_SIGNERS[key], message)] for key in keys]
    return framed(preamble, [encoded, mutation.packed({"sealed": sealed, "signatures": rows}), *rest])


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 32 else 1


def _sealed_of(approval: Any) -> bytes:
    found = approval.get("sealed") if isinstance(approval, dict) else None
    return found if isinstance(found, bytes) else bytes(32)


def _signers_of(approval: Any) -> list[bytes]:
    rows = approval.get("signatures") if isinstance(approval, dict) else None
    return (
        [row[0] for row in rows if isinstance(row, list) and row and isinstance(row[0], bytes)]
        if isinstance(rows, list)
        else []
    )


TARGETS = {
    "both-msgpack": Target(_value, client._values, REFUSALS, mutation.change_packed),
    "both-keyring": Target(_version, _versions, REFUSALS, _change_version),
}
