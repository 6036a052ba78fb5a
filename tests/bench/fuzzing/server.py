"""The server's decoders: all that it looks into is a stranger's."""

import hashlib
import json
import re
from collections.abc import Iterator
from random import Random

from memseal_server import auth, checkpoints, container, invitations, packed, segments
from memseal_server.blobs import StoreUnavailable
from memseal_server.problems import Problem
from memseal_server.versions import Refused, read_version
from tests.bench.fuzzing import mutation, samples
from tests.bench.fuzzing.mutation import PREAMBLE_SIZE
from tests.bench.fuzzing.target import Target
from tests.interop.manifest import octets
from tests.server import building

REFUSALS: tuple[type[Exception], ...] = (
    container.Broken,
    Refused,
    packed.MsgpackInvalid,
    segments.SegmentInvalid,
    checkpoints.ObjectInvalid,
    Problem,
    StoreUnavailable,
)
_SEGMENT = segments.HEADER_SIZE
_CHANGE = mutation.container(mutation.scratched)


def _container(content: bytes) -> None:
    records = list(container.walk(content, start=PREAMBLE_SIZE, first_index=0))
    if records and (records[-1].stop != len(content) or records[0].start != PREAMBLE_SIZE):
        raise AssertionError("records do not fill what they were found in")
    container.read_preamble(content, kind=container.KIND_LOG, vault=content[16:32])


def _containers() -> Iterator[bytes]:
    for operation in ("walk_records", "scan", "read_log", "open_part"):
        yield from samples.field(operation, "content")


def _segment(content: bytes) -> None:
    seq, content = (content[0] % 3 if content else 0), content[1:]
    found = segments.read_segment(content, seq=seq)
    segments.piece_digest(content)
    piece = content[_SEGMENT:]
    if seq == 0 and found.header.start == 0:
        segments.read_log_preamble(piece, vault=piece[16:32], stream=piece[32:48])
    if found.end.length != found.header.start + len(content) - _SEGMENT:
        raise AssertionError("a segment ends elsewhere than its bytes")


def _segments() -> Iterator[bytes]:
    yield from (b"\0" + content for content in samples.field("decode_segment", "content"))
    for log in samples.field("read_log", "content"):
        yield b"\0" + bytes(8) + len(log).to_bytes(8, "big") + bytes(36) + log


def _change_segment(content: bytes, random: Random) -> bytes:
    header, piece = content[: 1 + _SEGMENT].ljust(1 + _SEGMENT, b"\0"), _CHANGE(content[1 + _SEGMENT :], random)
    if random.random() < 0.3:
        header = mutation.scratched(header, random)[: 1 + _SEGMENT].ljust(1 + _SEGMENT, b"\0")
    return header[:9] + len(piece).to_bytes(8, "big") + header[17:] + piece


def _checkpoint(content: bytes) -> None:
    kind, content = list(checkpoints.Kind)[content[0] % 2 if content else 0], content[1:]
    checkpoints.check(content, content[16:32], kind, content[32:48])


def _checkpoints() -> Iterator[bytes]:
    yield from (b"\1" + content for content in samples.field("open_part", "content"))
    for given in samples.inputs("open_manifest"):
        if given["content"] is not None:
            yield b"\0" + octets(given["content"])


def _version(content: bytes) -> None:
    read_version(content, content[16:32])


def _versions() -> Iterator[bytes]:
    return samples.field("decode_keyring", "content")


def _packed(content: bytes) -> None:
    packed.decode(content)


def _values() -> Iterator[bytes]:
    return samples.field("decode_msgpack", "content")


# ── the signature of a request ──────────────────────────────────────────────────────────────────────

_LINES = auth.SIGNED_HEADERS
_BODY = b"a body"
_WORDS = tuple(
    '";created=1";created=-1;created=9e99;created=?0;nonce="";nonce=:AAAA:;keyid=1;alg=a;tag=();expires=1'
    ' "@method" "@path";req "@query-param";name="a" "@signature-params" "memseal-server";bs ;sf ;key="a"'
    ' memseal=() memseal=:: sha-256=:: sha-512=:AA==: , ; = ( ) : ?1 @1 \\" \xff 1.5 99999999999999999999'.split(" ")
)


def _claim(content: bytes) -> None:
    method, target, *lines = [*content.decode(errors="surrogateescape").split("\n"), "", ""]
    values = {name: value for name, value in zip(_LINES, lines, strict=False) if value}
    claim = auth.read_claim(auth.Headers(method, target, values), has_body="Content-Digest" in values)
    auth.Freshness(lambda: 0.0).check_first_time(claim)
    auth.prove(claim)
    if claim.content_digest is not None:
        auth.check_body(claim, hashlib.sha256(_BODY).digest())


def _claims() -> Iterator[bytes]:
    for body in (None, _BODY):
        signing = building.Signing(
            building.private_key("ann"),
            "http://127.0.0.1",
            "PUT",
            "/v1/vaults/a",
            "refill=true",
            body,
            1,
            "A" * 22 + "==",
        )
        values = signing.headers()
        lines = ["PUT", "/v1/vaults/a?refill=true", *(values.get(name, "") for name in _LINES)]
        yield "\n".join(lines).encode()


def _change_claim(content: bytes, random: Random) -> bytes:
    if random.random() < 0.3:
        return mutation.scratched(content, random)
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    pieces = re.split(rb"(?<=[;,= ()])|(?=[;,= ()])", lines[at])
    spot = random.randrange(len(pieces))
    word = random.choice((random.choice(_WORDS).encode(), *pieces))
    pieces[spot : spot + random.randrange(3)] = [word] * random.choice((0, 1, 1, 2))
    lines[at] = b"".join(pieces)
    return b"\n".join(lines)


# ── what lies in the server's own store ─────────────────────────────────────────────────────────────


def _offer(content: bytes) -> None:
    uses, _ = invitations._read_offer(content)
    if uses > invitations.MAX_USES:
        raise AssertionError("an invitation for more vaults than one may be for")


def _offers() -> Iterator[bytes]:
    yield json.dumps({"uses": 3, "expires": 1_767_225_600}).encode()


TARGETS = {
    "server-container": Target(_container, _containers, REFUSALS, _CHANGE),
    "server-segment": Target(_segment, _segments, REFUSALS, _change_segment),
    "server-checkpoint": Target(_checkpoint, _checkpoints, REFUSALS, mutation.behind(1, _CHANGE)),
    "server-version": Target(_version, _versions, REFUSALS, mutation.container(mutation.change_packed)),
    "server-msgpack": Target(_packed, _values, REFUSALS, mutation.change_packed),
    "server-offer": Target(_offer, _offers, REFUSALS, mutation.change_json),
    "server-signature": Target(_claim, _claims, REFUSALS, _change_claim),
}
