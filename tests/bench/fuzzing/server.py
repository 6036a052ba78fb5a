"""The server's decoders: all that it looks into is a stranger's."""

import json
import time
from collections.abc import Callable, Iterator
from random import Random

from memseal_server import auth, checkpoints, container, packed, segments
from memseal_server.problems import Problem
from memseal_server.versions import Refused, read_version

from tests.bench.fuzzing import mutation, samples
from tests.bench.fuzzing.mutation import PREAMBLE_SIZE
from tests.bench.fuzzing.target import Target
from tests.server import building

REFUSALS: tuple[type[Exception], ...] = (
    container.Broken,
    Refused,
    packed.MsgpackInvalid,
    segments.SegmentInvalid,
    checkpoints.ObjectInvalid,
    Problem,
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
    segments.read_log_preamble(content[_SEGMENT:], vault=content[_SEGMENT + 16 :][:16], stream=b"")
    segments.piece_digest(content)
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
            yield b"\0" + samples.manifest.octets(given["content"])


def _version(content: bytes) -> None:
    read_version(content, content[16:32])


def _versions() -> Iterator[bytes]:
    return samples.field("decode_keyring", "content")


def _packed(content: bytes) -> None:
    packed.decode(content)


def _values() -> Iterator[bytes]:
    return samples.field("decode_msgpack", "content")


# ── the signature of a request ──────────────────────────────────────────────────────────────────────


def _claim(content: bytes) -> None:
    lines = content.decode("latin-1").split("\n")
    method, target = (lines + ["", ""])[:2]
    values = {
        name: value for name, value in zip(auth.SIGNED_HEADERS, lines[2:], strict=False) if value.isprintable()
    }
    claim = auth.read_claim(auth.Headers(method, target, values), has_body="Content-Digest" in values)
    auth.check_body(claim, b"")
    auth.Freshness(time.time).check_clock(claim)
    auth.prove(claim)


def _claims() -> Iterator[bytes]:
    for signed in building.some_signed_requests():
        yield signed


